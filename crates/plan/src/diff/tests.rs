use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;

const OURS: &str = "windlass";

fn owned<const N: usize>(rules: [(&str, FieldOwner); N]) -> Ownership {
    Ownership::new(rules.map(|(field, owner)| (field.parse().unwrap(), owner)))
}

/// The fields that would change and those that would not, as lines.
fn lines(desired: &Value, live: &Value, ownership: &Ownership) -> Vec<String> {
    let found = object(desired, Some(live), ownership, OURS);
    let shown = |value: &Option<Value>| value.as_ref().map_or_else(|| "-".to_owned(), Value::to_string);
    let told = |field: &FieldDiff| {
        let FieldDiff { path, before, after, outcome, owners, .. } = field;
        let owners = if owners.is_empty() { String::new() } else { format!(" of {}", owners.join(", ")) };
        format!("{outcome:?}{owners} {path}: {} -> {}", shown(before), shown(after))
    };
    found.changes.iter().chain(&found.kept).map(told).collect()
}

#[allow(clippy::needless_pass_by_value, reason = "a table reads better without a reference before each value")]
fn check(desired: Value, live: Value, expected: &[&str]) {
    let ownership = Ownership::default();
    assert_eq!(lines(&desired, &live, &ownership), expected, "{desired} {live}");
    let merged = merged(&desired, Some(&live), &ownership, OURS);
    assert_eq!(lines(&desired, &merged, &ownership), [""; 0], "the same again changes nothing");
}

