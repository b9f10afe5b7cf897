//! Laws that hold for all sets, and for all objects that somebody may apply.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::schema;
use crate::apply::compare::{self, Before};
use crate::apply::managed::{Managers, Writer};
use crate::apply::set::{FieldSet, is_member, steps};
use crate::apply::shape::Place;
use crate::apply::{ApplyError, Request, apply, managed_fields, owned, update};
use crate::schema::{ListType, Schema, Shape};

/// A set of paths, the plain way.
type Model = BTreeSet<Vec<String>>;

fn model(set: &FieldSet) -> Model {
    fn walk(nodes: &Map<String, Value>, prefix: &[String], out: &mut Model) {
        for (step, node) in steps(nodes) {
            let path = [prefix, std::slice::from_ref(step)].concat();
            walk(node.as_object().unwrap(), &path, out);
            if is_member(node) {
                out.insert(path);
            }
        }
    }
    let mut out = Model::new();
    walk(set.nodes(), &[], &mut out);
    out
}

fn set_of(paths: &Model) -> FieldSet {
    let mut set = FieldSet::default();
    for path in paths {
        let one = path.iter().rev().fold(FieldSet::default(), |below, step| {
            let mut parent = FieldSet::default();
            parent.put(step.clone(), below.is_empty(), below);
            parent
        });
        set.union(one);
    }
    set
}

fn paths() -> impl Strategy<Value = Model> {
    let step = prop::sample::select(vec!["f:a", "f:b", "k:{\"id\":1}", "v:\"x\"", "i:0"]).prop_map(str::to_owned);
    prop::collection::btree_set(prop::collection::vec(step, 1..4), 0..8)
}

/// Where choices come from: shrinking makes them fewer and smaller.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn below(&mut self, bound: u8) -> u8 {
        self.0.next().copied().unwrap_or_default() % bound
    }

    /// A value that fits a schema: something that a client may apply.
    fn fitting(&mut self, schema: &Schema) -> Value {
        match &schema.shape {
            Shape::Any | Shape::IntOrString => match self.below(5) {
                0 => json!(self.below(3)),
                1 => json!({"a": self.below(2), "b": {"c": self.below(2)}}),
                2 => json!([self.below(2)]),
                3 => Value::Null,
                _ => json!({}),
            },
            Shape::String => json!(self.below(3).to_string()),
            Shape::Integer | Shape::Number => json!(self.below(3)),
            Shape::Boolean => json!(self.below(2) == 1),
            Shape::Object(shape) => {
                let mut out = Map::new();
                for (name, schema) in &shape.properties {
                    if shape.required.contains(name) || self.below(3) == 1 {
                        out.insert(name.clone(), self.fitting(schema));
                    }
                }
                for name in ["x", "y"] {
                    if let Some(schema) = shape.additional.as_ref().filter(|_| self.below(2) == 1) {
                        out.insert(name.to_owned(), self.fitting(schema));
                    }
                }
                Value::Object(out)
            }
            Shape::Array(shape) => {
                let all: Vec<Value> = (0..self.below(4)).map(|_| self.fitting(&shape.items)).collect();
                let mut seen = BTreeSet::new();
                let identity = |value: &Value| match &shape.list {
                    ListType::Atomic => None,
                    ListType::Set => Some(value.to_string()),
                    ListType::Map(keys) => Some(
                        keys.iter()
                            .map(|key| value.get(key).map_or_else(|| "\"TCP\"".to_owned(), ToString::to_string))
                            .collect(),
                    ),
                };
                all.into_iter().filter(|value| identity(value).is_none_or(|id| seen.insert(id))).collect()
            }
        }
    }

    /// A configuration with some of these fields of the spec.
    fn configuration(&mut self, schema: &Schema, fields: impl Fn(&str) -> bool) -> Value {
        let Shape::Object(root) = &schema.shape else { unreachable!() };
        let Shape::Object(spec) = &root.properties["spec"].shape else { unreachable!() };
        let mut out = Map::new();
        for (name, schema) in spec.properties.iter().filter(|(name, _)| fields(name)) {
            if self.below(2) == 1 {
                out.insert(name.clone(), self.fitting(schema));
            }
        }
        json!({"apiVersion": "example/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": out})
    }
}

fn choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..120)
}

