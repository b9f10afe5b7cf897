use serde_json::{Value, json};

use super::{validate, validate_status, validate_update};
use crate::schema::Schema;
use crate::schema::compile::structural;

fn schema_of(spec: &Value) -> Schema {
    structural(&json!({"type": "object", "properties": {"spec": spec, "status": spec}}), None)
}

fn shown(errors: &[crate::field::FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a table reads better without borrows")]
fn check(spec: Value, given: Value, expected: &[&str]) {
    assert_eq!(shown(&validate(&json!({"spec": given}), &schema_of(&spec))), expected);
}

#[test]
fn types_are_checked() {
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    check(
        object(json!({"replicas": {"type": "integer"}})),
        json!({"replicas": "3"}),
        &["spec.replicas: Invalid value: \"string\": spec.replicas in body must be of type integer: \"string\""],
    );
    check(object(json!({"n": {"type": "integer"}})), json!({"n": 1.0}), &[]);
    check(
        object(json!({"n": {"type": "integer", "format": "int32"}})),
        json!({"n": 1.5}),
        &[
            "spec.n: Invalid value: \"float64\": spec.n in body must be of type int32: \"float64\"",
            "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.n",
        ],
    );
    check(
        object(json!({"n": {"type": "integer", "format": "int32"}})),
        json!({"n": 3_000_000_000_u32}),
        &["<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.n"],
    );
    check(
        object(json!({"s": {"type": "string"}})),
        json!({"s": null}),
        &["spec.s: Invalid value: \"null\": spec.s in body must be of type string: \"null\""],
    );
    check(object(json!({"s": {"type": "string", "nullable": true}})), json!({"s": null}), &[]);
    check(
        object(json!({"p": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}})),
        json!({"p": true}),
        &[
            "spec.p: Invalid value: \"boolean\": spec.p in body must be of type integer,string: \"boolean\"",
            "<nil>: Invalid value: \"\": \"spec.p\" must validate at least one schema (anyOf)",
            "spec.p: Invalid value: \"boolean\": spec.p in body must be of type integer: \"boolean\"",
        ],
    );
}

#[test]
fn values_are_checked() {
    let one = |schema: Value, value: Value, expected: &[&str]| {
        check(json!({"type": "object", "properties": {"x": schema}}), json!({"x": value}), expected);
    };
    one(
        json!({"type": "string", "enum": ["a", "b"]}),
        json!("z"),
        &["spec.x: Unsupported value: \"z\": supported values: \"a\", \"b\""],
    );
    one(json!({"type": "string", "maxLength": 2}), json!("abc"), &["spec.x: Too long: may not be more than 2 bytes"]);
    one(json!({"type": "string", "maxLength": 2}), json!("\u{e4}\u{e4}"), &[]);
    one(
        json!({"type": "string", "minLength": 2}),
        json!("a"),
        &["spec.x: Invalid value: \"a\": spec.x in body should be at least 2 chars long"],
    );
    one(
        json!({"type": "string", "pattern": "^a+$"}),
        json!("b"),
        &["spec.x: Invalid value: \"b\": spec.x in body should match '^a+$'"],
    );
    one(
        json!({"type": "string", "format": "date-time"}),
        json!("b"),
        &["spec.x: Invalid value: \"b\": spec.x in body must be of type date-time: \"b\""],
    );
    one(
        json!({"type": "integer", "minimum": 2}),
        json!(1),
        &["spec.x: Invalid value: 1: spec.x in body should be greater than or equal to 2"],
    );
    one(
        json!({"type": "integer", "maximum": 2, "exclusiveMaximum": true}),
        json!(2),
        &["spec.x: Invalid value: 2: spec.x in body should be less than 2"],
    );
    one(
        json!({"type": "number", "maximum": 0.5}),
        json!(1.5),
        &["spec.x: Invalid value: 1.5: spec.x in body should be less than or equal to 0.5"],
    );
    one(
        json!({"type": "integer", "multipleOf": 2}),
        json!(3),
        &["spec.x: Invalid value: 3: spec.x in body should be a multiple of 2"],
    );
    one(
        json!({"type": "array", "maxItems": 1, "items": {"type": "string"}}),
        json!(["a", "b"]),
        &["spec.x: Too many: 2: must have at most 1 item"],
    );
    one(
        json!({"type": "array", "minItems": 1, "items": {"type": "string"}}),
        json!([]),
        &["spec.x: Invalid value: 0: spec.x in body should have at least 1 items"],
    );
    one(
        json!({"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}),
        json!({}),
        &["spec.x: Invalid value: 0: spec.x in body should have at least 1 properties"],
    );
    one(
        json!({"type": "array", "items": {"type": "string"}}),
        json!([1]),
        &["spec.x[0]: Invalid value: \"integer\": spec.x[0] in body must be of type string: \"integer\""],
    );
    one(
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"k": 1}),
        &["spec.x.k: Invalid value: \"integer\": spec.x.k in body must be of type string: \"integer\""],
    );
}

#[test]
fn missing_fields_are_named() {
    let spec = json!({"type": "object", "required": ["b", "a"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    check(spec, json!({}), &["spec.b: Required value", "spec.a: Required value"]);
}

#[test]
fn alternatives_report_the_closest() {
    let spec = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    let one_of = |found: &str| {
        format!("<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). Found {found}")
    };
    check(spec.clone(), json!({"a": ""}), &[]);
    check(spec.clone(), json!({}), &[&one_of("none valid"), "spec.a: Required value"]);
    check(spec, json!({"a": "", "b": ""}), &[&one_of("2 valid alternatives")]);
    check(
        json!({"type": "string", "allOf": [{"minLength": 2}, {"maxLength": 5}], "not": {"enum": ["x"]}}),
        json!("x"),
        &[
            "spec: Invalid value: \"x\": spec in body should be at least 2 chars long",
            "<nil>: Invalid value: \"\": \"spec\" must validate all the schemas (allOf)",
            "<nil>: Invalid value: \"\": \"spec\" must not validate the schema (not)",
        ],
    );
    check(json!({"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}), json!("::1"), &[]);
}

#[test]
fn sets_and_maps_have_nothing_twice() {
    check(
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
        json!(["a", "b", "a", "a"]),
        &["spec[2]: Duplicate value: \"a\""],
    );
    let many: Vec<u32> = (0..20).chain([3, 3]).collect();
    check(
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}}),
        json!(many),
        &["spec[20]: Duplicate value: 3"],
    );
    let map = json!({"type": "object", "additionalProperties": {"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "v": {"type": "integer"}}}}});
    check(
        map,
        json!({"k": [{"name": "a", "v": 1}, {"name": "a", "v": 2}]}),
        &["spec[k][1]: Duplicate value: {\"name\":\"a\"}"],
    );
}

#[test]
fn embedded_resources_say_what_they_are() {
    let spec =
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    check(spec.clone(), json!({}), &["spec.apiVersion: Required value", "spec.kind: Required value"]);
    check(
        spec,
        json!({"apiVersion": "a/b/c", "kind": "K"}),
        &["spec.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c"],
    );
}

#[test]
fn expressions_wait_for_a_sound_object() {
    let spec = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "maxLength": 5}},
        "x-kubernetes-validations": [{"rule": "self.a != 'x'"}]});
    check(
        spec,
        json!({}),
        &[
            "spec.a: Required value",
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ],
    );
}

#[test]
fn what_was_wrong_already_may_stay() {
    let spec =
        json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": 1}, "b": {"type": "string"}}});
    let schema = schema_of(&spec);
    let old = json!({"spec": {"a": "long", "b": "x"}});
    let same = json!({"spec": {"a": "long", "b": "y"}});
    let worse = json!({"spec": {"a": "longer", "b": "y"}});
    assert_eq!(shown(&validate(&same, &schema)).len(), 1);
    assert_eq!(shown(&validate_update(&same, &old, &schema)), Vec::<String>::new());
    assert_eq!(shown(&validate_update(&worse, &old, &schema)), ["spec.a: Too long: may not be more than 1 byte"]);
}

#[test]
fn a_status_is_named_from_its_own_root() {
    let spec = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let schema = schema_of(&spec);
    let new = json!({"spec": {"n": "ignored"}, "status": {"n": "x"}});
    let errors = validate_status(&new, &json!({}), &schema);
    assert_eq!(shown(&errors), ["status.n: Invalid value: \"string\": n in body must be of type integer: \"string\""]);
}
