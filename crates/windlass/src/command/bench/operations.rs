//! Q3: what each operation costs, on the service itself and through a typed `kube::Client`.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use windlass_apiserver::ApiServer;

use windlass_reference::Error;

use super::Scale;
use super::embedded::{request, send, server};
use super::measure::thread_cpu;
use super::objects::{Crate, Sample, name};
use super::report::{Aim, Figure, Section, Server, Unit};

/// So many objects are created, read, changed and deleted in a round.
const OBJECTS: usize = 2_000;
const MANAGER: &str = "bench";
const ON_THE_SERVICE: &str = "on the service";
/// What is aimed at.
const CREATES_MIN: f64 = 25_000.0;

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

pub async fn measure(scale: Scale) -> Result<Section, Error> {
    let mut figures = of::<Crate>(scale, "custom resource").await?;
    figures.extend(of::<ConfigMap>(scale, "ConfigMap").await?);
    let title = "Operations on one core, in the process, without socket and disk";
    let sent = [serde_json::to_vec(&Crate::sample(0))?.len(), serde_json::to_vec(&ConfigMap::sample(0))?.len()];
    let objects = scale.of(OBJECTS);
    Ok(Section::new(title, figures, &[])
        .note(format!("{objects} objects in a round, of {} and {} bytes as they are sent.", sent[0], sent[1]))
        .note(
            "On the service: the server alone. Through a client: typed objects go in and come out of a kube::Client.",
        ))
}

async fn of<K: Sample>(scale: Scale, object: &str) -> Result<Vec<Figure>, Error> {
    let operations: Vec<_> =
        OPERATIONS.iter().filter(|(operation, _)| *operation != Operation::StrategicPatch || K::STRATEGIC).collect();
    let figure = |name: &str, way: &str| {
        let figure = Figure::new(Some("Q3"), format!("{name} of a {object}, {way}"), Unit::PerCpuSecond);
        if name == "create" && way == ON_THE_SERVICE { figure.aim(Aim::AtLeast(CREATES_MIN)) } else { figure }
    };
    let mut figures: Vec<[Figure; 2]> =
        operations.iter().map(|(_, name)| [figure(name, ON_THE_SERVICE), figure(name, "through a client")]).collect();
    let objects = scale.of(OBJECTS);
    for counts in scale.rounds() {
        let (on_service, through_client) = (server().await?, server().await?);
        let api: Api<K> = Api::default_namespaced(Client::new(through_client, "default"));
        for ((operation, _), [service, client]) in operations.iter().zip(&mut figures) {
            let costs = (
                on_the_service::<K>(&on_service, *operation, objects).await?,
                through_a_client(&api, *operation, objects).await?,
            );
            if counts {
                service.push(Server::Windlass, objects as f64 / costs.0);
                client.push(Server::Windlass, objects as f64 / costs.1);
            }
        }
    }
    Ok(figures.into_iter().flatten().collect())
}

/// The requests are made before the clock starts: this is the server alone.
async fn on_the_service<K: Sample>(server: &ApiServer, operation: Operation, objects: usize) -> Result<f64, Error> {
    let mut requests = Vec::with_capacity(objects);
    for number in 0..objects {
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
async fn through_a_client<K: Sample>(api: &Api<K>, operation: Operation, objects: usize) -> Result<f64, Error> {
    let names: Vec<String> = (0..objects).map(name).collect();
    let mut objects: Vec<K> = (0..objects).map(K::sample).collect();
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
