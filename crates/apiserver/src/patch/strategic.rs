//! Strategic merge patch: a merge patch that knows from the schema which lists are merged, and by which key.
//!
//! A patch may also carry directives: `$patch` replaces or deletes, `$retainKeys` names the fields that survive,
//! `$deleteFromPrimitiveList/x` takes scalars out of the list `x`, `$setElementOrder/x` says how it is sorted.
//! kubectl computes such patches in the client, so what they mean, to the last quirk, is what the library of a real server
//! makes of them.

use http::StatusCode;
use serde_json::{Map, Value};

use crate::field::FieldError;
use crate::json_syntax::type_name;
use crate::schema::{PatchStrategy, Schema, Shape};
use crate::status::ApiError;

mod list;
pub(crate) mod words;

use words::{go_type, go_value};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

/// Reads a patch: an object, or null for one that changes nothing.
pub fn read(patch: &[u8]) -> Result<Value, ApiError> {
    match super::parse(patch).map_err(ApiError::bad_request)? {
        patch @ Value::Object(_) => Ok(patch),
        Value::Null => Ok(Value::Object(Map::new())),
        other => {
            let found = type_name(&other);
            let why = format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
            Err(ApiError::bad_request(why))
        }
    }
}

/// Applies a patch to an object of a built-in kind.
pub fn apply(doc: &mut Value, patch: &Value, schema: &Schema) -> Result<(), ApiError> {
    match (doc, patch) {
        (Value::Object(doc), Value::Object(patch)) => Ok(merge_object(doc, patch, schema)?),
        (doc, patch) => Err(ApiError::internal(&format!("cannot merge {} into {}", go_type(patch), go_type(doc)))),
    }
}

/// 422: the patch was applied, and the result is not an object of its kind any more. The patch is shown as Go prints it.
pub fn undecodable(patch: &Value, why: &str) -> ApiError {
    ApiError::invalid("", "", "", &[FieldError::invalid("patch", go_value(patch), why)])
}

/// Why a patch does not apply.
#[derive(Debug)]
enum Fault {
    /// A directive is malformed.
    Format(&'static str),
    /// A list has lists in it.
    ListOfLists,
    /// Everything that a real server did not foresee: it answers 500, with the words of its library.
    Unforeseen(String),
}

const BAD_DELETION: Fault = Fault::Format("invalid patch format of primitive list");
const BAD_RETAIN_KEYS: Fault = Fault::Format("invalid patch format of retainKeys");
const BAD_ELEMENT_ORDER: Fault = Fault::Format("invalid patch format of setElementOrder list");

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Format(why) => Self::bad_request(why),
            Fault::ListOfLists => {
                let message = "the server rejected our request due to an error in our request";
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with_empty_details()
            }
            Fault::Unforeseen(why) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", why),
        }
    }
}

impl Fault {
    fn bad_type(wanted: &str, found: &Value) -> Self {
        Self::Unforeseen(format!("expected a {wanted}, but received a {}", go_type(found)))
    }

    fn bad_directive(directive: &Value, patch: &Map<String, Value>) -> Self {
        let (directive, patch) = (go_value(directive), words::go_map(patch));
        Self::Unforeseen(format!("unknown patch type: {directive} in map: {patch}"))
    }

    fn no_merge_key(element: &Map<String, Value>, key: &str) -> Self {
        let element = words::go_map(element);
        Self::Unforeseen(format!("map: {element} does not contain declared merge key: {key}"))
    }
}

fn merge_object(doc: &mut Map<String, Value>, patch: &Map<String, Value>, schema: &Schema) -> Result<(), Fault> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        match directive.as_str() {
            Some("replace") => {
                doc.clone_from(patch);
                doc.remove(DIRECTIVE);
            }
            Some("delete") => doc.clear(),
            _ => return Err(Fault::bad_directive(directive, patch)),
        }
        return Ok(());
    }
    retain_keys(doc, patch)?;
    let ordered = list::merge_ordered(doc, patch, schema)?;
    for (name, change) in patch {
        let directive = name == RETAIN_KEYS || name.starts_with(ELEMENT_ORDER);
        if !directive && !ordered.contains(&name.as_str()) {
            merge_field(doc, name, change, schema)?;
        }
    }
    Ok(())
}

