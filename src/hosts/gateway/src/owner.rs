//! Which program has a port, where the system tells.

/// Name and id of the process that listens at `port`.
#[cfg(target_os = "linux")]
pub(crate) fn of(port: u16) -> Option<String> {
    use std::{fs, path::Path};

    const LISTENS: &str = "0A";
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|table| {
        let table = fs::read_to_string(table).ok()?;
        table.lines().skip(1).find_map(|line| {
            let mut fields = line.split_whitespace();
            let (local, state) = (fields.nth(1)?, fields.nth(1)?);
            let at = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
            (at == port && state == LISTENS).then(|| fields.nth(5).map(str::to_owned))?
        })
    })?;
    let socket = format!("socket:[{inode}]");
    let has = |process: &Path| {
        let descriptors = fs::read_dir(process.join("fd")).ok()?;
        let mut links = descriptors.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
        links.any(|link| link.as_os_str() == socket.as_str()).then_some(())
    };
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        has(&entry.path())?;
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        Some(format!("{} (process {id})", portcullis::display::escape(name.trim())))
    })
}

/// Elsewhere the system does not tell without help of other programs.
#[cfg(not(target_os = "linux"))]
pub(crate) fn of(_: u16) -> Option<String> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn c1_whoever_has_a_port_is_named() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let owner = super::of(listener.local_addr().unwrap().port()).unwrap();
        assert!(owner.ends_with(&format!("(process {})", std::process::id())), "{owner}");
    }
}
