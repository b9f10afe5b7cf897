//! `windlass get`: lists, as the server prints them.

mod clusters;
mod labels;

use clap::ValueEnum as _;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, Request, TypeMeta};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_api::kind::cluster_api::Machine;
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::tanzu::{AddonPhase, AddonStatus, TanzuKubernetesCluster};
use windlass_api::label;
use windlass_plan::render::job::NAMESPACE;

use crate::client::{self, Connection, Management};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output::{self, Document};

use super::release::{ReleaseList, print, summaries};

/// List clusters, their updates, machines, add-ons and Jobs, or the releases there are
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  windlass get clusters -A\n  windlass get machines -l cluster.x-k8s.io/cluster-name=my-tkc -o wide\n  windlass get addons my-tkc"
)]
pub struct Get {
    /// What to list
    what: What,
    /// Only the one of this name; of add-ons, those of this cluster
    name: Option<String>,
    /// Only those with these labels, as kubectl has it: key=value,key
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with = "name")]
    selector: Option<String>,
    /// In all namespaces
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "name"])]
    all_namespaces: bool,
    /// Show more columns, or write the objects themselves
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    connection: Connection,
}

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    #[value(aliases = ["cluster", "tkc", "tanzukubernetesclusters"])]
    Clusters,
    #[value(aliases = ["update", "cu", "clusterupdates"])]
    Updates,
    #[value(alias = "machine")]
    Machines,
    #[value(alias = "release")]
    Releases,
    #[value(alias = "addon")]
    Addons,
    #[value(alias = "job")]
    Jobs,
}

/// How it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Wide,
    Json,
    Yaml,
    Name,
}

/// How it is shown: as a table, or as what it is.
enum Shown {
    Table { wide: bool },
    Document(output::Format),
    Names,
}

impl From<Option<Format>> for Shown {
    fn from(format: Option<Format>) -> Self {
        match format {
            None => Self::Table { wide: false },
            Some(Format::Wide) => Self::Table { wide: true },
            Some(Format::Json) => Self::Document(output::Format::Json),
            Some(Format::Yaml) => Self::Document(output::Format::Yaml),
            Some(Format::Name) => Self::Names,
        }
    }
}

