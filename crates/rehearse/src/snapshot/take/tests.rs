use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::client::Body;
use serde_json::json;
use windlass_apiserver::{ApiServer, Options};
use windlass_controller::access::ConnectError;

use super::*;
use crate::snapshot::kinds::Chosen;

/// No workload cluster can be reached.
struct Nowhere;

impl Workloads for Nowhere {
    fn connect<'a>(
        &'a self,
        cluster: &'a NamespacedName,
        _: &'a [u8],
    ) -> BoxFuture<'a, Result<WorkloadCluster, ConnectError>> {
        let refused = ConnectError { cluster: cluster.clone(), why: "no route to host".to_owned() };
        async move { Err(refused) }.boxed()
    }
}

/// A client of a server that refuses some paths, and a log of what was asked.
fn client(server: &ApiServer, refused: &'static str) -> (Client, Arc<Mutex<Vec<String>>>) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let (server, asked) = (Client::new(server.clone(), "default"), Arc::clone(&log));
    let service = tower::service_fn(move |request: Request<Body>| {
        let server = server.clone();
        let path = request.uri().path().to_owned();
        asked.lock().unwrap().push(format!("{} {}", request.method(), request.uri()));
        async move {
            if path.ends_with(refused) {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
                    "reason": "Forbidden", "message": "you may not"});
                let body = Body::from(serde_json::to_vec(&status).unwrap());
                let response = Response::builder().status(StatusCode::FORBIDDEN).body(body).unwrap();
                return Ok::<_, tower::BoxError>(response);
            }
            Ok(server.send(request).await?)
        }
    });
    (Client::new(service, "default"), log)
}

fn server() -> ApiServer {
    ApiServer::new(Options::default())
}

#[tokio::test]
async fn a_list_is_read_page_by_page() {
    let server = server();
    let (client, asked) = client(&server, "/nothing");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in ["a", "b", "c", "d", "e"] {
        let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        namespaces.create(&PostParams::default(), &object).await.unwrap();
    }
    asked.lock().unwrap().clear();
    let row = kinds::workload().iter().find(|row| row.resource_name() == "namespaces").unwrap();
    let listed = Reader::paged(client.clone(), 2).list(row, Chosen::All).await.unwrap();
    let whole = Reader::new(client).list(row, Chosen::All).await.unwrap();
    assert_eq!(listed, whole);
    let names: Vec<_> = listed.iter().filter_map(|object| object["metadata"]["name"].as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d", "default", "e", "kube-node-lease", "kube-public", "kube-system"]);
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 5 + 1, "{asked:?}");
    assert!(asked[1..5].iter().all(|request| request.contains("limit=2&continue=")), "{asked:?}");
}

#[tokio::test]
async fn only_the_most_needed_kinds_fail_a_snapshot() {
    let server = server();
    let (client, _) = client(&server, "/nothing");
    let error = take(&client, &Nowhere, Timestamp::UNIX_EPOCH).await.unwrap_err();
    assert_eq!(error.to_string(), "list clusters.cluster.x-k8s.io of the management cluster");
}

#[tokio::test]
async fn a_kind_that_may_not_be_read_is_a_gap_with_a_way_out() {
    let gap = |resource: &str, code: u16| {
        let row = kinds::management().iter().find(|row| row.resource_name() == resource).unwrap();
        let status = kube::core::Status { code, message: "you may not".to_owned(), ..Default::default() };
        super::gap(row, &status, "the management cluster")
            .map(|gap| format!("{}: {}; {}", gap.what, gap.why, gap.way_out))
    };
    let role = "a role that may list them: kubectl create clusterrole windlass-snapshot --verb=list --resource";
    let check = |found: Option<String>, expected: Option<String>| assert_eq!(found, expected);
    check(gap("secrets", 403), Some(format!("secrets of the management cluster: you may not; {role}=secrets")));
    check(gap("apps.kappctrl.k14s.io", 404), None);
    check(
        gap("apps.kappctrl.k14s.io", 403),
        Some(format!("apps.kappctrl.k14s.io of the management cluster: you may not; {role}=apps.kappctrl.k14s.io")),
    );
    assert!(gap("wcpmachines.infrastructure.cluster.vmware.com", 404).unwrap().contains("does not know this kind"));
}

/// A World is a management cluster with all kinds.
#[test]
fn what_may_not_be_read_and_clusters_that_cannot_be_reached_are_gaps() {
    use windlass_runtime::chance::Seed;
    use windlass_sim::world::Settings;
    let taken = windlass_runtime::virtual_time::run_virtual(Seed(1), Timestamp::UNIX_EPOCH, |time| async move {
        let (durations, faults) = Default::default();
        let world = World::new(Settings { clock: time.clock, seed: time.seed, durations, faults }).await.unwrap();
        let clusters = kinds::management()[0].resource();
        let clusters: Api<kube::api::DynamicObject> = Api::namespaced_with(world.client(), "default", &clusters);
        let cluster =
            json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "a"}, "spec": {}});
        clusters.create(&PostParams::default(), &serde_json::from_value(cluster).unwrap()).await.unwrap();
        let (client, _) = client(world.management(), "/resourcequotas");
        let taken = take(&client, &Nowhere, Timestamp::UNIX_EPOCH).await.unwrap();
        let restored = taken.world(world.settings().clone()).await.unwrap();
        assert!(restored.workloads().names().is_empty());
        taken
    });
    let what: Vec<_> = taken.unwrap().gaps.into_iter().map(|gap| gap.what).collect();
    assert_eq!(what, ["resourcequotas of the management cluster", "the workload cluster default/a"]);
}
