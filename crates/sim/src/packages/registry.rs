//! The registry of a World: what is behind the images of packages.
//!
//! A World has no network. What its own packages refer to is here, as data (`catalogue/bundles`); everything else is answered as
//! a registry answers that does not have it.

use serde_json::Value;
use windlass_api::kind::packaging::Package;

use crate::catalogue;

/// Files, by path.
type Files = Vec<(String, String)>;

/// Where the bundles of packages are.
const BUNDLES: &str = "projects.registry.vmware.com/tkg/packages/core/";
/// What stands for the tag of a bundle in its files, and for the numbers of its version.
const TAG: &str = "${tag}";
const VERSION: &str = "${version}";
/// The bundle with the packages of a release.
const REPOSITORY: &str = "repo";

macro_rules! bundles {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../catalogue/bundles/", $name, ".yaml")))),+]
    };
}

/// The bundles, by package.
const CONTENTS: &[(&str, &str)] = bundles![
    "antrea",
    "calico",
    "kapp-controller",
    "metrics-server",
    "pinniped",
    "secretgen-controller",
    "tkg-storageclass",
    "vsphere-cpi",
    "vsphere-csi",
];

/// The kinds that come with kapp-controller: the same that a management cluster has.
const KAPP_CONTROLLER_KINDS: [(&str, &str); 5] = [
    ("crds/apps.yaml", include_str!("../../crds/apps.kappctrl.k14s.io.yaml")),
    ("crds/packageinstalls.yaml", include_str!("../../crds/packageinstalls.packaging.carvel.dev.yaml")),
    ("crds/packagerepositories.yaml", include_str!("../../crds/packagerepositories.packaging.carvel.dev.yaml")),
    ("crds/packages.yaml", include_str!("../../crds/packages.data.packaging.carvel.dev.yaml")),
    ("crds/packagemetadatas.yaml", include_str!("../../crds/packagemetadatas.data.packaging.carvel.dev.yaml")),
];

/// What a step of fetching gives; why it gives nothing, as vendir would say it.
pub(super) fn fetch(step: &Value) -> Result<Files, String> {
    if let Some(paths) = step["inline"]["paths"].as_object() {
        let text = |text: &Value| text.as_str().unwrap_or_default().to_owned();
        return Ok(paths.iter().map(|(path, content)| (path.clone(), text(content))).collect());
    }
    let image = step["imgpkgBundle"]["image"].as_str().or_else(|| step["image"]["url"].as_str());
    match (image, step.as_object().and_then(|fields| fields.keys().next())) {
        (Some(image), _) => pull(image).ok_or_else(|| {
            format!("vendir: Error: Syncing directory '0': Imgpkg: Fetching image: {image}: MANIFEST_UNKNOWN: manifest unknown")
        }),
        (None, Some(other)) => Err(format!("vendir: Error: Syncing directory '0': {other}: no route to host")),
        (None, None) => Err("vendir: Error: Expected to find at least one fetch option".to_owned()),
    }
}

/// Whether a file has objects in it.
pub(super) fn is_yaml(path: &str) -> bool {
    let path = std::path::Path::new(path);
    path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
}

/// The files of a bundle; `None` if there is none.
fn pull(image: &str) -> Option<Files> {
    let (name, tag) = image.strip_prefix(BUNDLES)?.split_once(':')?;
    if name == REPOSITORY {
        return repository(tag);
    }
    let version = tag.strip_prefix('v')?.replace('_', "+");
    catalogue::packages().iter().find(|package| short(package) == name && package.spec.version == version)?;
    let (_, text) = CONTENTS.iter().find(|(known, _)| *known == name)?;
    let numbers = version.split('+').next().unwrap_or_default();
    let mut files = vec![(format!("config/{name}.yaml"), text.replace(TAG, tag).replace(VERSION, numbers))];
    if name == "kapp-controller" {
        files.extend(KAPP_CONTROLLER_KINDS.map(|(path, text)| (path.to_owned(), text.to_owned())));
    }
    Some(files)
}

/// What people call a package: the first of the words in its name.
fn short(package: &Package) -> &str {
    package.spec.ref_name.split('.').next().unwrap_or_default()
}

/// The packages of a release, as a repository has them.
fn repository(tag: &str) -> Option<Files> {
    let version = tag.replace('_', "+");
    let release = catalogue::releases().iter().find(|release| release.spec.version == version)?;
    let listed = release.spec.bootstrap_packages.as_ref()?;
    let is_listed =
        |package: &&Package| listed.iter().any(|listed| package.metadata.name.as_ref() == Some(&listed.name));
    let file = |package: &Package| {
        let path = format!("packages/{}.yaml", package.metadata.name.as_deref().unwrap_or_default());
        (path, serde_saphyr::to_string(package).unwrap_or_default())
    };
    Some(catalogue::packages().iter().filter(is_listed).map(file).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::packages::ytt;

    #[test]
    fn every_package_of_a_world_can_be_fetched_and_rendered() {
        assert_eq!(catalogue::packages().len(), 45);
        for package in catalogue::packages() {
            let mut files = fetch(&package.spec.template["spec"]["fetch"][0]).unwrap();
            files.retain(|(path, _)| is_yaml(path));
            let objects = ytt::render(&files, &[]).unwrap();
            assert!(!objects.is_empty(), "{}", package.spec.ref_name);
            for object in objects {
                assert!(object["metadata"]["name"].is_string(), "{object}");
                assert!(!object.to_string().contains("${"), "{object}");
            }
        }
    }

    #[test]
    fn every_release_has_a_repository_with_its_packages() {
        for release in catalogue::releases() {
            let tag = release.spec.version.replace('+', "_");
            let files = pull(&format!("{BUNDLES}{REPOSITORY}:{tag}")).unwrap();
            assert_eq!(files.len(), release.spec.bootstrap_packages.as_ref().unwrap().len(), "{tag}");
        }
    }

    #[test]
    fn what_is_not_there_is_refused_as_by_a_registry() {
        let image = format!("{BUNDLES}antrea:v9.9.9");
        let refused = fetch(&json!({"imgpkgBundle": {"image": image}})).unwrap_err();
        assert!(refused.contains("MANIFEST_UNKNOWN") && refused.contains("antrea:v9.9.9"), "{refused}");
        assert!(fetch(&json!({"git": {"url": "https://example.com"}})).unwrap_err().contains("git: no route to host"));
        assert!(fetch(&json!({})).is_err());
    }
}
