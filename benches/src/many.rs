//! Many servers at once, and one that says too much.

use std::time::{Duration, Instant};

use futures::future::try_join_all;

use crate::{
    client::{Place, Result},
    ours, rmcp_client,
};

/// Times of rmcp and ours.
pub(crate) type Times = (Duration, Duration);

/// Starts so many servers and lists their tools, all at once: first those that a person enabled and that are
/// known, then those that are known to nobody, which end again once they have told their tools.
pub(crate) async fn start(server: &str, count: usize) -> Result<(Times, Times)> {
    let place = Place::Stdio(vec![server.to_owned()]);
    let begun = Instant::now();
    let clients = try_join_all((0..count).map(|_| rmcp_client::open(&place))).await?;
    let started = begun.elapsed();
    try_join_all(clients.into_iter().map(rmcp_client::Rmcp::close)).await?;
    let ended = begun.elapsed();

    let many = ours::Many::new(&place, count).await?;
    let begun = Instant::now();
    many.list_all().await?;
    let first = begun.elapsed();
    let many = many.again().await?;
    let begun = Instant::now();
    many.start_all().await?;
    let ours = begun.elapsed();
    many.close().await;
    Ok(((started, ours), (ended, first)))
}

/// How long a result over the cap takes to become an error.
pub(crate) async fn too_large(server: &str) -> Result<Duration> {
    let place = Place::Stdio(vec![server.to_owned(), "--big-bytes".to_owned(), (17 << 20).to_string()]);
    let client = ours::connect(&place).await?;
    let begun = Instant::now();
    match client.call("big").await {
        Err(error) if error.to_string().contains("more than") => Ok(begun.elapsed()),
        Err(error) => Err(error),
        Ok(_) => Err("a result over the cap was handed over".into()),
    }
}
