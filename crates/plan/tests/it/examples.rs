//! The table of rules in docs/releases.md: each row is tried, and what it says is so.

use std::collections::{BTreeMap, BTreeSet};

use windlass_api::kind::release::{LocalReference, OSImage, TanzuKubernetesRelease};
use windlass_api::version::{KubernetesVersion, VersionPrefix};
use windlass_plan::resolve::catalogue::Catalogue;
use windlass_plan::resolve::change;
use windlass_plan::resolve::query::{PartQuery, Query, resolve};
use windlass_plan::resolve::selector::Selector;

const PAGE: &str = include_str!("../../../../docs/releases.md");

/// What is in backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn version(text: &str) -> KubernetesVersion {
    text.parse().unwrap()
}

/// A release with images of these operating systems.
fn release(text: &str, label: Option<&str>, systems: &[&str]) -> (TanzuKubernetesRelease, Vec<OSImage>) {
    let image = |os: &&str| {
        let mut image = OSImage::default();
        image.metadata.name = Some(format!("{}-{os}", version(text).label()));
        text.clone_into(&mut image.spec.kubernetes_version);
        (*os).clone_into(&mut image.spec.os.name);
        image
    };
    let images: Vec<OSImage> = systems.iter().map(image).collect();
    let mut release = TanzuKubernetesRelease::default();
    release.metadata.name = Some(version(text).label().to_string());
    release.metadata.labels = Some(label.into_iter().map(|label| (label.to_owned(), String::new())).collect());
    text.clone_into(&mut release.spec.version);
    text.clone_into(&mut release.spec.kubernetes.version);
    let name = |image: &OSImage| LocalReference { name: image.metadata.name.clone().unwrap() };
    release.spec.bootstrap_packages = Some(Vec::new());
    release.spec.os_images = images.iter().map(name).collect();
    (release, images)
}

/// The releases that the page names above its table.
fn catalogue() -> Catalogue {
    let all = [
        release("v1.24.9+vmware.1-tkg.1", None, &["ubuntu", "photon"]),
        release("v1.24.10+vmware.1-tkg.1", None, &["ubuntu"]),
        release("v1.24.10+vmware.1-tkg.2", Some("incompatible"), &["ubuntu"]),
    ];
    let (releases, images): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    Catalogue::read(&releases, &images.concat())
}

/// Which release is chosen for a control plane and pools; or why none is.
fn choice(of: &[&str]) -> Result<String, String> {
    let part = |images: &str| PartQuery {
        version: of[0].parse().unwrap(),
        releases: Selector::default(),
        os_images: images.parse().unwrap(),
    };
    let pools = of.iter().skip(2).enumerate();
    let query = Query {
        control_plane: Some(part(of.get(1).unwrap_or(&""))),
        pools: pools.map(|(number, images)| (format!("md-{number}").parse().unwrap(), part(images))).collect(),
        in_use: None,
    };
    let catalogue = catalogue();
    resolve(&query, &catalogue).map(|found| found.unwrap().release.version.to_string()).map_err(|no| no.to_string())
}

/// What a rule makes of what it is given.
fn answer(rule: &str, of: &[&str]) -> Result<String, String> {
    let spans = |texts: Vec<String>| texts.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(" ");
    match (rule, of) {
        ("name", [one]) => Ok(spans(vec![version(one).label().to_string()])),
        ("version", [one]) => Ok(spans(vec![version(one).to_string()])),
        ("hint", [one]) => Ok(spans(vec![one.parse::<VersionPrefix>().unwrap().label().to_string()])),
        ("labels", [one]) => Ok(spans(version(one).prefixes().map(|prefix| prefix.label().to_string()).collect())),
        ("order", several) => {
            let versions: Vec<KubernetesVersion> = several.iter().map(|text| version(text)).collect();
            let mut sorted = versions.clone();
            sorted.reverse();
            sorted.sort();
            sorted.dedup();
            if sorted == versions { Ok("ascending".to_owned()) } else { Err(format!("{sorted:?}")) }
        }
        ("change", [from, to]) => {
            change(&version(from), &version(to)).map(|()| "yes".to_owned()).map_err(|refusal| refusal.to_string())
        }
        ("choice", of) => choice(of).map(|chosen| spans(vec![chosen])),
        (other, of) => panic!("nobody knows the rule {other} of {of:?}"),
    }
}

#[test]
fn what_the_table_of_rules_says_is_so() {
    let table = PAGE.split("<!-- rules -->").nth(1).unwrap().split("<!-- end of rules -->").next().unwrap();
    let mut tried: BTreeMap<&str, BTreeSet<bool>> = BTreeMap::new();
    for line in table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| rule ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [rule, of, wanted] = cells[..] else { panic!("{line}") };
        let answer = answer(rule, &quoted(of));
        match (wanted.split_once(": "), &answer) {
            (Some((_, why)), Err(refusal)) => assert!(refusal.contains(why), "{line}\n{refusal}"),
            _ => assert_eq!(answer.as_deref(), Ok(wanted), "{line}"),
        }
        tried.entry(rule).or_default().insert(answer.is_ok());
    }
    let both = BTreeSet::from([false, true]);
    assert_eq!((&tried["change"], &tried["choice"]), (&both, &both));
    assert_eq!(
        tried.keys().copied().collect::<Vec<_>>(),
        ["change", "choice", "hint", "labels", "name", "order", "version"]
    );
}
