//! A schema as ownership sees it: every place is a leaf, a map whose keys have owners, or a list whose elements do.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::element;
use crate::field::quote;
use crate::schema::{ArrayShape, ListType, ObjectShape, Schema, Shape};

/// What is known about the value at one place. Where nothing is, the value itself tells: objects are maps with owners for
/// each key, everything else is a leaf.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// `None`: nothing is known.
    schema: Option<&'a Schema>,
    /// Fields without a schema may stand here, because some place above said so.
    open: bool,
    /// A whole object with metadata of its own.
    resource: bool,
    /// One owner for whatever stands here.
    opaque: bool,
}

/// A built-in's field that holds somebody else's object is not looked into.
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// How a value is taken at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One owner for all of it.
    Scalar,
    /// An object or map.
    Map,
    /// A list.
    List,
    /// Nothing is known, and there is no value that would tell.
    Unknown,
}

/// A place inside a map.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inside<'a> {
    /// What is known about it.
    pub(super) place: Place<'a>,
    /// The schema lists this key as a field. Such a field is owned through what is in it; the key of a free map is
    /// something one can own.
    pub(super) named: bool,
    /// The schema allows this key at all.
    pub(super) declared: bool,
}

const DEDUCED: Place<'static> = Place { schema: None, open: false, resource: false, opaque: false };

impl<'a> Place<'a> {
    /// The place of a whole object.
    pub(super) fn root(schema: &'a Schema) -> Self {
        Self { resource: true, ..Self::of(schema, false) }
    }

    fn of(schema: &'a Schema, open: bool) -> Self {
        // A named definition is understood on its own, wherever it is used.
        let open = (open && schema.definition.is_none()) || schema.preserve_unknown_fields;
        let known = match schema.shape {
            Shape::Any | Shape::IntOrString => None,
            Shape::String | Shape::Integer | Shape::Number | Shape::Boolean | Shape::Object(_) | Shape::Array(_) => {
                Some(schema)
            }
        };
        let opaque = schema.definition.as_deref() == Some(RAW_EXTENSION);
        Self { schema: known.filter(|_| !opaque), open, resource: schema.embedded_resource, opaque }
    }

