use std::{fs, sync::atomic::AtomicBool, sync::atomic::Ordering, time::Duration, time::Instant};

use tempfile::TempDir;

use super::*;

/// A project in a folder of its own, with a neighbour that nobody may read.
fn project() -> (TempDir, Folder) {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.path().join("root/src")).unwrap();
    fs::create_dir(home.path().join("root-evil")).unwrap();
    fs::write(home.path().join("root-evil/secret.txt"), "outside").unwrap();
    fs::write(home.path().join("outside.txt"), "outside").unwrap();
    fs::write(home.path().join("root/src/a.rs"), "inside").unwrap();
    let folder = Folder::open(&home.path().join("root")).unwrap();
    (home, folder)
}

fn read(folder: &Folder, path: &str) -> Result<String, ProjectError> {
    folder.read(path, &Allowed::default())
}

#[test]
fn s49_no_path_leads_out() {
    let (home, folder) = project();
    assert_eq!(read(&folder, "src/a.rs").unwrap(), "inside");
    assert_eq!(read(&folder, "./src/./a.rs").unwrap(), "inside");
    let outside = home.path().join("outside.txt").display().to_string();
    for path in [
        "../outside.txt",
        "src/../../outside.txt",
        "../root-evil/secret.txt",
        &outside,
        "/etc/passwd",
        "",
        "a\0b",
        "%2e%2e/outside.txt",
        "src/../a",
        "none",
        "src/a.rs/x",
    ] {
        let error = read(&folder, path).unwrap_err();
        assert!(!format!("{error:?}").contains("inside"), "{path}");
        assert!(matches!(error.code(), "outside" | "path" | "no-file"), "{path}: {error:?}");
    }
}

#[cfg(unix)]
#[test]
fn s49_no_link_leads_out() {
    use std::os::unix::fs::symlink;
    let (home, folder) = project();
    let root = home.path().join("root");
    for (name, target) in [
        ("file", home.path().join("outside.txt")),
        ("up", "../outside.txt".into()),
        ("folder", home.path().join("root-evil")),
        ("chain", "file".into()),
        ("dangling", "nowhere".into()),
        ("circle", "circle".into()),
        ("process", "/proc/self/root/etc/passwd".into()),
        ("own", "/proc/self/cwd".into()),
    ] {
        symlink(target, root.join(name)).unwrap();
    }
    for path in ["file", "up", "folder/secret.txt", "chain", "dangling", "circle", "process", "own"] {
        let error = read(&folder, path).unwrap_err();
        assert!(matches!(error.code(), "outside" | "no-file" | "io"), "{path}: {error:?}");
    }
    // One that stays is followed, but not to a secret under another name.
    symlink("src/a.rs", root.join("inner")).unwrap();
    assert_eq!(read(&folder, "inner").unwrap(), "inside");
    fs::write(root.join(".env"), "KEY=1").unwrap();
    symlink(".env", root.join("harmless.txt")).unwrap();
    assert_eq!(read(&folder, "harmless.txt").unwrap_err().code(), "secret-file");
}

#[cfg(unix)]
#[test]
fn s50_a_folder_that_turns_into_a_link_gives_nothing_from_outside() {
    use std::os::unix::fs::symlink;
    let seconds = std::env::var("PORTCULLIS_SWAP_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let (home, folder) = project();
    let (root, evil) = (home.path().join("root"), home.path().join("root-evil"));
    fs::write(root.join("src/secret.txt"), "inside").unwrap();
    let over = AtomicBool::new(false);
    let (mut inside, mut refused) = (0_u64, 0_u64);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (real, link) = (root.join("real"), root.join("link"));
            fs::rename(root.join("src"), &real).unwrap();
            symlink(&evil, &link).unwrap();
            while !over.load(Ordering::Relaxed) {
                fs::rename(&real, root.join("src")).unwrap();
                fs::rename(root.join("src"), &real).unwrap();
                fs::rename(&link, root.join("src")).unwrap();
                fs::rename(root.join("src"), &link).unwrap();
            }
        });
        let readers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let begun = Instant::now();
                    let (mut inside, mut refused) = (0_u64, 0_u64);
                    while begun.elapsed() < Duration::from_secs(seconds) {
                        match read(&folder, "src/secret.txt") {
                            Ok(text) => {
                                assert_eq!(text, "inside");
                                inside += 1;
                            }
                            Err(_) => refused += 1,
                        }
                    }
                    (inside, refused)
                })
            })
            .collect();
        for reader in readers {
            let (more, less) = reader.join().unwrap();
            (inside, refused) = (inside + more, refused + less);
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(inside > 0 && refused > 0, "{inside} read, {refused} refused: nothing was swapped");
}

