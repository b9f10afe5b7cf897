//! From the facts about Kubernetes' own kinds to [`Schema`]s.
//!
//! The facts are what Kubernetes publishes as OpenAPI v3: it is generated from Go structs, and only the shape in it is of
//! use. The rules of these kinds are Go code there and Rust code here, so `required` and the like are left out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::compile::{list_type, text};
use super::{ArrayShape, ObjectShape, PatchStrategy, Rules, Schema, Shape};

/// Definitions whose inside is anybody's, by the end of their names. Some refer to themselves.
const OPAQUE: [&str; 7] = [
    ".JSON",
    ".JSONSchemaProps",
    ".JSONSchemaPropsOrArray",
    ".JSONSchemaPropsOrBool",
    ".JSONSchemaPropsOrStringArray",
    ".RawExtension",
    ".FieldsV1",
];

const REF_PREFIX: &str = "#/components/schemas/";

/// The definitions of the built-in kinds and of everything inside them. Each is compiled when it is first asked for.
#[derive(Debug)]
pub struct Definitions {
    /// As text: trees of all of them would be the largest thing in an empty server.
    facts: BTreeMap<String, Box<RawValue>>,
    pointers: BTreeMap<String, Vec<String>>,
    compiled: Mutex<BTreeMap<String, Arc<Schema>>>,
}

/// The definitions cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("read the definitions of the built-in kinds")]
pub struct DefinitionsError(#[from] serde_json::Error);

impl Definitions {
    /// Reads `{"io.k8s.api.core.v1.Pod": {...}, ...}`: the `components.schemas` of Kubernetes' OpenAPI v3, all groups in one.
    pub fn parse(bytes: &[u8]) -> Result<Self, DefinitionsError> {
        Ok(Self { facts: serde_json::from_slice(bytes)?, pointers: BTreeMap::new(), compiled: Mutex::default() })
    }

    /// The same definitions, knowing which fields tell a zero from nothing.
    pub fn with_pointers(self, bytes: &[u8]) -> Result<Self, DefinitionsError> {
        Ok(Self { pointers: serde_json::from_slice(bytes)?, ..self })
    }

    /// The schema of a definition, such as `io.k8s.api.core.v1.Pod`.
    pub fn schema(&self, name: &str) -> Option<Arc<Schema>> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        Compiler { facts: &self.facts, pointers: &self.pointers, compiled: &mut compiled, open: Vec::new() }
            .definition(name)
    }

    /// The definition as it was read, for publishing.
    pub fn raw(&self, name: &str) -> Option<Value> {
        self.facts.get(name).map(|facts| tree(facts))
    }

    /// The names of all definitions, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.facts.keys().map(String::as_str)
    }
}

fn tree(facts: &RawValue) -> Value {
    // It was read as JSON before.
    serde_json::from_str(facts.get()).unwrap_or_default()
}

struct Compiler<'a> {
    facts: &'a BTreeMap<String, Box<RawValue>>,
    pointers: &'a BTreeMap<String, Vec<String>>,
    compiled: &'a mut BTreeMap<String, Arc<Schema>>,
    /// The definitions that are being compiled: one that shows up inside itself is opaque there.
    open: Vec<&'a str>,
}

