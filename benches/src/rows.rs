//! The rows: what is measured, interleaved, and how it is printed.

use std::{
    fmt::Write as _,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use serde_json::{Map, Value, json};

use crate::{
    beside,
    client::{Place, Result, many_in_flight, one_in_flight},
    http::{Http, Talk},
    many,
    once::{self, Cost},
    ours, raw, rmcp_client, server, shell,
};

/// One row: a unit, and a value for each client that has one.
#[derive(Debug)]
pub(crate) struct Row {
    name: &'static str,
    unit: &'static str,
    raw: Option<f64>,
    rmcp: Option<f64>,
    ours: f64,
    /// Ours by raw and ours by rmcp: medians over rounds, so not quotients of the other columns.
    by_raw: Option<f64>,
    by_rmcp: Option<f64>,
}

struct HttpServer(Child);

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn http_server(command: &mut Command) -> Result<(HttpServer, String)> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().ok_or("no pipe")?;
    let held = HttpServer(child);
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    Ok((held, format!("http://{}/mcp", line.trim())))
}

/// Raw (where it has one), rmcp, ours.
type Round = (Option<f64>, Option<f64>, f64);

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Medians of three columns, and of the ratios within each round.
fn row(name: &'static str, unit: &'static str, rounds: &[Round]) -> Row {
    let column = |pick: fn(&Round) -> Option<f64>| {
        let values: Vec<_> = rounds.iter().filter_map(pick).collect();
        (!values.is_empty()).then(|| median(values))
    };
    Row {
        name,
        unit,
        raw: column(|round| round.0),
        rmcp: column(|round| round.1),
        ours: column(|round| Some(round.2)).unwrap_or(f64::NAN),
        by_raw: column(|round| round.0.map(|raw| round.2 / raw)),
        by_rmcp: column(|round| round.1.map(|rmcp| round.2 / rmcp)),
    }
}

/// Measures everything.
pub(crate) async fn all(quick: bool) -> std::result::Result<Vec<Row>, Box<dyn std::error::Error>> {
    let rounds = if quick { 3 } else { 7 };
    let calls = if quick { 1_000 } else { 10_000 };
    let mut rows = Vec::new();
    let stdio = Place::Stdio(vec![server()?.display().to_string()]);
    let (_server, url) = http_server(Command::new(server()?).arg("--http")).map_err(|error| error.to_string())?;
    let places = [(stdio, 64, "stdio"), (Place::Http(url), 8, "http")];
    for (place, width, kind) in &places {
        let measured = calling(place, rounds, calls, *width).await.map_err(|error| format!("{kind}: {error}"))?;
        let (latency, rate): (Vec<_>, Vec<_>) = measured.into_iter().unzip();
        let names = if *kind == "stdio" {
            ("stdio call p50, 1 in flight", "stdio calls/s, 64 in flight")
        } else {
            ("http call p50, 1 in flight", "http calls/s, 8 in flight")
        };
        rows.push(row(names.0, "µs", &latency));
        rows.push(row(names.1, "1/s", &rate));
    }
    let server = server()?.display().to_string();
    for (job, cpu, peak) in [
        ("big", "15 MB result, start included: CPU", "15 MB result: peak memory"),
        ("tools", "10,000 tools, start included: CPU", "10,000 tools: peak memory"),
        ("start", "cold start and one list: CPU", "cold start and one list: peak memory"),
    ] {
        let mut costs = Vec::new();
        for _ in 0..rounds {
            costs.push(once::measure(job, &server).await.map_err(|error| error.to_string())?);
        }
        rows.extend(costs_rows(cpu, peak, &costs));
    }
    let home = shell::Home::new(&server).map_err(|error| error.to_string())?;
    type Measure = fn(&shell::Home) -> Result<(Cost, Cost)>;
    for (measure, cpu, peak) in [
        (shell::Home::list as Measure, "cold `tools` from the shell: CPU", "cold `tools`: peak memory"),
        (shell::Home::call, "cold `call` from the shell: CPU", "cold `call`: peak memory"),
    ] {
        let costs = (0..rounds).map(|_| measure(&home)).collect::<Result<Vec<_>>>();
        rows.extend(costs_rows(cpu, peak, &costs.map_err(|error| error.to_string())?));
    }
    let measured = endpoint(&home, &places[1].0, rounds, calls).await;
    rows.extend(measured.map_err(|error| format!("endpoint: {error}"))?);
    let (mut starts, mut firsts) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (known, first) = many::start(&server, SERVERS).await.map_err(|error| error.to_string())?;
        for (rows, (rmcp, ours)) in [(&mut starts, known), (&mut firsts, first)] {
            rows.push((None, Some(rmcp.as_secs_f64() * 1e3), ours.as_secs_f64() * 1e3));
        }
    }
    rows.push(row("50 servers started, all tools listed", "ms", &starts));
    rows.push(row("50 new ones listed and ended again", "ms", &firsts));
    let over = many::too_large(&server).await.map_err(|error| error.to_string())?;
    rows.push(row("result over the cap: time to the error", "ms", &[(None, None, over.as_secs_f64() * 1e3)]));
    Ok(rows)
}

