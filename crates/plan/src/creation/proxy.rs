//! Whether everybody goes the same way to the outside.
//!
//! Values are compared and never told: a proxy may have a password in its address.

use serde_json::Value;
use windlass_api::annotation;
use windlass_api::kind::cluster_api::Cluster;

use super::check::{Check, Facts, Subject};

/// The variable of a topology that a proxy is in.
const VARIABLE: &str = "proxy";

/// The way to the outside.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxy {
    /// For plain connections.
    pub http: Option<String>,
    /// For others.
    pub https: Option<String>,
    /// What is reached without.
    pub exceptions: Option<String>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_none() { "no proxy" } else { "a proxy" })
    }
}

/// What is known of proxies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyFacts {
    /// That of the management cluster.
    pub management: Proxy,
    /// Those that its programs are told, each with the object that says so.
    pub told: Vec<(String, Proxy)>,
}

impl Proxy {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.http.is_none() && self.https.is_none()
    }

    /// What a `ConfigMap` or Secret of a program says, by its keys.
    pub fn of_config(get: impl Fn(&str) -> Option<String>) -> Self {
        let get = |key| get(key).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        Self { http: get("httpProxy"), https: get("httpsProxy"), exceptions: get("noProxy") }
    }

    /// What a cluster of a class says: in its variable, or on it.
    pub fn of_cluster(cluster: &Cluster) -> Self {
        let variable = cluster.spec.topology.as_ref().and_then(|topology| topology.variable(VARIABLE));
        if let Some(variable) = variable {
            return Self::of_config(|key| said(&variable[key]));
        }
        let annotations = cluster.metadata.annotations.clone().unwrap_or_default();
        let key = |key: &str| match key {
            "httpProxy" => annotation::HTTP_PROXY.name,
            "httpsProxy" => annotation::HTTPS_PROXY.name,
            _ => annotation::NO_PROXY.name,
        };
        Self::of_config(|field| annotations.get(key(field)).cloned())
    }

    /// The field that is no address, if one is not.
    fn malformed(&self) -> Option<&'static str> {
        let is_address = |text: &String| {
            let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
            rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', ':']))
        };
        let fields = [("httpProxy", &self.http), ("httpsProxy", &self.https)];
        fields.into_iter().find(|(_, text)| text.as_ref().is_some_and(|text| !is_address(text))).map(|(field, _)| field)
    }
}

fn said(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => Some(list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")),
        _ => None,
    }
}

pub(super) fn proxy(facts: &Facts) -> Check {
    let subject = Subject::Proxy;
    let wanted = facts.wanted.as_ref().map(|wanted| &wanted.proxy);
    if let Some(field) = wanted.and_then(Proxy::malformed) {
        let said = format!("{field} of the new cluster is no address that begins with http:// or https://");
        return subject.failed(said, "the variable proxy of the manifest, or TKG_HTTP_PROXY and TKG_HTTPS_PROXY");
    }
    let known = match &facts.proxies {
        Ok(known) => known,
        Err(why) => return subject.unknown(format!("what programs are told cannot be read: {why}")),
    };
    let differs = |told: &Proxy| (&told.http, &told.https) != (&known.management.http, &known.management.https);
    if let Some((object, told)) = known.told.iter().find(|(_, told)| differs(told)) {
        let (has, should) = if told.is_none() { ("none", "one") } else { ("one", "another, or none") };
        let said = format!("{object} has {has}, and the management cluster {should}");
        return subject.warning(said, "the same httpProxy, httpsProxy and noProxy in both");
    }
    match (known.management.is_none(), wanted.is_none_or(Proxy::is_none)) {
        (true, true) => subject.well("none".to_owned()),
        (true, false) => subject.well("the new cluster has one; the management cluster needs none".to_owned()),
        (false, true) if wanted.is_some() => {
            let said = "the management cluster has one, and the new cluster none".to_owned();
            subject.warning(said, "the variable proxy of the manifest, or TKG_HTTP_PROXY and TKG_HTTPS_PROXY")
        }
        (false, _) => subject.well("everybody is told the same".to_owned()),
    }
}
