//! A real directory: modes, lock and key file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use crate::durable::{self, Journal, OpenError};
use crate::store::{Expect, Keeper as _, Key, Retention, Store, Waits};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn store(journal: &Journal) -> Store {
    Store::with_seams(Retention::default(), Some(journal.backend("here")), None)
}

fn put(store: &Store, name: &str) -> u64 {
    let object = json!({"metadata": {"name": name}, "data": {"word": "very secret"}});
    let now = jiff::Timestamp::UNIX_EPOCH;
    let entry = store.put(&"secrets".into(), &Key::new("", name), Expect::Absent, object, now).unwrap();
    block_on(store.durable(entry.revision)).unwrap();
    entry.revision
}

#[test]
fn files_are_for_their_owner_only_and_nothing_in_them_can_be_read() {
    let folder = TempDir::new().unwrap();
    let (path, key) = (folder.path().join("data"), folder.path().join("config/key"));
    let (journal, recovered) = durable::open(&path, &key, Waits::EachWrite).unwrap();
    assert!(recovered.is_empty());
    let first = store(&journal);
    for number in 0..20 {
        put(&first, &format!("name-{number}"));
    }
    journal.close().unwrap();
    assert_eq!((mode(&path), mode(&key), mode(key.parent().unwrap())), (0o700, 0o600, 0o700));
    let files: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{file:?}");
        let bytes = fs::read(&file).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"secret"), "{file:?}");
    }
    let (journal, recovered) = durable::open(&path, &key, Waits::EachWrite).unwrap();
    let recovered = recovered["here"].clone();
    assert_eq!((recovered.revision, recovered.objects().count()), (20, 20));
    let again = Store::recovered(Retention::default(), Some(journal.backend("here")), None, recovered);
    assert_eq!(put(&again, "one-more"), 21, "revisions go on");
}

#[test]
fn one_directory_is_for_one_process() {
    let folder = TempDir::new().unwrap();
    let (path, key) = (folder.path().join("data"), folder.path().join("key"));
    let (journal, _) = durable::open(&path, &key, Waits::EachWrite).unwrap();
    let error = durable::open(&path, &key, Waits::EachWrite).unwrap_err();
    let expected = format!("the data directory {path:?} is in use by process {}", std::process::id());
    assert_eq!(error.to_string(), expected);
    journal.close().unwrap();
    assert!(durable::open(&path, &key, Waits::EachWrite).is_ok());
}

#[test]
fn what_is_not_safe_is_refused_and_left_as_it_is() {
    let folder = TempDir::new().unwrap();
    let (path, key) = (folder.path().join("data"), folder.path().join("key"));
    let (journal, _) = durable::open(&path, &key, Waits::EachWrite).unwrap();
    put(&store(&journal), "kept");
    journal.close().unwrap();
    let names = |path: &Path| {
        let mut all: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        all.sort();
        all
    };
    let before = names(&path);
    let refused = |key: &Path, part: &str| {
        let error = durable::open(&path, key, Waits::EachWrite).unwrap_err();
        assert!(error.to_string().contains(part) || format!("{error:?}").contains(part), "{error:?}");
        assert_eq!(names(&path), before);
        error
    };
    refused(&folder.path().join("none"), "there is no key file");
    assert!(!folder.path().join("none").exists(), "no key is made for a directory that has another");
    let other = folder.path().join("other");
    fs::write(&other, "0".repeat(64)).unwrap();
    refused(&other, "others may read the key file");
    fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).unwrap();
    let wrong = refused(&other, "OtherKey");
    assert!(matches!(wrong, OpenError::Recover { .. }), "{wrong:?}");
    fs::write(&other, "not a key").unwrap();
    refused(&other, "line 1 of the key file");
    fs::write(&other, "# nothing\n").unwrap();
    refused(&other, "no key is in the key file");
    refused(&path.join("key"), "in the data directory");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    refused(&key, "its mode is 0755");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(durable::open(&path, &key, Waits::EachWrite).unwrap().1["here"].revision, 1);
}

#[test]
fn a_folder_of_somebody_else_is_not_touched() {
    let folder = TempDir::new().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(folder.path().join("letters.txt"), "dear").unwrap();
    let key = TempDir::new().unwrap();
    let error = durable::open(folder.path(), &key.path().join("key"), Waits::EachWrite).unwrap_err();
    assert!(error.to_string().ends_with("is no data directory: \"letters.txt\" is in it"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(!key.path().join("key").exists());
    let file = folder.path().join("letters.txt");
    let error = durable::open(&file, &key.path().join("key"), Waits::EachWrite).unwrap_err();
    assert!(error.to_string().ends_with("is not a directory"), "{error}");
}
