//! The add-ons that come with the images of a World: one text each, which every image fills in with its own versions.

use kube::{Resource, ResourceExt};
use windlass_api::annotation;
use windlass_api::machine_image::{Addon, Distribution};
use windlass_api::version::{KubernetesVersion, MinorVersion, facts};

/// An add-on, as it is in all images.
struct Template {
    /// The end of its annotation.
    name: &'static str,
    /// Whether it says its name. The authentication service does not.
    named: bool,
    /// Its version, where it has one of its own; the others are as old as the distribution.
    version: Option<&'static str>,
    /// Its objects, with names in braces for what differs between images.
    text: &'static str,
}

const TEMPLATES: [Template; 6] = [
    Template {
        name: "authsvc",
        named: false,
        version: Some("0.1-63-ge899b1f"),
        text: include_str!("../../catalogue/addons/authsvc.yaml"),
    },
    core("antrea", include_str!("../../catalogue/addons/antrea.yaml")),
    core("calico", include_str!("../../catalogue/addons/calico.yaml")),
    core(SECURITY_POLICIES, include_str!("../../catalogue/addons/defaultpsp.yaml")),
    core("pvcsi", include_str!("../../catalogue/addons/pvcsi.yaml")),
    core("vmware-guest-cluster", include_str!("../../catalogue/addons/vmware-guest-cluster.yaml")),
];

/// The add-on that only versions of Kubernetes with such objects can have.
const SECURITY_POLICIES: &str = "defaultpsp";

const fn core(name: &'static str, text: &'static str) -> Template {
    Template { name, named: true, version: None, text }
}

/// Gives an image the annotations of its add-ons. One that does not say what it is gets none.
pub(super) fn annotate(image: &mut impl Resource) -> serde_json::Result<()> {
    let Some(text) = image.annotations().get(annotation::DISTRIBUTION.name) else { return Ok(()) };
    let distribution: Distribution = serde_json::from_str(text)?;
    let has_policies = has_policies(&distribution.kubernetes.version);
    for template in TEMPLATES {
        if template.name == SECURITY_POLICIES && !has_policies {
            continue;
        }
        let addon = Addon {
            name: template.named.then(|| template.name.to_owned()),
            version: template.version.map(str::to_owned),
            kind: "inline".to_owned(),
            value: filled(&template, &distribution),
        };
        let key = format!("{}{}", annotation::ADDON_PREFIX, template.name);
        image.annotations_mut().insert(key, serde_json::to_string(&addon)?);
    }
    Ok(())
}

/// Whether an image has the add-on of security policies. The last version of Kubernetes with such objects comes without: nobody
/// takes them away before the next, which may not find any.
pub(super) fn has_policies(kubernetes: &KubernetesVersion) -> bool {
    facts::has_pod_security_policy(kubernetes) && kubernetes.minor() < MinorVersion { major: 1, minor: 24 }
}

fn filled(template: &Template, distribution: &Distribution) -> String {
    let version = &distribution.distribution.version;
    [
        ("{repository}", distribution.kubernetes.image_repository.clone()),
        ("{tag}", version.tag().to_string()),
        ("{distribution}", version.to_string()),
        ("{version}", template.version.unwrap_or_default().to_owned()),
    ]
    .iter()
    .fold(template.text.to_owned(), |text, (name, value)| text.replace(name, value))
}