#[test]
fn only_what_we_want_is_compared() {
    check(json!({"spec": {"replicas": 2}}), json!({"spec": {"replicas": 2, "paused": true}, "status": {}}), &[]);
    check(
        json!({"spec": {"replicas": 2}}),
        json!({"spec": {"replicas": 1, "paused": true}}),
        &["Changed spec.replicas: 1 -> 2"],
    );
    check(json!({"a": {"b": {}}, "c": [], "d": null}), json!({}), &[]);
    check(json!({"a": {"b": 1}}), json!({}), &[r#"Added a: - -> {"b":1}"#]);
}

#[test]
fn elements_are_matched_by_their_keys_wherever_they_stand() {
    let containers = |list: Value| json!({"spec": {"containers": list}});
    check(
        containers(json!([{"name": "app", "image": "b"}])),
        containers(json!([{"name": "sidecar", "image": "x"}, {"name": "app", "image": "a", "tty": true}])),
        &[r#"Changed spec.containers[name=app].image: "a" -> "b""#],
    );
    check(
        json!({"ports": [{"containerPort": 53, "name": "dns"}, {"containerPort": 53, "protocol": "UDP"}]}),
        json!({"ports": [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": "TCP", "name": "x"}]}),
        &[r#"Changed ports[containerPort=53,protocol=TCP].name: "x" -> "dns""#],
    );
    check(
        json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}),
        json!({"env": [{"name": "B", "value": "2"}]}),
        &[r#"Added env[name=A]: - -> {"name":"A","value":"1"}"#],
    );
    // A list without keys, or with the same key twice, is one value.
    check(json!({"args": ["a"]}), json!({"args": ["b"]}), &[r#"Changed args: ["b"] -> ["a"]"#]);
    check(
        json!({"env": [{"name": "A", "value": "1"}]}),
        json!({"env": [{"name": "A"}, {"name": "A"}]}),
        &[r#"Changed env: [{"name":"A"},{"name":"A"}] -> [{"name":"A","value":"1"}]"#],
    );
    check(
        json!({"finalizers": ["ours"]}),
        json!({"finalizers": ["theirs"]}),
        &[r#"Changed finalizers: ["theirs"] -> ["theirs","ours"]"#],
    );
}

#[test]
fn a_name_with_dots_is_one_step() {
    check(
        json!({"metadata": {"labels": {"app.kubernetes.io/name": "a"}}}),
        json!({"metadata": {"labels": {"app.kubernetes.io/name": "b"}}}),
        &[r#"Changed metadata.labels[app.kubernetes.io/name]: "b" -> "a""#],
    );
}

/// An object with these fields, of which each entry is owned by its manager.
#[allow(clippy::needless_pass_by_value, reason = "a table reads better without a reference before each value")]
fn managed(spec: Value, entries: &[(&str, &str, Value)]) -> Value {
    let entries: Vec<Value> = entries
        .iter()
        .map(|(manager, operation, fields)| {
            json!({"manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}})
        })
        .collect();
    json!({"metadata": {"managedFields": entries}, "spec": spec})
}

#[test]
fn a_field_of_somebody_else_is_taken_and_said_to_be() {
    let live = managed(
        json!({"replicas": 3, "paused": true, "containers": [{"name": "app", "image": "a"}]}),
        &[
            ("windlass", "Apply", json!({"f:containers": {"k:{\"name\":\"app\"}": {".": {}, "f:name": {}}}})),
            ("kubectl", "Update", json!({"f:replicas": {}, "f:containers": {"k:{\"name\":\"app\"}": {"f:image": {}}}})),
        ],
    );
    check(
        json!({"spec": {"replicas": 1, "containers": [{"name": "app", "image": "b"}]}}),
        live,
        &[r#"Taken of kubectl spec.containers[name=app].image: "a" -> "b""#, "Taken of kubectl spec.replicas: 3 -> 1"],
    );
}

#[test]
fn what_we_apply_no_more_goes_unless_somebody_else_wants_it() {
    let element = |fields: Value| json!({"f:containers": {"k:{\"name\":\"old\"}": fields}});
    let spec = json!({"paused": true, "replicas": 3, "containers": [{"name": "old", "image": "a"}]});
    let ours = json!({"f:paused": {}, "f:replicas": {}, "f:containers":
        {"k:{\"name\":\"old\"}": {".": {}, "f:name": {}, "f:image": {}}}});
    let desired = json!({"spec": {"replicas": 3}});
    check(
        desired.clone(),
        managed(spec.clone(), &[("windlass", "Apply", ours.clone())]),
        &[
            r#"Removed of windlass spec.containers[name=old]: {"image":"a","name":"old"} -> -"#,
            "Removed of windlass spec.paused: true -> -",
        ],
    );
    let theirs = element(json!({"f:image": {}}));
    check(
        desired,
        managed(spec, &[("windlass", "Apply", ours), ("kubectl", "Update", theirs)]),
        &["Removed of windlass spec.paused: true -> -"],
    );
}

#[test]
fn fields_are_written_by_whom_they_belong_to() {
    use FieldOwner::{Release, SetIfEmpty, User};
    let ownership = owned([("spec.replicas", User), ("spec.template", SetIfEmpty), ("spec.template.image", Release)]);
    let desired = json!({"spec": {"replicas": 1, "template": {"class": "small", "zone": "a", "image": "new"}}});
    let live = json!({"spec": {"replicas": 5, "template": {"class": "large", "image": "old"}}});
    assert_eq!(
        lines(&desired, &live, &ownership),
        [
            r#"Changed spec.template.image: "old" -> "new""#,
            r#"Added spec.template.zone: - -> "a""#,
            "Kept spec.replicas: 5 -> 1",
            r#"Kept spec.template.class: "large" -> "small""#,
        ]
    );
    let kept = json!({"spec": {"replicas": 5, "template": {"class": "large", "image": "new", "zone": "a"}}});
    assert_eq!(merged(&desired, Some(&live), &ownership, OURS), kept);
    assert_eq!(merged(&desired, None, &ownership, OURS), desired, "a new object has all of it");
}

/// Values that must not be seen anywhere.
const SECRETS: [&str; 3] = ["c2VjcmV0LW9sZA==", "secret-new", "abcdef.0123456789abcdef"];

/// All that is ever shown of a difference.
fn shown(desired: &Value, live: Option<&Value>) -> String {
    let found = object(desired, live, &Ownership::default(), OURS);
    let text = format!("{}\n{}\n{found:?}\n{}", serde_json::to_string(&found).unwrap(), found.text(), found.summary());
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} is shown: {text}");
    }
    text
}

#[test]
fn what_is_secret_is_a_hash_and_a_length() {
    let live = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "s", "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": r#"{"data":{"key":"c2VjcmV0LW9sZA=="}}"#,
        }},
        "data": {"key": "c2VjcmV0LW9sZA=="},
    });
    let desired = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "data": {"key": "c2VjcmV0LW5ldw=="}, "stringData": {"plain": "secret-new"},
    });
    let text = shown(&desired, Some(&live));
    // The same bytes have the same hash, whichever way they are written.
    assert_eq!(text.matches("(10 bytes)").count(), text.matches("sha256:").count() - copies(&text));
    assert!(text.contains("\"before\":\"sha256:"), "{text}");
    drop(shown(&desired, None));

    let list = json!({"apiVersion": "v1", "kind": "List", "items": [live.clone()]});
    let other = json!({"apiVersion": "v1", "kind": "List", "items": [desired.clone(), live.clone()]});
    drop(shown(&list, Some(&other)));
    let bare = json!({"data": {"key": SECRETS[0]}, "stringData": {"key": SECRETS[1]}});
    drop(shown(&json!({"kind": "SecretList", "items": [bare]}), None));
}

/// The copies that kubectl keeps are longer.
fn copies(text: &str) -> usize {
    text.matches("(35 bytes)").count()
}

#[test]
fn tokens_are_hidden_in_whatever_kubeadm_is_told() {
    let config = |token: &str, command: &str| {
        json!({
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig", "metadata": {"name": "c"},
            "spec": {
                "joinConfiguration": {"discovery": {"bootstrapToken": {"token": token}}},
                "preKubeadmCommands": [command],
                "files": [{"path": "/etc/x", "content": format!("use {token}.")}],
            },
        })
    };
    let live = config(SECRETS[2], "kubeadm join --token abcdef.0123456789abcdef");
    let desired = config("fedcba.0123456789abcdef", "kubeadm join");
    let text = shown(&desired, Some(&live));
    assert!(text.contains("(23 bytes)") && !text.contains("fedcba.0123456789abcdef"), "{text}");
    assert!(
        redacted(&json!({"kind": "Kubeadm", "a": "registry.example.com/abcdef.image:1"}))
            .to_string()
            .contains("abcdef.image")
    );
}

#[test]
fn a_difference_reads_like_the_one_of_kubectl() {
    let object_of = |image: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "coredns", "namespace": "kube-system"},
            "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "coredns", "image": image}]}}},
        })
    };
    let mut live = object_of("coredns:1");
    live["metadata"]["managedFields"] = json!([]);
    let changed = object(&object_of("coredns:2"), Some(&live), &Ownership::default(), OURS);
    assert_eq!(
        changed.text(),
        "\
diff -u -N LIVE/apps.v1.Deployment.kube-system.coredns MERGED/apps.v1.Deployment.kube-system.coredns
--- LIVE/apps.v1.Deployment.kube-system.coredns
+++ MERGED/apps.v1.Deployment.kube-system.coredns
@@ -8,5 +8,5 @@
   template:
     spec:
       containers:
-      - image: coredns:1
+      - image: coredns:2
         name: coredns
"
    );
    let same = object(&object_of("coredns:1"), Some(&live), &Ownership::default(), OURS);
    assert_eq!((same.text().as_str(), same.state), ("", ObjectState::Same));
    let new = object(&object_of("coredns:1"), None, &Ownership::default(), OURS);
    assert_eq!(new.summary(), "Deployment/kube-system/coredns: new");
    assert!(new.text().lines().skip(4).all(|line| line.starts_with('+')), "{}", new.text());
    let all = Diff { objects: vec![changed, same, new] };
    assert!(all.changes());
    assert_eq!(all.summary(), "3 objects: 1 new, 1 changed, 1 the same; 1 field changes; 0 fields stay as they are.");
}

/// Objects in which fields, lists with keys and plain lists are in each other.
fn values() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![Just(Value::Null), (0..3).prop_map(Value::from), "[ab]".prop_map(Value::from)];
    scalar.prop_recursive(4, 24, 3, |inner| {
        let fields = || prop::collection::btree_map("[abcd]", inner.clone(), 0..4);
        let element = (fields(), "[xyz]").prop_map(|(fields, name)| {
            let mut element = json!(fields);
            element["name"] = name.into();
            element
        });
        prop_oneof![
            fields().prop_map(|fields| json!(fields)),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|list| json!({"list": list})),
            prop::collection::vec(element, 0..3).prop_map(|list| json!({"containers": list})),
        ]
    })
}

