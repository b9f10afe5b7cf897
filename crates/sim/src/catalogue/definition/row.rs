//! A row of the table, and the definition that it stands for.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceScale,
    CustomResourceSubresourceStatus, CustomResourceSubresources, CustomResourceValidation, JSON, JSONSchemaProps,
    JSONSchemaPropsOrArray,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::ApiResource;
use windlass_api::label;
use windlass_apiserver::kind::ANY_NAME;

/// A column of `kubectl get`.
#[derive(Clone, Copy)]
pub(super) struct Column {
    name: &'static str,
    type_: &'static str,
    shows: Shows,
    /// Shown always, or by `-o wide` only.
    priority: i32,
}

/// What a column shows.
#[derive(Clone, Copy)]
enum Shows {
    /// What is at a path.
    Path(&'static str),
    /// The status of the condition of a type.
    Condition(&'static str),
}

pub(super) const fn text(name: &'static str, path: &'static str) -> Column {
    Column { name, type_: "string", shows: Shows::Path(path), priority: 0 }
}

pub(super) const fn integer(name: &'static str, path: &'static str) -> Column {
    Column { type_: "integer", ..text(name, path) }
}

pub(super) const fn boolean(name: &'static str, path: &'static str) -> Column {
    Column { type_: "boolean", ..text(name, path) }
}

pub(super) const fn date(name: &'static str, path: &'static str) -> Column {
    Column { type_: "date", ..text(name, path) }
}

pub(super) const fn condition(name: &'static str, type_: &'static str) -> Column {
    Column { shows: Shows::Condition(type_), ..text(name, "") }
}

impl Column {
    /// The priority that the originals use.
    pub(super) const fn wide(self) -> Self {
        Self { priority: 10, ..self }
    }

    fn definition(self) -> CustomResourceColumnDefinition {
        let json_path = match self.shows {
            Shows::Path(path) => path.to_owned(),
            Shows::Condition(type_) => format!(r#".status.conditions[?(@.type=="{type_}")].status"#),
        };
        CustomResourceColumnDefinition {
            name: self.name.to_owned(),
            type_: self.type_.to_owned(),
            json_path,
            priority: (self.priority > 0).then_some(self.priority),
            ..CustomResourceColumnDefinition::default()
        }
    }
}

/// A field of `spec` that others rely on.
pub(super) type Field = fn() -> (&'static str, JSONSchemaProps);

pub(super) const CLUSTER_NAME: Field = || {
    let name = JSONSchemaProps { type_: Some("string".to_owned()), min_length: Some(1), ..JSONSchemaProps::default() };
    ("clusterName", name)
};

const REPLICAS: Field = || {
    let replicas = JSONSchemaProps {
        type_: Some("integer".to_owned()),
        format: Some("int32".to_owned()),
        minimum: Some(0.0),
        default: Some(JSON(1.into())),
        ..JSONSchemaProps::default()
    };
    ("replicas", replicas)
};

/// A row of the table.
pub(super) struct Foreign {
    resource: ApiResource,
    about: &'static str,
    scope: &'static str,
    short_names: &'static [&'static str],
    category: Option<&'static str>,
    provider: Option<&'static str>,
    columns: Vec<Column>,
    fields: Vec<Field>,
    status: bool,
    scale: bool,
    any_name: bool,
}

/// A kind of a namespace, with a status.
pub(super) fn foreign_kind<K: Resource<DynamicType = ()>>(about: &'static str) -> Foreign {
    foreign_resource(ApiResource::erase::<K>(&()), about)
}

/// The same, of a kind that is not known here.
pub(super) fn foreign_resource(resource: ApiResource, about: &'static str) -> Foreign {
    Foreign {
        resource,
        about,
        scope: "Namespaced",
        short_names: &[],
        category: None,
        provider: None,
        columns: Vec::new(),
        fields: Vec::new(),
        status: true,
        scale: false,
        any_name: false,
    }
}

impl Foreign {
    pub(super) fn cluster_scoped(self) -> Self {
        Self { scope: "Cluster", ..self }
    }

    pub(super) fn short(self, short_names: &'static [&'static str]) -> Self {
        Self { short_names, ..self }
    }

    pub(super) fn of(self, category: &'static str) -> Self {
        Self { category: Some(category), ..self }
    }

    /// The provider of Cluster API that it comes with. Its version keeps the v1beta2 contract.
    pub(super) fn provided_by(self, provider: &'static str) -> Self {
        Self { provider: Some(provider), ..self }
    }

    pub(super) fn columns(self, columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), ..self }
    }

    pub(super) fn with(mut self, field: Field) -> Self {
        self.fields.push(field);
        self
    }