impl Get {
    /// Lists.
    pub async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let resource = match self.what {
            What::Clusters => return self.clusters(&management).await,
            What::Updates => ApiResource::erase::<ClusterUpdate>(&()),
            What::Machines => ApiResource::erase::<Machine>(&()),
            What::Jobs => ApiResource::erase::<Job>(&()),
            What::Releases if self.selector.is_some() => return Err(Error::NoLabels.into()),
            What::Releases => return self.releases(&management).await,
            What::Addons => return self.addons(&management).await,
        };
        match Shown::from(self.output) {
            Shown::Table { wide } => {
                let table = self.table(&management, &resource, &self.chosen()).await?;
                if table.rows.is_empty() {
                    self.nothing(&management, &resource)?;
                } else {
                    output::data(&table.text(wide, self.all_namespaces))?;
                }
            }
            Shown::Names => names(&self.objects(&management, &resource).await?)?,
            Shown::Document(format) => self.documents(format, self.objects(&management, &resource).await?)?,
        }
        Ok(Exit::Done)
    }

    /// The one that was asked for, or the list of all.
    fn documents(&self, format: output::Format, mut objects: Vec<DynamicObject>) -> Result<(), Failure> {
        match self.name {
            Some(_) if objects.len() == 1 => output::document(format, &objects.remove(0))?,
            _ => output::document(format, &json!({"apiVersion": "v1", "kind": "List", "items": objects}))?,
        }
        Ok(())
    }

    /// What is said where there is none: of one that was asked for by name, that is an error.
    fn nothing(&self, management: &Management, resource: &ApiResource) -> Result<(), Failure> {
        if let Some(name) = &self.name {
            return Err(self.none(management, name).into());
        }
        let namespace = format!(" in the namespace {}", self.place(management));
        let place = if self.all_namespaces { "" } else { &namespace };
        output::say(&format!("No {} found{place}.", resource.plural));
        Ok(())
    }

    fn api(&self, management: &Management, resource: &ApiResource) -> Api<DynamicObject> {
        if self.all_namespaces {
            return Api::all_with(management.client.clone(), resource);
        }
        Api::namespaced_with(management.client.clone(), self.place(management), resource)
    }

    /// Where it is looked for: the Jobs of updates are where the controllers are.
    fn place<'a>(&self, management: &'a Management) -> &'a str {
        if self.what == What::Jobs { NAMESPACE } else { management.namespace.as_str() }
    }

    /// That there is none of that name.
    fn none(&self, management: &Management, name: &str) -> Error {
        // Add-ons are asked for by the name of their cluster.
        let what = if self.what == What::Addons { What::Clusters } else { self.what };
        let what = what.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        Error::None { what, name: name.to_owned(), namespace: self.place(management).to_owned() }
    }

    /// What of it is listed. Of all Jobs, only those of updates.
    fn chosen(&self) -> ListParams {
        let of_updates = (self.what == What::Jobs).then_some(label::UPDATE_ID.name);
        let selectors: Vec<&str> = of_updates.into_iter().chain(self.selector.as_deref()).collect();
        if selectors.is_empty() { ListParams::default() } else { ListParams::default().labels(&selectors.join(",")) }
    }

    /// What was asked for. One that was asked for by name has to be there.
    async fn objects(&self, management: &Management, resource: &ApiResource) -> Result<Vec<DynamicObject>, Failure> {
        let objects = self.found(management, resource, &self.chosen()).await?;
        match &self.name {
            Some(name) if objects.is_empty() => Err(self.none(management, name).into()),
            _ => Ok(objects),
        }
    }

    /// What there is of what was asked for.
    async fn found(
        &self,
        management: &Management,
        resource: &ApiResource,
        chosen: &ListParams,
    ) -> Result<Vec<DynamicObject>, client::Error> {
        let api = self.api(management, resource);
        let found = match &self.name {
            Some(name) => api.get_opt(name).await.map(|found| found.into_iter().collect()),
            None => api.list(chosen).await.map(|list| list.items),
        };
        let mut objects: Vec<DynamicObject> =
            found.map_err(client::Error::while_trying(&format!("list the {}", resource.plural)))?;
        for object in &mut objects {
            // Who wrote which field is for the server, as kubectl has it.
            object.metadata.managed_fields = None;
            object.types.get_or_insert_with(|| TypeMeta {
                api_version: resource.api_version.clone(),
                kind: resource.kind.clone(),
            });
        }
        Ok(objects)
    }

    /// The server knows the columns of every kind, and the time that ages are measured in.
    /// Without a row where there is none of the name that was asked for.
    async fn table(
        &self,
        management: &Management,
        resource: &ApiResource,
        chosen: &ListParams,
    ) -> Result<Table, client::Error> {
        let attempt = format!("list the {}", resource.plural);
        let path = self.api(management, resource).resource_url().to_owned();
        let request = match &self.name {
            Some(name) => Request::new(path).get(name, &kube::api::GetParams::default()),
            None => Request::new(path).list(chosen),
        };
        let mut request =
            request.map_err(|source| client::Error::while_trying(&attempt)(kube::Error::BuildRequest(source)))?;
        request.headers_mut().insert(http::header::ACCEPT, http::HeaderValue::from_static(AS_TABLE));
        match management.client.request(request).await {
            Err(kube::Error::Api(status)) if self.name.is_some() && status.code == 404 && status.details.is_some() => {
                Ok(Table::default())
            }
            answer => answer.map_err(client::Error::while_trying(&attempt)),
        }
    }

    /// Why a cluster that was asked for by name has no add-ons: it is of another sort, or not there.
    async fn without_addons(&self, management: &Management, name: &str) -> Failure {
        let Ok(cluster) = name.parse() else { return self.none(management, name).into() };
        let namespace = management.namespace.to_string();
        match management.cluster(&cluster).await {
            Err(client::Error::OfClass { .. }) => Error::Packages { name: name.to_owned(), namespace }.into(),
            Err(client::Error::NoCluster { .. }) | Ok(_) => self.none(management, name).into(),
            Err(other) => other.into(),
        }
    }

    /// The add-ons of clusters, as their status has them.
    async fn addons(&self, management: &Management) -> Result<Exit, Failure> {
        let resource = ApiResource::erase::<TanzuKubernetesCluster>(&());
        let clusters = self.found(management, &resource, &self.chosen()).await?;
        if let Some(name) = self.name.as_ref().filter(|_| clusters.is_empty()) {
            return Err(self.without_addons(management, name).await);
        }
        let mut addons = Vec::new();
        for cluster in clusters {
            let cluster: TanzuKubernetesCluster = cluster.try_parse().map_err(Error::Unreadable)?;
            addons.extend(InCluster::of(&cluster));
        }
        match Shown::from(self.output) {
            Shown::Table { .. } if addons.is_empty() => output::say("No add-ons found."),
            Shown::Table { wide } => output::data(&table(&addons, wide, self.all_namespaces))?,
            Shown::Names => {
                for InCluster { cluster, addon, .. } in &addons {
                    output::data(&format!("addon/{cluster}/{}", addon.name))?;
                }
            }
            Shown::Document(format) => {
                output::document(format, &Document::new("AddonList", AddonList { items: addons }))?;
            }
        }
        Ok(Exit::Done)
    }

    async fn releases(&self, management: &Management) -> Result<Exit, Failure> {
        let mut releases = summaries(management).await?;
        if let Some(name) = &self.name {
            releases.retain(|release| release.version.as_str() == name);
            if releases.is_empty() {
                return Err(Error::NoRelease { name: name.clone() }.into());
            }
        }
        match Shown::from(self.output) {
            Shown::Table { .. } => print(&releases)?,
            Shown::Names => {
                for release in &releases {
                    output::data(&format!("release/{}", release.version))?;
                }
            }
            Shown::Document(format) => {
                output::document(format, &Document::new("ReleaseList", ReleaseList { items: releases }))?;
            }
        }
        Ok(Exit::Done)
    }
}