impl Compiler<'_> {
    fn definition(&mut self, name: &str) -> Option<Arc<Schema>> {
        if let Some(schema) = self.compiled.get(name) {
            return Some(Arc::clone(schema));
        }
        let (name, facts) = self.facts.get_key_value(name)?;
        if OPAQUE.iter().any(|end| name.ends_with(end)) || self.open.contains(&name.as_str()) {
            return Some(Arc::new(opaque(name)));
        }
        self.open.push(name);
        let mut schema = match tree(facts) {
            Value::Object(keywords) => self.inline(&keywords),
            _ => Schema::default(),
        };
        self.open.pop();
        if let (Shape::Object(shape), Some(pointers)) = (&mut schema.shape, self.pointers.get(name)) {
            shape.pointers.clone_from(pointers);
        }
        schema.definition = Some(Arc::from(name.as_str()));
        let schema = Arc::new(schema);
        self.compiled.insert(name.clone(), Arc::clone(&schema));
        Some(schema)
    }

    /// A place inside a definition: something of its own, or a reference with a few words about this use of it.
    fn place(&mut self, facts: &Value, inside: Inside) -> Arc<Schema> {
        let Value::Object(keywords) = facts else { return Arc::default() };
        let default = keywords.get("default").filter(|default| inside.wants_default(default)).cloned();
        let default = default.or_else(|| inside.zero_bytes(keywords));
        let patch = patch_strategy(keywords);
        let atomic = text(keywords, "x-kubernetes-map-type") == Some("atomic");
        let Some(target) = reference(keywords) else {
            return Arc::new(Schema { default, patch, ..self.inline(keywords) });
        };
        let shared = self.definition(target).unwrap_or_else(|| Arc::new(opaque(target)));
        if default.is_none() && patch == PatchStrategy::default() && !atomic {
            return shared;
        }
        let mut own = Schema { default, patch, ..Schema::clone(&shared) };
        if atomic && let Shape::Object(shape) = &mut own.shape {
            shape.atomic = true;
        }
        Arc::new(own)
    }

    fn inline(&mut self, keywords: &Map<String, Value>) -> Schema {
        let shape = match text(keywords, "type") {
            Some("string") => Shape::String,
            Some("integer") => Shape::Integer,
            Some("number") => Shape::Number,
            Some("boolean") => Shape::Boolean,
            Some("array") => {
                let items = keywords.get("items").map(|items| self.place(items, Inside::Collection));
                Shape::Array(ArrayShape { items: items.unwrap_or_default(), list: list_type(keywords) })
            }
            Some("object") => Shape::Object(self.object(keywords)),
            _ if text(keywords, "format") == Some("int-or-string") => Shape::IntOrString,
            // A quantity: a string or a number.
            _ => Shape::Any,
        };
        let format = text(keywords, "format").map(str::to_owned);
        let rules = format.map(|format| Box::new(Rules { format: Some(format), ..Rules::default() }));
        Schema { shape, rules, ..Schema::default() }
    }

    fn object(&mut self, keywords: &Map<String, Value>) -> ObjectShape {
        let mut properties = BTreeMap::new();
        let mut structs = Vec::new();
        if let Some(Value::Object(fields)) = keywords.get("properties") {
            for (name, facts) in fields {
                if facts.get("default").and_then(Value::as_object).is_some_and(Map::is_empty) {
                    structs.push(name.clone());
                }
                properties.insert(name.clone(), self.place(facts, Inside::Struct));
            }
        }
        let additional = keywords
            .get("additionalProperties")
            .filter(|facts| facts.is_object())
            .map(|facts| self.place(facts, Inside::Collection));
        let atomic = text(keywords, "x-kubernetes-map-type") == Some("atomic");
        // Nobody enforces these here: they tell what is shown even when it is empty.
        let required = keywords.get("required").and_then(Value::as_array).into_iter().flatten();
        let required = required.filter_map(|name| name.as_str().map(str::to_owned)).collect();
        ObjectShape { properties, additional, required, structs, atomic, ..ObjectShape::default() }
    }
}

/// What a place is inside of, which decides what its default means.
#[derive(Clone, Copy)]
enum Inside {
    /// A field of a struct. A default of `{}` says that Go always has the struct, not that JSON always shows it.
    Struct,
    /// An element of a list or a value of a map: the default is what Go makes of a null there.
    Collection,
}

impl Inside {
    /// What Go makes of a null where bytes are: none. The published documents do not say it.
    fn zero_bytes(self, keywords: &Map<String, Value>) -> Option<Value> {
        match self {
            Inside::Struct => None,
            Inside::Collection => (text(keywords, "format") == Some("byte")).then(|| "".into()),
        }
    }

    fn wants_default(self, default: &Value) -> bool {
        match self {
            Inside::Struct => default.is_string() || default.is_number() || default.is_boolean(),
            Inside::Collection => !default.is_null(),
        }
    }
}

/// The definition that is referred to: `{"$ref": …}`, or `{"allOf": [{"$ref": …}]}` where more is to be said about it.
fn reference(keywords: &Map<String, Value>) -> Option<&str> {
    let direct = text(keywords, "$ref");
    let wrapped = || match keywords.get("allOf")?.as_array()?.as_slice() {
        [Value::Object(only)] => text(only, "$ref"),
        _ => None,
    };
    direct.or_else(wrapped)?.strip_prefix(REF_PREFIX)
}

fn opaque(name: &str) -> Schema {
    Schema { preserve_unknown_fields: true, definition: Some(Arc::from(name)), ..Schema::default() }
}

