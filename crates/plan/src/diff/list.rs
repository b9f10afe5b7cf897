//! Lists whose elements are told apart by keys, wherever they stand: an API server merges such lists element by element, and
//! replaces all others as a whole.

use serde_json::Value;

use super::path::Segment;

/// By which fields the elements of a list are told apart: the name of the list, and its keys in order. A list of the same name may
/// have other keys in another kind; then the first row counts of which all elements have all keys.
const KEYS: &[(&str, &[&str])] = &[
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("env", &["name"]),
    ("volumes", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("volumeDevices", &["devicePath"]),
    ("ports", &["containerPort", "protocol"]),
    ("ports", &["port", "protocol"]),
    ("imagePullSecrets", &["name"]),
    ("secrets", &["name"]),
    ("hostAliases", &["ip"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    ("resourceClaims", &["name"]),
    ("schedulingGates", &["name"]),
    ("ownerReferences", &["uid"]),
    ("conditions", &["type"]),
    ("readinessGates", &["conditionType"]),
    ("webhooks", &["name"]),
    // Cluster API. Arguments may be repeated; a list in which one is has no keys.
    ("kubeletExtraArgs", &["name"]),
    ("extraArgs", &["name"]),
    ("extraEnvs", &["name"]),
    ("variables", &["name"]),
    ("overrides", &["name"]),
    ("machineDeployments", &["name"]),
    ("machinePools", &["name"]),
];

/// What a key is where an element does not have it.
fn default(key: &str) -> Option<Value> {
    (key == "protocol").then(|| "TCP".into())
}

/// The keys of each element of two lists of this name, if both have them and no element has those of another.
pub(super) fn keyed<'v>(name: &str, lists: [&'v [Value]; 2]) -> Option<[Vec<(Segment, &'v Value)>; 2]> {
    let rows = KEYS.iter().filter(|(list, _)| *list == name);
    rows.into_iter().find_map(|(_, keys)| {
        let [left, right] = lists.map(|list| elements(keys, list));
        Some([left?, right?])
    })
}

fn elements<'v>(keys: &[&str], list: &'v [Value]) -> Option<Vec<(Segment, &'v Value)>> {
    let mut elements: Vec<(Segment, &Value)> = Vec::with_capacity(list.len());
    for element in list {
        let of = |key: &&str| {
            let value = element.get(*key).cloned().or_else(|| default(key))?;
            let is_scalar = !value.is_object() && !value.is_array() && !value.is_null();
            is_scalar.then(|| ((*key).to_owned(), value.to_string()))
        };
        let segment = Segment::Element(keys.iter().map(of).collect::<Option<_>>()?);
        if elements.iter().any(|(known, _)| *known == segment) {
            return None;
        }
        elements.push((segment, element));
    }
    Some(elements)
}

/// Of the keys that a server tells the elements of a list apart by, those that we do. Sorted.
pub(super) fn known_keys(list: Option<&Segment>, mut keys: Vec<(String, String)>) -> Vec<(String, String)> {
    keys.sort();
    let Some(Segment::Field(list)) = list else { return keys };
    let has_all = |ours: &[&str]| ours.iter().all(|our| keys.iter().any(|(key, _)| key == our));
    let row = KEYS.iter().find(|(name, ours)| name == list && has_all(ours));
    if let Some((_, ours)) = row {
        keys.retain(|(key, _)| ours.contains(&key.as_str()));
    }
    keys
}

/// Whether an element has these keys.
pub(super) fn has_keys(element: &Value, keys: &[(String, String)]) -> bool {
    keys.iter().all(|(key, wanted)| {
        let value = element.get(key).cloned().or_else(|| default(key));
        value.map(|value| value.to_string()).as_ref() == Some(wanted)
    })
}

/// Whether a field is a key of the element that it is in.
pub(super) fn is_key(element: &Segment, field: &Segment) -> bool {
    match (element, field) {
        (Segment::Element(keys), Segment::Field(name)) => keys.iter().any(|(key, _)| key == name),
        _ => false,
    }
}
