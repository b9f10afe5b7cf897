//! Settings, rights, quotas, priorities and leases.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;

use super::{age, count, entries, flag, list, name, text};
use crate::builtin::Column;

/// The columns of [`config_map`].
pub(in crate::builtin) const CONFIG_MAP_COLUMNS: &[Column] = &[Column::NAME, Column::string("Data"), Column::AGE];

/// `ConfigMap`.
pub(in crate::builtin) fn config_map(object: &Value, now: Timestamp) -> Vec<Value> {
    let entries = entries(&object["data"]) + entries(&object["binaryData"]);
    vec![name(object), entries.into(), age(object, now)]
}

/// The columns of [`secret`].
pub(in crate::builtin) const SECRET_COLUMNS: &[Column] =
    &[Column::NAME, Column::string("Type"), Column::string("Data"), Column::AGE];

/// `Secret`.
pub(in crate::builtin) fn secret(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), text(&object["type"]).into(), entries(&object["data"]).into(), age(object, now)]
}

/// The columns of [`role_binding`].
pub(in crate::builtin) const BINDING_COLUMNS: &[Column] = &[
    Column::NAME,
    Column::string("Role"),
    Column::AGE,
    Column::wide("Users"),
    Column::wide("Groups"),
    Column::wide("ServiceAccounts"),
];

/// `RoleBinding` and `ClusterRoleBinding`.
pub(in crate::builtin) fn role_binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let role = &object["roleRef"];
    let subjects = |kind: &str| {
        let named: Vec<String> = list(&object["subjects"])
            .iter()
            .filter(|subject| subject["kind"] == kind)
            .map(|subject| match kind {
                "ServiceAccount" => format!("{}/{}", text(&subject["namespace"]), text(&subject["name"])),
                _ => text(&subject["name"]).to_owned(),
            })
            .collect();
        Value::String(named.join(", "))
    };
    vec![
        name(object),
        format!("{}/{}", text(&role["kind"]), text(&role["name"])).into(),
        age(object, now),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

/// The columns of [`resource_quota`].
pub(in crate::builtin) const QUOTA_COLUMNS: &[Column] =
    &[Column::NAME, Column::string("Request"), Column::string("Limit"), Column::AGE];

/// `ResourceQuota`.
pub(in crate::builtin) fn resource_quota(object: &Value, now: Timestamp) -> Vec<Value> {
    let (mut requests, mut limits) = (String::new(), String::new());
    let status = &object["status"];
    for (resource, hard) in status["hard"].as_object().into_iter().flatten() {
        let column = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
        let separator = if column.is_empty() { "" } else { ", " };
        let used = status["used"][resource].as_str().unwrap_or("0");
        // Writing to a String cannot fail.
        write!(column, "{separator}{resource}: {used}/{}", hard.as_str().unwrap_or("0")).ok();
    }
    vec![name(object), requests.into(), limits.into(), age(object, now)]
}

/// The columns of [`priority_class`].
pub(in crate::builtin) const PRIORITY_COLUMNS: &[Column] = &[
    Column::NAME,
    Column::integer("Value"),
    Column::boolean("Global-Default"),
    Column::AGE,
    Column::string("PreemptionPolicy"),
];

/// `PriorityClass`.
pub(in crate::builtin) fn priority_class(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        count(&object["value"]).into(),
        flag(&object["globalDefault"]).into(),
        age(object, now),
        text(&object["preemptionPolicy"]).into(),
    ]
}

/// The columns of [`lease`].
pub(in crate::builtin) const LEASE_COLUMNS: &[Column] = &[Column::NAME, Column::string("Holder"), Column::AGE];

/// `Lease`.
pub(in crate::builtin) fn lease(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), text(&object["spec"]["holderIdentity"]).into(), age(object, now)]
}
