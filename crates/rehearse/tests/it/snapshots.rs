//! A rehearsal that starts from a snapshot is the same as one that starts from the World that it was taken of; and a snapshot
//! that is kept has all that decides a rehearsal, and nothing that is secret.

mod planted;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, discovery};
use serde_json::{Value, json};
use tempfile::TempDir;
use windlass_rehearse::rehearsal::{Rehearsal, Request, Verdict, Wish, rehearse};
use windlass_rehearse::snapshot::{Change, Snapshot};
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::world::{self, World};

use crate::start::{self, SEED, later};

fn settings(of: &World, clock: windlass_runtime::clock::Clock) -> world::Settings {
    world::Settings { clock, ..of.settings().clone() }
}

/// A snapshot of a World at rest.
fn snapshot_of(world: &World) -> Snapshot {
    let taken = run_virtual(SEED, later(), |time| async move {
        Snapshot::of(&world.fork(settings(world, time.clock))).await.unwrap()
    });
    taken.unwrap()
}

/// A World of a snapshot that was written and read.
fn restored(snapshot: &Snapshot, like: &World, dir: &Path) -> World {
    snapshot.save(dir).unwrap();
    let read = Snapshot::load(dir).unwrap();
    assert_eq!(read, *snapshot);
    let world = run_virtual(SEED, later(), |time| async move { read.world(settings(like, time.clock)).await.unwrap() });
    world.unwrap()
}

/// Creates an object as it is written.
async fn create(client: &Client, object: Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, version) = match text(&object["apiVersion"]).split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None => (String::new(), text(&object["apiVersion"])),
    };
    let gvk = GroupVersionKind::gvk(&group, &version, &text(&object["kind"]));
    let (kind, capabilities) = discovery::pinned_kind(client, &gvk).await.unwrap();
    let kind: ApiResource = kind;
    let api: Api<DynamicObject> = match capabilities.scope {
        discovery::Scope::Namespaced => {
            Api::namespaced_with(client.clone(), &text(&object["metadata"]["namespace"]), &kind)
        }
        discovery::Scope::Cluster => Api::all_with(client.clone(), &kind),
    };
    let parsed = serde_json::from_value(object.clone()).unwrap();
    api.create(&PostParams::default(), &parsed).await.unwrap_or_else(|error| panic!("{error}: {object}"));
}

/// All files of a folder.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn a_rehearsal_from_a_snapshot_has_the_same_timeline_as_one_from_a_fork() {
    let (start, home) = (start::three_and_one(), TempDir::new().unwrap());
    let snapshot = snapshot_of(&start.world);
    assert_eq!(snapshot.gaps, []);
    let restored = restored(&snapshot, &start.world, &home.path().join("a"));
    let forked = rehearse(&start.world, &start::update()).unwrap();
    let restored = rehearse(&restored, &start::update()).unwrap();
    assert_eq!(restored.verdict, forked.verdict, "{restored}");
    assert_eq!(restored.timeline.text(), forked.timeline.text());
}

