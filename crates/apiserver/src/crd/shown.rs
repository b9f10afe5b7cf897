//! Versions and schemas as a real server prints them in refusals: its own structs, field by field, what is absent included.

use serde_json::Value;

use crate::value::Fields;

/// How a field is printed.
#[derive(Clone, Copy)]
enum As {
    /// Empty when absent.
    Text,
    /// False when absent.
    Flag,
    /// As it is; null when absent.
    Json,
    Schema,
    Schemas,
    SchemaMap,
    Items,
    SchemaOrBool,
    Dependencies,
    Docs,
    Expressions,
}

/// The fields of a schema in Go's order, with their names there.
const SCHEMA: [(&str, &str, As); 43] = [
    ("ID", "id", As::Text),
    ("Schema", "$schema", As::Text),
    ("Ref", "$ref", As::Json),
    ("Description", "description", As::Text),
    ("Type", "type", As::Text),
    ("Nullable", "nullable", As::Flag),
    ("Format", "format", As::Text),
    ("Title", "title", As::Text),
    ("Default", "default", As::Json),
    ("Maximum", "maximum", As::Json),
    ("ExclusiveMaximum", "exclusiveMaximum", As::Flag),
    ("Minimum", "minimum", As::Json),
    ("ExclusiveMinimum", "exclusiveMinimum", As::Flag),
    ("MaxLength", "maxLength", As::Json),
    ("MinLength", "minLength", As::Json),
    ("Pattern", "pattern", As::Text),
    ("MaxItems", "maxItems", As::Json),
    ("MinItems", "minItems", As::Json),
    ("UniqueItems", "uniqueItems", As::Flag),
    ("MultipleOf", "multipleOf", As::Json),
    ("Enum", "enum", As::Json),
    ("MaxProperties", "maxProperties", As::Json),
    ("MinProperties", "minProperties", As::Json),
    ("Required", "required", As::Json),
    ("Items", "items", As::Items),
    ("AllOf", "allOf", As::Schemas),
    ("OneOf", "oneOf", As::Schemas),
    ("AnyOf", "anyOf", As::Schemas),
    ("Not", "not", As::Schema),
    ("Properties", "properties", As::SchemaMap),
    ("AdditionalProperties", "additionalProperties", As::SchemaOrBool),
    ("PatternProperties", "patternProperties", As::SchemaMap),
    ("Dependencies", "dependencies", As::Dependencies),
    ("AdditionalItems", "additionalItems", As::SchemaOrBool),
    ("Definitions", "definitions", As::SchemaMap),
    ("ExternalDocs", "externalDocs", As::Docs),
    ("Example", "example", As::Json),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", As::Json),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", As::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", As::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", As::Json),
    ("XListType", "x-kubernetes-list-type", As::Json),
    ("XMapType", "x-kubernetes-map-type", As::Json),
];

/// The versions; what `shared` names stands once for all, and so not in any of them.
pub(super) fn versions(versions: &[Value], shared: &[&str]) -> String {
    let one = |version: &Value| {
        let part = |name: &str, print: fn(&Value) -> String| match version.at(name) {
            Value::Null => "null".to_owned(),
            _ if shared.contains(&name) => "null".to_owned(),
            value => print(value),
        };
        let validation =
            |value: &Value| struct_of(&[("OpenAPIV3Schema", or_null(value.at("openAPIV3Schema"), schema))]);
        struct_of(&[
            ("Name", json(&version.text("name").into())),
            ("Served", version.flag("served").to_string()),
            ("Storage", version.flag("storage").to_string()),
            ("Deprecated", version.flag("deprecated").to_string()),
            ("DeprecationWarning", json(version.at("deprecationWarning"))),
            ("Schema", part("schema", validation)),
            ("Subresources", part("subresources", subresources)),
            ("AdditionalPrinterColumns", part("additionalPrinterColumns", |value| list(value, column))),
            (
                "SelectableFields",
                part("selectableFields", |value| {
                    list(value, |field| struct_of(&[("JSONPath", json(&field.text("jsonPath").into()))]))
                }),
            ),
        ])
    };
    list_of(versions.iter().map(one))
}

