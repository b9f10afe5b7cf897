use serde_json::{Value, json};

use super::{NameRule, accept, default, parse, validate, warnings};

fn crd(versions: &Value) -> Value {
    let mut crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "ts.ex.io"},
        "spec": {"group": "ex.io", "scope": "Namespaced", "names": {"plural": "ts", "kind": "T"}, "versions": versions},
    });
    default(&mut crd);
    super::record_stored_version(&mut crd);
    crd
}

fn with_schema(schema: &Value) -> Value {
    crd(&json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]))
}

#[track_caller]
fn check(crd: &Value, expected: &[&str]) {
    let errors: Vec<String> = validate(crd, None).iter().map(ToString::to_string).collect();
    assert_eq!(errors, expected);
}

/// Errors of a schema that stands in the only version; the path to it is left out of what is expected.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a table reads better without borrows")]
fn check_schema(schema: Value, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|e| format!("spec.validation.openAPIV3Schema{e}")).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check(&with_schema(&schema), &expected);
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a table reads better without borrows")]
fn check_property(property: Value, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|e| format!(".properties[a]{e}")).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check_schema(json!({"type": "object", "properties": {"a": property}}), &expected);
}

#[test]
fn a_definition_that_says_little_is_filled_in() {
    let crd = with_schema(&json!({"type": "object"}));
    assert_eq!(crd["spec"]["names"], json!({"plural": "ts", "kind": "T", "singular": "t", "listKind": "TList"}));
    assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
    check(&crd, &[]);
}

#[test]
fn versions_must_be_sound() {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    check(
        &crd(&json!([{"name": "v1", "served": true, "storage": false, "schema": schema}])),
        &[
            "spec.versions: Invalid value: [{\"Name\":\"v1\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,\
             \"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\
             \"SelectableFields\":null}]: must have exactly one version marked as storage version",
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ],
    );
    check(
        &crd(&json!([{"name": "v1", "served": true, "storage": true}])),
        &["spec.versions[0].schema.openAPIV3Schema: Required value"],
    );
    check(
        &crd(&json!([
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {}}},
            {"name": "v2", "served": true, "storage": false, "schema": schema},
        ])),
        &["spec.versions[0].schema.openAPIV3Schema.type: Required value: must not be empty at the root"],
    );
    check(
        &crd(&json!([{"name": "v1", "served": true, "storage": true, "schema": schema, "deprecationWarning": "x"}])),
        &["spec.versions[0].deprecationWarning: Invalid value: \"x\": can only be set for deprecated versions"],
    );
}

#[test]
fn names_must_be_sound() {
    let mut crd = with_schema(&json!({"type": "object"}));
    crd["metadata"]["name"] = "x".into();
    crd["spec"]["group"] = "io".into();
    crd["spec"]["scope"] = "X".into();
    crd["spec"]["names"]["listKind"] = "T".into();
    check(
        &crd,
        &[
            "metadata.name: Invalid value: \"x\": must be spec.names.plural+\".\"+spec.group",
            "spec.group: Invalid value: \"io\": should be a domain with at least one dot",
            "spec.scope: Unsupported value: \"X\": supported values: \"Cluster\", \"Namespaced\"",
            "spec.names.listKind: Invalid value: \"T\": kind and listKind may not be the same",
        ],
    );
    let mut crd = with_schema(&json!({"type": "object"}));
    crd["metadata"]["name"] = "ts.a.k8s.io".into();
    crd["spec"]["group"] = "a.k8s.io".into();
    check(
        &crd,
        &[
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \
           \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111",
        ],
    );
    crd["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, a test"});
    check(&crd, &[]);
}

#[test]
fn unknown_fields_cannot_be_preserved_wholesale() {
    let mut crd = with_schema(&json!({"type": "object"}));
    crd["spec"]["preserveUnknownFields"] = true.into();
    check(
        &crd,
        &[
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true \
           in spec.versions[*].schema instead",
        ],
    );
}

#[test]
fn schemas_must_be_structural() {
    check_schema(json!({}), &[".type: Required value: must not be empty at the root"]);
    check_schema(json!({"type": "string"}), &[".type: Invalid value: \"string\": must be object at the root"]);
    check_property(json!({}), &[".type: Required value: must not be empty for specified object fields"]);
    check_property(json!({"type": "array"}), &[".items: Required value: must be specified"]);
    check_property(
        json!({"type": "array", "items": {}}),
        &[".items.type: Required value: must not be empty for specified array items"],
    );
    check_property(
        json!({"type": "string", "pattern": "a("}),
        &[
            ".pattern: Invalid value: \"a(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `a(`",
        ],
    );
    check_property(
        json!({"type": "string", "anyOf": [{"type": "string", "description": "x"}]}),
        &[
            ".anyOf[0].description: Forbidden: must be empty to be structural",
            ".anyOf[0].type: Forbidden: must be empty to be structural",
        ],
    );
    check_property(
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        &[],
    );
    check_property(
        json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "x"}]}),
        &[],
    );
    check_property(json!({"x-kubernetes-preserve-unknown-fields": true}), &[]);
    check_property(
        json!({"type": "object", "x-kubernetes-embedded-resource": true}),
        &[
            ".properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ],
    );
    check_schema(
        json!({"type": "object", "anyOf": [{"properties": {"b": {"minLength": 1}}}]}),
        &[
            ".properties[b]: Required value: because it is defined in spec.validation.openAPIV3Schema.anyOf[0].properties[b]",
        ],
    );
    check_schema(
        json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
        &[
            ".properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ],
    );
    check_schema(
        json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}}}),
        &[],
    );
}

