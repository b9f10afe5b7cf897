//! A fork of the server: a world of its own from here on.

use std::sync::{Arc, Mutex};

use http::{Method, Request};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use tower::Service;
use windlass_apiserver::ApiServer;
use windlass_apiserver::store::Range;
use windlass_runtime::chance::Seed;
use windlass_runtime::runner::Order;
use windlass_runtime::trace::TraceLog;

use super::fleet::{self, ChangeLog, Fleet, Run, fleet};
use super::{Cluster, Seen, cluster, config_map, server_options};
use crate::world::sleep;

impl Cluster {
    fn fork(&self, seed: Seed) -> Cluster {
        let server = self.server.fork(server_options(&self.clock, seed));
        Cluster { server, seed, requests: Arc::default(), clock: self.clock.clone() }
    }
}

/// Every object as it is, to the byte.
fn bytes(server: &ApiServer) -> Vec<String> {
    let everything = Range { namespace: None, after: None, limit: 0 };
    let of = |resource: &Arc<str>| {
        let entries = server.store().list(resource, everything, |_| true).entries;
        entries.into_iter().map(|entry| format!("{} {:?}", entry.key, entry.json)).collect::<Vec<_>>()
    };
    server.store().resources().iter().flat_map(of).collect()
}

async fn run(world: &Cluster, client: Client) {
    let trace = Arc::new(TraceLog::default());
    let run = Run { client, clock: &world.clock, seed: world.seed, order: Order::Fifo, trace: &trace };
    let summary = run.until_settled().await;
    assert_eq!((summary.panics, summary.overdue), (0, 0));
}

async fn fleets(world: &Cluster) {
    fleet::define(&world.client()).await;
    for (name, count) in [("a", 3), ("b", 5), ("c", 0)] {
        fleet::create(&world.client(), &fleet(name, count)).await;
    }
}

#[test]
fn a_controller_on_a_fork_leaves_the_original_untouched() {
    cluster(|world| async move {
        fleets(&world).await;
        let (revision, before) = (world.server.store().revision(), bytes(&world.server));
        let seen = Seen::watch(world.api::<ConfigMap>(), watcher::Config::default());
        let fork = world.fork(Seed(2));
        assert_eq!((fork.server.store().revision(), bytes(&fork.server)), (revision, before.clone()));

        run(&fork, fork.client()).await;
        assert_eq!(fork.server.store().count("configmaps"), 8);
        assert_eq!((world.server.store().revision(), bytes(&world.server)), (revision, before));
        assert_eq!(seen.take(), ["init", "done"], "no watch of the original hears of it");
    });
}

#[test]
fn a_fork_goes_on_from_the_same_state_with_identities_of_its_own() {
    cluster(|world| async move {
        fleets(&world).await;
        run(&world, world.client()).await;
        let (fork, twin) = (world.fork(Seed(2)), world.fork(world.seed));
        let create = async |world: &Cluster| {
            world.api::<ConfigMap>().create(&PostParams::default(), &config_map("new", &[])).await.unwrap()
        };
        let (original, forked, twin) = (create(&world).await, create(&fork).await, create(&twin).await);
        assert_eq!(original.resource_version(), forked.resource_version());
        assert_ne!(original.uid(), forked.uid());
        assert_eq!(original, twin, "the same seed goes on as the original does");
        let known: Vec<_> = fork.api::<ConfigMap>().list(&ListParams::default()).await.unwrap().items;
        assert!(known.iter().filter(|map| map.uid() == forked.uid()).count() == 1, "no identity is given twice");
    });
}

#[test]
fn a_fork_with_the_same_seed_repeats_what_the_original_does() {
    cluster(|world| async move {
        fleets(&world).await;
        let fork = world.fork(world.seed);
        // Side by side, so that both see the same times.
        let (ours, theirs) = (ChangeLog::of(&world.server), ChangeLog::of(&fork.server));
        tokio::join!(run(&world, world.client()), run(&fork, fork.client()));
        sleep(1).await;
        assert!(ours.lines().len() > 20);
        assert_eq!(ours.lines(), theirs.lines());
    });
}

#[test]
fn a_watch_on_a_fork_starts_from_a_list() {
    cluster(|world| async move {
        fleets(&world).await;
        let fork = world.fork(Seed(2));
        let fleets: Api<Fleet> = fork.api();
        let seen = Seen::watch(fleets.clone(), watcher::Config::default());
        let streamed = Seen::watch(fleets, watcher::Config::default().streaming_lists());
        sleep(1).await;
        fleet::create(&fork.client(), &fleet("d", 0)).await;
        sleep(1).await;
        let expected = ["init", "listed a", "listed b", "listed c", "done", "applied d"];
        assert_eq!(seen.take(), expected);
        assert_eq!(streamed.take(), expected);
    });
}

/// A client that forks the server after every so many writes, before the writer learns of it: the moments of a crash.
fn forking(world: &Cluster, every: usize, forks: &Arc<Mutex<Vec<Cluster>>>) -> Client {
    let (world, forks, writes) = (world.clone(), Arc::clone(forks), Arc::new(Mutex::new(0)));
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (world, forks, writes) = (world.clone(), Arc::clone(&forks), Arc::clone(&writes));
        async move {
            let reads = request.method() == Method::GET;
            let answer = world.server.clone().call(request).await;
            if !reads {
                let mut writes = writes.lock().unwrap();
                *writes += 1;
                if *writes % every == 0 {
                    forks.lock().unwrap().push(world.fork(Seed(1000 + *writes as u64)));
                }
            }
            answer
        }
    });
    Client::new(service, "default")
}

#[test]
fn whoever_takes_over_after_any_write_ends_where_the_first_would_have() {
    cluster(|world| async move {
        fleets(&world).await;
        let forks = Arc::default();
        run(&world, forking(&world, 3, &forks)).await;
        let expected = fleet::state(&world.server);
        let forks = forks.lock().unwrap().clone();
        assert!(forks.len() >= 8, "{} forks", forks.len());
        for (n, fork) in forks.iter().enumerate() {
            run(fork, fork.client()).await;
            assert_eq!(fleet::state(&fork.server), expected, "after {} writes", (n + 1) * 3);
        }
        assert_eq!(fleet::state(&world.server), expected);
    });
}