fn patch_strategy(keywords: &Map<String, Value>) -> PatchStrategy {
    let strategy = text(keywords, "x-kubernetes-patch-strategy").unwrap_or_default();
    PatchStrategy {
        merge: strategy.split(',').any(|word| word == "merge"),
        replace: strategy.split(',').any(|word| word == "replace"),
        retain_keys: strategy.split(',').any(|word| word == "retainKeys"),
        merge_key: text(keywords, "x-kubernetes-patch-merge-key").map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::Definitions;
    use crate::schema::{ListType, Schema, Shape, default, prune};

    fn definitions() -> Definitions {
        let facts = json!({
            "io.k8s.api.core.v1.Pod": {"type": "object", "properties": {
                "spec": {"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}], "default": {}},
                "other": {"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"},
                "raw": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.runtime.RawExtension"},
                "self": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Pod"},
            }, "required": ["spec"]},
            "io.k8s.api.core.v1.PodSpec": {"type": "object", "required": ["ports"], "properties": {
                "ports": {
                    "type": "array", "items": {"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.Port"}], "default": {}},
                    "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "x-kubernetes-patch-strategy": "merge,retainKeys", "x-kubernetes-patch-merge-key": "port",
                },
                "args": {"type": "array", "items": {"type": "string", "default": ""}},
            }},
            "io.k8s.api.core.v1.Port": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                "port": {"type": "integer", "format": "int32", "default": 0}, "protocol": {"type": "string", "default": "TCP"},
            }},
            "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"},
        });
        Definitions::parse(facts.to_string().as_bytes()).unwrap()
    }

    fn property(schema: &Schema, name: &str) -> Arc<Schema> {
        match &schema.shape {
            Shape::Object(shape) => Arc::clone(&shape.properties[name]),
            other => panic!("{other:?} has no fields"),
        }
    }

    #[test]
    fn one_definition_is_one_allocation() {
        let definitions = definitions();
        let pod = definitions.schema("io.k8s.api.core.v1.Pod").unwrap();
        let spec = definitions.schema("io.k8s.api.core.v1.PodSpec").unwrap();
        assert!(Arc::ptr_eq(&property(&pod, "spec"), &spec));
        assert!(Arc::ptr_eq(&property(&pod, "other"), &spec));
        assert!(Arc::ptr_eq(&pod, &definitions.schema("io.k8s.api.core.v1.Pod").unwrap()));
        assert!(definitions.schema("io.k8s.api.core.v1.Nothing").is_none());
        assert!(Definitions::parse(b"[").is_err());
    }

    #[test]
    fn lists_know_how_they_merge() {
        let ports = property(&definitions().schema("io.k8s.api.core.v1.PodSpec").unwrap(), "ports");
        assert!(ports.patch.merge && ports.patch.retain_keys);
        assert_eq!(ports.patch.merge_key.as_deref(), Some("port"));
        let Shape::Array(shape) = &ports.shape else { panic!("no list") };
        assert_eq!(shape.list, ListType::Map(vec!["port".into(), "protocol".into()]));
        assert!(matches!(&shape.items.shape, Shape::Object(port) if port.atomic));
    }

    #[track_caller]
    fn check(given: Value, expected: &Value) {
        let pod = definitions().schema("io.k8s.api.core.v1.Pod").unwrap();
        let mut given = given;
        prune::prune(&mut given, &pod, None);
        default::fill(&mut given, &pod);
        assert_eq!(&given, expected);
    }

    #[test]
    fn scalars_have_defaults_and_structs_do_not() {
        check(json!({}), &json!({}));
        check(json!({"spec": null}), &json!({}));
        check(
            json!({"spec": {"ports": [{}, null]}}),
            &json!({"spec": {"ports": [
                {"port": 0, "protocol": "TCP"}, {"port": 0, "protocol": "TCP"},
            ]}}),
        );
        check(json!({"spec": {"args": ["a", null], "foo": 1}}), &json!({"spec": {"args": ["a", ""]}}));
    }

    #[test]
    fn what_is_anybodys_stays() {
        check(json!({"raw": {"a": {"b": 1}}}), &json!({"raw": {"a": {"b": 1}}}));
        check(json!({"self": {"anything": 1}}), &json!({"self": {"anything": 1}}));
    }
}
