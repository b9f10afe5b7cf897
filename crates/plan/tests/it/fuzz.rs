//! Hostile releases: real ones, with one or a few things in them changed. Whatever comes of it is a release that keeps its
//! promises, or a refusal that names the object and the key; never a panic, and the same each time.

mod mutation;

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::virtual_machine::VirtualMachineImage;
use windlass_api::label;
use windlass_api::version::{KubernetesVersion, VersionPrefix};
use windlass_plan::release::{FieldPath, Release, ReleaseError};

use crate::releases::{chain, config_maps, documents, objects};
use crate::sample;
use mutation::{Mutation, Scratch, mutations, nasty_text, scratches};

/// What a status can hold beside others.
const REFUSAL_BYTES_MAX: usize = 4_096;

/// Parsed once: a thousand cases begin from them.
static OBJECTS: LazyLock<Value> = LazyLock::new(|| documents(objects::OBJECTS).into());
static CONFIG_MAPS: LazyLock<Value> = LazyLock::new(|| documents(config_maps::CONFIG_MAPS).into());

/// As many cases as by default, or as `PROPTEST_CASES` says.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// Reads twice, and looks at what came of it.
fn check(read: &dyn Fn() -> Result<Release, ReleaseError>) -> Result<Option<ReleaseError>, TestCaseError> {
    match (read(), read()) {
        (Ok(release), Ok(again)) => {
            prop_assert_eq!(release.digest(), again.digest());
            prop_assert_eq!(&release, &again);
            check_promises(&release)?;
            Ok(None)
        }
        (Err(error), Err(again)) => {
            let text = chain(&error);
            prop_assert_eq!(&text, &chain(&again));
            prop_assert!(text.contains(&error.object()), "{} does not name {}", text, error.object());
            prop_assert!(text.contains(error.key()), "{} does not name {}", text, error.key());
            prop_assert!(!error.key().is_empty() && text.len() <= REFUSAL_BYTES_MAX, "{} bytes", text.len());
            prop_assert!(!text.contains(char::is_control), "{:?} is more than a line", text);
            Ok(Some(error))
        }
        (first, second) => Err(TestCaseError::fail(format!("first {first:?}, then {second:?}"))),
    }
}

/// What every release promises, however it came to be.
fn check_promises(release: &Release) -> Result<(), TestCaseError> {
    prop_assert!(release.digest().starts_with("sha256:"));
    prop_assert_eq!(release.name().parse::<KubernetesVersion>().ok(), Some(release.distribution.clone()));
    prop_assert!(release.packages.is_sorted_by_key(|package| package.slot));
    prop_assert_eq!(release.in_order().len(), release.addons.len() + release.packages.len());
    let selector = label::DISTRIBUTION_VERSION.text(&release.distribution);
    for object in release.addons.values().flat_map(|addon| &addon.objects) {
        let runs_pods = matches!(object["kind"].as_str(), Some("DaemonSet" | "Deployment" | "StatefulSet" | "Job"));
        let is_ours = matches!(object["apiVersion"].as_str(), Some("apps/v1" | "batch/v1"));
        if runs_pods && is_ours {
            let selected = &object["spec"]["template"]["spec"]["nodeSelector"][label::DISTRIBUTION_VERSION.name];
            prop_assert_eq!(selected.as_str(), Some(selector.as_str()), "{}", object);
        }
        prop_assert!(object["metadata"]["name"].is_string());
    }
    for defaults in release.defaults.values() {
        for path in defaults.fields.keys() {
            prop_assert_eq!(path.to_string().parse(), Ok(path.clone()), "a path is read as it is written");
        }
        let mut object = json!({});
        defaults.at_creation(&mut object);
        let created = object.clone();
        defaults.at_update(&mut object);
        prop_assert_eq!(created, object, "what was just created is up to date");
    }
    Ok(())
}

/// The images of every World, and those of the other tests, which have more in them.
fn images() -> Vec<VirtualMachineImage> {
    let catalogue = documents(include_str!("../../../sim/catalogue/images.yaml"));
    let catalogue = catalogue.into_iter().map(|image| serde_json::from_value(image).unwrap());
    catalogue.chain(["v1.16.7", "v1.17.4"].map(sample::image)).collect()
}

/// Which annotation of which image is changed.
fn place() -> impl Strategy<Value = (VirtualMachineImage, String)> {
    (prop::sample::select(images()), any::<prop::sample::Index>()).prop_map(|(image, index)| {
        let keys: Vec<&String> = image.metadata.annotations.as_ref().unwrap().keys().collect();
        let key = (*index.get(&keys)).clone();
        (image, key)
    })
}

/// Changes the text of one annotation; what comes of it may only be blamed on that one.
fn check_annotation(
    mut image: VirtualMachineImage,
    key: &str,
    change: &dyn Fn(&str) -> String,
) -> Result<(), TestCaseError> {
    let text = image.metadata.annotations.as_mut().unwrap().get_mut(key).unwrap();
    *text = change(text);
    if let Some(error) = check(&|| Release::from_image(&image))? {
        prop_assert_eq!(error.key(), key);
    }
    Ok(())
}

