use serde_json::json;
use tempfile::TempDir;

use super::*;

fn small() -> Snapshot {
    let object = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
    let member = EtcdMember {
        id: u64::MAX,
        name: "a".to_owned(),
        learner: false,
        healthy: false,
        leader: false,
        version: "v3.4.3".parse().ok(),
        alarms: [windlass_sim::workload::Alarm::NoSpace].into(),
    };
    let workload = WorkloadSnapshot { objects: vec![object("Node", "a")], members: vec![member] };
    let [what, why, way_out] = ["pods of default/b", "forbidden", "a role that may list them"].map(str::to_owned);
    Snapshot {
        taken_at: "2026-01-02T00:00:00Z".parse().unwrap(),
        taken_by: "windlass 0.1.0".to_owned(),
        management: vec![object("Namespace", "a"), object("Namespace", "b")],
        workloads: [("default/a.b".parse().unwrap(), workload)].into(),
        gaps: vec![Gap { what, why, way_out }],
    }
}

/// All files of a folder, by their paths.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    all
}

#[test]
fn what_is_written_is_read_and_the_same_snapshot_has_the_same_bytes() {
    let home = TempDir::new().unwrap();
    let dir = home.path().join("a");
    let snapshot = small();
    snapshot.save(&dir).unwrap();
    let first = files(&dir);
    assert_eq!(Snapshot::load(&dir).unwrap(), snapshot);
    let mut shuffled = snapshot;
    shuffled.management.reverse();
    shuffled.save(&dir).unwrap();
    assert_eq!(files(&dir), first, "the older one is replaced");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[cfg(unix)]
#[test]
fn only_its_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let home = TempDir::new().unwrap();
    let dir = home.path().join("a");
    small().save(&dir).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode(&dir), mode(&dir.join(WORKLOADS))], [0o700, 0o700]);
    assert_eq!(files(&dir).keys().map(|file| mode(file)).collect::<Vec<_>>(), [0o600; 3]);
}

#[test]
fn what_is_no_snapshot_is_not_overwritten() {
    #[track_caller]
    fn check(make: impl FnOnce(&Path), found: &str) {
        let home = TempDir::new().unwrap();
        let dir = home.path().join("a");
        make(&dir);
        let before = files(home.path());
        let error = small().save(&dir).unwrap_err();
        assert_eq!(error.to_string(), format!("{dir:?} is there and is no snapshot: it has {found}"));
        assert_eq!(files(home.path()), before);
    }
    let with = |name: &'static str| {
        move |dir: &Path| {
            fs::create_dir(dir).unwrap();
            fs::write(dir.join(name), "mine").unwrap();
        }
    };
    check(with("thesis.txt"), "thesis.txt in it");
    check(with(MANAGEMENT), "no snapshot.json");
    check(|dir| fs::write(dir, "mine").unwrap(), "a file");
    let and_more = |dir: &Path| {
        small().save(dir).unwrap();
        fs::write(dir.join("notes.md"), "mine").unwrap();
    };
    check(and_more, "notes.md in it");
}

#[test]
fn a_folder_that_cannot_be_used_is_refused_with_file_and_field() {
    #[track_caller]
    fn check(change: impl FnOnce(&Path), expected: &str) {
        let home = TempDir::new().unwrap();
        let dir = home.path().join("a");
        small().save(&dir).unwrap();
        change(&dir);
        let error = Snapshot::load(&dir).unwrap_err();
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        let said = format!("{error}{cause}").replace(&home.path().display().to_string(), "");
        assert_eq!(said, expected);
        assert!(!error.way_out().is_empty());
    }
    let edit = |file: &'static str, from: &'static str, to: &'static str| {
        move |dir: &Path| {
            let text = fs::read_to_string(dir.join(file)).unwrap();
            assert!(text.contains(from), "{text}");
            fs::write(dir.join(file), text.replacen(from, to, 1)).unwrap();
        }
    };
    check(|dir| fs::remove_dir_all(dir).unwrap(), "there is no folder \"/a\"");
    check(|dir| fs::remove_file(dir.join(HEAD)).unwrap(), "\"/a\" is no snapshot: it has no snapshot.json");
    check(
        |dir| fs::remove_file(dir.join(MANAGEMENT)).unwrap(),
        "read \"/a/management.jsonl\": No such file or directory (os error 2)",
    );
    check(
        edit(HEAD, FORMAT, "package-lock"),
        "\"/a/snapshot.json\" is not the head of a snapshot: `format` is \"package-lock\", not \"windlass-snapshot\"",
    );
    check(
        edit(HEAD, "\"version\": 2", "\"version\": 7"),
        "\"/a/snapshot.json\" is of another version: `version` is 7, and this Windlass reads 2; windlass 0.1.0 has written it",
    );
    check(
        edit(HEAD, "\"takenAt\"", "\"takenOn\""),
        "\"/a/snapshot.json\" is not the head of a snapshot: unknown field `takenOn`, expected one of `format`, `version`, \
         `takenAt`, `takenBy`, `management`, `workloads`, `gaps` at line 4 column 11",
    );
    check(
        edit(HEAD, "default/a.b", "a.b"),
        "\"/a/snapshot.json\" is not the head of a snapshot: \"a.b\" is not a namespaced name: it names no namespace; accepted \
         are a namespace and a name with \"/\" between them at line 11 column 22",
    );
    check(
        edit(MANAGEMENT, "}}\n", "}"),
        "line 1 of \"/a/management.jsonl\" is no object: expected `,` or `}` at line 1 column 62",
    );
    check(
        edit(MANAGEMENT, "\"kind\":\"Namespace\"", "\"kind\":\"\""),
        "line 1 of \"/a/management.jsonl\" is no object of Kubernetes: `kind` is missing",
    );
    check(
        |dir| fs::write(dir.join("workloads/default.a.b.jsonl"), "").unwrap(),
        "\"/a/workloads/default.a.b.jsonl\" has 0 objects, and snapshot.json says 1 in `objects`: it was cut off, or changed",
    );
}