    pub(super) fn without_status(self) -> Self {
        Self { status: false, ..self }
    }

    pub(super) fn scaled(self) -> Self {
        Self { scale: true, ..self }.with(REPLICAS)
    }

    pub(super) fn with_any_name(self) -> Self {
        Self { any_name: true, ..self }
    }

    pub(super) fn definition(&self) -> CustomResourceDefinition {
        let ApiResource { group, version, kind, plural, .. } = &self.resource;
        CustomResourceDefinition {
            metadata: ObjectMeta {
                name: Some(format!("{plural}.{group}")),
                labels: self.labels(),
                annotations: self.annotations(),
                ..ObjectMeta::default()
            },
            spec: CustomResourceDefinitionSpec {
                group: group.clone(),
                scope: self.scope.to_owned(),
                names: CustomResourceDefinitionNames {
                    kind: kind.clone(),
                    list_kind: Some(format!("{kind}List")),
                    plural: plural.clone(),
                    singular: Some(kind.to_ascii_lowercase()),
                    short_names: owned(self.short_names),
                    categories: owned(self.category.as_slice()),
                },
                versions: vec![CustomResourceDefinitionVersion {
                    name: version.clone(),
                    served: true,
                    storage: true,
                    subresources: self.subresources(),
                    additional_printer_columns: Some(self.columns.iter().map(|column| column.definition()).collect()),
                    schema: Some(CustomResourceValidation { open_api_v3_schema: Some(self.shape()) }),
                    ..CustomResourceDefinitionVersion::default()
                }],
                ..CustomResourceDefinitionSpec::default()
            },
            status: None,
        }
    }

    fn labels(&self) -> Option<BTreeMap<String, String>> {
        let provider = self.provider?.to_owned();
        Some(BTreeMap::from([label::PROVIDER.entry(&provider), label::CONTRACT_V1BETA2.entry(&self.resource.version)]))
    }

    fn annotations(&self) -> Option<BTreeMap<String, String>> {
        let [key, value] = ANY_NAME.map(str::to_owned);
        self.any_name.then(|| BTreeMap::from([(key, value)]))
    }

    fn subresources(&self) -> Option<CustomResourceSubresources> {
        let scale = || CustomResourceSubresourceScale {
            spec_replicas_path: ".spec.replicas".to_owned(),
            status_replicas_path: ".status.replicas".to_owned(),
            label_selector_path: Some(".status.selector".to_owned()),
        };
        self.status.then(|| CustomResourceSubresources {
            status: Some(CustomResourceSubresourceStatus(serde_json::json!({}))),
            scale: self.scale.then(scale),
        })
    }

    fn shape(&self) -> JSONSchemaProps {
        let named = |(name, schema): (&str, JSONSchemaProps)| (name.to_owned(), schema);
        let spec = open(self.fields.iter().map(|field| named(field())).collect());
        let status = || open(BTreeMap::from([("conditions".to_owned(), conditions())]));
        let parts = [("spec", Some(spec)), ("status", self.status.then(status))];
        let parts = parts.into_iter().filter_map(|(name, schema)| Some((name.to_owned(), schema?)));
        JSONSchemaProps {
            description: Some(self.about.to_owned()),
            type_: Some("object".to_owned()),
            properties: Some(parts.collect()),
            ..JSONSchemaProps::default()
        }
    }
}

fn owned(texts: &[&str]) -> Option<Vec<String>> {
    (!texts.is_empty()).then(|| texts.iter().map(|&text| text.to_owned()).collect())
}

/// An object that may have any other field, too.
fn open(properties: BTreeMap<String, JSONSchemaProps>) -> JSONSchemaProps {
    JSONSchemaProps {
        type_: Some("object".to_owned()),
        properties: (!properties.is_empty()).then_some(properties),
        x_kubernetes_preserve_unknown_fields: Some(true),
        ..JSONSchemaProps::default()
    }
}

/// Conditions are told apart by their type, so that each can have another owner.
fn conditions() -> JSONSchemaProps {
    let type_ = JSONSchemaProps { type_: Some("string".to_owned()), ..JSONSchemaProps::default() };
    let condition = JSONSchemaProps {
        required: Some(vec!["type".to_owned()]),
        ..open(BTreeMap::from([("type".to_owned(), type_)]))
    };
    JSONSchemaProps {
        type_: Some("array".to_owned()),
        items: Some(JSONSchemaPropsOrArray::Schema(Box::new(condition))),
        x_kubernetes_list_type: Some("map".to_owned()),
        x_kubernetes_list_map_keys: Some(vec!["type".to_owned()]),
        ..JSONSchemaProps::default()
    }
}
