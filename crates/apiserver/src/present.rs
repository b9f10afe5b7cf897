//! How objects are shown: whole, as metadata only, or as rows of a table.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::age;
use crate::kind::{Custom, Kind, Origin};
use crate::negotiate::{MetaVersion, Want};
use crate::query::{IncludeObject, Query};
use crate::schema;
use crate::server::ApiServer;
use crate::status::ApiError;
use crate::store::Entry;
use crate::verb::call::Shown;

impl ApiServer {
    /// An object as a tree, in the version of a kind. Objects that were stored under another schema are brought into shape.
    pub(crate) fn load(kind: &Kind, entry: &Entry) -> Value {
        let mut object = entry.to_value(&kind.api_version, &kind.kind);
        if kind.reshapes() {
            crate::conversion::show(&mut object, &kind.version);
            schema::prune::prune(&mut object, &kind.schema, None);
            schema::default::fill(&mut object, &kind.schema);
        }
        if kind.group == crate::builtin::events::GROUP {
            object = crate::builtin::events::from_core(object);
        }
        object
    }

    /// The same to look at, which need not be a copy.
    pub(crate) fn view(kind: &Kind, entry: &Entry) -> Arc<Value> {
        if Self::needs_tree(kind) {
            Arc::new(Self::load(kind, entry))
        } else {
            entry.tree(&kind.api_version, &kind.kind)
        }
    }

    /// Appends an object as JSON in the version of a kind.
    pub(crate) fn write_object(kind: &Kind, entry: &Entry, out: &mut Vec<u8>) {
        if Self::needs_tree(kind) {
            let object = Self::load(kind, entry);
            out.extend(serde_json::to_vec(&object).unwrap_or_default());
        } else {
            entry.write_json(&kind.head, out);
        }
    }

    /// An object in the form in which its kind is stored.
    pub(crate) fn to_stored(kind: &Kind, object: Value) -> Value {
        if kind.group == crate::builtin::events::GROUP { crate::builtin::events::to_core(object) } else { object }
    }

    /// Whether the stored bytes are not what this version shows.
    pub(crate) fn needs_tree(kind: &Kind) -> bool {
        kind.reshapes() || kind.group == crate::builtin::events::GROUP
    }

    /// One object as the client wants it.
    pub(crate) fn present(&self, kind: &Kind, want: Want, shown: &Shown, query: &str) -> Result<Vec<u8>, ApiError> {
        let tree = || match shown {
            Shown::Stored(entry) => Self::load(kind, entry),
            Shown::Imagined(value) => value.clone(),
        };
        let document = match want {
            Want::Plain | Want::AggregatedDiscovery => {
                let mut out = Vec::new();
                match shown {
                    Shown::Stored(entry) => Self::write_object(kind, entry, &mut out),
                    Shown::Imagined(value) => out = serde_json::to_vec(value).unwrap_or_default(),
                }
                return Ok(out);
            }
            Want::PartialObject(version) => partial(&mut tree(), version),
            Want::PartialObjectList(_) => return Err(misfitting(kind, "PartialObjectMetadataList", "not a list", "")),
            Want::Table(version) => {
                let object = tree();
                let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                let include = IncludeObject::parse(&Query::parse(query))?;
                self.table(kind, version, &metadata, std::slice::from_ref(&object), include, Headings::Shown)
            }
        };
        Ok(serde_json::to_vec(&document).unwrap_or_default())
    }

    /// Objects as a table.
    pub(crate) fn table(
        &self,
        kind: &Kind,
        version: MetaVersion,
        metadata: &Value,
        objects: &[Value],
        include: IncludeObject,
        headings: Headings,
    ) -> Value {
        let now = self.now();
        let rows: Vec<Value> = objects
            .iter()
            .map(|object| {
                let mut row = Map::new();
                row.insert("cells".into(), cells(kind, object, now).into());
                match include {
                    IncludeObject::None => {
                        row.insert("object".into(), Value::Null);
                    }
                    IncludeObject::Metadata => {
                        row.insert("object".into(), partial(&mut object.clone(), version));
                    }
                    IncludeObject::Object => {
                        row.insert("object".into(), object.clone());
                    }
                }
                Value::Object(row)
            })
            .collect();
        let columns = match headings {
            Headings::Shown => columns(kind),
            Headings::Left => Value::Null,
        };
        json!({
            "kind": "Table", "apiVersion": version.api_version(), "metadata": metadata,
            "columnDefinitions": columns, "rows": rows,
        })
    }
}

/// Whether a table says what its columns are: only the first one of a watch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Headings {
    /// It does.
    Shown,
    /// They were said before.
    Left,
}

