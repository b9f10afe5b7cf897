//! `docs/seed-002.md` is complete: what the session shows differs from the description in what is listed there, and in nothing
//! else. The session itself (`tests/kubectl/seed-002.txt`) is run by the test `kubectl::seed_002`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::Value;

use super::kubectl::mask::Mask;

/// The rows of the list, by their numbers.
struct List(BTreeMap<String, Row>);

/// How a difference is seen.
struct Row {
    fields: BTreeSet<String>,
    tests: BTreeSet<String>,
    session: bool,
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    let path = crates().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn session() -> String {
    read("windlass/tests/kubectl/seed-002.txt")
}

impl List {
    fn read() -> Self {
        let quoted = Regex::new("`([^`]+)`").unwrap();
        let document = read("../docs/seed-002.md");
        let rows = document.lines().filter(|line| line.starts_with("| S")).map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let [number, _, _, _, seen] = cells[..] else { panic!("five cells: {line}") };
            let named: Vec<&str> = quoted.captures_iter(seen).map(|found| found.get(1).unwrap().as_str()).collect();
            let (fields, tests): (Vec<&str>, Vec<&str>) = named.iter().partition(|name| name.contains(" ."));
            let own = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
            let row = Row {
                fields: own(fields),
                tests: own(tests),
                session: quoted.replace_all(seen, "").contains("session"),
            };
            (number.to_owned(), row)
        });
        Self(rows.collect())
    }

    /// The fields of an object that are said to differ.
    fn fields(&self, object: &str) -> BTreeSet<String> {
        let fields = self.0.values().flat_map(|row| &row.fields);
        let of_object = fields.filter_map(|field| field.strip_prefix(object)?.strip_prefix(' '));
        of_object.map(str::to_owned).collect()
    }
}

/// What a command of the session printed.
fn printed(command: &str) -> String {
    let session = session();
    let mut lines = session.lines().skip_while(|line| !line.starts_with(&format!("$ {command}")));
    assert!(lines.next().is_some(), "the session does not have: {command}");
    let answer = lines.take_while(|line| !line.starts_with("$ ") && !line.starts_with('#') && !line.is_empty());
    answer.map(|line| line.strip_prefix('\\').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

/// The paths at which two objects differ. What only one of them has is named where it hangs.
fn differences(description: &Value, ours: &Value, path: &str, found: &mut BTreeSet<String>) {
    match (description, ours) {
        (Value::Object(description), Value::Object(ours)) => {
            for key in description.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
                let plain = key.chars().all(|c| c.is_ascii_alphanumeric());
                let path = if plain { format!("{path}.{key}") } else { format!("{path}[\"{key}\"]") };
                match (description.get(key), ours.get(key)) {
                    (Some(description), Some(ours)) => differences(description, ours, &path, found),
                    // A null is as good as nothing.
                    (Some(Value::Null), None) => {}
                    _ => {
                        found.insert(path);
                    }
                }
            }
        }
        (Value::Array(description), Value::Array(ours)) if description.len() == ours.len() => {
            for (index, (description, ours)) in description.iter().zip(ours).enumerate() {
                differences(description, ours, &format!("{path}[{index}]"), found);
            }
        }
        (description, ours) if description == ours => {}
        _ => {
            found.insert(path.to_owned());
        }
    }
}

#[track_caller]
fn check(object: &str, file: &str, command: &str) {
    // The cluster of the session gets the classes of the description only later on.
    let description = read(&format!("windlass/tests/seed-002/{file}"))
        .replace("best-effort-xlarge", "best-effort-small")
        .replace("gc-storage-profile", "gc-storage-profile-fast");
    let description = Mask::new(Path::new("/nowhere")).hide(&description);
    let mut found = BTreeSet::new();
    differences(&yaml(&description), &yaml(&printed(command)), "", &mut found);
    let listed = List::read().fields(object);
    let missing: Vec<_> = found.difference(&listed).collect();
    let stale: Vec<_> = listed.difference(&found).collect();
    assert!(
        missing.is_empty(),
        "these fields of the {object} differ, and docs/seed-002.md does not say so: {missing:#?}"
    );
    assert!(
        stale.is_empty(),
        "docs/seed-002.md says that these fields of the {object} differ, and they do not: {stale:#?}"
    );
}

#[test]
fn the_job_differs_in_what_is_listed() {
    check("Job", "job.yaml", "sed '/^status:/,$d' job.yaml");
}

#[test]
fn the_secrets_differ_in_what_is_listed() {
    check("Secret", "secret.yaml", "kubectl get secret my-tkc-ca -o yaml | ");
}

#[test]
fn the_statuses_of_add_ons_differ_in_what_is_listed() {
    check("Addons", "addons.yaml", "kubectl get tanzukubernetescluster my-tkc -o yaml | ");
}

#[test]
fn every_command_of_the_description_is_in_the_session() {
    let session = session();
    for command in read("windlass/tests/seed-002/commands.txt").lines() {
        // Names that are made up on the way are asked for by a command of their own.
        let pattern = regex::escape(command).replace("update\\-ID", r"\S+").replace("MACHINE", r"\S+");
        let typed = Regex::new(&format!(r"(?m)^\$ {pattern}( >.*)?$")).unwrap();
        assert!(typed.is_match(&session), "the session does not have: {command}");
    }
}

#[test]
fn every_difference_is_seen_somewhere() {
    let session = session();
    let list = List::read();
    let mut unseen = Vec::new();
    for (number, row) in &list.0 {
        let marked = session.contains(&format!("({number})"));
        if row.session && !marked {
            unseen.push(format!("{number}: the session does not name it"));
        }
        if !row.session && row.fields.is_empty() && row.tests.is_empty() {
            unseen.push(format!("{number}: nothing shows it"));
        }
        let missing = row.tests.iter().filter(|test| !is_test(test));
        unseen.extend(missing.map(|test| format!("{number}: there is no test {test}")));
    }
    let marks = Regex::new(r"\((S\d\d)\)").unwrap();
    let marks = marks.captures_iter(&session).map(|mark| mark[1].to_owned());
    unseen.extend(marks.filter(|mark| !list.0.contains_key(mark)).map(|mark| format!("{mark}: it is not in the list")));
    assert!(unseen.is_empty(), "{unseen:#?}");
}

/// Whether a function of that name is in the tests, or the unit tests, of a crate.
fn is_test(name: &str) -> bool {
    fn search(folder: &Path, wanted: &str) -> bool {
        let mut entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.any(|path| match path.extension() {
            _ if path.is_dir() => !path.ends_with("target") && search(&path, wanted),
            Some(extension) if extension == "rs" => fs::read_to_string(&path).unwrap().contains(wanted),
            _ => false,
        })
    }
    search(&crates(), &format!("fn {name}("))
}
