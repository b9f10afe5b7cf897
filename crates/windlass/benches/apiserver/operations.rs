//! Q3: what each operation costs, on the service itself and through a typed `kube::Client`.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use windlass_apiserver::ApiServer;

use crate::embedded::{request, send, server};
use crate::measure::{Rounds, thread_cpu};
use crate::objects::{Crate, Sample, name};
use crate::report::{Table, grouped};
use crate::transport::Error;

const ROUNDS: usize = 7;
/// So many objects are created, read, changed and deleted in a round.
const OBJECTS: usize = 2_000;
const MANAGER: &str = "bench";

#[derive(Clone, Copy, PartialEq)]
enum Operation {
    Create,
    Get,
    Update,
    MergePatch,
    StrategicPatch,
    Apply,
    Delete,
}

/// In an order in which each finds what it needs.
const OPERATIONS: [(Operation, &str); 7] = [
    (Operation::Create, "create"),
    (Operation::Get, "get"),
    (Operation::Update, "update"),
    (Operation::MergePatch, "merge patch"),
    (Operation::StrategicPatch, "strategic patch"),
    (Operation::Apply, "server-side apply"),
    (Operation::Delete, "delete"),
];

pub async fn table() -> Result<Table, Error> {
    let columns = ["object", "operation", "service: best", "median", "kube::Client: best", "median"];
    let mut table = Table::new("Q3: operations per CPU-second, one core, in the process", &columns);
    rows::<Crate>(&mut table, "custom resource").await?;
    rows::<ConfigMap>(&mut table, "ConfigMap").await?;
    Ok(table)
}

async fn rows<K: Sample>(table: &mut Table, object: &str) -> Result<(), Error> {
    let mut rounds = vec![(Rounds::default(), Rounds::default()); OPERATIONS.len()];
    // The first round warms up, and is thrown away.
    for round in 0..=ROUNDS {
        let (on_service, through_client) = (server().await?, server().await?);
        let api: Api<K> = Api::default_namespaced(Client::new(through_client, "default"));
        for ((operation, _), (service, client)) in OPERATIONS.iter().zip(&mut rounds) {
            if *operation == Operation::StrategicPatch && !K::STRATEGIC {
                continue;
            }
            let costs =
                (on_the_service::<K>(&on_service, *operation).await?, through_a_client(&api, *operation).await?);
            if round > 0 {
                service.push(costs.0);
                client.push(costs.1);
            }
        }
    }
    for ((operation, name), (service, client)) in OPERATIONS.iter().zip(&rounds) {
        if *operation == Operation::StrategicPatch && !K::STRATEGIC {
            continue;
        }
        let rate = |seconds: f64| grouped(OBJECTS as f64 / seconds);
        let [best, median] = [service.min(), service.median()].map(rate);
        let [client_best, client_median] = [client.min(), client.median()].map(rate);
        table.row([object.to_owned(), (*name).to_owned(), best, median, client_best, client_median]);
        let micros = 1e6 / OBJECTS as f64;
        table.note(format!("{object}, {name}, µs: {} | {}", service.raw(micros), client.raw(micros)));
    }
    let sent = serde_json::to_vec(&K::sample(0))?.len();
    table.note(format!("{object}: {sent} bytes as sent; {OBJECTS} objects, {ROUNDS} rounds."));
    Ok(())
}

/// The requests are made before the clock starts: this is the server alone.
async fn on_the_service<K: Sample>(server: &ApiServer, operation: Operation) -> Result<f64, Error> {
    let mut requests = Vec::with_capacity(OBJECTS);
    for number in 0..OBJECTS {
        requests.push(prepare::<K>(server, operation, number).await?);
    }
    let before = thread_cpu()?;
    for request in requests {
        send(server, request).await?;
    }
    Ok(thread_cpu()? - before)
}

async fn prepare<K: Sample>(
    server: &ApiServer,
    operation: Operation,
    number: usize,
) -> Result<Request<Full<Bytes>>, Error> {
    const JSON: &str = "application/json";
    let one = format!("{}/{}", K::PATH, name(number));
    let mut object = K::sample(number);
    match operation {
        Operation::Create => request(Method::POST, K::PATH, JSON, serde_json::to_vec(&object)?),
        Operation::Get => request(Method::GET, &one, JSON, Bytes::new()),
        Operation::Update => {
            let current = send(server, request(Method::GET, &one, JSON, Bytes::new())?).await?;
            let mut object: K = serde_json::from_slice(&current)?;
            object.change(4);
            request(Method::PUT, &one, JSON, serde_json::to_vec(&object)?)
        }
        Operation::MergePatch => request(Method::PATCH, &one, "application/merge-patch+json", K::patch(5).to_string()),
        Operation::StrategicPatch => {
            request(Method::PATCH, &one, "application/strategic-merge-patch+json", K::patch(6).to_string())
        }
        Operation::Apply => {
            object.change(7);
            let target = format!("{one}?fieldManager={MANAGER}&force=true");
            request(Method::PATCH, &target, "application/apply-patch+yaml", serde_json::to_vec(&object)?)
        }
        Operation::Delete => request(Method::DELETE, &one, JSON, Bytes::new()),
    }
}

/// Typed objects go in, typed objects come out: what a controller pays for client and server together.
async fn through_a_client<K: Sample>(api: &Api<K>, operation: Operation) -> Result<f64, Error> {
    let names: Vec<String> = (0..OBJECTS).map(name).collect();
    let mut objects: Vec<K> = (0..OBJECTS).map(K::sample).collect();
    if operation == Operation::Update {
        for (object, name) in objects.iter_mut().zip(&names) {
            *object = api.get(name).await?;
            object.change(4);
        }
    }
    let (merge, strategic) = (Patch::Merge(K::patch(5)), Patch::Strategic(K::patch(6)));
    let (plain, post, delete) = (PatchParams::default(), PostParams::default(), DeleteParams::default());
    let apply = PatchParams::apply(MANAGER).force();
    let before = thread_cpu()?;
    for (object, name) in objects.iter_mut().zip(&names) {
        match operation {
            Operation::Create => drop(api.create(&post, object).await?),
            Operation::Get => drop(api.get(name).await?),
            Operation::Update => drop(api.replace(name, &post, object).await?),
            Operation::MergePatch => drop(api.patch(name, &plain, &merge).await?),
            Operation::StrategicPatch => drop(api.patch(name, &plain, &strategic).await?),
            Operation::Apply => {
                object.change(7);
                drop(api.patch(name, &apply, &Patch::Apply(&*object)).await?);
            }
            Operation::Delete => drop(api.delete(name, &delete).await?),
        }
    }
    Ok(thread_cpu()? - before)
}
