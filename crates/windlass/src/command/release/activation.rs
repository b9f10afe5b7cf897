//! `windlass release activate` and `deactivate`: whether clusters may still be led to a release. Those that have it keep it.

use kube::api::{Api, Patch, PatchParams};
use serde::Serialize;
use serde_json::json;
use windlass_api::kind::release::TanzuKubernetesRelease;
use windlass_api::label;
use windlass_api::version::{KubernetesVersion, VersionPrefix};

use super::show::clusters_of;
use super::{summaries, the_one};
use crate::changed::Changed;
use crate::client::{self, Connection, FIELD_MANAGER};
use crate::error::{Exit, Failure};
use crate::output;
use crate::release;

/// Let clusters be created at a release, and updated to it, again
#[derive(clap::Args)]
pub struct Activate {
    #[command(flatten)]
    which: Which,
}

/// Take a release out of use: no cluster is led to it any more, and those that have it keep it
#[derive(clap::Args)]
#[command(after_help = "Example:\n  windlass release deactivate v1.24.9+vmware.1-tkg.1")]
pub struct Deactivate {
    #[command(flatten)]
    which: Which,
}

#[derive(clap::Args)]
struct Which {
    /// The release, or the beginning of its version if only one begins so
    release: VersionPrefix,
    /// Write it as a document instead, for scripts, or the name of the release
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    connection: Connection,
}

/// What `release activate -o` and `release deactivate -o` write.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Activation {
    release: KubernetesVersion,
    /// The object that says so.
    object: String,
    deactivated: bool,
    /// Whether it was something else before.
    changed: bool,
    /// The clusters of a class that have it, and keep it.
    clusters: Vec<String>,
}

impl Activate {
    pub async fn run(self) -> Result<Exit, Failure> {
        self.which.run(false).await
    }
}

impl Deactivate {
    pub async fn run(self) -> Result<Exit, Failure> {
        self.which.run(true).await
    }
}

impl Which {
    async fn run(self, deactivated: bool) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let found = the_one(&self.release, summaries(&management).await?)?;
        let Some(object) = found.object else { return Err(release::Error::NoObject { version: found.version }.into()) };
        let changed = object.deactivated != deactivated;
        if changed {
            let api: Api<TanzuKubernetesRelease> = Api::all(management.client.clone());
            let value = deactivated.then_some("");
            let patch = Patch::Merge(json!({"metadata": {"labels": {label::DEACTIVATED.name: value}}}));
            let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
            let attempt = format!("change the release {}", found.version);
            api.patch(&object.name, &params, &patch).await.map_err(client::Error::while_trying(&attempt))?;
        }
        let clusters = clusters_of(&management, windlass_api::label::RELEASE.name, &object.name).await?;
        let report = Activation { release: found.version, object: object.name, deactivated, changed, clusters };
        match self.output {
            Some(format) => format.tell(&format!("release/{}", report.release), "ReleaseActivation", report)?,
            None => report.say()?,
        }
        Ok(Exit::Done)
    }
}

impl Activation {
    fn say(&self) -> Result<(), output::Error> {
        let Self { release, deactivated, changed, clusters, .. } = self;
        let state = if *deactivated { "deactivated" } else { "active" };
        let already = if *changed { "" } else { " already" };
        let keep = if clusters.is_empty() { String::new() } else { format!("; {} keep it", clusters.join(", ")) };
        let keep = if *deactivated { keep.as_str() } else { "" };
        output::data(&format!("release {release} is {state}{already}{keep}"))
    }
}
