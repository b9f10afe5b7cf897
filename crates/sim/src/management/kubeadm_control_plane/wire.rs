//! Specifications as they are on the wire: what machines are made from must lose nothing, and every change of it replaces them.
//!
//! The kinds here know the fields that somebody reads, and a control plane hands on all that people wrote. What a watch would have
//! kept of it is read once for each generation, and read again by whoever goes on with the objects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use serde_json::Value;
use windlass_api::kind::bootstrap::KubeadmConfig;
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_runtime::chance::Seed;

use crate::management::context::{Error, Turn};
use crate::management::write::failed;

/// What was read, by uid of the object.
#[derive(Clone, Default)]
pub(in crate::management) struct Wire(Arc<Mutex<Read>>);

#[derive(Default)]
struct Read {
    /// The `kubeadmConfigSpec` of control planes, and the generation that it is of.
    wishes: BTreeMap<String, (Option<i64>, Arc<Value>)>,
    /// The [hashes](hash) of the configurations of machines. Nobody changes those.
    configurations: BTreeMap<String, u64>,
    /// The generation of control planes that their add-ons have followed.
    followed: BTreeMap<String, Option<i64>>,
}

impl Wire {
    /// A configuration that was made just now.
    pub(super) fn made(&self, uid: &str, configuration: &Value) {
        self.lock().configurations.insert(uid.to_owned(), hash(configuration));
    }

    /// Whether the add-ons have followed the control plane to this generation.
    pub(super) fn has_followed(&self, uid: &str, generation: Option<i64>) -> bool {
        self.lock().followed.get(uid) == Some(&generation)
    }

    /// The add-ons have.
    pub(super) fn followed(&self, uid: &str, generation: Option<i64>) {
        self.lock().followed.insert(uid.to_owned(), generation);
    }

    // The maps are whole after every statement, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, Read> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What kubeadm is to be told on the machines of a control plane. `None` if the control plane has changed since it was seen: its
/// watch will tell.
pub(super) async fn wish(turn: &Turn, control_plane: &KubeadmControlPlane) -> Result<Option<Arc<Value>>, Error> {
    let meta = &control_plane.metadata;
    let uid = meta.uid.as_deref().unwrap_or_default();
    let known = turn.wire.lock().wishes.get(uid).cloned();
    if let Some((_, wish)) = known.filter(|(generation, _)| *generation == meta.generation) {
        return Ok(Some(wish));
    }
    let kind = ApiResource::erase::<KubeadmControlPlane>(&());
    let api = Api::<DynamicObject>::namespaced_with(
        turn.client.clone(),
        meta.namespace.as_deref().unwrap_or_default(),
        &kind,
    );
    let read = api.get_opt(meta.name.as_deref().unwrap_or_default()).await;
    let Some(mut read) = read.map_err(|source| failed("read", control_plane, source))? else { return Ok(None) };
    if read.metadata.generation != meta.generation || read.metadata.uid != meta.uid {
        return Ok(None);
    }
    let wish = Arc::new(read.data["spec"]["kubeadmConfigSpec"].take());
    turn.wire.lock().wishes.insert(uid.to_owned(), (meta.generation, Arc::clone(&wish)));
    Ok(Some(wish))
}

/// The hash of what kubeadm was told on a machine. `None` if the configuration is gone.
pub(super) async fn told(turn: &Turn, config: &KubeadmConfig) -> Result<Option<u64>, Error> {
    let meta = &config.metadata;
    let uid = meta.uid.as_deref().unwrap_or_default();
    if let Some(hash) = turn.wire.lock().configurations.get(uid) {
        return Ok(Some(*hash));
    }
    let kind = ApiResource::erase::<KubeadmConfig>(&());
    let api = Api::<DynamicObject>::namespaced_with(
        turn.client.clone(),
        meta.namespace.as_deref().unwrap_or_default(),
        &kind,
    );
    let read = api.get_opt(meta.name.as_deref().unwrap_or_default()).await;
    let Some(read) = read.map_err(|source| failed("read", config, source))? else { return Ok(None) };
    let hash = hash(&read.data["spec"]);
    turn.wire.lock().configurations.insert(uid.to_owned(), hash);
    Ok(Some(hash))
}

/// What the first machine is told.
pub(super) fn begins(wish: &Value) -> Value {
    let mut told = object(wish);
    told["initConfiguration"] = object(&wish["initConfiguration"]);
    without(&mut told, "joinConfiguration");
    told
}

/// What all others are told. The `clusterConfiguration` stays in it, as in Cluster API, though kubeadm does not ask for it.
pub(super) fn joins(wish: &Value) -> Value {
    let mut told = object(wish);
    told["joinConfiguration"] = object(&wish["joinConfiguration"]);
    if !told["joinConfiguration"]["controlPlane"].is_object() {
        told["joinConfiguration"]["controlPlane"] = object(&Value::Null);
    }
    without(&mut told, "initConfiguration");
    told
}

/// What the machines are compared by. `CoreDNS` is left out, as it is changed in place.
pub(super) fn hash(configuration: &Value) -> u64 {
    let mut compared = configuration.clone();
    without(&mut compared["clusterConfiguration"], "dns");
    if compared["clusterConfiguration"].as_object().is_none_or(serde_json::Map::is_empty) {
        without(&mut compared, "clusterConfiguration");
    }
    Seed(0).child(&compared.to_string()).0
}

fn object(value: &Value) -> Value {
    if value.is_object() { value.clone() } else { Value::Object(serde_json::Map::new()) }
}

fn without(value: &mut Value, field: &str) {
    if let Some(fields) = value.as_object_mut() {
        fields.remove(field);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(told: &Value, wish: &Value, same: bool) {
        assert_eq!(hash(told) == hash(&joins(wish)), same, "{told} for {wish}");
    }

    #[test]
    fn a_machine_is_compared_by_what_it_was_told_and_not_by_what_others_were() {
        let wish = json!({
            "clusterConfiguration": {"imageRepository": "vmware", "dns": {"imageTag": "v1.6.2"}},
            "initConfiguration": {"skipPhases": ["addon/kube-proxy"]},
            "joinConfiguration": {"nodeRegistration": {"name": "x"}},
            "files": [{"path": "/etc/a"}],
        });
        let told = joins(&wish);
        assert!(told.get("initConfiguration").is_none() && told["joinConfiguration"]["controlPlane"].is_object());
        assert!(begins(&wish).get("joinConfiguration").is_none());
        check(&told, &wish, true);
        for (pointer, value, same) in [
            ("/initConfiguration/skipPhases", json!([]), true),
            ("/clusterConfiguration/dns/imageTag", json!("v1.6.5"), true),
            ("/clusterConfiguration/imageRepository", json!("other"), false),
            ("/joinConfiguration/nodeRegistration/name", json!("y"), false),
            ("/files/0/path", json!("/etc/b"), false),
        ] {
            let mut changed = wish.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            check(&told, &changed, same);
        }
    }

    #[test]
    fn one_who_wishes_for_nothing_is_told_to_begin_or_to_join() {
        assert_eq!(begins(&Value::Null), json!({"initConfiguration": {}}));
        assert_eq!(joins(&Value::Null), json!({"joinConfiguration": {"controlPlane": {}}}));
    }
}
