//! Resources.

use serde_json::{Value, json};

use crate::{Failure, content};

pub(crate) fn list() -> Value {
    let resource = |uri: &str, name: &str, mime: &str| json!({"uri": uri, "name": name, "description": format!("{name} of the suite"), "mimeType": mime});
    json!([
        resource("test://static-text", "static text", "text/plain"),
        resource("test://static-binary", "static binary", "image/png"),
        resource("test://watched-resource", "watched resource", "text/plain"),
    ])
}

pub(crate) fn templates() -> Value {
    json!([{
        "uriTemplate": "test://template/{id}/data", "name": "template", "description": "Data by id",
        "mimeType": "application/json",
    }])
}

pub(crate) fn read(uri: &str) -> Result<Value, Failure> {
    let of_template = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let content = match (uri, of_template) {
        ("test://static-text", _) => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."})
        }
        ("test://static-binary", _) => json!({"uri": uri, "mimeType": "image/png", "blob": content::IMAGE}),
        ("test://watched-resource", _) => json!({"uri": uri, "mimeType": "text/plain", "text": "Watched."}),
        (_, Some(id)) => {
            let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
        }
        _ => return Err(Failure::Rpc(-32_002, format!("no resource `{uri}`"))),
    };
    Ok(json!({"contents": [content]}))
}