    /// The schema, when there is one.
    pub(super) fn schema(self) -> Option<&'a Schema> {
        self.schema
    }

    /// Whether this is a type of a built-in kind. Their objects come from Go structs, which are never entirely empty.
    pub(super) fn is_builtin(self) -> bool {
        self.schema.is_some_and(|schema| schema.definition.is_some())
    }

    /// How `value` is taken here.
    pub(super) fn kind(self, value: Option<&Value>) -> Kind {
        match self.schema.map(|schema| &schema.shape) {
            None if self.opaque => Kind::Scalar,
            Some(Shape::String | Shape::Integer | Shape::Number | Shape::Boolean) => Kind::Scalar,
            Some(Shape::Object(_)) => Kind::Map,
            Some(Shape::Array(_)) => Kind::List,
            None | Some(Shape::Any | Shape::IntOrString) => match value {
                None | Some(Value::Null) => Kind::Unknown,
                Some(Value::Object(_)) => Kind::Map,
                Some(Value::Array(_)) => Kind::List,
                Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => Kind::Scalar,
            },
        }
    }

    fn object(self) -> Option<&'a ObjectShape> {
        match &self.schema?.shape {
            Shape::Object(shape) => Some(shape),
            _ => None,
        }
    }

    fn array(self) -> Option<&'a ArrayShape> {
        match &self.schema?.shape {
            Shape::Array(shape) => Some(shape),
            _ => None,
        }
    }

    /// Whether an object here has one owner.
    pub(super) fn is_atomic_map(self) -> bool {
        self.object().is_some_and(|shape| shape.atomic)
    }

    /// Whether keys are all that is known about objects here.
    pub(super) fn is_free_map(self) -> bool {
        match self.object() {
            None => !self.resource,
            Some(shape) => shape.properties.is_empty() && shape.additional.is_none() && !self.resource,
        }
    }

    /// Whether a list here has one owner.
    pub(super) fn is_atomic_list(self) -> bool {
        self.array().is_none_or(|shape| shape.list == ListType::Atomic)
    }

    /// The place of a list's elements.
    pub(super) fn items(self) -> Place<'a> {
        self.array().map_or(DEDUCED, |shape| Self::of(&shape.items, self.open))
    }

    /// The place of a field or key.
    pub(super) fn inside(self, name: &str) -> Inside<'a> {
        let shape = self.object();
        let property = shape.and_then(|shape| shape.properties.get(name));
        if self.resource
            && property.is_none_or(|schema| schema.definition.is_none())
            && let Some(schema) = RESOURCE.get(name)
        {
            return Inside { place: Self::of(schema, false), named: true, declared: true };
        }
        if let Some(schema) = property {
            return Inside { place: Self::of(schema, self.open), named: true, declared: true };
        }
        let Some(shape) = shape else { return Inside { place: DEDUCED, named: false, declared: true } };
        match &shape.additional {
            Some(schema) => Inside { place: Self::of(schema, self.open), named: false, declared: true },
            None => Inside { place: DEDUCED, named: false, declared: self.open || shape.properties.is_empty() },
        }
    }

    /// The step to an element of a list here, or why the element cannot be told apart from others.
    pub(super) fn step(self, element: &Value) -> Result<String, String> {
        let Some(shape) = self.array() else { return Err("invalid indexing of non-associative list".into()) };
        match &shape.list {
            ListType::Atomic => Err("invalid indexing of non-associative list".into()),
            ListType::Set => match element {
                Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
                Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
                Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
                Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(element::item(element)),
            },
            ListType::Map(keys) => self.keyed_step(keys, element),
        }
    }

    fn keyed_step(self, keys: &'a [String], element: &Value) -> Result<String, String> {
        let fields = match element {
            Value::Object(fields) => fields,
            Value::Null => return Err("associative list with keys may not have a null element".into()),
            _ => return Err("associative list with keys may not have non-map elements".into()),
        };
        if let [name] = keys
            && let Some(value) = fields.get(name)
        {
            return Ok(element::key([(name.as_str(), value)].into_iter()));
        }
        self.compound_step(keys, fields)
    }

    /// The step by several keys. A key that is absent and has no default is left out: that tells the element apart, too.
    fn compound_step(self, keys: &'a [String], fields: &Map<String, Value>) -> Result<String, String> {
        let items = self.items();
        let mut found: BTreeMap<&str, &Value> = BTreeMap::new();
        for name in keys {
            if let Some(value) = fields.get(name) {
                found.insert(name, value);
            } else if items.schema.is_some() && items.object().is_none() {
                return Err(format!(
                    "couldn't find default value for {name}: associative list may not have non-map types"
                ));
            } else if let Some(value) = items.default_of(name) {
                found.insert(name, value);
            }
        }
        if found.is_empty() {
            let quoted: Vec<String> = keys.iter().map(|key| quote(key)).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values \
                 for any key fields)",
                quoted.join(" ")
            ));
        }
        Ok(element::key(found.into_iter()))
    }

    /// Whether an object here must have this field.
    pub(super) fn requires(self, name: &str) -> bool {
        self.object().is_some_and(|shape| shape.required.iter().any(|field| field == name))
    }

    /// Whether a new object here has this field from the start, because it holds a struct.
    pub(super) fn holds_struct(self, name: &str) -> bool {
        self.object().is_some_and(|shape| shape.structs.iter().any(|field| field == name))
    }

    fn default_of(self, name: &str) -> Option<&'a Value> {
        self.object()?.properties.get(name)?.default.as_ref()
    }
}

/// What every object has, whatever its schema says. A built-in's schema says it itself.
static RESOURCE: LazyLock<BTreeMap<&'static str, Schema>> = LazyLock::new(|| {
    let text = || shaped(Shape::String);
    let map_of_strings = || {
        let additional = Some(Arc::new(text()));
        shaped(Shape::Object(ObjectShape { additional, ..ObjectShape::default() }))
    };
    let owner = shaped(Shape::Object(ObjectShape { atomic: true, ..ObjectShape::default() }));
    let list = |items: Schema, list: ListType| shaped(Shape::Array(ArrayShape { items: Arc::new(items), list }));
    let mut properties: BTreeMap<String, Arc<Schema>> =
        ["name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"]
            .map(|name| (name.to_owned(), Arc::new(text())))
            .into();
    for (name, schema) in [
        ("generation", shaped(Shape::Integer)),
        ("deletionGracePeriodSeconds", shaped(Shape::Integer)),
        // Times are text, or null.
        ("creationTimestamp", text()),
        ("deletionTimestamp", text()),
        ("labels", map_of_strings()),
        ("annotations", map_of_strings()),
        ("finalizers", list(text(), ListType::Set)),
        ("ownerReferences", list(owner, ListType::Map(vec!["uid".to_owned()]))),
        ("managedFields", list(Schema::default(), ListType::Atomic)),
    ] {
        properties.insert(name.to_owned(), Arc::new(schema));
    }
    let metadata = shaped(Shape::Object(ObjectShape { properties, ..ObjectShape::default() }));
    BTreeMap::from([("apiVersion", text()), ("kind", text()), ("metadata", metadata)])
});

fn shaped(shape: Shape) -> Schema {
    Schema { shape, ..Schema::default() }
}
