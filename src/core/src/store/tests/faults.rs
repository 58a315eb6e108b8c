//! A disk that fails, and a disk that goes away.

use std::{
    io::{self, Write as _},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use tempfile::NamedTempFile;

use super::*;
use crate::store::{
    disk::{Disk, LocalDisk},
    file::FileStore,
    lock::Lock,
};

/// Notes each call, and fails those that it is told to.
#[derive(Debug)]
pub(super) struct FaultyDisk {
    calls: Mutex<Vec<&'static str>>,
    fails: Mutex<Box<dyn Fails>>,
    pub(super) written: AtomicUsize,
}

trait Fails: std::fmt::Debug + Send {
    fn fails(&self, call: usize) -> Option<io::ErrorKind>;
}

#[derive(Debug)]
struct At(std::ops::Range<usize>, io::ErrorKind);

impl Fails for At {
    fn fails(&self, call: usize) -> Option<io::ErrorKind> {
        self.0.contains(&call).then_some(self.1)
    }
}

impl FaultyDisk {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            calls: Mutex::default(),
            fails: Mutex::new(Box::new(At(0..0, io::ErrorKind::Other))),
            written: AtomicUsize::new(usize::MAX),
        })
    }

    pub(super) fn fail(&self, calls: std::ops::Range<usize>, kind: io::ErrorKind) {
        self.calls.lock().unwrap().clear();
        *self.fails.lock().unwrap() = Box::new(At(calls, kind));
    }

    fn call(&self, name: &'static str) -> io::Result<()> {
        let mut calls = self.calls.lock().unwrap();
        calls.push(name);
        self.fails.lock().unwrap().fails(calls.len() - 1).map_or(Ok(()), |kind| Err(kind.into()))
    }
}

impl Disk for FaultyDisk {
    fn create(&self, folder: &Path) -> io::Result<NamedTempFile> {
        self.call("create")?;
        LocalDisk.create(folder)
    }

    fn write(&self, file: &mut NamedTempFile, bytes: &[u8]) -> io::Result<()> {
        let cut = self.written.load(Ordering::Relaxed);
        if cut <= bytes.len() {
            file.write_all(&bytes[..cut])?;
            // The power went: nobody cleans up.
            file.disable_cleanup(true);
            return Err(io::ErrorKind::Interrupted.into());
        }
        let call = self.call("write");
        LocalDisk.write(file, if call.is_ok() { bytes } else { &bytes[..bytes.len() / 2] })?;
        call
    }

    fn sync(&self, file: &NamedTempFile) -> io::Result<()> {
        self.call("sync")?;
        LocalDisk.sync(file)
    }

    fn rename(&self, file: NamedTempFile, target: &Path) -> io::Result<()> {
        self.call("rename")?;
        LocalDisk.rename(file, target)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.call("sync folder")?;
        LocalDisk.sync_folder(folder)
    }
}

pub(super) const ORDER: [&str; 5] = ["create", "write", "sync", "rename", "sync folder"];

fn on(disk: &Arc<FaultyDisk>) -> (TempDir, FileStore) {
    let home = tempfile::tempdir().unwrap();
    let store = FileStore::on(home.path().join("portcullis"), disk.clone(), Duration::from_secs(20));
    (home, store)
}

async fn add(store: &FileStore, name: &str) -> Result<State, ChangeError<Infallible>> {
    change(store, |state| {
        state.definitions.push(server(name, "new"));
        Ok(())
    })
    .await
    .map(|(state, ())| state)
}

#[tokio::test]
async fn r2_a_save_creates_writes_syncs_renames_and_syncs_the_folder() {
    let disk = FaultyDisk::new();
    let (_home, store) = on(&disk);
    store.key().await.unwrap();
    assert_eq!(*disk.calls.lock().unwrap(), ORDER);
    disk.fail(0..0, io::ErrorKind::Other);
    filled(&store).await;
    assert_eq!(*disk.calls.lock().unwrap(), ORDER);
    disk.fail(0..0, io::ErrorKind::Other);
    let fingerprint = server("a", "run").fingerprint(&store.key().await.unwrap());
    // Known tools can be had again, and every start of a server saves some: they wait for no disk.
    store.save(fingerprint, &CachedTools::default()).await.unwrap();
    assert_eq!(*disk.calls.lock().unwrap(), ["create", "write", "rename"]);
}

