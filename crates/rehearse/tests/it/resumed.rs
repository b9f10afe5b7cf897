//! A World whose process ended in the middle of an upgrade, and that goes on from what was kept: the upgrade ends as it would have,
//! whichever write was the last one that lasted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use windlass_api::kind::tanzu::{Phase, TanzuKubernetesCluster};
use windlass_apiserver::store::{Backend, Change, ChangeKind, Keeper, Recovered, Resource, Waits};
use windlass_rehearse::assembly::{Assembly, Settings};
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::durations::Durations;
use windlass_sim::fault::Scenario;
use windlass_sim::timeline::Recorder;
use windlass_sim::world::{self, KeptStores, World};

use crate::play::{status, until};
use crate::start::{self, FROM, SEED, TO};

const MACHINES: &str = "machines.cluster.x-k8s.io";

/// One thing that was kept.
#[derive(Clone)]
enum Item {
    Change { place: Arc<str>, resource: Resource, change: Arc<Change>, draws: u64 },
    Forget(Arc<str>),
}

/// Keeps everything in a list, in order.
#[derive(Clone, Default)]
struct List(Arc<Mutex<Vec<Item>>>);

struct Seat {
    list: List,
    place: Arc<str>,
    draws: OnceLock<Arc<AtomicU64>>,
}

impl Keeper for List {
    fn backend(&self, place: &str) -> Arc<dyn Backend> {
        Arc::new(Seat { list: self.clone(), place: place.into(), draws: OnceLock::new() })
    }

    fn forget(&self, place: &str) {
        self.0.lock().unwrap().push(Item::Forget(place.into()));
    }
}

impl Backend for Seat {
    fn append(&self, resource: &Resource, change: &Arc<Change>) {
        let draws = self.draws.get().map_or(0, |draws| draws.load(Ordering::Relaxed));
        let (place, resource, change) = (self.place.clone(), resource.clone(), change.clone());
        self.list.0.lock().unwrap().push(Item::Change { place, resource, change, draws });
    }

    fn durable(&self, _: u64) -> BoxFuture<'static, std::io::Result<()>> {
        std::future::ready(Ok(())).boxed()
    }

    fn waits(&self) -> Waits {
        Waits::TheDoor
    }

    fn counts(&self, draws: &Arc<AtomicU64>) {
        drop(self.draws.set(draws.clone()));
    }
}

/// What is kept of the first items, and what time it was.
fn kept(items: &[Item]) -> (KeptStores, Timestamp) {
    let (mut stores, mut now) = (KeptStores::new(), start::founded());
    for item in items {
        match item {
            Item::Forget(place) => drop(stores.remove(place)),
            Item::Change { place, resource, change, draws } => {
                now = now.max(change.at);
                let store: &mut Recovered = stores.entry(place.clone()).or_default();
                (store.revision, store.at, store.draws) = (change.revision, change.at, *draws);
                let objects = store.tables.entry(resource.clone()).or_default();
                match change.kind {
                    ChangeKind::Deleted => drop(objects.take(&change.object.key)),
                    ChangeKind::Added | ChangeKind::Modified => drop(objects.put(change.object.clone())),
                }
                store.changes.push((resource.clone(), change.clone()));
            }
        }
    }
    (stores, now)
}

fn settings(clock: windlass_runtime::clock::Clock) -> world::Settings {
    world::Settings { clock, seed: SEED, durations: Durations::default(), faults: Scenario::default() }
}

fn is_at(world: &World, version: &str) -> bool {
    let status = status(world);
    status.phase == Some(Phase::Running) && status.version.as_deref() == Some(version)
}

