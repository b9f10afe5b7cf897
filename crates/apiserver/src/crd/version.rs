//! The parts of a version beside its schema: its deprecation, subresources, columns and selectable fields.

use serde_json::Value;

use super::{field_path, structural};
use crate::field::{FieldError, Problem};
use crate::path::Path;
use crate::value::Fields;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const SELECTABLE_FIELDS_MAX: usize = 8;

pub(super) fn deprecation(version: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(warning) = version.at("deprecationWarning").as_str() else { return };
    let place = path.field("deprecationWarning");
    if !version.flag("deprecated") {
        errors.push(FieldError::invalid(place, warning, "can only be set for deprecated versions"));
        return;
    }
    if warning.len() > 256 {
        errors.push(FieldError::invalid(place, warning, "must be <= 256 characters long"));
    }
    if warning.is_empty() {
        errors.push(FieldError::invalid(place, warning, "must not be an empty string"));
    }
    let printable = |c: char| c == ' ' || !(c.is_control() || c.is_whitespace());
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| !printable(*c)) {
        let detail =
            format!("must only contain printable UTF-8 characters; non-printable character found at index {at}");
        errors.push(FieldError::invalid(place, warning, detail));
    }
}

pub(super) fn subresources(subresources: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let scale = subresources.at("scale");
    if !scale.is_object() {
        return;
    }
    let place = path.field("scale");
    for (field, prefix) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let given = scale.text(field);
        if given.is_empty() {
            errors.push(FieldError::required(place.field(field), ""));
        } else if simple_path(given, &place.field(field), errors) && !given.starts_with(&format!("{prefix}.")) {
            let detail = format!("should be a json path under {prefix}");
            errors.push(FieldError::invalid(place.field(field), given, detail));
        }
    }
    let (given, place) = (scale.text("labelSelectorPath"), place.field("labelSelectorPath"));
    let inside = given.starts_with(".spec.") || given.starts_with(".status.");
    if !given.is_empty() && simple_path(given, &place, errors) && !inside {
        let detail = "should be a json path under either .spec or .status";
        errors.push(FieldError::invalid(place, given, detail));
    }
}

fn simple_path(path: &str, place: &Path<'_>, errors: &mut Vec<FieldError>) -> bool {
    let simple = path.starts_with('.');
    if !simple {
        errors.push(FieldError::invalid(*place, path, "must be a simple json path starting with ."));
    }
    simple
}

pub(super) fn columns(version: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (index, column) in version.list("additionalPrinterColumns").iter().enumerate() {
        let place = path.index(index);
        if column.text("name").is_empty() {
            errors.push(FieldError::required(place.field("name"), ""));
        }
        let (kind, format) = (column.text("type"), column.text("format"));
        let detail = || format!("must be one of {}", COLUMN_TYPES.join(","));
        if kind.is_empty() {
            errors.push(FieldError::required(place.field("type"), detail()));
        } else if !COLUMN_TYPES.contains(&kind) {
            errors.push(FieldError::invalid(place.field("type"), kind, detail()));
        }
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(FieldError::invalid(place.field("format"), format, detail));
        }
        let path = column.text("jsonPath");
        if path.is_empty() {
            errors.push(FieldError::required(place.field("JSONPath"), ""));
        } else {
            simple_path(path, &place.field("JSONPath"), errors);
        }
    }
}

pub(super) fn selectable_fields(version: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let schema = version.at("schema").at("openAPIV3Schema");
    if version.list("selectableFields").is_empty() {
        return;
    }
    if let Some(why) = structural::unsupported(schema) {
        errors.push(FieldError::invalid(path.field("schema").field("openAPIV3Schema"), "", why));
    }
    let path = &path.field("selectableFields");
    let mut seen: Vec<Vec<String>> = Vec::new();
    for (index, selectable) in version.list("selectableFields").iter().enumerate() {
        let place = path.index(index);
        let place = place.field("jsonPath");
        let given = selectable.text("jsonPath");
        if given.is_empty() {
            errors.push(FieldError::required(place, ""));
            continue;
        }
        let (found, names) = match field_path::find(schema, given, false) {
            Ok(found) => found,
            Err(why) => {
                errors.push(FieldError::invalid(place, given, format!("is an invalid path: {why}")));
                continue;
            }
        };
        if names.first().is_some_and(|first| first == "metadata") {
            errors.push(FieldError::invalid(place, given, "must not point to fields in metadata"));
        }
        if !matches!(found.text("type"), "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. \
                          Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(place, given, detail));
        }
        if seen.contains(&names) {
            errors.push(FieldError::duplicate(place, given));
        } else {
            seen.push(names);
        }
    }
    if seen.len() > SELECTABLE_FIELDS_MAX {
        let detail = format!("must have at most {SELECTABLE_FIELDS_MAX} items");
        errors.push(FieldError::new(Problem::TooMany, *path, seen.len().into(), detail));
    }
}