#[tokio::test]
async fn r3_a_save_that_fails_at_any_step_leaves_the_old_file_and_says_where() {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem, StorageFull};

    let disk = FaultyDisk::new();
    let (_home, store) = on(&disk);
    let before = filled(&store).await;
    let bytes = fs::read(store.state_path()).unwrap();
    for kind in [StorageFull, ReadOnlyFilesystem, PermissionDenied] {
        for step in 0..ORDER.len() {
            disk.fail(step..step + 1, kind);
            let error = add(&store, "c").await.unwrap_err();
            assert!(matches!(error, ChangeError::Store(StoreError::Save { .. })), "{step} {error:?}");
            assert!(error.to_string().contains("nothing was changed"), "{error}");
            assert_eq!(fs::read(store.state_path()).unwrap(), bytes, "{step}");
            assert_eq!(*StateStore::load(&store).await.unwrap(), before, "{step}");
            assert_eq!(leftovers(store.folder()), Vec::<PathBuf>::new(), "{step}");
        }
    }
    disk.fail(0..0, StorageFull);
    assert_eq!(add(&store, "c").await.unwrap().definitions.len(), 3);
}

#[tokio::test]
async fn r3_the_first_save_that_fails_leaves_nothing() {
    let disk = FaultyDisk::new();
    let (_home, store) = on(&disk);
    store.key().await.unwrap();
    for step in 0..ORDER.len() {
        disk.fail(step..step + 1, io::ErrorKind::StorageFull);
        assert!(add(&store, "c").await.is_err());
        assert!(!store.state_path().exists(), "{step}");
    }
}

#[tokio::test]
async fn r3_a_key_that_could_not_be_saved_is_not_used() {
    let disk = FaultyDisk::new();
    let (_home, store) = on(&disk);
    for step in 0..ORDER.len() {
        disk.fail(step..step + 1, io::ErrorKind::StorageFull);
        assert!(store.key().await.is_err(), "{step}");
        assert!(!store.key_path().exists(), "{step}");
    }
}

#[tokio::test]
async fn r3_a_save_that_can_neither_end_nor_be_taken_back_says_so_and_is_what_is_read() {
    let disk = FaultyDisk::new();
    let (_home, store) = on(&disk);
    filled(&store).await;
    disk.fail(4..100, io::ErrorKind::StorageFull);
    let error = add(&store, "c").await.unwrap_err();
    assert!(matches!(error, ChangeError::Store(StoreError::Uncertain { .. })), "{error:?}");
    assert_eq!(StateStore::load(&store).await.unwrap().definitions.len(), 3);
}

#[tokio::test]
async fn r4_a_save_that_is_cut_at_any_byte_leaves_the_old_file() {
    let disk = FaultyDisk::new();
    let (_home, store) = on(&disk);
    let before = filled(&store).await;
    let length = fs::read(store.state_path()).unwrap().len();
    for cut in (0..length).step_by(37) {
        disk.written.store(cut, Ordering::Relaxed);
        assert!(add(&store, "c").await.is_err());
        assert_eq!(*StateStore::load(&store).await.unwrap(), before, "{cut}");
    }
    disk.written.store(usize::MAX, Ordering::Relaxed);
    assert!(!leftovers(store.folder()).is_empty());
    assert_eq!(add(&store, "c").await.unwrap().definitions.len(), 3);
}

#[tokio::test]
async fn what_killed_writers_left_is_removed_once_it_is_old() {
    let (_home, store) = in_folder();
    filled(&store).await;
    for (name, hours) in [(".state-old", 2), (".state-new", 0)] {
        let file = fs::File::create(store.folder().join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(hours * 3600)).unwrap();
    }
    add(&store, "c").await.unwrap();
    assert_eq!(leftovers(store.folder()), [store.folder().join(".state-new")]);
}

