//! The same over standard input and output, a message a line, for clients that only start commands.

use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt as _};
use portcullis::limits::Limits;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader},
    sync::mpsc,
};

use super::{
    client::Client,
    http::carried,
    message::{self, Message},
};
use crate::endpoint::Endpoint;

/// Messages that wait to be written.
const UNWRITTEN: usize = 64;

/// Serves one client until its input ends; what is under way then is taken back.
///
/// # Errors
///
/// What reading or writing said; a line over the limit.
pub(crate) async fn serve(
    endpoint: &Arc<Endpoint>,
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    let client = Client::new(endpoint.clone());
    let limit = Limits::default().message_bytes;
    let mut input = BufReader::new(input);
    let (on, mut told) = mpsc::channel::<String>(UNWRITTEN);
    let mut notices = client.notices();
    let mut changes = endpoint.changes.tools(endpoint).await;
    let mut under_way = FuturesUnordered::new();
    let mut line = Vec::new();
    loop {
        let written = tokio::select! {
            Some(message) = told.recv() => message,
            Some(()) = under_way.next(), if !under_way.is_empty() => continue,
            Ok(notice) = notices.recv() => notice.to_string(),
            Ok(()) = changes.changed() => r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned(),
            // What was read of a line stays in `line` when something else comes first.
            read = read_line(&mut input, &mut line, limit) => {
                if !read? {
                    return Ok(());
                }
                let text = std::mem::take(&mut line);
                match Message::read(&text) {
                    Err(error) => message::answer(None, &Err(error)),
                    Ok(Message::Answer { id, answer }) => {
                        client.answered(id, answer);
                        continue;
                    }
                    Ok(Message::Notification { method, params }) => {
                        if method == "notifications/cancelled" {
                            client.cancel(params);
                        }
                        continue;
                    }
                    Ok(Message::Request { id, method, params }) => {
                        let (id, method) = (id.get().to_owned(), method.into_owned());
                        let params = params.map(ToOwned::to_owned);
                        let (client, on) = (client.clone(), on.clone());
                        under_way.push(async move {
                            let result = carried(&client, &id, &method, params.as_deref(), &on).await;
                            // Behind all that it told on the way.
                            let _ = on.send(message::answer(Some(&id), &result)).await;
                        });
                        continue;
                    }
                }
            }
        };
        output.write_all(written.replace(['\n', '\r'], " ").as_bytes()).await?;
        output.write_all(b"\n").await?;
        output.flush().await?;
    }
}

/// Adds the rest of a line to `line`; whether there was one. Cancel-safe.
async fn read_line(
    input: &mut BufReader<impl AsyncRead + Unpin>,
    line: &mut Vec<u8>,
    limit: usize,
) -> std::io::Result<bool> {
    let room = (limit + 1).saturating_sub(line.len());
    let read = input.take(room as u64).read_until(b'\n', line).await?;
    if line.len() > limit {
        return Err(std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            format!("a line is longer than {limit} bytes"),
        ));
    }
    Ok(read > 0 || !line.is_empty())
}