/// What `get addons -o` writes.
#[derive(Serialize, schemars::JsonSchema)]
pub struct AddonList {
    items: Vec<InCluster>,
}

/// An add-on of a cluster.
#[derive(Serialize, schemars::JsonSchema)]
struct InCluster {
    namespace: String,
    cluster: String,
    #[serde(flatten)]
    addon: AddonStatus,
}

impl InCluster {
    fn of(cluster: &TanzuKubernetesCluster) -> Vec<Self> {
        let addons = cluster.status.as_ref().map(|status| status.addons.clone()).unwrap_or_default();
        let of_cluster = |addon| Self {
            namespace: cluster.metadata.namespace.clone().unwrap_or_default(),
            cluster: cluster.metadata.name.clone().unwrap_or_default(),
            addon,
        };
        addons.into_values().map(of_cluster).collect()
    }
}

fn word(status: AddonPhase) -> &'static str {
    match status {
        AddonPhase::Pending => "pending",
        AddonPhase::Applied => "applied",
        AddonPhase::Error => "error",
        AddonPhase::Unmanaged => "unmanaged",
    }
}

/// As a table. What went wrong last is for those who want to see more.
fn table(addons: &[InCluster], wide: bool, namespaces: bool) -> String {
    let mut header = vec!["CLUSTER", "ADD-ON", "VERSION", "STATUS"];
    if namespaces {
        header.insert(0, "NAMESPACE");
    }
    if wide {
        header.push("LAST ERROR");
    }
    let rows = addons.iter().map(|InCluster { namespace, cluster, addon }| {
        let version = output::cell(addon.version.as_deref());
        let mut row = vec![cluster.clone(), addon.name.clone(), version, word(addon.status).to_owned()];
        if namespaces {
            row.insert(0, namespace.clone());
        }
        if wide {
            row.push(output::cell(addon.last_error_message.as_deref()));
        }
        row
    });
    output::table(&header, rows)
}

