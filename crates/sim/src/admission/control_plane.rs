//! Control planes: an odd number of machines, one minor at a time, and fields that stay as they are.
//!
//! A version may go down, as far as the original is concerned: its webhook has a ceiling and no floor.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::version::{KubernetesVersion, MinorVersion};
use windlass_apiserver::field::FieldError;
use windlass_apiserver::store::Key;

use super::{Asked, Verdict, read, readable, resource, text};

/// What may be changed, with all that is in it.
const CHANGEABLE: [&str; 40] = [
    "replicas",
    "version",
    "remediation",
    "machineNaming",
    "rollout",
    "machineTemplate.metadata",
    "machineTemplate.spec",
    "kubeadmConfigSpec.clusterConfiguration.etcd",
    "kubeadmConfigSpec.clusterConfiguration.dns",
    "kubeadmConfigSpec.clusterConfiguration.imageRepository",
    "kubeadmConfigSpec.clusterConfiguration.featureGates",
    "kubeadmConfigSpec.clusterConfiguration.apiServer",
    "kubeadmConfigSpec.clusterConfiguration.controllerManager",
    "kubeadmConfigSpec.clusterConfiguration.scheduler",
    "kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays",
    "kubeadmConfigSpec.clusterConfiguration.encryptionAlgorithm",
    "kubeadmConfigSpec.initConfiguration.nodeRegistration",
    "kubeadmConfigSpec.initConfiguration.patches",
    "kubeadmConfigSpec.initConfiguration.skipPhases",
    "kubeadmConfigSpec.initConfiguration.bootstrapTokens",
    "kubeadmConfigSpec.initConfiguration.localAPIEndpoint",
    "kubeadmConfigSpec.initConfiguration.timeouts",
    "kubeadmConfigSpec.joinConfiguration.nodeRegistration",
    "kubeadmConfigSpec.joinConfiguration.patches",
    "kubeadmConfigSpec.joinConfiguration.skipPhases",
    "kubeadmConfigSpec.joinConfiguration.caCertPath",
    "kubeadmConfigSpec.joinConfiguration.controlPlane",
    "kubeadmConfigSpec.joinConfiguration.discovery",
    "kubeadmConfigSpec.joinConfiguration.timeouts",
    "kubeadmConfigSpec.bootCommands",
    "kubeadmConfigSpec.preKubeadmCommands",
    "kubeadmConfigSpec.postKubeadmCommands",
    "kubeadmConfigSpec.files",
    "kubeadmConfigSpec.verbosity",
    "kubeadmConfigSpec.users",
    "kubeadmConfigSpec.ntp",
    "kubeadmConfigSpec.ignition",
    "kubeadmConfigSpec.diskSetup",
    "kubeadmConfigSpec.format",
    "kubeadmConfigSpec.mounts",
];

pub(super) fn judge(asked: &Asked<'_>) -> Verdict {
    let spec = &asked.object["spec"];
    let mut errors = replicas(spec);
    let version = text(&spec["version"]).parse::<KubernetesVersion>();
    errors.extend(readable("spec.version", text(&spec["version"]), "must be a valid semantic version"));
    if let Some(before) = asked.before.map(|before| &before["spec"]) {
        errors.extend(unchangeable(before, spec));
        let from = text(&before["version"]).parse::<KubernetesVersion>();
        errors.extend(from.ok().zip(version.ok()).and_then(|(from, to)| step(&from, &to)));
        errors.extend(etcd(before, spec));
    }
    errors.into()
}

/// The number alone, for whoever changes it and nothing else: a scale, in which none is zero. Where etcd is, the control plane says.
pub(super) fn judge_scale(asked: &Asked<'_>) -> Verdict {
    let metadata = &asked.object["metadata"];
    let key = Key::new(text(&metadata["namespace"]), text(&metadata["name"]));
    let has_external_etcd = || {
        let control_plane = asked.store.get(&resource::<KubeadmControlPlane>(), &key);
        control_plane.and_then(|entry| read::<Value>(&entry)).is_some_and(|object| is_external(&object["spec"]))
    };
    let denied = match asked.object["spec"]["replicas"].as_i64().unwrap_or_default() {
        ..=0 => Some("replicas should be greater than zero"),
        count if count % 2 == 0 && !has_external_etcd() => {
            Some("replicas cannot be an even number when etcd is stacked")
        }
        _ => None,
    };
    Verdict { denied, ..Verdict::default() }
}

