//! The definitions in `deploy/crds` are the ones of the types. `WINDLASS_UPDATE=1 cargo test -p windlass-api --test it definition`
//! writes them anew: read the difference.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use windlass_api::kind::definition::ours;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds")
}

#[test]
fn the_definitions_that_are_installed_are_those_of_the_types() {
    let made: BTreeMap<String, String> = ours()
        .into_iter()
        .map(|definition| {
            let name = definition.metadata.name.clone().unwrap();
            (format!("{name}.yaml"), serde_saphyr::to_string(&definition).unwrap())
        })
        .collect();
    if std::env::var_os("WINDLASS_UPDATE").is_some() {
        fs::create_dir_all(folder()).unwrap();
        for (name, text) in &made {
            fs::write(folder().join(name), text).unwrap();
        }
    }
    let written: BTreeMap<String, String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap()))
        .collect();
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&written), names(&made));
    for (name, text) in &made {
        assert!(&written[name] == text, "{name} is stale: WINDLASS_UPDATE=1 cargo test -p windlass-api --test it");
    }
}
