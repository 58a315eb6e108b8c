//! The same over standard input and output, a message a line, for clients that only start commands.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{
    future::BoxFuture,
    stream::{FuturesUnordered, StreamExt as _},
};
use portcullis::limits::Limits;
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader},
    sync::mpsc,
};

use super::{
    client::Client,
    headers::{self, Era},
    http::carried,
    listening::{Said, Told},
    message::{self, Message, RpcError},
};
use crate::endpoint::Endpoint;

/// Most requests of the newer era that are under way on one pipe.
const REQUESTS: usize = 1024;
/// How long requests that are under way may take to end once the input has.
const END_TIME: Duration = Duration::from_secs(2);
/// Messages that wait to be written.
const UNWRITTEN: usize = 64;

/// Serves one client until its input ends; what is under way then has two seconds to end, and is taken back after that.
///
/// # Errors
///
/// What reading or writing said; a line over the limit.
pub(crate) async fn serve(
    endpoint: &Arc<Endpoint>,
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    let limit = Limits::default().message_bytes;
    let mut input = BufReader::new(input);
    let (on, mut written) = mpsc::channel::<String>(UNWRITTEN);
    let pipe = Pipe { session: Client::new(endpoint.clone()), requests: Arc::default(), on };
    let mut told = Told::of_session(&pipe.session).await;
    let mut under_way = FuturesUnordered::new();
    let mut line = Vec::new();
    loop {
        let message = tokio::select! {
            Some(message) = written.recv() => message,
            Some(()) = under_way.next(), if !under_way.is_empty() => continue,
            said = told.next() => match said {
                // Who shook hands is told unasked; others listen for it.
                Some(Said::Message(message)) if pipe.session.identity().is_some() => message,
                Some(_) => continue,
                // What it shows is no more.
                None => return Ok(()),
            },
            // What was read of a line stays in `line` when something else comes first.
            read = read_line(&mut input, &mut line, limit) => {
                if !read? {
                    break;
                }
                under_way.extend(pipe.message(&std::mem::take(&mut line)));
                continue;
            }
        };
        write(&mut output, &message).await?;
    }
    // Whoever said all that it has to say still hears the answers that come soon.
    let soon = tokio::time::sleep(END_TIME);
    let mut soon = std::pin::pin!(soon);
    loop {
        let message = tokio::select! {
            biased;
            Some(message) = written.recv() => message,
            done = under_way.next() => match done {
                Some(()) => continue,
                None => break,
            },
            () = &mut soon => break,
        };
        write(&mut output, &message).await?;
    }
    while let Ok(message) = written.try_recv() {
        write(&mut output, &message).await?;
    }
    Ok(())
}

async fn write(output: &mut (impl AsyncWrite + Unpin), message: &str) -> std::io::Result<()> {
    let line = [&message.replace(['\n', '\r'], " "), "\n"].concat();
    output.write_all(line.as_bytes()).await?;
    output.flush().await
}

/// Both eras on one pipe: a session for those who shake hands, and requests that each say who asks.
struct Pipe {
    session: Arc<Client>,
    /// Requests of the newer era that are under way, by id.
    requests: Requests,
    on: mpsc::Sender<String>,
}

type Requests = Arc<Mutex<HashMap<String, Arc<Client>>>>;

fn locked(requests: &Requests) -> MutexGuard<'_, HashMap<String, Arc<Client>>> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pipe {
    /// What a message wants done.
    fn message(&self, text: &[u8]) -> Option<BoxFuture<'static, ()>> {
        let refused = |id: Option<&str>, error| {
            let (on, answer) = (self.on.clone(), message::answer(id, &Err(error)));
            Some(Box::pin(async move { drop(on.send(answer).await) }) as BoxFuture<'static, ()>)
        };
        match Message::read(text) {
            Err(error) => refused(None, error),
            Ok(Message::Answer { id, answer }) => {
                self.session.answered(id, answer);
                None
            }
            Ok(Message::Notification { method, params }) => {
                if let Some(id) = message::cancelled(params).filter(|_| method == "notifications/cancelled") {
                    self.cancel(id);
                }
                None
            }
            Ok(Message::Request { id, method, params }) => match headers::era_of_body(&method, params) {
                Err(error) => refused(Some(id.get()), error),
                Ok(Era::Handshake) => Some(self.request(self.session.clone(), id, &method, params)),
                Ok(Era::Stateless(identity)) => {
                    let client = Client::stateless(self.session.endpoint.clone(), identity);
                    let (taken, count) = {
                        let requests = locked(&self.requests);
                        (requests.contains_key(id.get()), requests.len())
                    };
                    if count >= REQUESTS {
                        let why = format!("{REQUESTS} requests are under way already");
                        return refused(Some(id.get()), RpcError::new(RpcError::INTERNAL, why));
                    }
                    if taken {
                        return refused(
                            Some(id.get()),
                            RpcError::new(RpcError::INVALID_REQUEST, "a request of this id is under way"),
                        );
                    }
                    Some(self.request(client, id, &method, params))
                }
            },
        }
    }

    fn request(
        &self,
        client: Arc<Client>,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
    ) -> BoxFuture<'static, ()> {
        let (id, method, params) = (id.to_owned(), method.to_owned(), params.map(ToOwned::to_owned));
        let (on, requests) = (self.on.clone(), self.requests.clone());
        if client.stateless {
            locked(&requests).insert(id.get().to_owned(), client.clone());
        }
        Box::pin(async move {
            let listens = client.stateless && method == "subscriptions/listen";
            let result = match listens {
                true => listened(&client, &id, params.as_deref(), &on).await,
                false => carried(&client, id.get(), &method, params.as_deref(), &on).await,
            };
            locked(&requests).remove(id.get());
            // Behind all that it told on the way.
            let _ = on.send(message::answer(Some(id.get()), &result)).await;
        })
    }

    /// The client takes the request of this id back.
    fn cancel(&self, id: &str) {
        let of = locked(&self.requests).get(id).cloned();
        of.unwrap_or_else(|| self.session.clone()).cancel(id);
    }
}

/// `subscriptions/listen`, until the client takes it back.
async fn listened(
    client: &Arc<Client>,
    id: &RawValue,
    params: Option<&RawValue>,
    on: &mpsc::Sender<String>,
) -> Result<String, RpcError> {
    let (_under_way, cancelled) = client.begin(id.get())?;
    let mut told = Told::listen(client, id, params).await?;
    let telling = async {
        while let Some(said) = told.next().await {
            if let Said::Message(message) = said
                && on.send(message).await.is_err()
            {
                return;
            }
        }
    };
    tokio::select! {
        biased;
        Ok(()) = cancelled => Err(RpcError::new(RpcError::CANCELLED, "you took the request back")),
        () = telling => Err(RpcError::new(RpcError::INTERNAL, "nothing more is told")),
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