#[test]
fn schemas_use_only_what_is_supported() {
    check_schema(json!({"type": "object", "$ref": "x"}), &[".$ref: Forbidden: $ref is not supported"]);
    check_property(
        json!({"type": "foo"}),
        &[
            ".type: Unsupported value: \"foo\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
        ],
    );
    check_property(
        json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}),
        &[".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"],
    );
    check_property(
        json!({"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
        &[".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
    );
    check_property(
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "z"],
               "items": {"type": "object", "properties": {"k": {"type": "string"}}}}),
        &[
            ".x-kubernetes-list-map-keys: Invalid value: [\"k\",\"z\"]: entries must all be names of item properties",
            ".items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ],
    );
    check_property(
        json!({"type": "string", "x-kubernetes-list-type": "set"}),
        &[".type: Invalid value: \"string\": must be array if x-kubernetes-list-type is specified"],
    );
}

#[test]
fn defaults_must_fit() {
    check_property(
        json!({"type": "string", "default": 5}),
        &[".default: Invalid value: \"integer\":  in body must be of type string: \"integer\""],
    );
    check_property(
        json!({"type": "object", "properties": {"b": {"type": "string"}}, "default": {"c": 1}}),
        &[".default: Invalid value: {\"c\":1}: must not have unknown fields"],
    );
    check_property(
        json!({"type": "object", "properties": {"b": {"type": "string", "default": "x"}}, "default": {}}),
        &[],
    );
    check_schema(
        json!({"type": "object", "properties": {"kind": {"type": "string", "default": "X"}}}),
        &[".properties[kind].default: Forbidden: must not be set in top-level kind"],
    );
}

#[test]
fn the_rest_of_a_version_must_be_sound() {
    let version = json!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"c": {"type": "string"}, "o": {"type": "object"}}}}}},
        "subresources": {"status": {}, "scale": {"specReplicasPath": "spec.replicas", "statusReplicasPath": ".spec.replicas"}},
        "additionalPrinterColumns": [{"name": "A", "type": "text", "jsonPath": "x"}, {"type": "string"}],
        "selectableFields": [{"jsonPath": ".spec.c"}, {"jsonPath": ".spec.c"}, {"jsonPath": ".spec.o"}, {"jsonPath": ".spec.x"}, {"jsonPath": "spec"}],
    });
    check(
        &crd(&json!([version])),
        &[
            "spec.subresources.scale.specReplicasPath: Invalid value: \"spec.replicas\": must be a simple json path starting with .",
            "spec.subresources.scale.statusReplicasPath: Invalid value: \".spec.replicas\": should be a json path under .status",
            "spec.additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of boolean,date,integer,number,string",
            "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"x\": must be a simple json path starting with .",
            "spec.additionalPrinterColumns[1].name: Required value",
            "spec.additionalPrinterColumns[1].JSONPath: Required value",
            "spec.selectableFields[1].jsonPath: Duplicate value: \".spec.c\"",
            "spec.selectableFields[2].jsonPath: Invalid value: \".spec.o\": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
            "spec.selectableFields[3].jsonPath: Invalid value: \".spec.x\": is an invalid path: does not refer to a valid field",
            "spec.selectableFields[4].jsonPath: Invalid value: \"spec\": is an invalid path: expected [ or . but got: spec",
        ],
    );
}

#[test]
fn what_is_served_cannot_change_its_name() {
    let mut old = with_schema(&json!({"type": "object"}));
    accept(&mut old, &|_| false, jiff::Timestamp::UNIX_EPOCH);
    let mut new = old.clone();
    new["spec"]["scope"] = "Cluster".into();
    new["spec"]["names"]["kind"] = "U".into();
    new["spec"]["versions"][0]["name"] = "v2".into();
    let errors: Vec<String> = validate(&new, Some(&old)).iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "spec.scope: Invalid value: \"Cluster\": field is immutable",
            "spec.names.kind: Invalid value: \"U\": field is immutable",
            "status.storedVersions: Invalid value: [\"v1\"]: must have the storage version v2",
            "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and \
             must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from \
             status.storedVersions",
        ]
    );
}