const SERVERS: usize = 50;

/// The load generator through the endpoint, beside the same asking the same server directly: the cheap one, over
/// stdio behind the endpoint and over HTTP directly, and an ordinary one, over HTTP in both.
async fn endpoint(home: &shell::Home, cheap: &Place, rounds: usize, calls: usize) -> Result<Vec<Row>> {
    let Place::Http(cheap) = cheap else { return Err("not over HTTP".into()) };
    let (_server, ordinary) = http_server(&mut Command::new(beside("rmcp-server")?))?;
    home.add("ordinary", &["--url", &ordinary])?;
    let serving = home.serve()?;
    let ours = format!("http://127.0.0.1:{}/mcp", serving.port);
    let before = serving.memory()?;
    let mut rows = Vec::new();
    for (direct, talk, tool, time, rate) in [
        (cheap, Talk::Bare, "bench__echo", "endpoint: call p50, 1 in flight", "endpoint: calls/s, 8 in flight"),
        (
            &ordinary,
            Talk::Stateless,
            "ordinary__echo",
            "endpoint, rmcp server: call p50",
            "endpoint, rmcp server: calls/s, 8",
        ),
    ] {
        let clients = [Http::connect(direct, talk, "echo").await?, Http::connect(&ours, Talk::Stateless, tool).await?];
        for client in &clients {
            many_in_flight(client, calls / 10, 4).await?;
        }
        let (mut latency, mut throughput) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (mut times, mut rates) = ([0.0; 2], [0.0; 2]);
            for (at, client) in clients.iter().enumerate() {
                times[at] = one_in_flight(client, calls).await?.as_secs_f64() * 1e6;
                rates[at] = many_in_flight(client, calls, 8).await?;
            }
            latency.push((Some(times[0]), None, times[1]));
            throughput.push((Some(rates[0]), None, rates[1]));
        }
        rows.push(row(time, "µs", &latency));
        rows.push(row(rate, "1/s", &throughput));
    }
    let after = serving.memory()?;
    rows.push(row("endpoint: memory before any call", "MB", &[(None, None, before)]));
    rows.push(row("endpoint: memory after these calls", "MB", &[(None, None, after)]));
    Ok(rows)
}

/// Calls a second with 8 in flight, and the median time of one call in microseconds.
pub(crate) async fn one_endpoint(url: &str, talk: Talk, tool: &str, quick: bool) -> Result<(f64, f64)> {
    let calls = if quick { 400 } else { 4_000 };
    let client = Http::connect(url, talk, tool).await?;
    many_in_flight(&client, calls / 10, 4).await?;
    let time = one_in_flight(&client, calls).await?.as_secs_f64() * 1e6;
    Ok((many_in_flight(&client, calls, 8).await?, time))
}

fn costs_rows(cpu: &'static str, peak: &'static str, costs: &[(Cost, Cost)]) -> [Row; 2] {
    let rounds = |pick: fn(&Cost) -> f64| {
        costs.iter().map(|(rmcp, ours)| (None, Some(pick(rmcp)), pick(ours))).collect::<Vec<_>>()
    };
    [row(cpu, "ms", &rounds(|cost| cost.cpu_ms)), row(peak, "MB", &rounds(|cost| cost.peak_mb))]
}

async fn calling(place: &Place, rounds: usize, calls: usize, width: usize) -> Result<Vec<(Round, Round)>> {
    let clients = [raw::connect(place).await?, rmcp_client::connect(place).await?, ours::connect(place).await?];
    for client in &clients {
        many_in_flight(&**client, calls / 10, 4).await?;
    }
    let mut measured = Vec::new();
    for _ in 0..rounds {
        let (mut latency, mut rate) = ([0.0; 3], [0.0; 3]);
        for (at, client) in clients.iter().enumerate() {
            latency[at] = one_in_flight(&**client, calls).await?.as_secs_f64() * 1e6;
            rate[at] = many_in_flight(&**client, calls, width).await?;
        }
        measured.push(((Some(latency[0]), Some(latency[1]), latency[2]), (Some(rate[0]), Some(rate[1]), rate[2])));
    }
    Ok(measured)
}

/// For people.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut out =
        format!("{:38} {:>12} {:>12} {:>12}   {:>10} {:>10}\n", "", "raw", "rmcp", "ours", "ours/raw", "ours/rmcp");
    for row in rows {
        let value =
            |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1} {}", row.unit));
        let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"));
        let _ = writeln!(
            out,
            "{:38} {:>12} {:>12} {:>12}   {:>10} {:>10}",
            row.name,
            value(row.raw),
            value(row.rmcp),
            value(Some(row.ours)),
            ratio(row.by_raw),
            ratio(row.by_rmcp),
        );
    }
    out
}

/// For programs.
pub(crate) fn json(rows: &[Row]) -> Value {
    let entry = |row: &Row| json!({"unit": row.unit, "raw": row.raw, "rmcp": row.rmcp, "ours": row.ours, "oursByRaw": row.by_raw, "oursByRmcp": row.by_rmcp});
    Value::Object(rows.iter().map(|row| (row.name.to_owned(), entry(row))).collect::<Map<_, _>>())
}
