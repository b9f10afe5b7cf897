//! The built-in kinds as a registry: compiled once for all servers of a process.

use std::sync::{Arc, LazyLock};

use super::{Kind, Origin, Registry, Scale, Selectable, api_version, head, store_name};
use crate::builtin::{self, Builtin};
use crate::schema::Schema;
use crate::schema::definitions::Definitions;

/// The facts about built-in kinds. They are part of the program: if they could not be read, a test would say so.
static DEFINITIONS: LazyLock<Option<Definitions>> = LazyLock::new(|| {
    let definitions = Definitions::parse(builtin::OPENAPI.as_bytes()).ok()?;
    definitions.with_pointers(builtin::POINTERS.as_bytes()).ok()
});

static REGISTRY: LazyLock<Arc<Registry>> = LazyLock::new(|| {
    let mut registry = Registry::default();
    for row in builtin::all() {
        let stored_here = row.group != builtin::events::GROUP;
        registry.add(kind(row), stored_here);
    }
    Arc::new(registry)
});

static OBJECT_META: LazyLock<Option<Arc<Schema>>> =
    LazyLock::new(|| definitions()?.schema("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));

/// The facts about built-in kinds, for publishing.
pub fn definitions() -> Option<&'static Definitions> {
    DEFINITIONS.as_ref()
}

/// The built-in kinds.
pub fn registry() -> Arc<Registry> {
    REGISTRY.clone()
}

/// The schema of every object's metadata.
pub fn object_meta() -> Option<&'static Arc<Schema>> {
    OBJECT_META.as_ref()
}

fn kind(row: &'static Builtin) -> Kind {
    let api_version = api_version(row.group, row.version);
    let field = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    // An event is one object in two groups; it is stored in the older form.
    let group = if row.group == builtin::events::GROUP { "" } else { row.group };
    Kind {
        group: row.group.to_owned(),
        version: row.version.to_owned(),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        plural: row.plural.to_owned(),
        singular: row.singular.to_owned(),
        short_names: field(row.short_names),
        categories: field(row.categories),
        namespaced: row.namespaced,
        resource: store_name(row.plural, group),
        head: head(&api_version, row.kind),
        api_version,
        schema: definitions().and_then(|all| all.schema(row.definition)).unwrap_or_default(),
        status: row.status,
        scale: row.scale.then(|| Scale {
            spec: field(&["spec", "replicas"]),
            status: field(&["status", "replicas"]),
            selector: None,
        }),
        selectable_fields: row
            .selectable_fields
            .iter()
            .map(|name| Selectable { name: (*name).to_owned(), path: None })
            .collect(),
        origin: Origin::Builtin(row),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_kind_has_a_schema() {
        for row in builtin::all() {
            let found = definitions().unwrap().schema(row.definition);
            assert!(found.is_some(), "{}", row.definition);
        }
        assert!(object_meta().is_some());
    }
}