/// What kubectl asks for, too.
const AS_TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// A name in a line, of each.
fn names(objects: &[DynamicObject]) -> Result<(), Failure> {
    for object in objects {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        output::data(&format!("{}/{name}", object.types.as_ref().map(qualified).unwrap_or_default()))?;
    }
    Ok(())
}

/// The kind with its group.
fn qualified(types: &TypeMeta) -> String {
    let group = types.api_version.split_once('/').map_or("", |(group, _)| group);
    format!("{}.{group}", types.kind.to_lowercase())
}

/// A list that the server has put into columns.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    column_definitions: Vec<Column>,
    #[serde(default)]
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
    /// Above 0: for those who want to see more.
    #[serde(default)]
    priority: i32,
}

#[derive(Deserialize)]
struct Row {
    cells: Vec<Value>,
    #[serde(default)]
    object: Value,
}

impl Table {
    fn text(&self, wide: bool, namespaces: bool) -> String {
        let shown = |column: &Column| wide || column.priority == 0;
        let columns = self.column_definitions.iter().filter(|column| shown(column));
        let header = namespaces.then(|| "NAMESPACE".to_owned()).into_iter();
        let header: Vec<String> = header.chain(columns.map(|column| column.name.to_uppercase())).collect();
        let rows = self.rows.iter().map(|row| {
            let namespace = || row.object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
            let cells = row.cells.iter().zip(&self.column_definitions).filter(|(_, column)| shown(column));
            let cells = cells.map(|(value, _)| match value {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            namespaces.then(namespace).into_iter().chain(cells).collect()
        });
        output::table(&header.iter().map(String::as_str).collect::<Vec<_>>(), rows)
    }
}

/// Something that is not there.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{name} is not among the {what} in the namespace {namespace}")]
    None { what: String, name: String, namespace: String },
    #[error("the cluster {name} in the namespace {namespace} is a Cluster of a class: it has packages, and no add-ons")]
    Packages { name: String, namespace: String },
    #[error("there is no release {name}")]
    NoRelease { name: String },
    #[error("releases have no labels to select them by")]
    NoLabels,
    #[error("a cluster cannot be read")]
    Unreadable(#[source] kube::core::dynamic::ParseDynamicObjectError),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::None { .. } | Self::Packages { .. } | Self::NoRelease { .. } | Self::NoLabels => Kind::User,
            Self::Unreadable(_) => Kind::Environment,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::None { what, namespace, .. } => format!("windlass get {what} -n {namespace}"),
            Self::Packages { name, namespace } => format!("windlass packages {name} -n {namespace}"),
            Self::NoRelease { .. } | Self::NoLabels => "windlass release list".to_owned(),
            Self::Unreadable(_) => "windlass get clusters -o yaml".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_for_those_who_want_more_are_shown_to_them_only() {
        let table: Table = serde_json::from_value(json!({
            "columnDefinitions": [{"name": "Name"}, {"name": "Count"}, {"name": "Id", "priority": 1}],
            "rows": [{"cells": ["a", 1, "x"], "object": {"metadata": {"namespace": "north"}}}, {"cells": ["b", null, "y"]}],
        }))
        .unwrap();
        assert_eq!(table.text(false, false), "NAME   COUNT\na      1\nb");
        assert_eq!(table.text(true, false), "NAME   COUNT   ID\na      1       x\nb              y");
        assert_eq!(table.text(false, true), "NAMESPACE   NAME   COUNT\nnorth       a      1\n            b");
    }
}