/// The metadata of many objects, as stored: what [`partial`] makes of each of them, without reading it.
pub(crate) fn partial_list(version: MetaVersion, metadata: &Value, entries: &[Arc<Entry>]) -> Vec<u8> {
    let head = format!(r#"{{"apiVersion":"{}","#, version.api_version());
    let mut out = head.clone();
    out.push_str(r#""items":["#);
    for (i, entry) in entries.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&head);
        out.push_str(r#""kind":"PartialObjectMetadata","metadata":"#);
        out.push_str(entry.metadata_json());
        out.push('}');
    }
    out.push_str(r#"],"kind":"PartialObjectMetadataList","metadata":"#);
    out.push_str(&metadata.to_string());
    out.push('}');
    out.into_bytes()
}

/// The metadata of an object, as an object of its own.
pub(crate) fn partial(object: &mut Value, version: MetaVersion) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": version.api_version(), "metadata": object["metadata"].take(),
    })
}

fn columns(kind: &Kind) -> Value {
    let column = |name: &str, type_: &str, format: &str, description: &str, priority: i64| json!({"name": name, "type": type_, "format": format, "description": description, "priority": priority});
    match &kind.origin {
        Origin::Builtin(builtin) => {
            builtin.columns.iter().map(|c| column(c.name, c.type_, c.format, "", c.priority.into())).collect()
        }
        Origin::Custom(custom) => {
            let mut all = vec![column("Name", "string", "name", "The name, unique within its namespace.", 0)];
            all.extend(
                custom.columns.iter().map(|c| column(&c.name, &c.type_, &c.format, &c.description, c.priority.into())),
            );
            Value::Array(all)
        }
    }
}

fn cells(kind: &Kind, object: &Value, now: Timestamp) -> Vec<Value> {
    match &kind.origin {
        Origin::Builtin(builtin) => (builtin.row)(object, now),
        Origin::Custom(custom) => custom_cells(custom, object, now),
    }
}

fn custom_cells(custom: &Custom, object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![object["metadata"]["name"].clone()];
    let date = |value: &Value| Value::from(age::since(value.as_str(), now));
    for column in &custom.columns {
        let found = column.json_path.as_ref().map(|path| path.find(object)).unwrap_or_default();
        cells.push(match (found.as_slice(), column.type_.as_str()) {
            ([], _) => Value::Null,
            ([value, ..], "date") => date(value),
            ([value, ..], "integer") => value.as_i64().map_or(Value::Null, Value::from),
            ([value, ..], "number") => value.as_f64().map_or(Value::Null, Value::from),
            ([value, ..], "boolean") => value.as_bool().map_or(Value::Null, Value::from),
            ([value, ..], _) => text_cell(value),
        });
    }
    cells
}

/// 406: one object is no list, and a list is not one object.
pub(crate) fn misfitting(kind: &Kind, wanted: &str, is: &str, suffix: &str) -> ApiError {
    let package = if kind.group.is_empty() { "core" } else { kind.group.split('.').next().unwrap_or_default() };
    let type_ = match kind.origin {
        Origin::Builtin(_) => format!("*{package}.{}{suffix}", kind.kind),
        Origin::Custom(_) => format!("*unstructured.Unstructured{suffix}"),
    };
    let message = format!("you requested {wanted}, but the requested object is {is} ({type_})");
    ApiError::new(http::StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
}

/// A string as it is, everything else as JSON.
fn text_cell(value: &Value) -> Value {
    match value {
        Value::String(text) => text.as_str().into(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use crate::store::{Expect, Key, Retention, Store};

    use super::*;

    #[test]
    fn the_metadata_of_a_list_is_that_of_its_objects() {
        let store = Store::new(Retention::default());
        for name in ["a\"b", "c"] {
            let object = json!({"data": {"metadata": "x"}, "metadata": {"name": name, "labels": {"é": ""}}});
            store.put(&"things".into(), &Key::new("n", name), Expect::Absent, object, Timestamp::UNIX_EPOCH).unwrap();
        }
        let all = crate::store::Range { namespace: None, after: None, limit: 0 };
        let (entries, metadata) = (store.list("things", all, |_| true).entries, json!({"resourceVersion": "2"}));
        let items: Vec<Value> =
            entries.iter().map(|entry| partial(&mut entry.to_value("", ""), MetaVersion::V1)).collect();
        let expected = json!({
            "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items,
        });
        let written = partial_list(MetaVersion::V1, &metadata, &entries);
        assert_eq!(String::from_utf8(written).unwrap(), expected.to_string());
    }
}
