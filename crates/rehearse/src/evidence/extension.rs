//! Webhooks, and APIs that others serve.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_plan::risk::Known;
use windlass_plan::risk::evidence::{ApiService, Evidence, Webhook};

use super::lists::Lists;
use super::object::{condition, labels, list, name_of, namespace_of, said, selects, shown, some_text, text};
use super::workload::named;

const CONFIGURATIONS: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
/// What Kubernetes gives a webhook unless it says otherwise.
const TIMEOUT_SECONDS: u64 = 10;
/// Where a control plane and its nodes have their objects.
const SYSTEM: &str = "kube-system";

/// What nodes need to join and to live: the group, the resource, and whether it is in a namespace.
const NODE_RESOURCES: [(&str, &str, bool); 6] = [
    ("", "nodes", false),
    ("certificates.k8s.io", "certificatesigningrequests", false),
    ("coordination.k8s.io", "leases", true),
    ("", "pods", true),
    ("", "configmaps", true),
    ("", "secrets", true),
];

pub(super) fn fill(evidence: &mut Evidence, lists: &Lists<'_>) {
    let usual = || BTreeMap::from([("kubernetes.io/metadata.name".to_owned(), SYSTEM.to_owned())]);
    let system = named(lists, "Namespace", SYSTEM).map_or_else(usual, labels);
    evidence.webhooks = lists.kinds(&CONFIGURATIONS).map(|found| {
        let of = |configuration: &Value| {
            let webhooks = list(configuration, "/webhooks");
            webhooks.map(|each| webhook(lists, configuration, each, &system)).collect::<Vec<_>>()
        };
        found.into_iter().flat_map(of).collect()
    });
    evidence.api_services = lists.kind("APIService").map(|found| found.into_iter().map(api_service).collect());
}

fn webhook(lists: &Lists<'_>, configuration: &Value, webhook: &Value, system: &BTreeMap<String, String>) -> Webhook {
    let service = webhook.pointer("/clientConfig/service");
    let name = |service: &Value| format!("{}/{}", text(service, "/namespace"), text(service, "/name"));
    Webhook {
        configuration: shown(configuration),
        name: text(webhook, "/name").to_owned(),
        // What Kubernetes does unless it is told otherwise.
        fails_closed: text(webhook, "/failurePolicy") != "Ignore",
        timeout_seconds: webhook["timeoutSeconds"].as_u64().unwrap_or(TIMEOUT_SECONDS),
        node_resources: node_resources(webhook, system),
        answers: match service {
            Some(service) => format!("the service {}", name(service)),
            None => some_text(webhook, "/clientConfig/url").unwrap_or_else(|| "nobody".to_owned()),
        },
        ready_pods: service.map_or(Known::Read(None), |service| ready_pods(lists, &name(service))),
    }
}

/// Which of what nodes need a webhook is asked about.
fn node_resources(webhook: &Value, system: &BTreeMap<String, String>) -> Vec<String> {
    let nothing = BTreeMap::new();
    // A selector that wants a label which new nodes do not have leaves them out.
    let chosen = |field: &str, labels| webhook.get(field).is_none_or(|selector| selects(Some(selector), labels));
    if !chosen("objectSelector", &nothing) {
        return Vec::new();
    }
    let in_system = chosen("namespaceSelector", system);
    let asked = NODE_RESOURCES.iter().filter(|(group, resource, namespaced)| {
        (!namespaced || in_system) && list(webhook, "/rules").any(|rule| is_asked(rule, group, resource, *namespaced))
    });
    asked.map(|(_, resource, _)| (*resource).to_owned()).collect()
}

fn is_asked(rule: &Value, group: &str, resource: &str, namespaced: bool) -> bool {
    let has = |field: &str, wanted: &[&str]| {
        list(rule, field).filter_map(Value::as_str).any(|text| text == "*" || wanted.contains(&text))
    };
    let scope = match text(rule, "/scope") {
        "Cluster" => !namespaced,
        "Namespaced" => namespaced,
        _ => true,
    };
    scope
        && has("/apiGroups", &[group])
        && has("/resources", &[resource, "*/*"])
        && has("/operations", &["CREATE", "UPDATE"])
}

/// How many pods of a service are ready; nobody answers for one that is not there.
fn ready_pods(lists: &Lists<'_>, name: &str) -> Known<Option<u32>> {
    let pods = match (lists.kind("Pod"), lists.kind("Service")) {
        (Known::Read(pods), Known::Read(_)) => pods,
        (Known::Unread(gap), _) | (_, Known::Unread(gap)) => return Known::Unread(gap),
    };
    let Some(service) = named(lists, "Service", name) else { return Known::Read(Some(0)) };
    let selector = service["spec"]["selector"].as_object();
    let is_its_own = |pod: &&&Value| {
        namespace_of(pod) == namespace_of(service)
            && selector.is_some_and(|selector| {
                !selector.is_empty() && selector.iter().all(|(key, value)| pod["metadata"]["labels"][key] == *value)
            })
    };
    let is_ready = |pod: &&&Value| condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True");
    let ready = pods.iter().filter(is_its_own).filter(is_ready).count();
    Known::Read(Some(u32::try_from(ready).unwrap_or(u32::MAX)))
}

fn api_service(service: &Value) -> ApiService {
    let available = condition(service, "Available").filter(|condition| condition["status"] == "False");
    // An API of the server itself has no service that could fail.
    let unavailable = available.filter(|_| service.pointer("/spec/service").is_some()).map(said);
    ApiService { name: name_of(service).to_owned(), unavailable }
}
