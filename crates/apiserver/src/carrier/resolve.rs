//! From the service of a webhook to an address that can be dialled.
//!
//! A real cluster goes through the service's virtual address, which something on each node forwards. Here nothing does, so the
//! way leads straight to the endpoints, or, for an external name, to that.

use serde_json::Value;

use crate::field::quote;
use crate::store::{Key, Range, Store};
use crate::value::Fields;

/// Where a port of a service is: a host and a port. An error is in the words of a real server.
pub(super) fn service(store: &Store, namespace: &str, name: &str, port: u16) -> Result<(String, u16), String> {
    let Some(entry) = store.get("services", &Key::new(namespace, name)) else {
        return Err(format!("service {} not found", quote(name)));
    };
    let service = entry.to_value("v1", "Service");
    let spec = service.at("spec");
    if spec.text("type") == "ExternalName" {
        return Ok((spec.text("externalName").to_owned(), port));
    }
    let found = spec.list("ports").iter().find(|known| known.int("port") == Some(i64::from(port)));
    let Some(found) = found else { return Err(format!("no service port {port} found for service {}", quote(name))) };
    let none = || format!("no endpoints available for service {}", quote(name));
    of_slices(store, namespace, name, found.text("name")).ok_or_else(none)
}

fn of_slices(store: &Store, namespace: &str, name: &str, port_name: &str) -> Option<(String, u16)> {
    let here = Range { namespace: Some(namespace), after: None, limit: 0 };
    let ours = |entry: &crate::store::Entry| entry.label("kubernetes.io/service-name") == Some(name);
    let slices = store.list("endpointslices.discovery.k8s.io", here, ours).entries;
    let from_slices = slices.iter().find_map(|entry| {
        let slice = entry.to_value("", "");
        let ready = |endpoint: &&Value| endpoint.at("conditions").at("ready") != &Value::Bool(false);
        let endpoint = slice.list("endpoints").iter().find(ready)?;
        Some((endpoint.texts("addresses").next()?.to_owned(), port_of(slice.list("ports"), port_name)?))
    });
    from_slices.or_else(|| {
        let endpoints = store.get("endpoints", &Key::new(namespace, name))?.to_value("", "");
        endpoints.list("subsets").iter().find_map(|subset| {
            let address = subset.list("addresses").first()?;
            Some((address.text("ip").to_owned(), port_of(subset.list("ports"), port_name)?))
        })
    })
}

fn port_of(ports: &[Value], name: &str) -> Option<u16> {
    ports.iter().find(|port| port.text("name") == name)?.int("port").and_then(|port| u16::try_from(port).ok())
}