#[test]
fn free_names_are_accepted() {
    let mut crd = with_schema(&json!({"type": "object"}));
    crd["spec"]["names"]["shortNames"] = json!(["x"]);
    accept(&mut crd, &|_| false, jiff::Timestamp::UNIX_EPOCH);
    let since = "1970-01-01T00:00:00Z";
    let expected = json!({
        "conditions": [
            {"type": "NamesAccepted", "status": "True", "lastTransitionTime": since, "reason": "NoConflicts", "message": "no conflicts found"},
            {"type": "Established", "status": "True", "lastTransitionTime": since, "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"},
        ],
        "acceptedNames": {"plural": "ts", "singular": "t", "kind": "T", "listKind": "TList", "shortNames": ["x"]},
        "storedVersions": ["v1"],
    });
    assert_eq!(crd["status"], expected);
    accept(&mut crd, &|_| false, jiff::Timestamp::from_second(1_000_000).unwrap());
    assert_eq!(crd["status"], expected, "accepting again changes nothing");
    assert!(parse(&crd, None).established);
}

#[test]
fn taken_names_are_not() {
    let mut crd = with_schema(&json!({"type": "object"}));
    crd["spec"]["names"]["shortNames"] = json!(["fo", "b"]);
    accept(&mut crd, &|name| ["T", "TList", "fo", "t"].contains(&name), jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(crd["status"]["acceptedNames"], json!({"plural": "ts", "kind": ""}));
    let conditions = &crd["status"]["conditions"];
    assert_eq!(conditions[0]["reason"], "ListKindConflict");
    assert_eq!(conditions[0]["message"], "\"TList\" is already in use");
    assert_eq!(conditions[1]["reason"], "NotAccepted");
    assert!(!parse(&crd, None).established);
}

#[test]
fn a_definition_is_read() {
    let crd = parse(
        &crd(&json!([{"name": "v1", "served": true, "storage": true, "deprecated": true,
            "schema": {"openAPIV3Schema": {"type": "object"}},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
            "additionalPrinterColumns": [{"name": "N", "type": "integer", "jsonPath": ".spec.n", "priority": 1}],
            "selectableFields": [{"jsonPath": ".spec.c"}]},
            {"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}}])),
        None,
    );
    assert_eq!((crd.kind.as_str(), crd.list_kind.as_str(), crd.namespaced), ("T", "TList", true));
    let [first, second] = crd.versions.as_slice() else { panic!("two versions") };
    assert_eq!(first.deprecation_warning.as_deref(), Some("ex.io/v1 T is deprecated; use ex.io/v2 T"));
    assert_eq!(first.scale.as_ref().map(|scale| scale.spec_replicas.as_str()), Some(".spec.n"));
    assert_eq!(first.columns[0].priority, 1);
    assert_eq!(first.selectable_fields[0].0, "spec.c");
    let object = json!({"spec": {"n": 5}});
    assert_eq!(first.columns[0].json_path.as_ref().unwrap().find(&object), [&json!(5)]);
    assert!(first.status && !second.status);
    assert_eq!(second.columns[0].name, "Age");
}

#[test]
fn a_definition_may_stand_for_an_api_server_of_its_own() {
    let mut crd = crd(&json!([{"name": "v1", "served": true, "storage": true}]));
    assert_eq!(parse(&crd, None).names, NameRule::DnsSubdomain);
    crd["metadata"]["annotations"] = json!({"apiserver.windlass.dev/names": "path-segments"});
    assert_eq!(parse(&crd, None).names, NameRule::PathSegment);
    crd["metadata"]["annotations"] = json!({"apiserver.windlass.dev/names": "all"});
    assert_eq!(parse(&crd, None).names, NameRule::DnsSubdomain);
}

#[test]
fn unknown_formats_are_warned_about() {
    let crd = with_schema(&json!({"type": "object", "properties": {
        "a": {"type": "string", "format": "odd"}, "b": {"type": "array", "items": {"type": "string", "format": "odd"}},
        "c": {"type": "integer", "format": "int32"}, "d": {"type": "integer", "format": "int8"}}}));
    assert_eq!(warnings(&crd), ["unrecognized format \"odd\"", "unrecognized format \"int8\""]);
}

#[test]
fn nothing_is_too_odd_to_be_judged() {
    for odd in [
        json!(null),
        json!(1),
        json!([]),
        json!("x"),
        json!({"spec": 1}),
        json!({"spec": {"versions": {}, "names": []}}),
    ] {
        let mut crd = odd;
        default(&mut crd);
        accept(&mut crd, &|_| true, jiff::Timestamp::UNIX_EPOCH);
        assert!(!validate(&crd, None).is_empty());
        parse(&crd, None);
    }
}
