//! `tools/call`, `resources/read`, `prompts/get`: what goes on to a server and back, as text.

use std::{borrow::Cow, sync::Arc};

use portcullis::{
    GateError,
    approval::{Approver, Arguments, Call},
    gate::{CallContext, ErrorClass},
    model_text::json_for_model,
    session::{LogLevel, SessionError, Waiter},
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use tokio::sync::mpsc;

use super::{
    asking::{AsksClient, Missed, Notices, ProgressToken, Puts},
    client::Client,
    dispatch,
    message::{self, RpcError, with_member},
    suspended::{self, Put, Suspends},
};
use crate::{
    offer::of_gate,
    own::{self, OwnTool},
};

/// What every request that leads to a server may hold.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Extras<'a> {
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<Meta<'a>>,
    #[serde(borrow, default)]
    request_state: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    input_responses: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    #[serde(borrow, default)]
    progress_token: Option<&'a RawValue>,
    #[serde(default, rename = "io.modelcontextprotocol/logLevel")]
    log_level: Option<LogLevel>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Located<'a> {
    #[serde(borrow)]
    uri: Cow<'a, str>,
}

/// Something that is wanted of a server.
#[derive(Debug, Clone)]
enum Wanted {
    Call(Call),
    Own(&'static OwnTool, Call),
    Read { server: String, uri: String },
    Prompt { server: String, name: String, arguments: Option<Box<RawValue>> },
}

pub(crate) fn read<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, RpcError> {
    serde_json::from_str(params.map_or("{}", RawValue::get))
        .map_err(|error| RpcError::invalid_params(format!("the parameters do not fit: {error}")))
}

/// Calls a tool.
pub(crate) async fn call(
    client: &Arc<Client>,
    params: Option<&RawValue>,
    on: &mpsc::Sender<String>,
) -> Result<String, RpcError> {
    let named: Named<'_> = read(params)?;
    let own = client.endpoint.own_tool(&named.name).await.map_err(|error| of_gate(&error))?;
    if let Some(tool) = own {
        let call = Call {
            server: own::SERVER.to_owned(),
            tool: named.name.clone().into_owned(),
            arguments: arguments(named.arguments)?,
            caller: client.caller(),
        };
        return wanted(client, Wanted::Own(tool, call), params, on).await;
    }
    let found = client.endpoint.offer.tool(&named.name).await.map_err(|error| of_gate(&error))?;
    let Some((server, tool)) = found else {
        let name: String = named.name.chars().take(128).collect();
        return Err(RpcError::invalid_params(format!("there is no tool `{}`", portcullis::display::escape(&name))));
    };
    let arguments = arguments(named.arguments)?;
    wanted(client, Wanted::Call(Call { server, tool, arguments, caller: client.caller() }), params, on).await
}

fn arguments(written: Option<&RawValue>) -> Result<Arguments, RpcError> {
    Arguments::parse(written.map_or("{}", RawValue::get).to_owned())
        .map_err(|error| RpcError::invalid_params(format!("the arguments do not fit: {error}")))
}

/// Reads a resource.
pub(crate) async fn read_resource(
    client: &Arc<Client>,
    params: Option<&RawValue>,
    on: &mpsc::Sender<String>,
) -> Result<String, RpcError> {
    let located: Located<'_> = read(params)?;
    let found = client.endpoint.offer.resource(&located.uri).await.map_err(|error| of_gate(&error))?;
    let Some((server, uri)) = found else { return Err(no_resource(client, &located.uri)) };
    let read = wanted(client, Wanted::Read { server, uri }, params, on).await;
    read.map_err(|error| match error.code {
        // The code of the older revisions, and no other says it.
        RpcError::RESOURCE_NOT_FOUND => no_resource(client, &located.uri),
        _ => error,
    })
}

/// SEP-2164.
pub(crate) fn no_resource(client: &Client, uri: &str) -> RpcError {
    let code = if client.stateless { RpcError::INVALID_PARAMS } else { RpcError::RESOURCE_NOT_FOUND };
    RpcError::new(code, "there is no such resource").with_data(json!({"uri": uri}))
}

/// Gets a prompt.
pub(crate) async fn get_prompt(
    client: &Arc<Client>,
    params: Option<&RawValue>,
    on: &mpsc::Sender<String>,
) -> Result<String, RpcError> {
    let named: Named<'_> = read(params)?;
    let found = client.endpoint.offer.prompt(&named.name).await.map_err(|error| of_gate(&error))?;
    let Some((server, name)) = found else {
        return Err(RpcError::invalid_params("there is no such prompt"));
    };
    let arguments = named.arguments.map(ToOwned::to_owned);
    wanted(client, Wanted::Prompt { server, name, arguments }, params, on).await
}

/// Brings it to its server, with a client that can be asked on the way, each kind in its manner.
async fn wanted(
    client: &Arc<Client>,
    wanted: Wanted,
    params: Option<&RawValue>,
    on: &mpsc::Sender<String>,
) -> Result<String, RpcError> {
    let extras: Extras<'_> = read(params)?;
    let log_level = extras.meta.as_ref().and_then(|meta| meta.log_level);
    let token = extras.meta.and_then(|meta| meta.progress_token).map(|token| token.get().to_owned());
    let offers = client.offers();
    let asks = offers.elicitation_form || offers.elicitation_url || offers.sampling || offers.roots;
    if !client.stateless || !(asks || client.takes_tasks()) {
        if client.stateless {
            client.set_log_level(log_level);
        }
        let handler = Arc::new(AsksClient { client: client.clone(), on: on.clone(), missed: Missed::default() });
        let progress = ProgressToken::default();
        progress.set(token);
        let result = carried(client, wanted, progress, on.clone(), handler.clone()).await;
        return handler.missed.explain(client, result);
    }
    let about = format!("{wanted:?}");
    let suspended = &client.endpoint.suspended;
    let put = Put { answers: suspended::answers(extras.input_responses)?, token, log_level };
    if let Some(state) = &extras.request_state {
        return suspended.resume(&about, state, put, on).await;
    }
    let of = client;
    let client = client.clone();
    let work = |progress, on, handler: Arc<Suspends>| async move {
        let result = carried(&client, wanted, progress, on, handler.clone()).await;
        handler.missed.explain(&client, result)
    };
    suspended.begin(about, of, put, on, work).await
}

/// Carries it out; progress goes to the client as it comes.
async fn carried(
    client: &Client,
    wanted: Wanted,
    token: ProgressToken,
    on: mpsc::Sender<String>,
    handler: Arc<impl Puts + 'static>,
) -> Result<String, RpcError> {
    let (progress, mut progressed) = mpsc::channel::<Box<RawValue>>(16);
    let asks = client.endpoint.options.ask_in_client && handler.offers().elicitation_form;
    let notices =
        Notices { token: token.clone(), on: on.clone(), asks: asks.then(|| handler.clone() as Arc<dyn Puts>) };
    // One that is put again may bring a token then.
    let tells = handler.is_put_again() || token.get().is_some();
    let approver = (tells || asks).then(|| Arc::new(notices) as Arc<dyn Approver>);
    let context = CallContext {
        client: client.description(),
        waiter: Waiter { progress: tells.then_some(progress), handler: Some(handler), client: client.number },
        approver,
    };
    let is_read = matches!(wanted, Wanted::Read { .. });
    let work = async {
        let result = sent(client, wanted, &context).await?;
        Ok(if client.stateless { finished(result, is_read) } else { result })
    };
    let mut work = std::pin::pin!(work);
    if !tells {
        return work.await;
    }
    loop {
        tokio::select! {
            biased;
            Some(params) = progressed.recv() => tell_progress(&on, &params, &token).await,
            done = &mut work => {
                // What came before the result is told before it.
                while let Ok(params) = progressed.try_recv() {
                    tell_progress(&on, &params, &token).await;
                }
                return done;
            }
        }
    }
}

/// Progress of a server, under the client's own token.
async fn tell_progress(on: &mpsc::Sender<String>, params: &RawValue, token: &ProgressToken) {
    if let Some(token) = token.get()
        && let Some(params) = with_member(params, "progressToken", &token)
    {
        let _ = on.send(message::notification("notifications/progress", &params)).await;
    }
}

/// What a server gave, as a result from revision 2026-07-28 on: one that is final, whatever the server says of it, since
/// what it asks reaches the client by way of us alone; with a hint for whoever keeps what was read.
pub(super) fn finished(result: String, is_read: bool) -> String {
    // A name may be written with escapes.
    let may_say = result.contains("resultType") || result.contains("\\u00");
    let set = |text: &str, name: &str, json: &str| {
        let raw: &RawValue = serde_json::from_str(text).ok()?;
        with_member(raw, name, json)
    };
    let result = match may_say {
        true => set(&result, "resultType", "\"complete\"").unwrap_or(result),
        false => dispatch::complete_result(&result).unwrap_or(result),
    };
    if !is_read {
        return result;
    }
    let Some(members) = serde_json::from_str(&result).ok().and_then(message::members) else { return result };
    if members.iter().any(|(name, _)| name == "ttlMs") {
        return result;
    }
    let hinted = set(&result, "cacheScope", "\"private\"");
    hinted.and_then(|hinted| set(&hinted, "ttlMs", &dispatch::TTL_MS.to_string())).unwrap_or(result)
}

async fn sent(client: &Client, wanted: Wanted, context: &CallContext) -> Result<String, RpcError> {
    let gate = client.endpoint.gate();
    let caller = client.caller();
    let result = match wanted {
        Wanted::Own(tool, call) => {
            let gone = || RpcError::new(RpcError::INTERNAL, "the endpoint ends");
            let gateway = client.endpoint.gateway().ok_or_else(gone)?;
            let done = own::call(&gateway, tool, client.endpoint.group(), call, context).await;
            return done.or_else(|error| refused(client, &error));
        }
        Wanted::Call(call) => match gate.call_for(call, context).await {
            Err(error) => return refused(client, &error),
            done => done,
        },
        Wanted::Read { server, uri } => gate.read_for(&server, &uri, Some(&caller), context).await,
        Wanted::Prompt { server, name, arguments } => {
            gate.prompt_for(&server, &name, arguments.as_deref(), Some(&caller), context).await
        }
    };
    let result = result.map_err(|error| of_server(&error).unwrap_or_else(|| of_gate(&error)))?;
    let text = result.into_string();
    Ok(match json_for_model(&text) {
        Cow::Owned(text) => text,
        Cow::Borrowed(_) => text,
    })
}

/// An error that the server itself answered with goes on as it is.
fn of_server(error: &GateError) -> Option<RpcError> {
    let GateError::Session { source, .. } = error else { return None };
    let SessionError::Rpc { code, message, data } = &**source else { return None };
    let error = RpcError::new(*code, message.clone());
    Some(match data.as_deref().and_then(|data| serde_json::from_str(data).ok()) {
        Some(data) => error.with_data(data),
        None => error,
    })
}

/// What a model is told of a call that did not happen: a result, since errors of the protocol seldom reach it.
fn refused(client: &Client, error: &GateError) -> Result<String, RpcError> {
    if let Some(error) = of_server(error) {
        return Err(error);
    }
    let told = of_gate(error);
    let asked = matches!(error, GateError::Session { source, .. } if matches!(**source, SessionError::Input { .. }));
    match error.class() {
        // It is up to the client's program what it offers.
        _ if asked && client.stateless => Err(told),
        ErrorClass::Blocked | ErrorClass::Unreachable | ErrorClass::Authorization => {
            let help = error.help().map(|help| format!("\n{help}")).unwrap_or_default();
            let text = format!("{}{help}", told.message);
            let code = json!({"portcullis/code": error.code()});
            Ok(json!({"content": [{"type": "text", "text": text}], "isError": true, "_meta": code}).to_string())
        }
        _ => Err(told),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s30_what_a_server_gave_is_final_whatever_it_says_of_itself() {
        for (result, expected) in [
            ("{}", r#"{"resultType":"complete"}"#),
            (r#"{"a":1}"#, r#"{"resultType":"complete","a":1}"#),
            (r#"{"resultType":"complete","a":1e400}"#, r#"{"resultType":"complete","a":1e400}"#),
            (r#"{"resultType":"input_required","a":1}"#, r#"{"resultType":"complete","a":1}"#),
            (r#"{"resultTyp\u0065":"input_required"}"#, r#"{"resultType":"complete"}"#),
            (
                r#"{"a":{"resultType":"input_required"}}"#,
                r#"{"resultType":"complete","a":{"resultType":"input_required"}}"#,
            ),
        ] {
            assert_eq!(finished(result.to_owned(), false), expected);
        }
    }

    #[test]
    fn what_was_read_is_kept_by_nobody_unless_its_server_says_so() {
        for (result, expected) in [
            (r#"{"contents":[]}"#, r#"{"ttlMs":0,"cacheScope":"private","resultType":"complete","contents":[]}"#),
            (r#"{"ttlMs":5}"#, r#"{"resultType":"complete","ttlMs":5}"#),
            // What stands in the text of a resource says nothing of it.
            (r#"{"a":{"ttlMs":5}}"#, r#"{"ttlMs":0,"cacheScope":"private","resultType":"complete","a":{"ttlMs":5}}"#),
        ] {
            assert_eq!(finished(result.to_owned(), true), expected);
        }
    }
}
