//! Single facts, one line each.

use serde_json::{Value, json};

use super::schema;
use crate::apply::conflict::{ApplyError, Conflict};
use crate::apply::element::{self, Element};
use crate::apply::managed::{Operation, is_reset};
use crate::apply::set::FieldSet;
use crate::apply::shape::Place;
use crate::apply::{Request, apply, keep_times, merge, owned, update};
use crate::schema::Schema;
use crate::status::ApiError;

fn thing(spec: &Value) -> Schema {
    schema(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}))
}

fn request<'a>(schema: &'a Schema, manager: &'a str, now: &str) -> Request<'a> {
    let now = now.parse().unwrap();
    Request { schema, kind: "Thing", api_version: "example/v1", manager, subresource: "", now, reset: &[] }
}

const MORNING: &str = "2026-01-01T08:00:00Z";
const NOON: &str = "2026-01-01T12:00:00Z";

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "example/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec})
}

#[test]
fn equal_steps_are_spelled_equally() {
    let check = |value: Value, spelled: &str, shown: &str| {
        assert_eq!(element::item(&value), spelled);
        assert_eq!(Element::Item(value).to_string(), shown);
    };
    check(json!("a"), "v:\"a\"", "[=\"a\"]");
    check(json!("<&\"\n\u{1}\u{2028}"), "v:\"\\u003c\\u0026\\\"\\n\\u0001\\u2028\"", "[=\"<&\\\"\\n\\x01\\u2028\"]");
    check(json!(1), "v:1", "[=1]");
    check(json!(1.0), "v:1", "[=1]");
    check(json!(-0.0), "v:0", "[=0]");
    check(json!(1.5), "v:1.5", "[=1.5]");
    check(json!(1e21), "v:1e+21", "[=1e+21]");
    check(json!(1.5e-7), "v:1.5e-7", "[=1.5e-07]");
    check(json!(u64::MAX), "v:18446744073709552000", "[=18446744073709552000]");
    check(json!(true), "v:true", "[=true]");
    check(json!([1, null]), "v:[1,null]", "[=[1,null]]");
    check(json!({"b": 1, "a": "x"}), "v:{\"a\":\"x\",\"b\":1}", "[=a=\"x\"b=1]");
}

#[test]
fn steps_are_read_as_they_are_written() {
    let check = |text: &str, expected: Result<Option<&str>, &str>| {
        let read = Element::parse(text).map(|step| step.map(|step| step.to_string()));
        assert_eq!(read.as_ref().map(Option::as_deref).map_err(String::as_str), expected, "{text}");
    };
    check("f:a.b", Ok(Some(".a.b")));
    check("f:", Ok(Some(".")));
    check("k:{\"port\": 80, \"name\":\"a\"}", Ok(Some("[name=\"a\",port=80]")));
    check("v:\"x\"", Ok(Some("[=\"x\"]")));
    check("i:3", Ok(Some("[3]")));
    check("z:what a later version may say", Ok(None));
    check("f", Err("key must be 2 characters long:"));
    check("", Err("key must be 2 characters long:"));
    check("fa:x", Err("missing colon: fa:x"));
    assert!(Element::parse("v:{").is_err() && Element::parse("k:[]").is_err() && Element::parse("i:x").is_err());
}

#[test]
fn sets_from_clients_are_checked_and_spelled_our_way() {
    let check = |sent: Value, expected: Option<Value>| {
        let read = FieldSet::written(&sent).ok().map(|set| Value::Object(set.into_fields()));
        assert_eq!(read, expected, "{sent}");
    };
    check(json!({}), Some(json!({})));
    check(Value::Null, Some(json!({})));
    check(json!({".": {}, "f:a": {"." : 5}}), Some(json!({"f:a": {}})));
    check(json!({"f:a": null}), Some(json!({"f:a": {}})));
    check(json!({"k:{\"b\": 1.0 , \"a\":2}": {"f:x": {}}}), Some(json!({"k:{\"a\":2,\"b\":1}": {"f:x": {}}})));
    check(json!({"v:1": {}, "v:1.0": {"f:x": {}}}), Some(json!({"v:1": {".": {}, "f:x": {}}})));
    check(json!({"f:a": {"z:later": {}}}), Some(json!({"f:a": {}})));
    check(json!({"a": {}}), None);
    check(json!({"f:a": 1}), None);
    check(json!([]), None);
}

#[test]
fn elements_keep_their_order_unless_the_configuration_has_another() {
    let schema = schema(&json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}));
    let check = |live: &str, applied: &str, expected: &str| {
        let list = |text: &str| -> Value { text.split_terminator(' ').collect() };
        let mut merged = list(live);
        merge::merge(Place::root(&schema), &mut merged, list(applied)).unwrap();
        assert_eq!(merged, list(expected), "{live} + {applied}");
    };
    check("a b c", "", "a b c");
    check("", "a b", "a b");
    check("a b c", "b", "a b c");
    check("a b c", "c a", "b c a");
    check("m c", "z c a", "m z c a");
    check("m z c a", "c n m", "z c a n m");
    // Duplicates are replaced by the one that is applied.
    check("a b a", "a", "a b");
    check("a b a", "c", "a b a c");
}