/// All that was kept of a cluster that is created and upgraded, and how much of it there was when the upgrade was asked for.
fn reference() -> &'static (Vec<Item>, usize) {
    static REFERENCE: OnceLock<(Vec<Item>, usize)> = OnceLock::new();
    REFERENCE.get_or_init(|| {
        let list = List::default();
        let keeper = Arc::new(list.clone());
        let asked = run_virtual(SEED, start::founded(), |time| async move {
            let world = World::kept(settings(time.clock), Recorder::new(), keeper.clone()).await.unwrap();
            let assembly = Assembly::new(world.clone(), Settings::rehearsal(&world));
            let clusters: Api<TanzuKubernetesCluster> = Api::namespaced(world.client(), "default");
            let mut asked = 0;
            let script = async {
                clusters.create(&PostParams::default(), &start::manifest(1, 1)).await.unwrap();
                until(&world, "created", |world| is_at(world, FROM)).await;
                asked = keeper.0.lock().unwrap().len();
                let patch = json!({"spec": {"distribution": {"version": "v1.16.7", "fullVersion": null}}});
                clusters.patch("my-tkc", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
                until(&world, "upgraded", |world| is_at(world, TO)).await;
            };
            assembly.run(script).await;
            assert!(world.recorder().violations().is_empty(), "{:?}", world.recorder().violations());
            asked
        })
        .unwrap();
        let items = list.0.lock().unwrap().clone();
        (items, asked)
    })
}

/// The names of the machines there are, and the uids that each name ever had.
fn machines(items: &[Item]) -> (BTreeSet<String>, BTreeMap<String, BTreeSet<String>>) {
    let (mut now, mut ever) = (BTreeSet::new(), BTreeMap::<String, BTreeSet<String>>::new());
    for item in items {
        let Item::Change { resource, change, .. } = item else { continue };
        if &**resource != MACHINES {
            continue;
        }
        let name = change.object.key.name.to_string();
        ever.entry(name.clone()).or_default().insert(change.object.uid.to_string());
        if change.kind == ChangeKind::Deleted {
            now.remove(&name)
        } else {
            now.insert(name)
        };
    }
    (now, ever)
}

/// Goes on from the first items, to the end of the upgrade.
fn check(cut: usize) {
    let (items, asked) = reference();
    let (stores, now) = kept(&items[..cut]);
    let list = List::default();
    let keeper = Arc::new(list.clone());
    run_virtual(SEED, now, |time| async move {
        let world = World::resumed(settings(time.clock), Recorder::new(), keeper, stores);
        let assembly = Assembly::new(world.clone(), Settings::rehearsal(&world));
        let script = async {
            until(&world, "upgraded", |world| is_at(world, TO)).await;
        };
        assembly.run(script).await;
        let violations = world.recorder().violations();
        assert!(violations.is_empty(), "after {cut} of {asked}..{}: {violations:#?}", items.len());
    })
    .unwrap();
    let all: Vec<Item> = items[..cut].iter().cloned().chain(list.0.lock().unwrap().iter().cloned()).collect();
    let (before, after) = (machines(items), machines(&all));
    assert_eq!(after.0, before.0, "after {cut}: other machines");
    let twice: Vec<_> = after.1.iter().filter(|(_, uids)| uids.len() > 1).collect();
    assert!(twice.is_empty(), "after {cut}: made twice: {twice:?}");
    // Revisions go on, one by one, in each store.
    let mut revisions: BTreeMap<&str, u64> = BTreeMap::new();
    for item in &all {
        if let Item::Change { place, change, .. } = item {
            let revision = revisions.entry(place).or_default();
            assert_eq!(change.revision, *revision + 1, "after {cut}: {place}");
            *revision = change.revision;
        }
    }
}

#[test]
fn an_upgrade_goes_on_from_whatever_was_kept_of_it() {
    let (items, asked) = reference();
    // A prime, so that the places differ from each other in every respect.
    let cuts: Vec<usize> = (*asked + 2..items.len()).step_by(59).collect();
    assert!(cuts.len() > 5, "{asked} {}", items.len());
    cuts.into_iter().for_each(check);
}

#[test]
fn nothing_happens_in_a_world_that_was_at_rest_but_what_would_have_happened_anyway() {
    let (items, _) = reference();
    check(items.len());
}
