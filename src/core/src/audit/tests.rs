use std::process::Command;

use super::*;

fn line(number: usize) -> AuditLine {
    let at = "2026-01-01T00:00:00Z".to_owned();
    AuditLine { at, tool: Some(format!("t{number}")), ..AuditLine::now(AuditEvent::Call) }
}

fn tools(lines: &[AuditLine]) -> Vec<&str> {
    lines.iter().map(|line| line.tool.as_deref().unwrap()).collect()
}

#[test]
fn a_line_says_what_is_known_and_nothing_else() {
    let line = AuditLine {
        at: "2026-01-01T00:00:00Z".into(),
        server: Some("files".into()),
        arguments_hash: Some("00".into()),
        duration_ms: Some(3),
        ..AuditLine::now(AuditEvent::Verdict)
    };
    assert_eq!(
        serde_json::to_string(&line).unwrap(),
        r#"{"at":"2026-01-01T00:00:00Z","event":"verdict","server":"files","argumentsHash":"00","durationMs":3}"#
    );
    let newer = r#"{"at":"x","event":"teleport","where":"moon"}"#;
    assert_eq!(serde_json::from_str::<AuditLine>(newer).unwrap().event, AuditEvent::Other);
}

#[test]
fn the_newest_lines_are_read_in_order_across_files() {
    let home = tempfile::tempdir().unwrap();
    let trail = AuditFile::rotating(home.path().join("deep/er"), 1000);
    assert_eq!(trail.newest(10).unwrap(), vec![]);
    for number in 0..100 {
        trail.record(&line(number)).unwrap();
    }
    assert_eq!(tools(&trail.newest(3).unwrap()), ["t97", "t98", "t99"]);
    let kept = trail.newest(usize::MAX).unwrap();
    assert!(kept.len() > 30 && kept.len() < 100, "{}", kept.len());
    let first = 100 - kept.len();
    assert_eq!(tools(&kept), (first..100).map(|number| format!("t{number}")).collect::<Vec<_>>());
    let mut names: Vec<_> =
        fs::read_dir(&trail.folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["audit.1.jsonl", "audit.2.jsonl", "audit.3.jsonl", "audit.jsonl", "audit.lock"]);
    assert!(trail.newest(0).unwrap().is_empty());
}

#[test]
fn a_file_is_put_aside_before_it_would_exceed_its_size() {
    let home = tempfile::tempdir().unwrap();
    let size = encode(&line(0)).unwrap().len() as u64;
    let trail = AuditFile::rotating(home.path(), 2 * size);
    for (number, aside) in [(0, false), (1, false), (2, true)] {
        trail.record(&line(number)).unwrap();
        assert_eq!(trail.path(1).exists(), aside, "{number}");
    }
}

#[test]
fn a_torn_line_is_left_out_and_the_next_one_is_whole() {
    let home = tempfile::tempdir().unwrap();
    let trail = AuditFile::new(home.path());
    trail.record(&line(0)).unwrap();
    let mut file = OpenOptions::new().append(true).open(trail.path(0)).unwrap();
    file.write_all(b"{\"at\":\"2026").unwrap();
    assert_eq!(tools(&trail.newest(10).unwrap()), ["t0"]);
    trail.record(&line(1)).unwrap();
    assert_eq!(tools(&trail.newest(10).unwrap()), ["t0", "t1"]);
}

#[test]
fn a_long_detail_is_cut_and_anything_else_that_is_too_long_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let trail = AuditFile::new(home.path());
    for detail in ["é".repeat(AUDIT_LINE_BYTES), "\u{1}".repeat(AUDIT_LINE_BYTES)] {
        trail.record(&AuditLine { detail: Some(detail), ..line(0) }).unwrap();
    }
    let lines = trail.newest(2).unwrap();
    assert!(lines[0].detail.as_ref().unwrap().ends_with("é…"));
    assert!(fs::read_to_string(trail.path(0)).unwrap().lines().all(|line| line.len() < AUDIT_LINE_BYTES));
    let error = trail.record(&AuditLine { tool: Some("x".repeat(AUDIT_LINE_BYTES)), ..line(0) }).unwrap_err();
    assert!(matches!(error, AuditError::TooLong { .. }));
}

