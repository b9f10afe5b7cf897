//! Kinds that older API servers have and newer ones do not: `PodSecurityPolicy`, until 1.25.
//!
//! A cluster serves it while one of its API servers has it. In a control plane of both versions an old API server would know it
//! and a new one would not; here all answer as the old one.

use std::sync::LazyLock;

use serde_json::{Value, json};
use windlass_api::version::facts::has_pod_security_policy;

use super::Workload;
use super::etcd::Etcd;

const GROUP: &str = "policy";
const VERSION: &str = "v1beta1";
const KIND: &str = "PodSecurityPolicy";
const PLURAL: &str = "podsecuritypolicies";

/// What the kind would be defined as, if it were not built in.
static DEFINITION: LazyLock<Value> = LazyLock::new(|| {
    let columns = [("Priv", "boolean", ".spec.privileged"), ("RunAsUser", "string", ".spec.runAsUser.rule")];
    let columns = columns.map(|(name, kind, path)| json!({"name": name, "type": kind, "jsonPath": path}));
    json!({
        "metadata": {"name": format!("{PLURAL}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {
                "kind": KIND, "listKind": format!("{KIND}List"), "plural": PLURAL, "singular": "podsecuritypolicy",
                "shortNames": ["psp"],
            },
            "versions": [{
                "name": VERSION, "served": true, "storage": true, "additionalPrinterColumns": columns,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }},
            }],
        },
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    })
});

impl Workload {
    /// Serves the kind, as an API server before 1.25 does. A cluster that is made of objects needs it before its machines are
    /// known.
    pub fn serve_security_policies(&self) {
        self.server().serve_kind(&DEFINITION);
    }

    /// Serves the kind as the API servers have it that answer now. While none does, nobody can ask.
    pub(super) fn settle_removed_kinds(&self, etcd: &Etcd) {
        let mut versions = etcd.api_servers().peekable();
        if versions.peek().is_none() {
            return;
        }
        let is_served = self.server().registry().find_kind(GROUP, VERSION, KIND).is_some();
        match (versions.any(has_pod_security_policy), is_served) {
            (true, false) => self.serve_security_policies(),
            (false, true) => self.server().withdraw_kind(GROUP, PLURAL),
            (true, true) | (false, false) => {}
        }
    }
}
