//! S57: what is built holds no version with a known fault that was mended later.

use std::collections::BTreeMap;

/// The first version with the fix, and what it mends. Of a package with several lines of versions
/// the lines that are older than the fix are refused as well.
const FIXED: &[(&str, (u64, u64, u64), &str)] = &[
    ("bytes", (1, 11, 1), "RUSTSEC-2026-0007: a size that overflows in `BytesMut::reserve`"),
    ("crossbeam-channel", (0, 5, 15), "RUSTSEC-2025-0024: a double free"),
    ("h2", (0, 4, 4), "RUSTSEC-2024-0332: floods of CONTINUATION frames"),
    ("idna", (1, 0, 0), "RUSTSEC-2024-0421: host names that look like others"),
    ("mio", (0, 8, 11), "RUSTSEC-2024-0019: tokens after deregistration"),
    ("ring", (0, 17, 12), "RUSTSEC-2025-0009: a panic on overflow"),
    ("rmcp", (1, 4, 0), "RUSTSEC-2026-0189, CVE-2026-42559: a server that any web page could reach"),
    ("rustls", (0, 23, 18), "RUSTSEC-2024-0399: a panic of servers"),
    ("rustls-webpki", (0, 103, 13), "RUSTSEC-2026-0104, -0099, -0098, -0049: revocation lists and name constraints"),
    ("slab", (0, 4, 11), "RUSTSEC-2025-0047: reading outside of bounds"),
    ("tokio", (1, 44, 2), "RUSTSEC-2025-0023: broadcast clones in parallel"),
    ("tracing-subscriber", (0, 3, 20), "RUSTSEC-2025-0055: escape sequences in logs"),
];

/// What `Cargo.lock` names: read as it is, since cargo itself would first fetch what other systems need.
fn packages() -> BTreeMap<String, Vec<(u64, u64, u64)>> {
    let lock: toml::Table = include_str!("../../Cargo.lock").parse().unwrap();
    let mut found: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for package in lock["package"].as_array().unwrap() {
        let version = package["version"].as_str().unwrap().split(['-', '+']).next().unwrap();
        let mut numbers = version.split('.').map(|number| number.parse().unwrap());
        let version = (numbers.next().unwrap(), numbers.next().unwrap(), numbers.next().unwrap());
        found.entry(package["name"].as_str().unwrap().to_owned()).or_default().push(version);
    }
    found
}

#[test]
fn s57_no_package_is_older_than_a_known_fix() {
    let packages = packages();
    let mut seen = 0;
    for (name, fixed, what) in FIXED {
        for version in packages.get(*name).into_iter().flatten() {
            assert!(version >= fixed, "`{name}` {version:?} has a known fault: {what}");
            seen += 1;
        }
    }
    assert!(seen > 5, "the names of this table are those of packages that are used");
}

#[test]
fn s57_our_own_code_is_checked_against_licences_and_sources() {
    let deny = include_str!("../../deny.toml");
    for rule in ["unknown-registry = \"deny\"", "unknown-git = \"deny\"", "yanked = \"deny\""] {
        assert!(deny.contains(rule), "{rule}");
    }
    assert!(include_str!("../../.ci/run").contains("cargo deny --locked check"));
}
