//! The table of what Cluster API does.

use std::collections::BTreeSet;
use std::path::Path;

/// The text of all sources below a folder.
fn sources(folder: &Path, into: &mut String) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            sources(&entry, into);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&std::fs::read_to_string(&entry).unwrap());
        }
    }
}

#[test]
fn the_table_of_behaviours_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = std::fs::read_to_string(root.join("../../docs/cluster-api.md")).unwrap();
    let mut code = String::new();
    sources(&root.join("src"), &mut code);
    sources(&root.join("tests"), &mut code);

    let rows = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| behaviour"));
    let mut named = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [behaviour, source, test] = cells[..] else { panic!("three columns: {row}") };
        assert!(!behaviour.is_empty() && !source.is_empty(), "{row}");
        let name = test.trim_matches('`');
        assert!(
            code.contains(&format!("#[test]\n    fn {name}()")) || code.contains(&format!("#[test]\nfn {name}()")),
            "no test {name}"
        );
        assert!(named.insert(name.to_owned()), "{name} shows two things at once");
    }
    assert!(named.len() > 30, "{} behaviours", named.len());
}