fn is_external(spec: &Value) -> bool {
    let external = &spec["kubeadmConfigSpec"]["clusterConfiguration"]["etcd"]["external"];
    external.as_object().is_some_and(|external| !external.is_empty())
}

fn replicas(spec: &Value) -> Vec<FieldError> {
    let count = spec["replicas"].as_i64().unwrap_or(1);
    let refuse = |why: &str| FieldError::forbidden("spec.replicas", why);
    let too_few = (count <= 0).then(|| refuse("cannot be less than or equal to 0"));
    let even = (count % 2 == 0 && !is_external(spec)).then(|| refuse("cannot be an even number when etcd is stacked"));
    too_few.into_iter().chain(even).collect()
}

/// What is wrong with a change of version.
fn step(from: &KubernetesVersion, to: &KubernetesVersion) -> Option<FieldError> {
    let numbers = |version: &KubernetesVersion| (version.minor(), version.patch());
    let refuse = |why: String| Some(FieldError::forbidden("spec.version", why));
    if numbers(from) != numbers(to) && numbers(to) == (MinorVersion { major: 1, minor: 19 }, 0) {
        let reason = "for more information see https://github.com/kubernetes-sigs/cluster-api/issues/3564";
        return refuse(format!("cannot update Kubernetes version to v1.19.0, {reason}"));
    }
    let is_next = from.minor().next().is_some_and(|next| to.minor() <= next);
    if is_next { None } else { refuse(format!("cannot update Kubernetes version from {from} to {to}")) }
}

fn etcd(before: &Value, spec: &Value) -> Option<FieldError> {
    let path = "spec.kubeadmConfigSpec.clusterConfiguration.etcd.external";
    let changes = is_external(before) != is_external(spec);
    changes.then(|| FieldError::forbidden(path, "cannot change between external and local etcd"))
}

fn unchangeable(before: &Value, spec: &Value) -> Vec<FieldError> {
    let mut paths = BTreeSet::new();
    changes(before, spec, "", &mut paths);
    let fixed = paths.into_iter().filter(|path| !CHANGEABLE.iter().any(|field| is_in(path, field)));
    fixed.map(|path| FieldError::forbidden(format!("spec.{path}"), "cannot be modified")).collect()
}

fn is_in(path: &str, field: &str) -> bool {
    path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The paths that a merge patch from one to the other would name.
fn changes(before: &Value, after: &Value, path: &str, paths: &mut BTreeSet<String>) {
    let none = serde_json::Map::new();
    match (before, after) {
        (before, after) if before == after => {}
        (before, Value::Object(now)) => {
            let was = before.as_object().unwrap_or(&none);
            for field in was.keys().chain(now.keys()).collect::<BTreeSet<_>>() {
                let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
                changes(&before[field.as_str()], &after[field.as_str()], &path, paths);
            }
        }
        // A part that says nothing is the same as none.
        (Value::Object(was), Value::Null) if was.is_empty() => {}
        _ => drop(paths.insert(path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(before: &Value, after: &Value, expected: &[&str]) {
        let refused: Vec<String> = unchangeable(before, after).into_iter().map(|error| error.path).collect();
        assert_eq!(refused, expected, "{before} to {after}");
    }

    #[test]
    fn only_what_is_listed_can_be_changed_and_saying_nothing_is_no_change() {
        let told = |what: Value| json!({ "kubeadmConfigSpec": what });
        check(&json!({"version": "a"}), &json!({"version": "b", "replicas": 3}), &[]);
        check(&told(json!({"joinConfiguration": {}})), &told(json!({})), &[]);
        check(&told(json!({})), &told(json!({"joinConfiguration": {"skipPhases": ["a"]}})), &[]);
        check(
            &told(json!({"joinConfiguration": {"skipPhases": ["a"]}})),
            &told(json!({})),
            &["spec.kubeadmConfigSpec.joinConfiguration"],
        );
        let name = |name: &str| json!({"machineTemplate": {"spec": {"infrastructureRef": {"name": name}}}});
        check(&name("a"), &name("b"), &[]);
        check(&name("a"), &json!({"machineTemplate": {}}), &[]);
        check(&name("a"), &json!({}), &["spec.machineTemplate"]);
    }
}
