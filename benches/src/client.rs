//! What the three clients have in common.

use std::{error::Error, time::Duration};

use futures::future::BoxFuture;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A connected client that can call `echo` and `big`.
pub(crate) trait Client: Sync {
    fn call<'a>(&'a self, tool: &'static str) -> BoxFuture<'a, Result<usize>>;
}

pub(crate) const ARGUMENTS: &str = r#"{"text":"hello world, this is a short echo payload"}"#;

/// Where the server of a row is.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Stdio(Vec<String>),
    Http(String),
}

/// Median time of one call at a time.
pub(crate) async fn one_in_flight(client: &dyn Client, calls: usize) -> Result<Duration> {
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        let started = std::time::Instant::now();
        client.call("echo").await?;
        times.push(started.elapsed());
    }
    times.sort();
    Ok(times[calls / 2])
}

/// Calls a second with `width` in flight.
pub(crate) async fn many_in_flight(client: &dyn Client, calls: usize, width: usize) -> Result<f64> {
    let started = std::time::Instant::now();
    let each = calls / width;
    let lanes = (0..width).map(|_| async {
        for _ in 0..each {
            client.call("echo").await?;
        }
        Ok::<_, Box<dyn Error + Send + Sync>>(())
    });
    futures::future::try_join_all(lanes).await?;
    #[allow(clippy::cast_precision_loss, reason = "a rate")]
    Ok((each * width) as f64 / started.elapsed().as_secs_f64())
}