#[test]
fn nothing_secret_is_in_a_snapshot_and_all_else_is_in_the_world_that_is_made_of_it() {
    let home = TempDir::new().unwrap();
    let world = start::changed(start::one_and_one(), |world| async move {
        let workload = world.workload(&start::cluster_name()).unwrap();
        let clients = [world.client(), Client::new(workload.server().clone(), "default")];
        for (client, objects) in clients.iter().zip([planted::management(), planted::workload()]) {
            for object in objects {
                create(client, object).await;
            }
        }
    });
    let snapshot = snapshot_of(&world);
    let dir = home.path().join("a");
    let again = snapshot_of(&restored(&snapshot, &world, &dir));
    let files = files(&dir);
    assert_eq!(files.len(), 3, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for marker in planted::markers() {
            assert!(!text.contains(&marker), "{marker} is in {}", file.display());
        }
    }
    // What is public of that is kept: in which version it was written, and when a certificate ends.
    let planted =
        snapshot.management.iter().find(|object| object["kind"] == "Secret" && object["metadata"]["name"] == "planted");
    let annotations = &planted.unwrap()["metadata"]["annotations"];
    let manifest = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"planted"}}"#;
    assert_eq!(annotations["kubectl.kubernetes.io/last-applied-configuration"], manifest);
    let dates = annotations["windlass.dev/certificate-dates"].as_str().unwrap();
    assert!(dates.contains(r#""notAfter":"2026-01-12T00:00:00Z""#), "{dates}");
    // What is called or served by others is kept, and is in no World.
    let kept: Vec<&str> = snapshot.only_data().filter_map(|(_, object)| object["metadata"]["name"].as_str()).collect();
    assert!(kept.contains(&"planted-webhook") && kept.contains(&"machines.cluster.x-k8s.io"), "{kept:?}");
    let diff = snapshot.diff(&again);
    let lost = |name: &str| kept.contains(&name);
    let others = diff.objects.iter().filter(|object| object.change != Change::Removed || !lost(&object.name));
    // Of definitions a World has its own.
    let others: Vec<_> = others.filter(|object| object.kind != "CustomResourceDefinition").collect();
    assert!(others.is_empty(), "{others:#?}");
    assert!(diff.objects.iter().any(|object| object.name == "planted-webhook"), "a webhook is not in a World");
}

/// Rehearses, and it does not end well: the rehearsal, and what it waited for at last.
#[track_caller]
fn stuck(world: &World, request: &Request) -> (Rehearsal, String) {
    let rehearsal = rehearse(world, request).unwrap();
    assert!(!matches!(rehearsal.verdict, Verdict::Reached { .. }), "{rehearsal}");
    let waited = rehearsal.waited.last().map(|waited| waited.why.join("\n")).unwrap_or_default();
    (rehearsal, waited)
}

#[test]
fn a_dead_member_of_etcd_is_dead_in_a_rehearsal() {
    let (start, home) = (start::three_and_one(), TempDir::new().unwrap());
    let mut snapshot = snapshot_of(&start.world);
    let members = &mut snapshot.workloads.get_mut(&start::cluster_name()).unwrap().members;
    let dead = members.iter_mut().find(|member| !member.leader).unwrap();
    dead.healthy = false;
    let (dead, members) = (dead.name.clone(), members.clone());
    let restored = restored(&snapshot, &start.world, &home.path().join("a"));
    let again = snapshot_of(&restored).workloads.remove(&start::cluster_name()).unwrap().members;
    assert_eq!(again, members);
    let request = Request { deadline: Duration::from_secs(15 * 60), ..start::update() };
    let (rehearsal, waited) = stuck(&restored, &request);
    assert!(waited.contains(&dead), "{rehearsal}\n{waited}");
    assert!(rehearsal.machines.is_empty(), "no machine is touched: {rehearsal}");
}

#[test]
fn a_pool_without_spare_quota_is_stuck_for_it_in_a_rehearsal() {
    let home = TempDir::new().unwrap();
    let world = start::changed(start::one_and_one(), |world| async move {
        let hard = json!({"count/wcpmachines.infrastructure.cluster.vmware.com": "2"});
        let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"namespace": "default", "name": "machines"}, "spec": {"hard": hard}});
        create(&world.client(), quota).await;
    });
    let restored = restored(&snapshot_of(&world), &world, &home.path().join("a"));
    let wish = Wish::Patch(json!({"spec": {"topology": {"workers": {"class": "best-effort-large"}}}}));
    let request = Request { ask: wish, deadline: Duration::from_secs(30 * 60), ..start::update() };
    let (rehearsal, waited) = stuck(&restored, &request);
    let resource = "count/wcpmachines.infrastructure.cluster.vmware.com";
    let why = format!("exceeded quota: machines, requested: {resource}=1, used: {resource}=2, limited: {resource}=2");
    assert!(waited.contains(&why), "{rehearsal}\n{waited}");
}