/// Keeps only the fields that the patch names.
fn retain_keys(doc: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), Fault> {
    let Some(keys) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(keys) = keys else { return Err(BAD_RETAIN_KEYS) };
    let retained = |name: &str| keys.iter().any(|key| key.as_str() == Some(name));
    let exempt = |name: &str| name == RETAIN_KEYS || name.starts_with(DELETE_FROM) || name.starts_with(ELEMENT_ORDER);
    if patch.iter().any(|(name, change)| !change.is_null() && !exempt(name) && !retained(name)) {
        return Err(BAD_RETAIN_KEYS);
    }
    doc.retain(|name, _| retained(name));
    Ok(())
}

fn merge_field(doc: &mut Map<String, Value>, name: &str, change: &Value, schema: &Schema) -> Result<(), Fault> {
    let deletion = name.starts_with(DELETE_FROM);
    let name = if deletion { directed(name, DELETE_FROM).ok_or(BAD_DELETION)? } else { name };
    if change.is_null() {
        doc.remove(name);
        return Ok(());
    }
    match (doc.get_mut(name), change) {
        (Some(Value::Object(fields)), Value::Object(changes)) => {
            let field = field_of(schema, name)?;
            if field.patch.replace {
                fields.clone_from(changes);
                return Ok(());
            }
            merge_object(fields, changes, field)
        }
        (Some(Value::Array(items)), Value::Array(changes)) => {
            let field = field_of(schema, name)?;
            if field.patch.merge || deletion {
                let strategy = &field.patch;
                *items = list::merge(std::mem::take(items), changes, items_of(field), strategy, deletion)?.elements;
            } else {
                items.clone_from(changes);
            }
            Ok(())
        }
        // Nothing to take scalars from.
        _ if deletion => Ok(()),
        _ => {
            match cleaned(change, Nulls::Dropped) {
                Some(value) => doc.insert(name.to_owned(), value),
                None => doc.remove(name),
            };
            Ok(())
        }
    }
}

/// `x` in `$directive/x`.
fn directed<'a>(name: &'a str, directive: &str) -> Option<&'a str> {
    name.split_once('/').filter(|(prefix, _)| *prefix == directive).map(|(_, field)| field)
}

/// Whether a value that is taken over keeps the nulls in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Kept,
    Dropped,
}

/// A value that is new: without what carries a `$patch`.
fn cleaned(value: &Value, nulls: Nulls) -> Option<Value> {
    Some(match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => return None,
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, v)| nulls == Nulls::Kept || !v.is_null());
            Value::Object(kept.filter_map(|(name, v)| Some((name.clone(), cleaned(v, nulls)?))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().filter_map(|v| cleaned(v, nulls)).collect()),
        scalar => scalar.clone(),
    })
}

/// The schema of a field that is merged. What a kind does not have cannot be merged.
fn field_of<'a>(schema: &'a Schema, name: &str) -> Result<&'a Schema, Fault> {
    match &schema.shape {
        Shape::Object(shape) => {
            if let Some(field) = shape.properties.get(name).or(shape.additional.as_ref()) {
                return Ok(field);
            }
            let definition = schema.definition.as_deref().unwrap_or_default();
            let kind = definition.rsplit('.').next().unwrap_or_default();
            Err(Fault::Unforeseen(format!("unable to find api field in struct {kind} for the json field {name:?}")))
        }
        Shape::Any => Ok(&UNKNOWN),
        _ => {
            Err(Fault::Unforeseen("merging an object in json but data type is not struct, instead is: map".to_owned()))
        }
    }
}

fn items_of(schema: &Schema) -> &Schema {
    match &schema.shape {
        Shape::Array(shape) => &shape.items,
        _ => &UNKNOWN,
    }
}

/// Nothing is known: objects are merged, lists are replaced.
static UNKNOWN: Schema = Schema {
    shape: Shape::Any,
    nullable: false,
    default: None,
    preserve_unknown_fields: false,
    embedded_resource: false,
    patch: PatchStrategy { merge: false, retain_keys: false, replace: false, merge_key: None },
    rules: None,
    definition: None,
};

#[cfg(test)]
mod tests;