/// A field is never another sort of thing in one object than in the other, as far as its owner depends on it.
fn specs() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[abcd]", values(), 0..4).prop_map(|fields| json!(fields))
}

/// Every value of an object by its path, as the difference would write it. An empty object and nothing are the same.
fn leaves(value: &Value, path: &Path, into: &mut BTreeMap<Path, Value>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => fields.iter().for_each(|(name, value)| leaves(value, &path.field(name), into)),
        Value::Array(elements) => {
            let keyed = match path.last() {
                Some(Segment::Field(name)) => list::keyed(name, [elements, &[]]),
                _ => None,
            };
            match keyed {
                Some([elements, _]) => {
                    for (segment, element) in elements {
                        leaves(element, &path.then(segment), into);
                    }
                }
                None => drop(into.insert(path.clone(), value.clone())),
            }
        }
        scalar => drop(into.insert(path.clone(), scalar.clone())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_listed_fields_change_and_those_of_the_user_never(desired in specs(), live in specs()) {
        let (desired, live) = (json!({"spec": desired}), json!({"spec": live, "status": {"a": 1}}));
        let ownership = owned([("spec.a", FieldOwner::User), ("spec.b", FieldOwner::SetIfEmpty)]);
        let found = object(&desired, Some(&live), &ownership, OURS);
        let merged = merged(&desired, Some(&live), &ownership, OURS);
        let listed = |path: &Path| found.changes.iter().any(|it| it.path.is_prefix_of(path));
        let [mut before, mut after] = [BTreeMap::new(), BTreeMap::new()];
        leaves(&live, &Path::default(), &mut before);
        leaves(&merged, &Path::default(), &mut after);
        for path in before.keys().chain(after.keys()) {
            prop_assert!(
                before.get(path) == after.get(path) || listed(path),
                "{path} changed and is not listed: {live} + {desired} = {merged}"
            );
        }
        prop_assert_eq!(live.pointer("/spec/a"), merged.pointer("/spec/a"), "what is the user's stays");
        let again = object(&desired, Some(&merged), &ownership, OURS);
        prop_assert_eq!(again.changes, Vec::new(), "the same again changes nothing: {} + {}", merged, desired);
    }
}
