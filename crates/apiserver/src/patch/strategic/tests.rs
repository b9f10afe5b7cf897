use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::patch::json::tests::document;
use crate::schema::{ArrayShape, ObjectShape};

fn object(fields: impl IntoIterator<Item = (&'static str, Schema)>) -> Schema {
    let properties = fields.into_iter().map(|(name, schema)| (name.to_owned(), Arc::new(schema))).collect();
    let shape = Shape::Object(ObjectShape { properties, ..ObjectShape::default() });
    Schema { shape, definition: Some("io.k8s.api.core.v1.Thing".into()), ..Schema::default() }
}

fn list(items: Schema, merge: bool, merge_key: Option<&str>) -> Schema {
    let shape = Shape::Array(ArrayShape { items: Arc::new(items), ..ArrayShape::default() });
    let patch = PatchStrategy { merge, merge_key: merge_key.map(str::to_owned), ..PatchStrategy::default() };
    Schema { shape, patch, ..Schema::default() }
}

/// `merging` and `ints` are merged, `plain` is not, `selector` is replaced.
fn schema(depth: u8) -> Schema {
    let scalar = Schema::default;
    let map = || Schema {
        shape: Shape::Object(ObjectShape { additional: Some(Arc::new(scalar())), ..ObjectShape::default() }),
        ..Schema::default()
    };
    let mut fields = vec![
        ("name", scalar()),
        ("value", scalar()),
        ("other", scalar()),
        ("num", scalar()),
        ("map", map()),
        ("ints", list(scalar(), true, None)),
        ("strs", list(scalar(), true, None)),
        ("plainInts", list(scalar(), false, None)),
        ("selector", Schema { patch: PatchStrategy { replace: true, ..PatchStrategy::default() }, ..map() }),
    ];
    if depth > 0 {
        fields.push(("obj", schema(depth - 1)));
        fields.push(("retain", schema(depth - 1)));
        fields.push(("merging", list(schema(depth - 1), true, Some("name"))));
        fields.push(("plain", list(schema(depth - 1), false, None)));
    }
    object(fields)
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "reads better in a table")]
fn check(doc: Value, patch: Value, expected: Value) {
    let mut patched = doc.clone();
    apply(&mut patched, &patch, &schema(3)).unwrap();
    assert_eq!(patched, expected, "{patch} on {doc}");
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "reads better in a table")]
fn refuses(doc: Value, patch: Value, code: u16, message: &str) {
    let refusal = apply(&mut doc.clone(), &patch, &schema(3)).unwrap_err();
    assert_eq!((refusal.code.as_u16(), refusal.message.as_str()), (code, message), "{patch} on {doc}");
}

#[test]
fn objects_merge_and_null_removes() {
    check(json!({"value": "a", "name": "n"}), json!({"value": null}), json!({"name": "n"}));
    check(json!({"map": {"a": "1"}}), json!({"map": {"b": "2"}}), json!({"map": {"a": "1", "b": "2"}}));
    check(json!({"map": {"a": "1"}}), json!({"map": {"$patch": "replace", "b": "2"}}), json!({"map": {"b": "2"}}));
    check(json!({"map": {"a": "1"}}), json!({"map": {"$patch": "delete"}}), json!({"map": {}}));
    check(json!({"selector": {"a": "1"}}), json!({"selector": {"b": "2"}}), json!({"selector": {"b": "2"}}));
    check(json!({}), json!({"obj": {"value": null, "map": {"$patch": "delete"}}}), json!({"obj": {}}));
    check(json!({"plain": [{"name": "a"}]}), json!({"plain": [{"name": "b"}]}), json!({"plain": [{"name": "b"}]}));
}

#[test]
fn lists_with_a_merge_key_merge_element_by_element() {
    let doc = json!({"merging": [{"name": "a", "value": "1"}, {"name": "b"}, {"name": "c"}]});
    check(
        doc.clone(),
        json!({"merging": [{"name": "a", "map": {"x": "y"}}]}),
        json!({"merging": [{"name": "a", "value": "1", "map": {"x": "y"}}, {"name": "b"}, {"name": "c"}]}),
    );
    check(
        doc.clone(),
        json!({"merging": [{"name": "d"}]}),
        json!({"merging": [{"name": "d"}, {"name": "a", "value": "1"}, {"name": "b"}, {"name": "c"}]}),
    );
    check(
        doc.clone(),
        json!({"merging": [{"name": "b", "$patch": "delete"}]}),
        json!({"merging": [{"name": "a", "value": "1"}, {"name": "c"}]}),
    );
    check(doc.clone(), json!({"merging": [{"$patch": "replace"}, {"name": "z"}]}), json!({"merging": [{"name": "z"}]}));
    check(
        doc,
        json!({"$setElementOrder/merging": [{"name": "c"}, {"name": "d"}, {"name": "a"}], "merging": [{"name": "d"}]}),
        json!({"merging": [{"name": "b"}, {"name": "c"}, {"name": "d"}, {"name": "a", "value": "1"}]}),
    );
}

#[test]
fn an_element_that_is_added_takes_the_place_of_one_that_is_deleted() {
    check(
        json!({"merging": [{"name": "sidecar"}, {"name": "old"}]}),
        json!({"$setElementOrder/merging": [{"name": "new"}], "merging": [{"$patch": "delete", "name": "old"}, {"name": "new"}]}),
        json!({"merging": [{"name": "sidecar"}, {"name": "new"}]}),
    );
    // Without an order there is no memory of the old one.
    check(
        json!({"merging": [{"name": "sidecar"}, {"name": "old"}]}),
        json!({"merging": [{"$patch": "delete", "name": "old"}, {"name": "new"}]}),
        json!({"merging": [{"name": "new"}, {"name": "sidecar"}]}),
    );
}