#[tokio::test]
async fn a_host_that_does_not_let_go_of_the_lock_is_told_as_such() {
    let home = tempfile::tempdir().unwrap();
    let store = FileStore::on(home.path(), Arc::new(LocalDisk), Duration::from_millis(50));
    store.key().await.unwrap();
    let lock = Lock::acquire(&home.path().join("state.lock"), Duration::ZERO).unwrap();
    let error = add(&store, "c").await.unwrap_err();
    assert!(matches!(error, ChangeError::Store(StoreError::Busy { .. })), "{error:?}");
    assert!(error.to_string().contains("state.lock"), "{error}");
    // Reading needs no lock.
    assert_eq!(StateStore::load(&store).await.unwrap().definitions.len(), 0);
    drop(lock);
    add(&store, "c").await.unwrap();
}

#[tokio::test(flavor = "current_thread")]
async fn waiting_for_the_lock_holds_up_nobody_else() {
    let (_home, store) = in_folder();
    filled(&store).await;
    let lock = Lock::acquire(&store.folder().join("state.lock"), Duration::ZERO).unwrap();
    let (saved, ()) = tokio::join!(add(&store, "c"), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(lock);
    });
    assert_eq!(saved.unwrap().definitions.len(), 3);
}

/// A host on a disk that fills up while it runs.
#[tokio::test]
async fn r47_a_disk_that_fills_up_stops_decisions_and_no_server() {
    use crate::{
        Gate, GateError, GateParts, Limits, Registry,
        approval::{Arguments, Call, Grants, MockApprover, ServerMode},
        audit::AuditMemory,
        document::Document,
        gate::Choice,
        testing::{FakeServer, IN_PROCESS, InProcess},
        transport::OpenContext,
    };

    let disk = FaultyDisk::new();
    let (_home, store) = on(&disk);
    let (store, server) = (Arc::new(store), FakeServer::new());
    let gate = Gate::new(GateParts {
        registry: Registry::default()
            .with(&IN_PROCESS, Arc::new(InProcess::default().with("fake", &server)))
            .with_policy("server-mode", 10, Arc::new(ServerMode))
            .with_policy("grant", 20, Arc::new(Grants)),
        store: store.clone(),
        cache: store.clone(),
        approver: Arc::new(MockApprover::new()),
        audit: Arc::new(AuditMemory::default()),
        secrets: crate::secret::Secrets::default(),
        context: OpenContext { limits: Limits::default(), ..OpenContext::default() },
        host: "test".to_owned(),
        name_style: crate::names::NameStyle::default(),
        handler: Arc::new(crate::session::Refusing),
        lifecycle: crate::session::Lifecycle::default(),
    });
    let definition = Definition::new("fake", IN_PROCESS.name, fields(&json!({"server": "fake"})));
    gate.import(Document { servers: vec![definition], inputs: Vec::new() }, How::Merge, None).await.unwrap();
    gate.trust(gate.trust_question("fake").await.unwrap()).await.unwrap();
    gate.refresh("fake").await.unwrap();
    gate.select("fake", Some(Choice::All), None).await.unwrap();
    gate.enable("fake").await.unwrap();
    gate.set_mode("fake", Mode::Allow).await.unwrap();
    let call = || Call {
        server: "fake".into(),
        tool: "echo".into(),
        arguments: Arguments::parse("{}".to_owned()).unwrap(),
        caller: "test".into(),
    };
    gate.call(call()).await.unwrap();
    let before = fs::read(store.state_path()).unwrap();

    disk.fail(0..usize::MAX, io::ErrorKind::StorageFull);
    // What was decided still holds; nothing new can be.
    gate.call(call()).await.unwrap();
    for refused in [gate.set_mode("fake", Mode::Deny).await, gate.disable("fake").await, gate.untrust("fake").await] {
        let error = refused.unwrap_err();
        assert!(matches!(error, GateError::Store(StoreError::Save { .. })), "{error:?}");
    }
    assert_eq!(fs::read(store.state_path()).unwrap(), before);
    assert_eq!(leftovers(store.folder()), Vec::<PathBuf>::new());
    gate.call(call()).await.unwrap();

    disk.fail(0..0, io::ErrorKind::Other);
    gate.set_mode("fake", Mode::Deny).await.unwrap();
    assert_eq!(gate.call(call()).await.unwrap_err().code(), "denied");
    assert_eq!(server.calls().len(), 3);
    gate.close().await;
}