static THING: LazyLock<Schema> = LazyLock::new(|| {
    let recordings: Value = serde_json::from_str(include_str!("../recorded/custom.json")).unwrap();
    let mut source = recordings[0]["schema"].clone();
    // Which metadata an embedded object may have is not in its schema.
    source["properties"]["spec"]["properties"].as_object_mut().unwrap().remove("template");
    schema(&source)
});

fn request<'a>(schema: &'a Schema, manager: &'a str, second: i64) -> Request<'a> {
    Request {
        schema,
        kind: "Thing",
        api_version: "example/v1",
        manager,
        subresource: "",
        now: jiff::Timestamp::from_second(second).unwrap(),
        reset: &[],
    }
}

/// Nobody owns an empty list, so a real server loses it at times. The laws are about what can be owned.
fn without_empties(value: Value) -> Value {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    match value {
        Value::Array(list) => list.into_iter().map(without_empties).filter(|value| !empty(value)).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, without_empties(value)));
            Value::Object(fields.filter(|(_, value)| !empty(value)).collect())
        }
        other => other,
    }
}

fn created(schema: &Schema, choices: &[u8]) -> Value {
    let mut object = Choices(choices.iter()).configuration(schema, |_| true);
    update(&request(schema, "creator", 1), None, &mut object);
    object
}

fn fields_of(object: &Value, manager: &str) -> FieldSet {
    let list = managed_fields(object).unwrap_or_default().to_vec();
    let managers = Managers::read(list, Writer::Client).unwrap().0;
    managers.into_iter().find(|entry| entry.manager == manager).map(|entry| entry.fields).unwrap_or_default()
}

