//! `windlass gitops`: what a repository says of clusters, and what the clusters are.

use std::path::PathBuf;

use kube::api::{Api, ListParams};
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_plan::source::{self, Comparison, Difference, Standing};

use crate::client::{self, Connection, Management};
use crate::error::{Exit, Failure};
use crate::git::Checkout;
use crate::output::{self, Document, Format};

/// Compare what a repository says of clusters with what they are
#[derive(clap::Subcommand)]
pub enum Gitops {
    Check(Check),
}

impl Gitops {
    /// Runs the one that was asked for.
    pub async fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Check(check) => check.run().await,
        }
    }
}

/// Say where a repository is older than the clusters, or drifts from them
///
/// The files are read as they are checked out: manifests, kustomize overlays, and variables of Flux. Of the release it is said which of
/// the two is older, of every other field of a manifest that the cluster has it otherwise. A manifest that overlays patch is compared by
/// its release alone. A file that is newer is not applied yet, and no complaint.
///
/// Ends with code 2 if something is older or drifts, or if the files do not say one thing. Nothing is written, here or there.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  windlass gitops check .\n  windlass gitops check fleet -A -o json")]
pub struct Check {
    /// A folder of the repository
    repository: PathBuf,
    /// Also clusters of other namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Write it as a document instead, for scripts
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    connection: Connection,
}

/// What `gitops check -o` writes.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitopsReport {
    /// Whether nothing is older, drifts, or is unclear.
    in_step: bool,
    /// The clusters that the repository has.
    compared: Vec<String>,
    /// Clusters that are there, and not in the repository.
    elsewhere: Vec<String>,
    /// What is otherwise.
    differences: Vec<Row>,
    /// Clusters of which the repository does not say one thing.
    unclear: Vec<Unclear>,
}

/// A value that file and cluster have otherwise.
#[derive(Serialize, schemars::JsonSchema)]
struct Row {
    file: String,
    line: usize,
    field: String,
    object: String,
    /// What the file says.
    said: String,
    /// What the cluster has.
    live: Option<String>,
    /// How the file stands to the cluster.
    standing: Standing,
}

/// What cannot be compared.
#[derive(Serialize, schemars::JsonSchema)]
struct Unclear {
    object: String,
    why: String,
}

impl Check {
    async fn run(self) -> Result<Exit, Failure> {
        let files = Checkout::look(&self.repository)?.files()?;
        let management = self.connection.open().await?;
        let mut clusters = self.objects::<TanzuKubernetesCluster>(&management).await?;
        let of_class = self.objects::<Cluster>(&management).await?;
        // One that is made for a TanzuKubernetesCluster is written by us alone.
        clusters.extend(of_class.into_iter().filter(|cluster| cluster["metadata"]["ownerReferences"].is_null()));
        let report = GitopsReport::of(source::compare(&files, &clusters));
        let exit = if report.in_step { Exit::Done } else { Exit::Changes };
        match self.output {
            Some(format) => output::document(format, &Document::new("GitopsReport", report))?,
            None => report.print()?,
        }
        Ok(exit)
    }

    /// The objects of a kind, as they are on the wire.
    async fn objects<K>(&self, management: &Management) -> Result<Vec<Value>, Failure>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
        K: Clone + std::fmt::Debug + DeserializeOwned,
    {
        let kind = kube::core::ApiResource::erase::<K>(&());
        let api: Api<kube::api::DynamicObject> = if self.all_namespaces {
            Api::all_with(management.client.clone(), &kind)
        } else {
            Api::namespaced_with(management.client.clone(), management.namespace.as_str(), &kind)
        };
        let listed = api.list(&ListParams::default()).await;
        let listed = listed.map_err(client::Error::while_trying(&format!("list the {}", kind.plural)))?;
        let whole = |mut object: kube::api::DynamicObject| {
            // Those of a list do not say what they are.
            object.types.get_or_insert_with(|| kube::core::TypeMeta {
                api_version: kind.api_version.clone(),
                kind: kind.kind.clone(),
            });
            object.managed_fields_mut().clear();
            serde_json::to_value(&object).ok()
        };
        Ok(listed.items.into_iter().filter_map(whole).collect())
    }
}

impl GitopsReport {
    fn of(comparison: Comparison) -> Self {
        let Comparison { compared, elsewhere, differences, unclear } = comparison;
        let is_bad = |difference: &Difference| difference.standing != Standing::Newer;
        Self {
            in_step: unclear.is_empty() && !differences.iter().any(is_bad),
            compared,
            elsewhere,
            differences: differences.into_iter().map(Row::of).collect(),
            unclear: unclear.into_iter().map(|(object, why)| Unclear { object, why: why.to_string() }).collect(),
        }
    }

    fn print(&self) -> Result<(), output::Error> {
        for Unclear { object, why } in &self.unclear {
            output::warning(&format!("{object}: {why}"));
        }
        if self.differences.is_empty() {
            let compared = self.compared.len();
            let clusters = if compared == 1 { "1 cluster is".to_owned() } else { format!("{compared} clusters are") };
            return output::data(&format!("{clusters} as the repository says{}", self.others()));
        }
        let header = ["FILE", "FIELD", "OBJECT", "SAYS", "CLUSTER", "FILE IS"];
        output::data(&output::table(&header, self.differences.iter().map(Row::cells)))
    }

    fn others(&self) -> String {
        let others = |count: usize, what: &str| if count == 0 { String::new() } else { format!("; {count} {what}") };
        others(self.unclear.len(), "cannot be compared") + &others(self.elsewhere.len(), "not in it")
    }
}

impl Row {
    fn of(difference: Difference) -> Self {
        let Difference { place, object, said, live, standing } = difference;
        Self { file: place.path, line: place.line, field: place.field, object, said, live, standing }
    }

    fn cells(&self) -> Vec<String> {
        vec![
            format!("{}:{}", self.file, self.line),
            self.field.clone(),
            self.object.clone(),
            self.said.clone(),
            output::cell(self.live.as_ref()),
            self.standing.to_string(),
        ]
    }
}
