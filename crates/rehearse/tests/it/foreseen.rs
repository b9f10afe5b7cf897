//! What is foreseen is what happens: what is written lies in the envelope, a dry run is told what is stored, and what is its owner's
//! survives any sequence of upgrades. Of clusters whose release is a label, `labels` has the same.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::{Cluster, MachineDeployment};
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_plan::envelope::Allowed;
use windlass_rehearse::crash::{Crashes, Write};
use windlass_rehearse::preview::{Foreseen, preview};
use windlass_rehearse::rehearsal::{Ended, Request, Verdict, hold};
use windlass_sim::actor::Caller;
use windlass_sim::world::World;

use crate::packages_first;
use crate::start::{self, SEED, changed, cluster_name, later};

/// What Windlass writes about clusters, and not into them: records, Events, and what is shown on releases.
const ABOUT: [&str; 4] = ["clusterupdates", "events", "tanzukubernetesreleases", "osimages"];

/// A write: what was done to which kind of object, in which cluster, and its name where that is in the path.
struct Done<'a> {
    verb: &'a str,
    resource: &'a str,
    name: &'a str,
    within: bool,
}

impl<'a> Done<'a> {
    /// `patch machinedeployments default/my-tkc-workers-default`.
    fn read(write: &'a Write) -> Self {
        let mut words = write.what.split(' ');
        let (verb, resource) = (words.next().unwrap(), words.next().unwrap());
        let path = words.next().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        Self { verb, resource: resource.split('/').next().unwrap(), name, within: write.what.ends_with("(workload)") }
    }

    /// Whether it is this that is allowed, as far as a path tells.
    fn is(&self, allowed: &Allowed) -> bool {
        let kind = allowed.kind.to_lowercase();
        let verb = if self.verb == "patch" { ["apply", "patch"] } else { [self.verb; 2] };
        verb.contains(&allowed.verb.as_str()) && (kind == "*" || format!("{kind}s") == self.resource)
    }
}

fn of_controllers(ended: &Ended) -> impl Iterator<Item = &Write> {
    let writes = ended.writes.iter().filter(|write| write.caller == Caller::Controllers);
    writes.filter(|write| !ABOUT.contains(&Done::read(write).resource))
}

/// Asks for a release, and holds the rehearsal to its end.
fn upgraded(world: &World, request: &Request, distribution: &str) -> Ended {
    let ended = hold(world, request, Crashes::none()).unwrap();
    let reached = Verdict::Reached { distribution: distribution.into() };
    assert_eq!(ended.rehearsal.verdict, reached, "{}", ended.rehearsal);
    assert!(ended.rehearsal.violations.is_empty(), "{:?}", ended.rehearsal.violations);
    ended
}

/// An object as it is stored, without who wrote it and when.
async fn object<K: kube::Resource<DynamicType = ()>>(world: &World, name: &str) -> Value {
    let api: Api<DynamicObject> = Api::default_namespaced_with(world.client(), &ApiResource::erase::<K>(&()));
    shown(api.get(name).await.unwrap())
}

fn shown(object: DynamicObject) -> Value {
    let mut object = serde_json::to_value(object).unwrap();
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|field, _| !["managedFields", "resourceVersion"].contains(&field.as_str()));
    object
}

fn read<K: kube::Resource<DynamicType = ()>>(world: &World, name: &str) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(object::<K>(world, name))
}

/// What a dry run of a wish is told, and what is stored when it is written.
async fn tried<K: kube::Resource<DynamicType = ()>>(world: &World, name: &str, wish: &Value) {
    let api: Api<DynamicObject> = Api::default_namespaced_with(world.client(), &ApiResource::erase::<K>(&()));
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    let told = shown(api.patch(name, &dry, &Patch::Merge(wish)).await.unwrap());
    let stored = shown(api.patch(name, &PatchParams::default(), &Patch::Merge(wish)).await.unwrap());
    assert_eq!(told, stored);
}

