use serde_json::json;

use super::*;

fn said(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn check(rule: NameRule, meta: &Value, expected: &[&str]) {
    let mut meta = meta.clone();
    let fields = meta.as_object_mut().unwrap();
    fields.entry("name").or_insert("a".into());
    fields.entry("namespace").or_insert("default".into());
    assert_eq!(said(&validate(&meta, true, rule)), expected, "{meta}");
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

#[test]
fn names_follow_their_kinds_rule() {
    check(NameRule::DnsSubdomain, &json!({"name": "a.b-c"}), &[]);
    check(
        NameRule::DnsLabel,
        &json!({"name": "a.b"}),
        &["metadata.name: Invalid value: \"a.b\": must not contain dots"],
    );
    check(NameRule::PathSegment, &json!({"name": "system:Node"}), &[]);
    check(
        NameRule::PathSegment,
        &json!({"name": "a/b%c"}),
        &[
            "metadata.name: Invalid value: \"a/b%c\": may not contain '/'",
            "metadata.name: Invalid value: \"a/b%c\": may not contain '%'",
        ],
    );
    check(
        NameRule::DnsSubdomain,
        &json!({"name": "A"}),
        &[&format!("metadata.name: Invalid value: \"A\": {SUBDOMAIN}")],
    );
    check(
        NameRule::DnsSubdomain,
        &json!({"generateName": "a_-b-", "name": "a"}),
        &[&format!("metadata.generateName: Invalid value: \"a_-b-\": {SUBDOMAIN}")],
    );
    check(NameRule::DnsSubdomain, &json!({"generateName": "web-", "name": "web-x7f2k"}), &[]);
    check(
        NameRule::DnsSubdomain,
        &json!({"name": ""}),
        &["metadata.name: Required value: name or generateName is required"],
    );
}

#[test]
fn namespaces_are_where_they_belong() {
    let named = |namespace: &str| json!({"name": "a", "namespace": namespace});
    assert_eq!(said(&validate(&named(""), true, NameRule::DnsSubdomain)), ["metadata.namespace: Required value"]);
    assert_eq!(
        said(&validate(&named("x"), false, NameRule::DnsSubdomain)),
        ["metadata.namespace: Forbidden: not allowed on this type"]
    );
    assert_eq!(
        said(&validate(&named("x.y"), true, NameRule::DnsSubdomain)),
        ["metadata.namespace: Invalid value: \"x.y\": must not contain dots"]
    );
}

#[test]
fn labels_and_annotations_have_keys_and_values_of_a_certain_form() {
    check(
        NameRule::DnsSubdomain,
        &json!({"labels": {"a/b": "c", "d": ""}, "annotations": {"Example.COM/x": " any\n"}}),
        &[],
    );
    check(
        NameRule::DnsSubdomain,
        &json!({"labels": {"a/b/c": "ok"}}),
        &[
            "metadata.labels: Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        ],
    );
    check(
        NameRule::DnsSubdomain,
        &json!({"labels": {"a": "no spaces"}}),
        &[
            "metadata.labels: Invalid value: \"no spaces\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ],
    );
    check(
        NameRule::DnsSubdomain,
        &json!({"annotations": {"/b": "c"}}),
        &["metadata.annotations: Invalid value: \"/b\": prefix part must be non-empty"],
    );
    check(
        NameRule::DnsSubdomain,
        &json!({"annotations": {"a": "x".repeat(256 * 1024)}}),
        &["metadata.annotations: Too long: may not be more than 262144 bytes"],
    );
}

#[test]
fn owners_are_complete_and_at_most_one_controls() {
    let owner = |kind: &str, controller: bool| {
        let mut owner = json!({"apiVersion": "v1", "kind": kind, "name": "x", "uid": "1"});
        if controller {
            owner["controller"] = true.into();
        }
        owner
    };
    check(NameRule::DnsSubdomain, &json!({"ownerReferences": [owner("Pod", true), owner("Pod", false)]}), &[]);
    check(
        NameRule::DnsSubdomain,
        &json!({"ownerReferences": [{"apiVersion": "a/b/c"}]}),
        &[
            "metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty",
            "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
        ],
    );
    check(
        NameRule::DnsSubdomain,
        &json!({"ownerReferences": [owner("Event", false)]}),
        &[
            "metadata.ownerReferences: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"x\",\"uid\":\"1\"}: /v1, Kind=Event is disallowed from being an owner",
        ],
    );
    let two = json!({"name": "a", "namespace": "b", "ownerReferences": [owner("Pod", true), owner("Node", true)]});
    let errors = validate(&two, true, NameRule::DnsSubdomain);
    assert_eq!(
        errors[0].detail,
        "Only one reference can have Controller set to true. Found \"true\" in references for Pod/x and Node/x"
    );
}

#[test]
fn finalizers_are_qualified_names() {
    check(NameRule::DnsSubdomain, &json!({"finalizers": ["example.com/x", "anything"]}), &[]);
    check(
        NameRule::DnsSubdomain,
        &json!({"finalizers": ["orphan", "foregroundDeletion"]}),
        &[
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set",
        ],
    );
    let mut errors = Vec::new();
    standard_finalizers(&json!({"finalizers": ["orphan", "x", "a/x"]}), &mut errors);
    assert_eq!(
        said(&errors),
        [
            "metadata.finalizers[1]: Invalid value: \"x\": name is neither a standard finalizer name nor is it fully qualified"
        ]
    );
}

#[test]
fn managed_fields_say_how_they_came_about() {
    check(NameRule::DnsSubdomain, &json!({"managedFields": [{"operation": "Apply", "fieldsType": "FieldsV1"}]}), &[]);
    check(
        NameRule::DnsSubdomain,
        &json!({"managedFields": [{"operation": "X", "fieldsType": "Y", "manager": "a\u{1}"}]}),
        &[
            "metadata.managedFields[0].operation: Invalid value: \"X\": must be `Apply` or `Update`",
            "metadata.managedFields[0].fieldsType: Invalid value: \"Y\": must be `FieldsV1`",
            "metadata.managedFields[0].manager: Invalid value: \"a\\x01\": invalid character U+0001 (at position 1)",
        ],
    );
}

#[test]
fn an_update_keeps_identity() {
    let old = json!({
        "name": "a", "namespace": "n", "uid": "1", "resourceVersion": "5", "generation": 3,
        "creationTimestamp": "2020-01-01T00:00:00Z", "finalizers": ["a/x"],
    });
    let changed = |field: &str, value: Value| {
        let mut new = old.clone();
        new[field] = value;
        said(&validate_update(&new, &old))
    };
    assert_eq!(changed("labels", json!({"a": "b"})), Vec::<String>::new());
    assert_eq!(changed("name", json!("b")), ["metadata.name: Invalid value: \"b\": field is immutable"]);
    assert_eq!(changed("uid", json!("2")), ["metadata.uid: Invalid value: \"2\": field is immutable"]);
    assert_eq!(changed("uid", json!(null)), ["metadata.uid: Invalid value: \"\": field is immutable"]);
    assert_eq!(changed("generation", json!(2)), ["metadata.generation: Invalid value: 2: must not be decremented"]);
    assert_eq!(
        changed("resourceVersion", json!("")),
        ["metadata.resourceVersion: Invalid value: \"\": must be specified for an update"]
    );
    assert_eq!(
        changed("deletionTimestamp", json!("2021-01-01T00:00:00Z")),
        ["metadata.deletionTimestamp: Invalid value: \"2021-01-01T00:00:00Z\": field is immutable"]
    );
    assert_eq!(
        changed("deletionGracePeriodSeconds", json!(7)),
        ["metadata.deletionGracePeriodSeconds: Invalid value: 7: field is immutable"]
    );
    assert_eq!(changed("finalizers", json!(["a/x", "a/y"])), Vec::<String>::new());
}

#[test]
fn a_dying_object_gets_no_more_finalizers() {
    let old = json!({"name": "a", "resourceVersion": "5", "deletionTimestamp": "t", "finalizers": ["a/x", "a/y"]});
    let mut new = old.clone();
    new["finalizers"] = json!(["a/y"]);
    assert_eq!(validate_update(&new, &old), []);
    new["finalizers"] = json!(["a/z", "a/x", "a/w"]);
    assert_eq!(
        said(&validate_update(&new, &old)),
        [
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"a/w\", \"a/z\"}",
        ]
    );
}

#[test]
fn wrong_types_do_not_panic() {
    for odd in [json!(null), json!([]), json!({"labels": 3, "annotations": [1], "ownerReferences": [7, null]})] {
        let complaints = validate(&odd, true, NameRule::DnsSubdomain).len();
        assert!(complaints >= 2, "{odd}");
        assert!(!validate_update(&odd, &odd).is_empty());
    }
}