/// An annotation whose JSON is changed, and an add-on's manifests whose YAML is.
fn mutated(text: &str, outer: &[Mutation], inner: &[Mutation]) -> String {
    let mut read: Value = serde_json::from_str(text).unwrap();
    if let Some(manifests) = read.get("value").and_then(Value::as_str).map(str::to_owned) {
        let mut objects = Value::Array(documents(&manifests));
        Mutation::all(inner, &mut objects);
        let written = objects.as_array().into_iter().flatten().map(|object| format!("---\n{object}\n"));
        read["value"] = written.collect::<String>().into();
    }
    Mutation::all(outer, &mut read);
    read.to_string()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn an_image_with_another_structure_is_read_or_refused(
        (image, key) in place(),
        outer in mutations(0..2),
        inner in mutations(0..3),
    ) {
        check_annotation(image, &key, &|text| mutated(text, &outer, &inner))?;
    }

    #[test]
    fn an_image_with_scratched_annotations_is_read_or_refused((image, key) in place(), scratches in scratches()) {
        check_annotation(image, &key, &|text| Scratch::all(&scratches, text))?;
    }

    #[test]
    fn an_image_with_scratched_manifests_is_read_or_refused((image, key) in place(), scratches in scratches()) {
        check_annotation(image, &key, &|text| {
            let mut read: Value = serde_json::from_str(text).unwrap();
            if let Some(manifests) = read.get("value").and_then(Value::as_str) {
                read["value"] = Scratch::all(&scratches, manifests).into();
            }
            read.to_string()
        })?;
    }

    #[test]
    fn an_image_with_any_annotation_is_read_or_refused(name in nasty_text(), text in nasty_text()) {
        let mut image = sample::image("v1.16.7");
        let annotations = image.metadata.annotations.as_mut().unwrap();
        annotations.insert(format!("{}{name}", annotation::ADDON_PREFIX), text);
        check(&|| Release::from_image(&image))?;
    }

    #[test]
    fn release_objects_with_another_structure_are_read_or_refused(mutations in mutations(1..4)) {
        let mut told = OBJECTS.clone();
        Mutation::all(&mutations, &mut told);
        let told = told.as_array().cloned().unwrap_or_default();
        // What no kind can be read from never gets past the API server.
        if let Some(typed) = objects::Typed::new(&told) {
            check(&|| typed.read())?;
        }
    }

    #[test]
    fn release_objects_with_other_texts_are_read_or_refused(
        index in any::<prop::sample::Index>(),
        scratches in scratches(),
    ) {
        let mut told = OBJECTS.clone();
        mutation::change_text(&mut told, index, &|text| Scratch::all(&scratches, text));
        if let Some(typed) = objects::Typed::new(told.as_array().unwrap()) {
            check(&|| typed.read())?;
        }
    }

    #[test]
    fn config_maps_with_another_structure_are_read_or_refused(
        number in 0..3usize,
        key in prop::sample::select(&["spec", "releaseOwned", "userOwned"][..]),
        inner in mutations(1..4),
    ) {
        let mut told = CONFIG_MAPS.as_array().cloned().unwrap_or_default();
        let name = told[number]["metadata"]["name"].as_str().unwrap().to_owned();
        let text = told[number]["data"][key].as_str().unwrap_or("[]").to_owned();
        let mut read: Value = documents(&text).remove(0);
        Mutation::all(&inner, &mut read);
        told[number]["data"][key] = read.to_string().into();
        if let Some(error) = check(&|| config_maps::read(&told))? {
            let text = chain(&error);
            prop_assert!(text.contains(&name), "{} was changed, and not named: {}", name, text);
        }
    }

    #[test]
    fn config_maps_with_other_texts_are_read_or_refused(
        index in any::<prop::sample::Index>(),
        scratches in scratches(),
    ) {
        let mut told = CONFIG_MAPS.clone();
        mutation::change_text(&mut told, index, &|text| Scratch::all(&scratches, text));
        check(&|| config_maps::read(told.as_array().unwrap()))?;
    }

    #[test]
    fn a_text_is_a_version_or_a_prefix_that_is_written_back_or_none(scratches in scratches(), text in nasty_text()) {
        for text in [Scratch::all(&scratches, "v1.24.9---vmware.1-tkg.1-rc.2"), text] {
            if let Ok(version) = text.parse::<KubernetesVersion>() {
                let same = |spelled: &dyn std::fmt::Display| spelled.to_string().parse() == Ok(version.clone());
                prop_assert!(same(&version) && same(&version.bare()) && same(&version.label()) && same(&version.tag()));
                let dashed = KubernetesVersion::from_dashed(&version.dashed().to_string());
                prop_assert!(dashed.is_ok_and(|dashed| dashed == version));
                prop_assert!(version.prefixes().all(|prefix| prefix.matches(&version)));
            }
            if let Ok(prefix) = text.parse::<VersionPrefix>() {
                prop_assert_eq!(prefix.to_string().parse(), Ok(prefix));
            }
            if let Ok(path) = text.parse::<FieldPath>() {
                prop_assert_eq!(path.to_string().parse(), Ok(path));
            }
        }
    }
}