proptest! {
    #[test]
    fn sets_are_sets(a in paths(), b in paths()) {
        let (left, right) = (set_of(&a), set_of(&b));
        prop_assert_eq!(&model(&left), &a);
        let mut union = left.clone();
        union.union(right.clone());
        prop_assert_eq!(model(&union), &a | &b);
        let mut difference = left.clone();
        difference.subtract(&right);
        prop_assert_eq!(model(&difference), &a - &b);
        prop_assert_eq!(model(&left.intersection(&right)), &a & &b);
        let mut deep = left.clone();
        deep.subtract_below(&right);
        let outside = |path: &Vec<String>| !b.iter().any(|root| path.starts_with(root));
        prop_assert_eq!(model(&deep), a.iter().filter(|path| outside(path)).cloned().collect::<Model>());
        prop_assert_eq!(left.paths().len(), a.len());
    }

    #[test]
    fn a_set_that_a_client_sends_back_is_the_same_set(a in paths()) {
        let set = set_of(&a);
        let sent = Value::Object(set.clone().into_fields());
        let sent: Value = serde_json::from_str(&sent.to_string()).unwrap();
        prop_assert_eq!(FieldSet::written(&sent).unwrap(), set);
    }

    #[test]
    fn applying_again_changes_nothing(live in choices(), config in choices()) {
        let schema = &*THING;
        let live = created(schema, &live);
        let config = Choices(config.iter()).configuration(schema, |_| true);
        let once = apply(&request(schema, "one", 2), Some(&live), config.clone(), true).unwrap();
        let twice = apply(&request(schema, "one", 3), Some(&once), config, false).unwrap();
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn appliers_with_nothing_in_common_do_not_notice_each_other(a in choices(), b in choices()) {
        let schema = &*THING;
        let a = Choices(a.iter()).configuration(schema, |name| name < "k");
        let b = Choices(b.iter()).configuration(schema, |name| name >= "k");
        let applied = |first: (&str, &Value), then: (&str, &Value)| {
            let once = apply(&request(schema, first.0, 2), None, first.1.clone(), false)?;
            apply(&request(schema, then.0, 2), Some(&once), then.1.clone(), false)
        };
        let one = applied(("a", &a), ("b", &b)).unwrap();
        let other = applied(("b", &b), ("a", &a)).unwrap();
        prop_assert_eq!(&one["spec"], &other["spec"]);
        prop_assert_eq!(model(&fields_of(&one, "a")), model(&fields_of(&other, "a")));
        prop_assert_eq!(model(&fields_of(&one, "b")), model(&fields_of(&other, "b")));
    }

    #[test]
    fn what_was_applied_can_be_read_back(live in choices(), config in choices()) {
        let schema = &*THING;
        let place = Place::root(schema);
        let live = created(schema, &live);
        let config = Choices(config.iter()).configuration(schema, |_| true);
        // A force never meets a conflict.
        let result = apply(&request(schema, "one", 2), Some(&live), config.clone(), true).unwrap();
        let owned = owned::fields(place, &config);
        let delta = compare::objects(place, Before::Present(&config), &result).unwrap();
        prop_assert!(owned.intersection(&delta.changed).is_empty(), "{:?}", owned.intersection(&delta.changed));
        prop_assert!(owned.intersection(&delta.removed).is_empty(), "{:?}", owned.intersection(&delta.removed));
    }

    #[test]
    fn an_apply_without_conflicts_does_what_a_forced_one_does(live in choices(), config in choices()) {
        let schema = &*THING;
        let live = created(schema, &live);
        let config = Choices(config.iter()).configuration(schema, |_| true);
        let forced = apply(&request(schema, "one", 2), Some(&live), config.clone(), true).unwrap();
        match apply(&request(schema, "one", 2), Some(&live), config, false) {
            Ok(result) => prop_assert_eq!(result, forced),
            Err(ApplyError::Conflicts(conflicts)) => prop_assert!(!conflicts.is_empty()),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn dropping_everything_removes_what_nobody_else_owns(live in choices(), config in choices()) {
        let schema = &*THING;
        let place = Place::root(schema);
        let mut live = without_empties(Choices(live.iter()).configuration(schema, |_| true));
        update(&request(schema, "creator", 1), None, &mut live);
        let config = without_empties(Choices(config.iter()).configuration(schema, |_| true));
        let before = apply(&request(schema, "one", 2), Some(&live), config, true).unwrap();
        let nothing = json!({"apiVersion": "example/v1", "kind": "Thing", "metadata": {"name": "a"}});
        let after = apply(&request(schema, "one", 3), Some(&before), nothing, false).unwrap();

        let (mine, theirs) = (fields_of(&before, "one"), fields_of(&before, "creator"));
        let mut alone = mine.clone();
        alone.subtract(&owned::with_parents(place, &theirs));
        let left = model(&owned::fields(place, &after));
        for path in model(&alone) {
            let inner = model(&mine).iter().any(|other| other.len() > path.len() && other.starts_with(&path));
            prop_assert!(inner || !left.contains(&path), "{:?} is left", path);
        }
        let delta = compare::objects(place, Before::Present(&before), &after).unwrap();
        prop_assert!(theirs.intersection(&delta.removed).is_empty(), "{:?}", theirs.intersection(&delta.removed));
        prop_assert!(theirs.intersection(&delta.changed).is_empty(), "{:?}", theirs.intersection(&delta.changed));
        prop_assert!(fields_of(&after, "one").is_empty());
    }

    #[test]
    fn a_write_that_changes_nothing_keeps_the_managers(live in choices()) {
        let schema = &*THING;
        let live = created(schema, &live);
        let mut after = live.clone();
        update(&request(schema, "other", 9), Some(&live), &mut after);
        prop_assert_eq!(after, live);
    }

    #[test]
    fn nothing_panics(source in any_json(), live in any_json(), sent in any_json(), force in any::<bool>()) {
        let schema = schema(&source);
        let req = request(&schema, "kubectl", 5);
        for object in [&live, &sent, &json!({"apiVersion": "example/v1", "kind": "Thing", "metadata": live, "spec": sent})] {
            let mut after = object.clone();
            update(&req, None, &mut after);
            let mut again = sent.clone();
            update(&req, Some(&after), &mut again);
            let mut config = json!({"apiVersion": "example/v1", "kind": "Thing", "metadata": {"name": "a"}});
            config["spec"] = live.clone();
            if let Ok(result) = apply(&req, Some(&after), config.clone(), force) {
                prop_assert!(result.is_object() || !after.is_object());
            }
            drop(apply(&req, None, config, force));
        }
    }
}

/// Anything, with a good part of the words that mean something to a schema or to an object.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "type",
        "object",
        "array",
        "string",
        "integer",
        "properties",
        "items",
        "additionalProperties",
        "metadata",
        "spec",
        "managedFields",
        "fieldsV1",
        "f:spec",
        "k:{\"a\":1}",
        ".",
        "x-kubernetes-list-type",
        "map",
        "set",
        "name",
        "x-kubernetes-list-map-keys",
        "x-definition",
        "default",
        "annotations",
        "operation",
        "Apply",
        "",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(word.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}
