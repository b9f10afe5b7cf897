//! Watches a World in which a cluster changes its release, and says what must not be: packages out of their order or before all
//! is quiet, and machines before packages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures::{Stream, StreamExt};
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use windlass_api::kind::cluster_api::{Machine, MachineDeployment};
use windlass_api::kind::control_plane::KubeadmControlPlane;
use windlass_api::kind::packaging::PackageInstall;
use windlass_api::kind::release::BootstrapPackages;
use windlass_api::kind::{Condition, condition};
use windlass_sim::world::World;

use super::{bootstrap, found, inside, package, seconds};

/// What was seen that must not be.
pub type Complaints = Arc<Mutex<Vec<String>>>;

pub fn complaints(seen: &Complaints) -> Vec<String> {
    seen.lock().unwrap().clone()
}

/// Watches until it is not asked any more.
pub async fn watch(world: &World, seen: &Complaints) {
    tokio::join!(machines(world, seen), packages(world, seen));
}

/// What was there and what comes, in the order in which it does.
async fn changes<K>(api: &Api<K>, mut of: impl AsyncFnMut(K))
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut version = "0".to_owned();
    loop {
        // A cluster that goes does not answer any more.
        let stream = api.watch(&WatchParams::default(), &version).await;
        let mut stream = stream.into_iter().map(StreamExt::boxed).next();
        while let Some(Ok(event)) = next(&mut stream).await {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    version = object.resource_version().unwrap();
                    of(object).await;
                }
                WatchEvent::Deleted(object) => version = object.resource_version().unwrap(),
                WatchEvent::Bookmark(bookmark) => version = bookmark.metadata.resource_version,
                // What came last is too long ago to go on from: all that is there comes again. A witness that looked for it for ever
                // saw nothing any more.
                WatchEvent::Error(_) => "0".clone_into(&mut version),
            }
        }
        seconds(1).await;
    }
}

/// The next change, where there is anybody who tells.
async fn next<T>(stream: &mut Option<impl Stream<Item = T> + Unpin>) -> Option<T> {
    stream.as_mut()?.next().await
}

/// The first machine of a version that no other had comes when every core package is at its version, and well.
async fn machines(world: &World, seen: &Complaints) {
    let mut versions = BTreeSet::new();
    let api: Api<Machine> = Api::default_namespaced(world.client());
    changes(&api, async |machine: Machine| {
        let version = machine.spec.version.unwrap_or_default();
        if !versions.insert(version.clone()) || versions.len() == 1 {
            return;
        }
        let Some(bootstrap) = bootstrap(world).await else { return };
        let cluster = found(world).await;
        let asked = cluster.labels().get("run.tanzu.vmware.com/tkr").cloned();
        // That of a management cluster is its own, and nobody installs it from outside.
        let kapp_of = |packages: &BootstrapPackages| {
            let is_management = cluster.labels().contains_key("cluster-role.tkg.tanzu.vmware.com/management");
            packages.kapp.clone().filter(|_| !is_management)
        };
        let chosen = bootstrap.status.and_then(|status| status.resolved_tkr);
        if chosen != asked {
            let text = format!("the first machine of {version} is there, and packages are those of {chosen:?}");
            seen.lock().unwrap().push(text);
        }
        let packages = &bootstrap.spec.packages;
        for core in [&kapp_of(packages), &packages.cni, &packages.cpi, &packages.csi].into_iter().flatten() {
            let (short, wanted) = (short(&core.ref_name), version_of(&core.ref_name));
            let is = package(world, short).await;
            if is != format!("{wanted} ReconcileSucceeded") {
                seen.lock().unwrap().push(format!("the first machine of {version} is there, and {short} is {is}"));
            }
        }
    })
    .await;
}

/// `antrea` of `antrea.tanzu.vmware.com.1.7.2`.
fn short(ref_name: &str) -> &str {
    ref_name.split('.').next().unwrap()
}

/// `1.7.2` of `antrea.tanzu.vmware.com.1.7.2`.
fn version_of(ref_name: &str) -> &str {
    ref_name.split_once(".com.").map(|(_, version)| version).unwrap()
}

/// Packages come to what is asked for in their order; of a cluster that is held, when everybody has let go of it.
async fn packages(world: &World, seen: &Complaints) {
    while world.workload(&"default/wl".parse().unwrap()).is_none() {
        seconds(5).await;
    }
    let mut asked: BTreeMap<String, String> = BTreeMap::new();
    let api: Api<PackageInstall> = Api::namespaced(inside(world), "tkg-system");
    while api.list(&ListParams::default()).await.is_err() {
        seconds(5).await;
    }
    changes(&api, async |install: PackageInstall| {
        let name = install.name_any().trim_start_matches("wl-").to_owned();
        let constraints = constraints(&install);
        let before = asked.insert(name.clone(), constraints.clone());
        let changed = before.is_some_and(|before| before != constraints);
        let Some(bootstrap) = bootstrap(world).await.filter(|_| changed) else { return };
        let packages = &bootstrap.spec.packages;
        // In their order; all others come after them.
        let core = [&packages.cni, &packages.cpi, &packages.csi].map(|core| core.as_ref().map(|core| &core.ref_name));
        let rank = core.iter().position(|core| core.is_some_and(|core| short(core) == name)).unwrap_or(core.len());
        for before in core.into_iter().take(rank).flatten() {
            let (short, wanted) = (short(before), version_of(before));
            if asked.get(short).map(String::as_str) != Some(wanted) {
                seen.lock().unwrap().push(format!("{name} {constraints} is asked for before {short} {wanted}"));
            }
        }
        if let Some(moves) = moves(world).await {
            seen.lock().unwrap().push(format!("{name} {constraints} is asked for, and {moves} is not paused yet"));
        }
    })
    .await;
}

/// The version that a package is to have.
fn constraints(install: &PackageInstall) -> String {
    let install = serde_json::to_value(install).unwrap();
    let found = install.pointer("/spec/packageRef/versionSelection/constraints");
    found.and_then(|found| found.as_str()).unwrap_or_default().to_owned()
}

/// What has not been let go of, of a cluster that is held.
async fn moves(world: &World) -> Option<String> {
    found(world).await.annotations().get("tkg.tanzu.vmware.com/paused")?;
    let mut moving = Vec::new();
    let mut look = |name: String, generation: Option<i64>, conditions: &[Condition]| {
        let paused = condition(conditions, "Paused");
        if !paused.is_some_and(|it| it.status == "True" && it.observed_generation == generation) {
            moving.push(name);
        }
    };
    macro_rules! look_at {
        ($($kind:ty),+) => {$(
            let api: Api<$kind> = Api::default_namespaced(world.client());
            for one in api.list(&ListParams::default()).await.unwrap() {
                look(one.name_any(), one.metadata.generation, &one.status.unwrap_or_default().conditions);
            }
        )+};
    }
    look_at!(KubeadmControlPlane, MachineDeployment, Machine);
    moving.into_iter().next()
}