/// A schema.
pub(super) fn schema(schema: &Value) -> String {
    let mut fields: Vec<(&str, String)> =
        SCHEMA.iter().map(|(name, keyword, print)| (*name, field(schema.at(keyword), *print))).collect();
    fields.push(("XValidations", field(schema.at("x-kubernetes-validations"), As::Expressions)));
    struct_of(&fields)
}

fn field(value: &Value, print: As) -> String {
    match (print, value) {
        (As::Text, value) => json(&value.as_str().unwrap_or_default().into()),
        (As::Flag, value) => value.as_bool().unwrap_or_default().to_string(),
        (_, Value::Null) => "null".to_owned(),
        (As::Json, value) => json(value),
        (As::Schema, value) => schema(value),
        (As::Schemas, value) => list(value, schema),
        (As::SchemaMap, value) => map(value, schema),
        (As::Items, Value::Array(_)) => struct_of(&[("Schema", "null".into()), ("JSONSchemas", list(value, schema))]),
        (As::Items, value) => struct_of(&[("Schema", schema(value)), ("JSONSchemas", "null".into())]),
        (As::SchemaOrBool, Value::Bool(allows)) => {
            struct_of(&[("Allows", allows.to_string()), ("Schema", "null".into())])
        }
        (As::SchemaOrBool, value) => struct_of(&[("Allows", "true".into()), ("Schema", schema(value))]),
        (As::Dependencies, value) => map(value, |dependency| match dependency {
            Value::Array(_) => struct_of(&[("Schema", "null".into()), ("Property", json(dependency))]),
            other => struct_of(&[("Schema", schema(other)), ("Property", "null".into())]),
        }),
        (As::Docs, value) => struct_of(&[
            ("Description", json(&value.text("description").into())),
            ("URL", json(&value.text("url").into())),
        ]),
        (As::Expressions, value) => list(value, rule),
    }
}

/// One of `x-kubernetes-validations`.
pub(crate) fn rule(rule: &Value) -> String {
    struct_of(&[
        ("Rule", json(&rule.text("rule").into())),
        ("Message", json(&rule.text("message").into())),
        ("MessageExpression", json(&rule.text("messageExpression").into())),
        ("Reason", json(rule.at("reason"))),
        ("FieldPath", json(&rule.text("fieldPath").into())),
        ("OptionalOldSelf", json(rule.at("optionalOldSelf"))),
    ])
}

fn subresources(value: &Value) -> String {
    let scale = |scale: &Value| {
        struct_of(&[
            ("SpecReplicasPath", json(&scale.text("specReplicasPath").into())),
            ("StatusReplicasPath", json(&scale.text("statusReplicasPath").into())),
            ("LabelSelectorPath", json(scale.at("labelSelectorPath"))),
        ])
    };
    struct_of(&[
        ("Status", or_null(value.at("status"), |_| "{}".to_owned())),
        ("Scale", or_null(value.at("scale"), scale)),
    ])
}

fn column(column: &Value) -> String {
    struct_of(&[
        ("Name", json(&column.text("name").into())),
        ("Type", json(&column.text("type").into())),
        ("Format", json(&column.text("format").into())),
        ("Description", json(&column.text("description").into())),
        ("Priority", column.int("priority").unwrap_or_default().to_string()),
        ("JSONPath", json(&column.text("jsonPath").into())),
    ])
}

fn json(value: &Value) -> String {
    crate::field::go_json(value)
}

fn or_null(value: &Value, print: impl Fn(&Value) -> String) -> String {
    if value.is_null() { "null".to_owned() } else { print(value) }
}

fn struct_of(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

fn list_of(elements: impl Iterator<Item = String>) -> String {
    format!("[{}]", elements.collect::<Vec<_>>().join(","))
}

fn list(value: &Value, print: impl Fn(&Value) -> String) -> String {
    list_of(value.as_array().into_iter().flatten().map(print))
}

fn map(value: &Value, print: impl Fn(&Value) -> String) -> String {
    let entries = value.as_object().into_iter().flatten();
    let entries: Vec<String> =
        entries.map(|(key, value)| format!("{}:{}", json(&key.as_str().into()), print(value))).collect();
    format!("{{{}}}", entries.join(","))
}
