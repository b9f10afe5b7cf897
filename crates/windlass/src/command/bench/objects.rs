//! What is written and read: a `ConfigMap` and a custom resource, each of 1 KiB as a client sends it.

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use kube::{CustomResource, Resource};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Something like a Machine: strings, numbers, a few nested objects and a list.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "bench.example.com", version = "v1", kind = "Crate", namespaced, status = "CrateStatus")]
#[serde(rename_all = "camelCase")]
pub struct CrateSpec {
    pub cluster_name: String,
    pub version: String,
    pub provider_id: String,
    #[schemars(range(min = 0))]
    pub replicas: i32,
    #[serde(default)]
    pub paused: bool,
    pub bootstrap: Bootstrap,
    #[schemars(length(max = 16))]
    pub addresses: Vec<Address>,
    #[serde(default)]
    pub node_labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    pub config_ref: Reference,
    #[schemars(length(max = 253))]
    pub data_secret_name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    pub api_version: String,
    pub kind: String,
    pub name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Address {
    #[serde(rename = "type")]
    pub type_: String,
    #[schemars(length(min = 1, max = 256))]
    pub address: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrateStatus {
    pub ready: bool,
}

/// Where definitions are posted.
pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A kind of object that operations are measured on.
pub trait Sample:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
    /// Where its objects are.
    const PATH: &str;
    /// Whether the kind takes strategic merge patches.
    const STRATEGIC: bool;

    /// One object.
    fn sample(number: usize) -> Self;

    /// Changes one field.
    fn change(&mut self, to: u8);

    /// A merge patch that changes that field.
    fn patch(to: u8) -> Value;
}

impl Sample for Crate {
    const PATH: &str = "/apis/bench.example.com/v1/namespaces/default/crates";
    const STRATEGIC: bool = false;

    fn sample(number: usize) -> Self {
        let address = |type_: &str, address: String| Address { type_: type_.to_owned(), address };
        let pool = format!("production-eu-1-workers-a-{number:06}");
        let spec = CrateSpec {
            cluster_name: "production-eu-1".to_owned(),
            version: "v1.33.4+example.1-fips.2".to_owned(),
            provider_id: format!("machine://4211f2e0-7c1d-4a55-9f5e-{number:012}"),
            replicas: 3,
            paused: false,
            bootstrap: Bootstrap {
                config_ref: Reference {
                    api_version: "bootstrap.example.com/v1beta1".to_owned(),
                    kind: "BootstrapConfig".to_owned(),
                    name: pool.clone(),
                },
                data_secret_name: format!("{pool}-bootstrap-data"),
            },
            addresses: vec![
                address("InternalIP", format!("10.20.{}.{}", number / 250 % 250, number % 250)),
                address("Hostname", format!("{pool}.internal.example.com")),
            ],
            node_labels: text(&[
                ("topology.kubernetes.io/zone", "zone-1"),
                ("node.kubernetes.io/instance-type", "large-8x32"),
                ("node.kubernetes.io/exclude-from-external-load-balancers", "true"),
            ]),
        };
        Self { metadata: metadata(number), spec, status: None }
    }

    fn change(&mut self, to: u8) {
        self.spec.replicas = to.into();
    }

    fn patch(to: u8) -> Value {
        json!({"spec": {"replicas": to}})
    }
}

impl Crate {
    /// A smaller one, which has 1 KiB once it is stored.
    pub fn small(number: usize) -> Self {
        let mut small = Self::sample(number);
        small.metadata.annotations = None;
        small.metadata.labels = small.metadata.labels.map(|labels| labels.into_iter().take(1).collect());
        small.spec.node_labels.clear();
        small.spec.addresses.truncate(1);
        small.spec.bootstrap.data_secret_name.clear();
        small
    }
}

impl Sample for ConfigMap {
    const PATH: &str = "/api/v1/namespaces/default/configmaps";
    const STRATEGIC: bool = true;

    fn sample(number: usize) -> Self {
        let setting = |line: usize| (format!("setting-{line:02}"), format!("a value of the usual length, {number:06}"));
        Self { metadata: metadata(number), data: Some((0..14).map(setting).collect()), ..Self::default() }
    }

    fn change(&mut self, to: u8) {
        self.data.get_or_insert_default().insert("setting-00".to_owned(), to.to_string());
    }

    fn patch(to: u8) -> Value {
        json!({"data": {"setting-00": to.to_string()}})
    }
}

pub fn name(number: usize) -> String {
    format!("object-{number:06}")
}

fn metadata(number: usize) -> ObjectMeta {
    ObjectMeta {
        name: Some(name(number)),
        namespace: Some("default".to_owned()),
        labels: Some(text(&[
            ("bench.example.com/cluster-name", "production-eu-1"),
            ("bench.example.com/pool", "workers-a"),
        ])),
        annotations: Some(text(&[(
            "bench.example.com/contact",
            "platform-team@example.com, or +00 000 000 000 at night",
        )])),
        ..ObjectMeta::default()
    }
}

fn text(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
