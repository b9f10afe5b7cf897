//! Sees whatever is made and changed while an update runs, by watches that miss nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use futures::stream::select_all;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use windlass_api::kind::bootstrap::{KubeadmConfig, KubeadmConfigTemplate};
use windlass_api::kind::cluster_api::{Machine, MachineDeployment};
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::wcp::{WCPMachine, WCPMachineTemplate};
use windlass_api::version::KubernetesVersion;

/// What was seen. A handle: clones are the same.
#[derive(Clone, Default)]
pub struct Witness(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    /// By kind and name, who has had that name.
    made: BTreeMap<(String, String), BTreeSet<String>>,
    /// The highest version that an object has asked for.
    versions: BTreeMap<String, KubernetesVersion>,
    complaints: Vec<String>,
}

impl Witness {
    /// Watches. Does not end.
    pub async fn watch(&self, client: &Client) {
        let kinds = [
            ApiResource::erase::<Machine>(&()),
            ApiResource::erase::<MachineDeployment>(&()),
            ApiResource::erase::<KubeadmControlPlane>(&()),
            ApiResource::erase::<KubeadmConfig>(&()),
            ApiResource::erase::<KubeadmConfigTemplate>(&()),
            ApiResource::erase::<WCPMachine>(&()),
            ApiResource::erase::<WCPMachineTemplate>(&()),
            ApiResource::erase::<ClusterUpdate>(&()),
            ApiResource::erase::<Job>(&()),
        ];
        let changes = kinds.into_iter().map(|kind| {
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
            let changes = watcher(api, watcher::Config::default()).default_backoff();
            changes.map(move |change| (kind.kind.clone(), change)).boxed()
        });
        let mut changes = select_all(changes);
        while let Some((kind, change)) = changes.next().await {
            if let Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) = change {
                self.see(&kind, &object);
            }
        }
    }

    fn see(&self, kind: &str, object: &DynamicObject) {
        // Templates of a class are none of a cluster.
        if !matches!(object.namespace().as_deref(), Some("default" | "vmware-system-tkg")) {
            return;
        }
        let mut seen = self.0.lock().unwrap();
        let uid = object.uid().unwrap_or_default();
        seen.made.entry((kind.to_owned(), object.name_any())).or_default().insert(uid.clone());
        let asked = match kind {
            "MachineDeployment" => &object.data["spec"]["template"]["spec"]["version"],
            _ => &object.data["spec"]["version"],
        };
        let Some(Ok(version)) = asked.as_str().map(str::parse::<KubernetesVersion>) else { return };
        let highest = seen.versions.entry(uid).or_insert_with(|| version.clone()).clone();
        if version < highest {
            seen.complaints.push(format!("{kind}/{} went back from {highest} to {version}", object.name_any()));
        } else if version > highest {
            seen.versions.insert(object.uid().unwrap_or_default(), version);
        }
    }

    /// How many of each kind there ever were.
    pub fn made(&self) -> BTreeMap<String, usize> {
        let mut made: BTreeMap<String, usize> = BTreeMap::new();
        for ((kind, _), uids) in &self.0.lock().unwrap().made {
            *made.entry(kind.clone()).or_default() += uids.len();
        }
        made
    }

    /// What must not be: a version that goes back, or two objects that had the same name, one after the other.
    pub fn complaints(&self) -> Vec<String> {
        let seen = self.0.lock().unwrap();
        let again = seen.made.iter().filter(|(_, uids)| uids.len() > 1);
        let again = again.map(|((kind, name), uids)| format!("{kind}/{name} was made {} times", uids.len()));
        seen.complaints.iter().cloned().chain(again).collect()
    }
}
