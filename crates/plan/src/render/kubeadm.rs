//! What kubeadm is told: on the machines that we make, and on those that a `KubeadmControlPlane` or a pool makes.
//!
//! Of a configuration that others wrote we own a few fields: where images come from, and the label that add-ons find a node
//! by. What else is in it stays, also where a template is replaced by a new one.
//!
//! Nothing in it depends on the version of Kubernetes: Cluster API's bootstrap provider writes it down in the version that a
//! kubeadm reads, and labels and taints of nodes are kubeadm's own. What does depend on it is in `version/facts.rs` of the API.

use serde_json::Value;
use windlass_api::kind::bootstrap::{
    ClusterConfiguration, Etcd, ImageMeta, InitConfiguration, JoinConfiguration, JoinControlPlane, KubeadmConfigSpec,
};

use super::Scope;
use crate::release::ImageTag;

/// The phases of kubeadm that bring add-ons, with the add-on that each of them brings. Where that one is ours kubeadm leaves
/// it to us, because its order matters.
const ADDON_PHASES: [(&str, &str); 2] = [("addon/kube-proxy", "kube-proxy"), ("addon/coredns", "coredns")];

/// For the machine that begins a cluster.
pub fn init(scope: &Scope<'_>) -> KubeadmConfigSpec {
    KubeadmConfigSpec {
        cluster_configuration: Some(cluster_configuration(scope)),
        init_configuration: Some(InitConfiguration {
            node_registration: scope.node_registration(),
            skip_phases: skipped_phases(scope),
            ..InitConfiguration::default()
        }),
        ..KubeadmConfigSpec::default()
    }
}

/// For a machine that joins the control plane.
pub fn join_control_plane(scope: &Scope<'_>) -> KubeadmConfigSpec {
    join(scope, Some(JoinControlPlane::default()))
}

/// For a worker.
pub fn join_workers(scope: &Scope<'_>) -> KubeadmConfigSpec {
    join(scope, None)
}

fn join(scope: &Scope<'_>, control_plane: Option<JoinControlPlane>) -> KubeadmConfigSpec {
    let node_registration = scope.node_registration();
    KubeadmConfigSpec {
        join_configuration: Some(JoinConfiguration {
            node_registration,
            control_plane,
            ..JoinConfiguration::default()
        }),
        ..KubeadmConfigSpec::default()
    }
}

/// For all machines of a control plane that Cluster API rolls: it knows which of them begins, and says so to those that join.
pub fn control_plane(scope: &Scope<'_>) -> KubeadmConfigSpec {
    KubeadmConfigSpec { join_configuration: join(scope, None).join_configuration, ..init(scope) }
}

fn cluster_configuration(scope: &Scope<'_>) -> ClusterConfiguration {
    let release = &scope.target.release;
    ClusterConfiguration {
        image_repository: release.image_repository.clone(),
        etcd: release.etcd.as_ref().map(|etcd| Etcd { local: Some(image(etcd)), external: None }),
        dns: release.coredns.as_ref().map(image),
        ..ClusterConfiguration::default()
    }
}

fn skipped_phases(scope: &Scope<'_>) -> Vec<String> {
    let is_ours = |addon: &str| scope.target.release.addons.keys().any(|name| name.as_str() == addon);
    ADDON_PHASES.iter().filter(|(_, addon)| is_ours(addon)).map(|(phase, _)| (*phase).to_owned()).collect()
}

fn image(tag: &ImageTag) -> ImageMeta {
    let (image_repository, image_tag) = (Some(tag.repository.clone()), Some(tag.tag.clone()));
    ImageMeta { image_repository, image_tag, ..ImageMeta::default() }
}

/// What others wrote, with what we want in it.
pub(crate) fn laid_over(ours: &Value, theirs: &Value) -> Value {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let mut fields = theirs.clone();
            for (key, ours) in ours {
                let theirs = theirs.get(key).unwrap_or(&Value::Null);
                fields.insert(key.clone(), laid_over(ours, theirs));
            }
            fields.into()
        }
        (Value::Array(ours), Value::Array(theirs)) if !ours.is_empty() && ours.iter().all(is_named) => {
            let kept = theirs.iter().filter(|theirs| !ours.iter().any(|ours| ours["name"] == theirs["name"]));
            kept.chain(ours).cloned().collect::<Vec<_>>().into()
        }
        (ours, _) => ours.clone(),
    }
}

fn is_named(value: &Value) -> bool {
    value.get("name").is_some_and(Value::is_string)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::render::covers;

    /// Laying `ours` over `theirs` makes `whole`, and then nothing of ours is missing.
    fn check(ours: &Value, theirs: &Value, whole: &Value) {
        assert_eq!(laid_over(ours, theirs), *whole);
        assert!(covers(ours, whole), "{whole}");
    }

    #[test]
    fn what_others_wrote_into_a_configuration_stays() {
        let arguments = |arguments: &[(&str, &str)]| {
            let argument = |(name, value): &(&str, &str)| json!({"name": name, "value": value});
            json!({"join": {"kubeletExtraArgs": arguments.iter().map(argument).collect::<Vec<_>>()}})
        };
        let ours = arguments(&[("node-labels", "new")]);
        check(&ours, &json!({}), &ours);
        check(
            &ours,
            &arguments(&[("v", "4"), ("node-labels", "old")]),
            &arguments(&[("v", "4"), ("node-labels", "new")]),
        );
        let theirs = json!({"files": [{"path": "/etc/motd"}], "join": {"taints": []}});
        let mut whole = ours.clone();
        whole["files"] = theirs["files"].clone();
        whole["join"]["taints"] = json!([]);
        check(&ours, &theirs, &whole);
    }
}
