//! The trail as a table.

use portcullis::audit::AuditLine;

use super::table;

/// One row for each line.
#[must_use]
pub fn text(lines: &[AuditLine]) -> String {
    let rows: Vec<_> = lines.iter().map(row).collect();
    table::text(&["WHEN", "WHAT", "SERVER", "TOOL", "CALLER", "DECIDED", "OUTCOME"], &rows)
}

fn row(line: &AuditLine) -> Vec<String> {
    let event = serde_json::to_value(line.event).ok().and_then(|event| event.as_str().map(str::to_owned));
    let decided = [line.verdict.as_deref(), line.rule.as_deref().filter(|rule| !rule.is_empty())];
    let outcome = [line.outcome.clone(), line.duration_ms.map(|ms| format!("{ms} ms")), line.detail.clone()];
    let at = line.at.split('.').next().unwrap_or(&line.at);
    vec![
        if at.ends_with('Z') { at.to_owned() } else { format!("{at}Z") },
        event.unwrap_or_default(),
        line.server.clone().unwrap_or_default(),
        line.tool.clone().unwrap_or_default(),
        line.caller.clone().unwrap_or_default(),
        decided.into_iter().flatten().collect::<Vec<_>>().join(" by "),
        outcome.into_iter().flatten().collect::<Vec<_>>().join(", "),
    ]
}
