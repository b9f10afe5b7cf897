//! The server of packages behind a real API server, as kapp-controller has one: that of the World, reached by aggregation.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use kube::Client;
use serde_json::{Value, json};
use windlass_apiserver::listen::{Limits, Listener, serve};
use windlass_sim::world::World;

use super::server::Server;

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const NAME: &str = "v1alpha1.data.packaging.carvel.dev";

/// Has the API server ask the World's about packages, for as long as the runtime is there.
pub async fn aggregate(server: &Server, client: &Client, world: &World) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(address, server.authority(), None, Limits::default()).await.unwrap();
    let port = listener.address().port();
    tokio::spawn(serve(world.management().clone(), listener, std::future::pending()));
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "packaging-api", "namespace": "kube-system"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    });
    post(client, "/api/v1/namespaces/kube-system/services", &service).await;
    let registration = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": NAME},
        "spec": {
            "group": "data.packaging.carvel.dev", "version": "v1alpha1", "groupPriorityMinimum": 1000, "versionPriority": 100,
            // Its certificate is for this machine, and not for a Service.
            "insecureSkipTLSVerify": true,
            "service": {"name": "packaging-api", "namespace": "kube-system", "port": port},
        },
    });
    post(client, API_SERVICES, &registration).await;
    for _ in 0..300 {
        let request = http::Request::get(format!("{API_SERVICES}/{NAME}")).body(Vec::new()).unwrap();
        let found: Value = client.request(request).await.unwrap();
        let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if conditions.iter().any(|it| it["type"] == "Available" && it["status"] == "True") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the server of packages is never asked");
}

pub async fn post(client: &Client, path: &str, object: &Value) -> Value {
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(object.to_string().into_bytes()).unwrap();
    client.request(request).await.unwrap_or_else(|error| panic!("create {object}: {error}"))
}