#[test]
fn lists_of_scalars_merge_as_sets() {
    check(json!({"ints": [1, 2]}), json!({"ints": [2, 3]}), json!({"ints": [1, 2, 3]}));
    check(json!({"ints": [1, 2]}), json!({"$deleteFromPrimitiveList/ints": [1]}), json!({"ints": [2]}));
    check(json!({"ints": [1, 2, 3]}), json!({"$setElementOrder/ints": [3, 1]}), json!({"ints": [2, 3, 1]}));
    check(json!({"plainInts": [1]}), json!({"plainInts": [2]}), json!({"plainInts": [2]}));
    check(json!({}), json!({"$deleteFromPrimitiveList/ints": 5}), json!({}));
}

#[test]
fn retained_keys_are_all_that_is_left() {
    let doc = json!({"retain": {"value": "1", "name": "n"}});
    check(
        doc.clone(),
        json!({"retain": {"$retainKeys": ["name", "map"], "map": {"a": "b"}}}),
        json!({"retain": {"name": "n", "map": {"a": "b"}}}),
    );
    refuses(
        doc.clone(),
        json!({"retain": {"$retainKeys": ["name"], "map": {}}}),
        400,
        "invalid patch format of retainKeys",
    );
    refuses(doc, json!({"retain": {"$retainKeys": 5}}), 400, "invalid patch format of retainKeys");
}

#[test]
fn patches_that_make_no_sense_are_refused_in_the_words_of_a_real_server() {
    let doc = json!({"map": {"a": "b"}, "merging": [{"name": "a"}], "ints": [1]});
    let check = |patch: Value, code: u16, message: &str| refuses(doc.clone(), patch, code, message);
    check(json!({"map": {"$patch": "foo"}}), 500, "unknown patch type: foo in map: map[$patch:foo]");
    check(json!({"$setElementOrder/ints": 5}), 500, "expected a []interface {}, but received a int64");
    check(json!({"$setElementOrder": []}), 400, "invalid patch format of setElementOrder list");
    check(json!({"$deleteFromPrimitiveList": []}), 400, "invalid patch format of primitive list");
    check(json!({"merging": [{"value": "x"}]}), 500, "map: map[value:x] does not contain declared merge key: name");
    check(json!({"merging": [{"$patch": "merge"}]}), 500, "merging lists cannot yet be specified in the patch");
    check(json!({"merging": ["x"]}), 500, "list element types are not identical: [[map[name:a]] [x]]");
    check(json!({"ints": ["x"]}), 500, "list element types are not identical: [[1] [x]]");
    check(
        json!({"$setElementOrder/ints": [2], "ints": [3]}),
        500,
        "The order in patch list:\n[3]\n doesn't match $setElementOrder list:\n[2]\n",
    );
    let rejected = "the server rejected our request due to an error in our request";
    refuses(json!({"merging": [[]]}), json!({"merging": [{"name": "a"}]}), 422, rejected);
    refuses(
        json!({"foo": {}}),
        json!({"foo": {}}),
        500,
        "unable to find api field in struct Thing for the json field \"foo\"",
    );
    let refusal = undecodable(&json!({"data": {"a": [1, null, true]}}), "cannot restore map from int64");
    assert_eq!(
        refusal.message,
        " \"\" is invalid: patch: Invalid value: \"map[data:map[a:[1 <nil> true]]]\": cannot restore map from int64"
    );
}

#[test]
fn a_patch_is_an_object_or_nothing() {
    let check = |text: &str, message: &str| assert_eq!(read(text.as_bytes()).unwrap_err().message, message);
    check("x", "invalid character 'x' looking for beginning of value");
    check("[]", "json: cannot unmarshal array into Go value of type map[string]interface {}");
    assert_eq!(read(b"null").unwrap(), json!({}));
}

/// Documents and patches over the fields of [`schema`], well and badly formed.
fn messy() -> impl Strategy<Value = Value> {
    let names = "name|value|map|ints|plainInts|selector|obj|retain|merging|plain|\\$patch|\\$retainKeys|\
        \\$setElementOrder/(ints|merging)|\\$deleteFromPrimitiveList/ints";
    let leaf = prop_oneof![
        Just(Value::Null),
        (0..3_i64).prop_map(Value::from),
        "a|b|delete|replace|merge".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 40, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::btree_map(names, inner, 0..5).prop_map(|m| Value::Object(m.into_iter().collect()))
        ]
    })
}

proptest! {
    #[test]
    fn any_patch_applies_or_is_refused(mut doc in messy(), patch in messy()) {
        drop(apply(&mut doc, &patch, &schema(3)));
    }

    #[test]
    fn a_patch_of_maps_applied_twice_is_a_patch_applied_once(doc in document(), patch in document()) {
        let (mut doc, patch) = (json!({"obj": doc}), json!({"obj": patch}));
        apply(&mut doc, &patch, &UNKNOWN).unwrap();
        let once = doc.clone();
        apply(&mut doc, &patch, &UNKNOWN).unwrap();
        // A list that replaces a list is taken as it is, also with nulls that a new one would lose.
        prop_assert_eq!(cleaned(&doc, Nulls::Dropped), cleaned(&once, Nulls::Dropped));
    }
}
