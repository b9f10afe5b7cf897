//! What a cluster is told about proxies, authorities and addresses, as annotations: whoever makes the values of its packages reads
//! them there, whether or not the cluster is of a class.
//!
//! They come from the variables of its topology: `proxy` and `trust` as the classes have them, or one variable for each, of the
//! name of the annotation. What no variable says is left as it is.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_api::annotation;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::topology::Topology;

/// Which of several authorities is that of the proxy.
const PROXY: &str = "proxy";

/// The annotations that the topology of a cluster asks for, and that it does not have.
pub(super) fn missing(cluster: &Cluster) -> BTreeMap<String, String> {
    let Some(topology) = &cluster.spec.topology else { return BTreeMap::new() };
    let there = |key: &str, value: &str| {
        let annotations = cluster.metadata.annotations.as_ref();
        annotations.and_then(|annotations| annotations.get(key)).is_some_and(|known| known == value)
    };
    let wanted = wanted(topology).into_iter().filter(|(key, value)| !there(key, value));
    wanted.map(|(key, value)| (key.to_owned(), value)).collect()
}

fn wanted(topology: &Topology) -> Vec<(&'static str, String)> {
    let proxy = |field: &str| topology.variable("proxy").and_then(|proxy| text(proxy.get(field)?));
    let authority = || {
        let known = topology.variable("trust")?.get("additionalTrustedCAs")?.as_array()?;
        text(known.iter().find(|known| known["name"] == PROXY)?.get("data")?)
    };
    let skip = || topology.variable("skipTLSVerify").and_then(text);
    let all = [
        (annotation::HTTP_PROXY.name, proxy("httpProxy")),
        (annotation::HTTPS_PROXY.name, proxy("httpsProxy")),
        (annotation::NO_PROXY.name, proxy("noProxy")),
        (annotation::PROXY_CA.name, authority()),
        (annotation::IP_FAMILY.name, None),
        (annotation::SKIP_TLS_VERIFY.name, skip()),
    ];
    let found = all.into_iter().map(|(key, value)| (key, topology.variable(key).and_then(text).or(value)));
    found.filter_map(|(key, value)| Some((key, value?))).collect()
}

/// A text, or several with commas between them; nothing where there is nothing to say.
fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(variables: &Value, annotations: &Value, expected: &[(&str, &str)]) {
        let cluster: Cluster = serde_json::from_value(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "wl", "annotations": annotations},
            "spec": {"topology": {"classRef": {"name": "a"}, "version": "v1.24.9", "variables": variables}},
        }))
        .unwrap();
        let expected: BTreeMap<String, String> =
            expected.iter().map(|(key, value)| (format!("tkg.tanzu.vmware.com/{key}"), (*value).to_owned())).collect();
        assert_eq!(missing(&cluster), expected);
    }

    #[test]
    fn proxies_and_authorities_of_the_topology_become_annotations() {
        let proxy =
            json!({"httpProxy": "http://p:3128", "httpsProxy": "http://p:3129", "noProxy": ["10.0.0.0/8", ".svc"]});
        let trust = json!({"additionalTrustedCAs": [{"name": "imageRepository", "data": "x"}, {"name": "proxy", "data": "Y2E="}]});
        let variables = json!([
            {"name": "proxy", "value": proxy}, {"name": "trust", "value": trust},
            {"name": "tkg.tanzu.vmware.com/tkg-ip-family", "value": "ipv4"}, {"name": "skipTLSVerify", "value": ["a.example", "b.example"]},
        ]);
        let all = [
            ("tkg-http-proxy", "http://p:3128"),
            ("tkg-https-proxy", "http://p:3129"),
            ("tkg-no-proxy", "10.0.0.0/8,.svc"),
            ("tkg-proxy-ca-cert", "Y2E="),
            ("tkg-ip-family", "ipv4"),
            ("skip-tls-verify", "a.example,b.example"),
        ];
        check(&variables, &json!({}), &all);
        let there = json!({"tkg.tanzu.vmware.com/tkg-http-proxy": "http://p:3128"});
        check(&variables, &there, &all[1..]);
    }

    #[test]
    fn what_no_variable_says_is_left_as_it_is() {
        check(&json!([]), &json!({"tkg.tanzu.vmware.com/tkg-http-proxy": "http://mine"}), &[]);
        check(&json!([{"name": "proxy", "value": {"httpProxy": ""}}, {"name": "trust", "value": {}}]), &json!({}), &[]);
        let own = json!([{"name": "tkg.tanzu.vmware.com/tkg-ip-family", "value": "ipv6"}]);
        check(&own, &json!({"tkg.tanzu.vmware.com/tkg-ip-family": "ipv4"}), &[("tkg-ip-family", "ipv6")]);
    }
}
