//! Many clients at one time, with equal ids, at different endpoints.
//!
//! As it runs with the others it is short. The whole of it, by hand:
//! `PORTCULLIS_LOAD_SECONDS=60 PORTCULLIS_LOAD_CALLS=64 cargo nextest run -p portcullis-tests load_`.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use portcullis::{
    futures::future::join_all,
    serde_json::json,
    store::Mode,
    tokio::{self, io::BufReader, net::TcpStream},
};

use super::{
    groups::{GROUPS, Groups},
    http::{keep_alive, request},
};

const CLIENTS: usize = 50;

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Memory of this process that is in use, in KiB.
#[cfg(target_os = "linux")]
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[cfg(not(target_os = "linux"))]
fn memory() -> u64 {
    0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s54_load_many_clients_with_equal_ids_each_see_their_own_answers() {
    let seconds = from_environment("PORTCULLIS_LOAD_SECONDS", 2);
    let calls = from_environment("PORTCULLIS_LOAD_CALLS", 8);
    let groups = Groups::new().await;
    for server in ["fake", "other"] {
        groups.endpoint.host.gate().set_mode(server, Mode::Allow).await.unwrap();
    }
    let (done, longest) = (AtomicU64::new(0), AtomicU64::new(0));
    let end = Instant::now() + Duration::from_secs(seconds);
    let in_flight = (0..CLIENTS).flat_map(|client| (0..calls).map(move |id| (client, id)));
    let one = |(client, id): (usize, u64)| {
        let (groups, done, longest) = (&groups, &done, &longest);
        async move {
            // Two groups in turn: one client in two hears of the one server, the others of the other.
            let group = client % 2;
            let tool = ["fake__echo", "other__echo"][group];
            let path = format!("/groups/{}/mcp", GROUPS[group]);
            let authorization = format!("Bearer {}", groups.tokens[group]);
            let mut connection = BufReader::new(TcpStream::connect(("127.0.0.1", groups.endpoint.port)).await.unwrap());
            let mut round = 0;
            while Instant::now() < end {
                let text = format!("{client}/{id}/{round}");
                let meta = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                    "io.modelcontextprotocol/clientInfo": {"name": format!("client {client}"), "version": "1"},
                });
                let params = json!({"name": tool, "arguments": {"text": text}, "_meta": meta});
                let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string();
                let headers = [
                    ("Authorization", authorization.as_str()),
                    ("MCP-Protocol-Version", "2026-07-28"),
                    ("Mcp-Method", "tools/call"),
                    ("Mcp-Name", tool),
                    ("Accept", "application/json"),
                ];
                let message = request("POST", &path, groups.endpoint.port, &headers, &body);
                let asked = Instant::now();
                let answer = keep_alive(&mut connection, &message).await;
                longest.fetch_max(asked.elapsed().as_millis().try_into().unwrap(), Ordering::Relaxed);
                assert_eq!(
                    (&answer["id"], &answer["result"]["content"][0]["text"]),
                    (&json!(id), &json!(text)),
                    "{answer}"
                );
                done.fetch_add(1, Ordering::Relaxed);
                round += 1;
            }
        }
    };
    let warm = async {
        tokio::time::sleep(Duration::from_millis(seconds * 300)).await;
        (memory(), done.load(Ordering::Relaxed))
    };
    let ((before, early), _) = tokio::join!(warm, join_all(in_flight.map(one)));
    let (after, done) = (memory(), done.load(Ordering::Relaxed));
    let longest = longest.load(Ordering::Relaxed);
    println!("{done} calls, {before} KiB after a third of the time, {after} KiB at the end, {longest} ms at most");
    assert!(done > early && done >= CLIENTS as u64 * calls, "{done}");
    // The trail of the harness is kept in memory, as are the calls that its servers saw: half a KiB or so each.
    let kept = (done - early) * 3;
    assert!(after <= before + kept + 32 * 1024, "{before} KiB became {after} KiB");
}