/// What an owner puts on an object, as a patch.
fn owned() -> Value {
    json!({"metadata": {
        "labels": {"example.com/tier": "shop"},
        "annotations": {"example.com/owner": "us: \"ours\"", "example.com/more": "  two lines\n"},
    }})
}

/// What of it is still there.
fn survives(object: &Value) {
    for what in ["labels", "annotations"] {
        for (key, value) in owned()["metadata"][what].as_object().unwrap() {
            assert_eq!(object["metadata"][what][key], *value, "{what} {key}");
        }
    }
}

async fn mark<K: kube::Resource<DynamicType = ()>>(world: &World, name: &str, patch: Value) {
    let api: Api<DynamicObject> = Api::default_namespaced_with(world.client(), &ApiResource::erase::<K>(&()));
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

#[test]
fn of_a_cluster_whose_machines_are_ours_what_is_planned_is_what_is_done_and_what_is_its_owners_stays() {
    let pool = "my-tkc-workers-default";
    let mut world = changed(start::one_and_one(), |world| async move {
        mark::<TanzuKubernetesCluster>(&world, "my-tkc", owned()).await;
        mark::<MachineDeployment>(&world, pool, owned()).await;
    });
    let settings = read::<TanzuKubernetesCluster>(&world, "my-tkc")["spec"]["settings"].clone();
    for (to, hours) in [("v1.16.7+vmware.1-guest.1", 0), ("v1.17.4+vmware.1-guest.1", 6)] {
        let at = later() + Duration::from_secs(hours * 3600);
        let request = Request::new(cluster_name(), to, SEED, at);
        let Foreseen::Planned(seen) = preview(&world, &request).unwrap() else { panic!() };
        let envelope = &seen.planned.envelope;
        let ended = upgraded(&world, &request, to);
        let outside = of_controllers(&ended).filter(|write| {
            let done = Done::read(write);
            let is_status = ["tanzukubernetesclusters", "pods"].contains(&done.resource);
            !is_status && !envelope.allowed.iter().any(|allowed| done.is(allowed))
        });
        assert_eq!(outside.map(|write| write.what.as_str()).collect::<Vec<_>>(), Vec::<&str>::new());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let updates = runtime.block_on(async {
            let api: Api<ClusterUpdate> = Api::default_namespaced(ended.world.client());
            api.list(&kube::api::ListParams::default()).await.unwrap().items
        });
        let last = updates.iter().max_by_key(|update| update.spec.ordinal).unwrap();
        assert_eq!(last.spec.envelope_digest, envelope.digest(), "what was planned is what is on record");
        survives(&read::<TanzuKubernetesCluster>(&ended.world, "my-tkc"));
        survives(&read::<MachineDeployment>(&ended.world, pool));
        assert_eq!(read::<TanzuKubernetesCluster>(&ended.world, "my-tkc")["spec"]["settings"], settings);
        world = ended.world;
    }
}

/// What an owner says of a cluster of a class that no release speaks of.
fn of_its_owner(cluster: &Value) -> Value {
    let topology = &cluster["spec"]["topology"];
    let variables = topology["variables"].as_array().cloned().unwrap_or_default();
    let variables: Vec<Value> = variables.into_iter().filter(|it| it["name"] != "TKR_DATA").collect();
    let pool = &topology["workers"]["machineDeployments"][0];
    json!([
        cluster["spec"]["clusterNetwork"],
        topology["classRef"],
        topology["controlPlane"],
        variables,
        pool["metadata"],
        pool["replicas"],
        pool["name"]
    ])
}

/// The packages of a cluster by name and version, and the values that somebody chose for one.
fn packages(bootstrap: &Value) -> (BTreeSet<String>, Value) {
    let spec = &bootstrap["spec"];
    let core = ["kapp", "cni", "cpi", "csi"].map(|slot| spec[slot]["refName"].clone());
    let more = spec["additionalPackages"].as_array().cloned().unwrap_or_default();
    let names = core.into_iter().chain(more.iter().map(|it| it["refName"].clone()));
    (names.filter_map(|name| name.as_str().map(str::to_owned)).collect(), spec["csi"]["valuesFrom"].clone())
}

#[test]
fn of_a_cluster_of_a_class_what_is_planned_is_what_is_done_and_what_is_its_owners_stays() {
    let name = "wl";
    let mut world = packages_first::marked(|world| async move {
        let mut marks = owned();
        let mut topology = object::<Cluster>(&world, name).await["spec"]["topology"].clone();
        topology["workers"]["machineDeployments"][0]["metadata"] = json!({"labels": {"example.com/pool": "a"}});
        topology["controlPlane"]["metadata"] = json!({"annotations": {"example.com/plane": "ours"}});
        marks["spec"] = json!({"topology": topology});
        mark::<Cluster>(&world, name, marks).await;
        mark::<ClusterBootstrap>(&world, name, owned()).await;
    });
    let (theirs, values) =
        (of_its_owner(&read::<Cluster>(&world, name)), packages(&read::<ClusterBootstrap>(&world, name)).1);
    for (to, hours) in [("v1.25.7---vmware.2-tkg.1", 0), ("v1.26.5---vmware.2-tkg.1", 12)] {
        let at = later() + Duration::from_secs((24 + hours) * 3600);
        let request = Request::new("default/wl".parse().unwrap(), to, SEED, at);
        let Foreseen::OfClass(seen) = preview(&world, &request).unwrap() else { panic!() };
        let envelope = seen.envelope.clone().unwrap();
        let before = packages(&read::<ClusterBootstrap>(&world, name)).0;
        let ended = upgraded(&world, &request, to);
        let outside = of_controllers(&ended).filter(|write| {
            let done = Done::read(write);
            let place = if done.within { "tkg-system" } else { "management" };
            let role = format!("{place}/{}", done.name);
            let is_named = |allowed: &&Allowed| {
                allowed.role.split(" at ").next() == Some(&role) || allowed.kind == "*" || done.verb == "create"
            };
            // Each machine has a hook by which it outlives the packages of its cluster.
            let is_ours = done.resource == "machines";
            !is_ours && !envelope.allowed.iter().filter(is_named).any(|allowed| done.is(allowed))
        });
        assert_eq!(outside.map(|write| write.what.as_str()).collect::<Vec<_>>(), Vec::<&str>::new());
        let (after, kept) = packages(&read::<ClusterBootstrap>(&ended.world, name));
        let (foreseen, found): (BTreeSet<String>, BTreeSet<String>) = (
            seen.packages.iter().filter_map(|it| it.to.clone()).collect(),
            after.difference(&before).map(|it| it.split_once(".com.").unwrap().1.to_owned()).collect(),
        );
        assert_eq!(found, foreseen, "the packages that were planned are the ones that have come");
        assert_eq!(kept, values);
        let cluster = read::<Cluster>(&ended.world, name);
        assert_eq!(of_its_owner(&cluster), theirs);
        survives(&cluster);
        survives(&read::<ClusterBootstrap>(&ended.world, name));
        world = ended.world;
    }
}

#[test]
fn a_dry_run_is_told_what_is_stored_whichever_sort_of_cluster_it_is() {
    packages_first::tried(|world| async move {
        let release = json!({"metadata": {"labels": {"run.tanzu.vmware.com/tkr": "v1.25.7---vmware.2-tkg.1"}}});
        tried::<Cluster>(&world, "wl", &release).await;
    });
    let world = &start::one_and_one().world;
    let _end = crate::play::played(world, later(), Default::default(), |world| async move {
        let version = json!({"spec": {"distribution": {"version": "v1.16", "fullVersion": null}}});
        tried::<TanzuKubernetesCluster>(&world, "my-tkc", &version).await;
    });
    crate::labels::played_on(&crate::labels::start().world, |world| async move {
        let label = json!({"metadata": {"labels": {"release.giantswarm.io/version": "36.1.0"}}});
        tried::<Cluster>(&world, "shop", &label).await;
    });
}
