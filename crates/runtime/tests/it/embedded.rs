//! The embedded API server as kube's own client and runtime see it, in virtual time.

mod api;
mod controller;
mod custom;
mod events;
mod facts;
mod fleet;
mod forks;
mod patches;
mod reproducible;
mod watching;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use http::Request;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::Status;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tower::Service;
use windlass_apiserver::{ApiServer, Options};
use windlass_runtime::chance::Seed;
use windlass_runtime::clock::Clock;
use windlass_runtime::virtual_time::run_virtual;

/// An embedded server, and what it was asked.
#[derive(Clone)]
pub struct Cluster {
    pub server: ApiServer,
    pub clock: Clock,
    pub seed: Seed,
    requests: Arc<Mutex<Vec<String>>>,
}

/// Runs a test in virtual time.
pub fn cluster<F: Future<Output = T>, T>(body: impl FnOnce(Cluster) -> F) -> T {
    cluster_of(Seed(1), body)
}

pub fn cluster_of<F: Future<Output = T>, T>(seed: Seed, body: impl FnOnce(Cluster) -> F) -> T {
    let base = "2026-01-01T00:00:00Z".parse().unwrap();
    run_virtual(seed, base, |time| {
        let server = ApiServer::new(server_options(&time.clock, seed));
        body(Cluster { server, clock: time.clock, seed, requests: Arc::default() })
    })
    .unwrap()
}

pub fn server_options(clock: &Clock, seed: Seed) -> Options {
    Options { now: clock.now_fn(), seed: seed.0, ..Options::default() }
}

impl Cluster {
    /// A client whose requests are noted down.
    pub fn client(&self) -> Client {
        let (mut server, requests) = (self.server.clone(), Arc::clone(&self.requests));
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            requests.lock().unwrap().push(format!("{} {}", request.method(), request.uri()));
            server.call(request)
        });
        Client::new(service, "default")
    }

    /// The objects of a kind in the namespace `default`.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::default_namespaced(self.client())
    }

    /// How many requests so far contain all of these.
    pub fn requests(&self, parts: &[&str]) -> usize {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|request| parts.iter().all(|part| request.contains(part))).count()
    }

    /// How often a resource was listed.
    pub fn lists(&self, plural: &str) -> usize {
        let of_plural = self.requests(&["GET", &format!("/{plural}?")]);
        of_plural - self.watches(plural)
    }

    /// How often a resource was watched.
    pub fn watches(&self, plural: &str) -> usize {
        self.requests(&["GET", &format!("/{plural}?"), "watch=true"])
    }
}

/// What a watcher saw, one word or two for each event.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    /// Watches from now on.
    pub fn watch<K>(api: Api<K>, config: watcher::Config) -> Self
    where
        K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let seen = Self::default();
        let lines = Arc::clone(&seen.0);
        tokio::spawn(async move {
            let mut events = watch(api, config).default_backoff().boxed();
            while let Some(event) = events.next().await {
                lines.lock().unwrap().push(line(&event));
            }
        });
        seen
    }

    /// What was seen since the last time.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn line<K: Resource>(event: &watcher::Result<Event<K>>) -> String {
    match event {
        Ok(Event::Init) => "init".into(),
        Ok(Event::InitApply(object)) => format!("listed {}", object.name_any()),
        Ok(Event::InitDone) => "done".into(),
        Ok(Event::Apply(object)) => format!("applied {}", object.name_any()),
        Ok(Event::Delete(object)) => format!("deleted {}", object.name_any()),
        Err(watcher::Error::WatchError(status)) => format!("error {}", status.code),
        Err(error) => format!("error {error}"),
    }
}

pub fn config_map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let data: BTreeMap<_, _> = data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    ConfigMap { metadata: named(name), data: Some(data), ..ConfigMap::default() }
}

pub fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() }
}

/// The refusal that a request ended with.
pub fn refusal<T: Debug>(result: kube::Result<T>) -> Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("a refusal was expected, not {other:?}"),
    }
}

/// A request without kube in between.
pub async fn raw(server: &ApiServer, request: Request<String>) -> http::Response<windlass_apiserver::Body> {
    let answer: Result<_, Infallible> = server.clone().call(request).await;
    answer.unwrap()
}
