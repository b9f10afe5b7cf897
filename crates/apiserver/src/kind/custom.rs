//! The kinds that a CustomResourceDefinition defines.

use std::sync::Arc;

use serde_json::Value;

use super::{Custom, Kind, Origin, Registry, Scale, Selectable, api_version, builtins, head, store_name};
use crate::conversion::Conversion;
use crate::crd::{self, Crd, CrdVersion};

impl Registry {
    /// Serves what a definition defines, in place of what it defined before.
    pub fn define(&mut self, definition: &Value) {
        let crd = crd::parse(definition, builtins::object_meta());
        if !crd.established {
            return;
        }
        // Objects that were written under another schema may not fit this one.
        let reshape = self.stored(&store_name(&crd.plural, &crd.group)).is_some_and(|before| match &before.origin {
            Origin::Builtin(_) => false,
            Origin::Custom(custom) => {
                let stored = crd.versions.iter().find(|version| version.storage);
                custom.reshape || stored.is_none_or(|now| now.name != before.version || now.openapi != custom.published)
            }
        });
        let conversion = Conversion::read(definition);
        self.remove(&crd.group, &crd.plural);
        for version in &crd.versions {
            let kind = kind(&crd, version, reshape, conversion.as_ref());
            if version.served {
                self.add(kind, version.storage);
            } else if version.storage {
                self.add_unserved(kind);
            }
        }
    }
}

fn kind(crd: &Crd, version: &CrdVersion, reshape: bool, conversion: Option<&Arc<Conversion>>) -> Kind {
    let api_version = api_version(&crd.group, &version.name);
    let fields = |path: &str| path.trim_start_matches('.').split('.').map(str::to_owned).collect::<Vec<_>>();
    Kind {
        group: crd.group.clone(),
        version: version.name.clone(),
        kind: crd.kind.clone(),
        list_kind: crd.list_kind.clone(),
        plural: crd.plural.clone(),
        singular: crd.singular.clone(),
        short_names: crd.short_names.clone(),
        categories: crd.categories.clone(),
        namespaced: crd.namespaced,
        resource: store_name(&crd.plural, &crd.group),
        head: head(&api_version, &crd.kind),
        api_version,
        schema: version.schema.clone(),
        status: version.status,
        scale: version.scale.as_ref().map(|scale| Scale {
            spec: fields(&scale.spec_replicas),
            status: fields(&scale.status_replicas),
            selector: scale.label_selector.as_deref().map(fields),
        }),
        selectable_fields: version
            .selectable_fields
            .iter()
            .map(|(name, path)| Selectable { name: name.clone(), path: Some(path.clone()) })
            .collect(),
        origin: Origin::Custom(Custom {
            published: version.openapi.clone(),
            columns: version.columns.clone(),
            names: crd.names,
            storage: version.storage,
            reshape,
            has_others: crd.versions.len() > 1,
            conversion: conversion.cloned(),
            deprecation: version.deprecation_warning.clone(),
        }),
    }
}