#[test]
fn what_becomes_atomic_has_one_owner_for_all_of_it() {
    let before = thing(&json!({
        "list": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "object", "properties": {"a": {"type": "string"}}},
    }));
    let after = thing(&json!({
        "list": {"type": "array", "items": {"type": "string"}},
        "map": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
    }));
    let config = object(&json!({"list": ["a"], "map": {"a": "1"}}));
    let live = apply(&request(&before, "one", MORNING), None, config.clone(), false).unwrap();
    let fields = |object: &Value| object["metadata"]["managedFields"][0]["fieldsV1"].clone();
    assert_eq!(fields(&live), json!({"f:spec": {"f:list": {"v:\"a\"": {}}, "f:map": {"f:a": {}}}}));

    let atomic = json!({"f:spec": {"f:list": {}, "f:map": {}}});
    let mut written = live.clone();
    written["metadata"]["labels"] = json!({"l": "1"});
    update(&request(&after, "two", NOON), Some(&live), &mut written);
    assert_eq!(fields(&written), atomic);
    let applied = apply(&request(&after, "one", NOON), Some(&live), config, false).unwrap();
    assert_eq!(fields(&applied), atomic);
}

#[test]
fn fields_of_a_configuration() {
    let schema = thing(&json!({
        "named": {"type": "object", "properties": {"a": {"type": "string"}}},
        "free": {"type": "object", "additionalProperties": {"type": "string"}},
        "any": {},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {"type": "object", "properties": {"port": {}, "protocol": {"type": "string", "default": "TCP"}}}},
    }));
    let check = |spec: Value, expected: Value| {
        let fields = owned::fields(Place::root(&schema), &json!({"spec": spec})).into_fields();
        assert_eq!(fields.get("f:spec").cloned().unwrap_or_default(), expected, "{spec}");
    };
    check(json!({"named": {"a": "1"}}), json!({"f:named": {"f:a": {}}}));
    check(json!({"named": {}}), json!({"f:named": {}}));
    check(json!({"named": null}), json!({"f:named": {}}));
    check(json!({"free": {"a": "1"}}), json!({"f:free": {"f:a": {}}}));
    check(json!({"any": {"a": {"b": [{"c": 1}]}}}), json!({"f:any": {"f:a": {".": {}, "f:b": {}}}}));
    check(json!({"set": []}), Value::Null);
    check(json!({"set": ["b", "a"]}), json!({"f:set": {"v:\"a\"": {}, "v:\"b\"": {}}}));
    check(
        json!({"ports": [{"port": 80}]}),
        json!({"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}),
    );
    check(
        json!({"ports": [{"protocol": "UDP"}]}),
        json!({"f:ports": {"k:{\"protocol\":\"UDP\"}": {".": {}, "f:protocol": {}}}}),
    );
}

#[test]
fn conflicts_read_as_kubectl_users_know_them() {
    let conflict = |manager: &str, operation: Operation, subresource: &str, path: &str| Conflict {
        manager: manager.into(),
        operation,
        api_version: "apps/v1".into(),
        subresource: subresource.into(),
        path: path.into(),
    };
    let check = |conflicts: Vec<Conflict>, expected: &str| {
        let error = ApiError::from(ApplyError::Conflicts(conflicts));
        assert_eq!((error.code.as_u16(), error.reason.as_ref(), error.message.as_str()), (409, "Conflict", expected));
    };
    let (update, apply) = (Operation::Update, Operation::Apply);
    check(
        vec![conflict("kubectl-client-side-apply", update, "", ".spec.replicas")],
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using apps/v1: .spec.replicas",
    );
    check(
        vec![conflict("x", apply, "", ".a"), conflict("x", apply, "", ".b"), conflict("x", update, "status", ".c")],
        "Apply failed with 3 conflicts: conflicts with \"x\":\n- .a\n- .b\nconflicts with \"x\" with subresource \"status\" \
         using apps/v1:\n- .c",
    );
}

#[test]
fn a_client_can_make_the_server_forget_all_managers() {
    let check = |list: Value, expected: bool| assert_eq!(is_reset(list.as_array().unwrap()), expected, "{list}");
    check(json!([]), true);
    check(json!([{}]), true);
    check(json!([{"manager": "", "time": null, "unknown": 1}]), true);
    check(json!([{"manager": "a"}]), false);
    check(json!([{"fieldsV1": {}}]), false);
    check(json!([{}, {}]), false);
}

#[test]
fn times_are_kept_when_nothing_else_changed() {
    let entry = |manager: &str, time: &str| json!({"manager": manager, "operation": "Apply", "time": time});
    let check = |new: Value, spec: Value, kept: bool| {
        let mut old = object(&json!({"a": 1}));
        old["metadata"]["managedFields"] = json!([entry("one", MORNING)]);
        let mut result = object(&spec);
        result["metadata"]["managedFields"] = json!([new]);
        keep_times(&old, &mut result);
        assert_eq!(result["metadata"]["managedFields"] == old["metadata"]["managedFields"], kept, "{new} {spec}");
    };
    check(entry("one", NOON), json!({"a": 1}), true);
    check(json!({"manager": "one", "operation": "Apply"}), json!({"a": 1}), true);
    check(entry("one", NOON), json!({"a": 2}), false);
    check(entry("two", NOON), json!({"a": 1}), false);
}

#[test]
fn an_object_whose_elements_cannot_be_told_apart_has_no_managers() {
    let items = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let schema = thing(&json!({"list": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": items,
    }}));
    let mut after = object(&json!({"list": [{"value": 1}]}));
    update(&request(&schema, "one", MORNING), None, &mut after);
    assert_eq!(after, object(&json!({"list": [{"value": 1}]})));
}

#[test]
fn a_manager_without_a_name_is_unknown() {
    let schema = thing(&json!({"a": {"type": "string"}}));
    let mut after = object(&json!({"a": "1"}));
    update(&request(&schema, "", MORNING), None, &mut after);
    let entry = json!({"manager": "unknown", "operation": "Update", "apiVersion": "example/v1", "time": MORNING,
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {".": {}, "f:a": {}}}});
    assert_eq!(after["metadata"]["managedFields"], json!([entry]));
}