#[cfg(target_os = "linux")]
#[test]
fn s51_what_is_no_file_is_an_error_at_once() {
    let (home, folder) = project();
    let root = home.path().join("root");
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), rustix::fs::Mode::RUSR).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    fs::File::create(root.join("sparse")).unwrap().set_len(1 << 40).unwrap();
    let begun = Instant::now();
    for (path, code) in
        [("pipe", "not-a-file"), ("socket", "not-a-file"), ("src", "not-a-file"), ("sparse", "too-long")]
    {
        assert_eq!(read(&folder, path).unwrap_err().code(), code, "{path}");
    }
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[test]
fn s52_a_file_is_given_whole_or_not_at_all() {
    let (home, folder) = project();
    let root = home.path().join("root");
    let limit = usize::try_from(FILE_BYTES).unwrap();
    fs::write(root.join("fits"), vec![b'x'; limit]).unwrap();
    fs::write(root.join("long"), vec![b'x'; limit + 1]).unwrap();
    fs::write(root.join("binary"), [0xff, 0xfe]).unwrap();
    fs::write(root.join("null"), "a\0b").unwrap();
    assert_eq!(read(&folder, "fits").unwrap().len(), limit);
    for (path, code) in [("long", "too-long"), ("binary", "not-text"), ("null", "not-text")] {
        assert_eq!(read(&folder, path).unwrap_err().code(), code, "{path}");
    }
}

#[test]
fn s52_secrets_are_refused_unless_a_person_allows_them() {
    let (home, folder) = project();
    let root = home.path().join("root");
    fs::create_dir(root.join(".git")).unwrap();
    for (path, text) in [
        (".env", "KEY=1"),
        (".git/config", "[core]"),
        ("a.pem", "x"),
        ("notes.txt", "-----BEGIN RSA PRIVATE KEY-----\nx"),
    ] {
        fs::write(root.join(path), text).unwrap();
        let error = read(&folder, path).unwrap_err();
        assert_eq!(error.code(), "secret-file", "{path}");
        assert!(!format!("{error:?}{error}").contains("KEY=1"));
        let allowed = Allowed::new([path]).unwrap();
        assert_eq!(folder.read(path, &allowed).unwrap(), text);
    }
    // A secret that is not there is not there, and one elsewhere is not told of.
    assert_eq!(read(&folder, ".env.local").unwrap_err().code(), "no-file");
}

#[test]
fn a_file_is_written_whole_and_not_out_of_the_folder() {
    let (home, folder) = project();
    let root = home.path().join("root");
    assert!(folder.write(".blueprint", "RULES.md", "one", || Ok(true)).unwrap());
    assert!(folder.write(".blueprint", "RULES.md", "two", || Ok(true)).unwrap());
    assert_eq!(fs::read_to_string(root.join(".blueprint/RULES.md")).unwrap(), "two");
    // Nothing where it is not due any more, and nothing is left behind.
    assert!(!folder.write(".blueprint", "RULES.md", "three", || Ok(false)).unwrap());
    assert_eq!(fs::read_to_string(root.join(".blueprint/RULES.md")).unwrap(), "two");
    assert_eq!(fs::read_dir(root.join(".blueprint")).unwrap().count(), 1);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(home.path().join("root-evil"), root.join("led")).unwrap();
        assert!(folder.write("led", "RULES.md", "three", || Ok(true)).is_err());
        assert!(!home.path().join("root-evil/RULES.md").exists());
    }
}