#[test]
fn several_hosts_append_and_put_aside_at_once_without_losing_or_tearing_a_line() {
    const HOST: &str = "PORTCULLIS_AUDIT_TEST";

    if let Ok(folder) = std::env::var(HOST) {
        let trail = AuditFile::rotating(folder, 20_000);
        for number in 0..100 {
            let detail = Some("x".repeat(number));
            trail.record(&AuditLine { detail, ..line(number) }).unwrap();
        }
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let hosts: Vec<_> = (0..4)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "audit::tests::several_hosts_append_and_put_aside_at_once_without_losing_or_tearing_a_line",
                ])
                .env(HOST, home.path())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut host in hosts {
        assert!(host.wait().unwrap().success());
    }
    let trail = AuditFile::new(home.path());
    assert_eq!(trail.newest(usize::MAX).unwrap().len(), 400);
    assert!(trail.path(1).exists());
}

#[cfg(unix)]
#[test]
fn s35_the_trail_is_for_its_owner_and_follows_no_link() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let home = tempfile::tempdir().unwrap();
    let trail = AuditFile::new(home.path().join("portcullis"));
    trail.record(&line(0)).unwrap();
    fs::set_permissions(trail.path(0), fs::Permissions::from_mode(0o644)).unwrap();
    trail.record(&line(1)).unwrap();
    assert_eq!(fs::metadata(trail.path(0)).unwrap().permissions().mode() & 0o777, 0o600);
    fs::remove_file(trail.path(0)).unwrap();
    let elsewhere = home.path().join("elsewhere");
    symlink(&elsewhere, trail.path(0)).unwrap();
    assert!(trail.record(&line(2)).unwrap_err().to_string().contains("audit.jsonl"));
    assert!(!elsewhere.exists());
}

#[test]
fn a_trail_in_memory_keeps_every_line() {
    let trail = AuditMemory::default();
    trail.record(&line(0)).unwrap();
    assert_eq!(tools(&trail.lines()), ["t0"]);
}

#[test]
fn what_is_recorded_soon_keeps_its_place_and_is_there_at_the_end() {
    let home = tempfile::tempdir().unwrap();
    let line = |server: &str| AuditLine { server: Some(server.to_owned()), ..AuditLine::now(AuditEvent::Call) };
    let servers = || {
        let lines = AuditFile::new(home.path()).newest(100).unwrap();
        lines.into_iter().filter_map(|line| line.server).collect::<Vec<_>>().join("")
    };
    let trail = AuditFile::new(home.path());
    trail.record_soon(&line("a")).unwrap();
    assert_eq!(servers(), "");
    trail.record(&line("b")).unwrap();
    assert_eq!(servers(), "ab");
    trail.record_soon(&line("c")).unwrap();
    trail.flush().unwrap();
    trail.flush().unwrap();
    assert_eq!(servers(), "abc");
    trail.record_soon(&line("d")).unwrap();
    drop(trail);
    assert_eq!(servers(), "abcd");
}

#[test]
fn r47_a_trail_that_cannot_be_written_keeps_what_happened_and_not_what_did_not() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("trail");
    let line = |server: &str| AuditLine { server: Some(server.to_owned()), ..AuditLine::now(AuditEvent::Call) };
    std::fs::write(&folder, "in the way").unwrap();
    let trail = AuditFile::new(&folder);
    trail.record_soon(&line("happened")).unwrap();
    trail.record(&line("refused")).unwrap_err();
    trail.flush().unwrap_err();
    std::fs::remove_file(&folder).unwrap();
    trail.flush().unwrap();
    let lines = trail.newest(100).unwrap();
    assert_eq!(lines.into_iter().filter_map(|line| line.server).collect::<Vec<_>>(), ["happened"]);
}
