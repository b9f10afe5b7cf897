//! `windlass release show`: what a release is made of, and who has it.

use std::collections::BTreeMap;

use kube::api::{Api, ListParams};
use serde::Serialize;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::release::{OSImage, OperatingSystem};
use windlass_api::label;
use windlass_api::version::VersionPrefix;

use super::{summaries, the_one};
use crate::changed::Changed;
use crate::client::{self, Connection, Management};
use crate::error::{Exit, Failure};
use crate::output;
use crate::release::Summary;

/// Show what a release is made of, whether it can be used, and which clusters have it
#[derive(clap::Args)]
pub struct Show {
    /// The release, or the beginning of its version if only one begins so
    release: VersionPrefix,
    /// Write it as a document instead, for scripts, or the name of the release
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    connection: Connection,
}

/// What `release show -o` writes.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseReport {
    #[serde(flatten)]
    summary: Summary,
    /// The operating systems of its images, by the name of the image; nothing for one that is not there.
    operating_systems: BTreeMap<String, Option<OperatingSystem>>,
    /// The clusters of a class that have it, with their namespaces.
    clusters: Vec<String>,
}

impl Show {
    pub async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let all = summaries(&management).await?;
        let summary = the_one(&self.release, all)?;
        let listed = summary.object.as_ref().map(|object| object.os_images.clone()).unwrap_or_default();
        let images: Vec<OSImage> = management.all("OS images").await?;
        let system = |name: String| {
            let found = images.iter().find(|image| image.metadata.name.as_deref() == Some(&name));
            (name, found.map(|image| image.spec.os.clone()))
        };
        let clusters = match (&summary.object, &summary.label) {
            (Some(object), _) => clusters_of(&management, label::RELEASE.name, &object.name).await?,
            (None, Some(label)) => clusters_of(&management, label::RELEASE_VERSION.name, &label.name).await?,
            (None, None) => Vec::new(),
        };
        let operating_systems = listed.into_iter().map(system).collect();
        let report = ReleaseReport { summary, operating_systems, clusters };
        match self.output {
            Some(format) => format.tell(&format!("release/{}", report.summary.version), "Release", report)?,
            None => report.print()?,
        }
        Ok(Exit::Done)
    }
}

/// The clusters of a class that have a release, in all namespaces.
pub async fn clusters_of(management: &Management, label: &str, release: &str) -> Result<Vec<String>, client::Error> {
    let api: Api<Cluster> = Api::all(management.client.clone());
    let selected = ListParams::default().labels(&format!("{label}={release}"));
    let listed = api.list(&selected).await.map_err(client::Error::while_trying("list the clusters of the release"))?;
    let name = |cluster: Cluster| {
        let meta = cluster.metadata;
        format!("{}/{}", meta.namespace.unwrap_or_default(), meta.name.unwrap_or_default())
    };
    Ok(listed.items.into_iter().map(name).collect())
}

impl ReleaseReport {
    fn print(&self) -> Result<(), output::Error> {
        let Self { summary, operating_systems, clusters } = self;
        let mut rows = vec![
            vec!["Release:".to_owned(), summary.version.to_string()],
            vec!["Kubernetes:".to_owned(), summary.kubernetes.to_string()],
            vec!["etcd:".to_owned(), summary.etcd.clone()],
        ];
        let mut say = |name: &str, values: Vec<String>| {
            let names = std::iter::once(name).chain(std::iter::repeat(""));
            rows.extend(values.into_iter().zip(names).map(|(value, name)| vec![name.to_owned(), value]));
        };
        if let Some(label) = &summary.label {
            say("State:", vec![label.state.to_string()]);
            let name = |kind: &String| format!("{kind}-{}", summary.version.dashed());
            say("ConfigMaps:", label.kinds.iter().map(name).collect());
            say("Clusters:", if clusters.is_empty() { vec!["none".to_owned()] } else { clusters.clone() });
        }
        if !summary.image.is_empty() {
            say("Machine image:", vec![summary.image.clone()]);
            let addons = summary.addons.iter().map(|addon| format!("{} {}", addon.name, addon.version));
            say("Add-ons:", addons.collect());
        }
        if let Some(object) = &summary.object {
            say("Object:", vec![format!("TanzuKubernetesRelease/{}", object.name)]);
            say(
                "Ready:",
                vec![object.why.as_ref().map_or(object.ready.clone(), |why| format!("{} ({why})", object.ready))],
            );
            say("Compatible:", vec![object.compatible.clone()]);
            let system = |(name, os): (&String, &Option<OperatingSystem>)| match os {
                Some(os) => format!("{name} ({} {} {})", os.name, os.version, os.arch),
                None => format!("{name} (which is not there)"),
            };
            say("OS images:", operating_systems.iter().map(system).collect());
            say("Packages:", object.packages.clone());
            say("Clusters:", if clusters.is_empty() { vec!["none".to_owned()] } else { clusters.clone() });
        }
        output::data(output::table(&["", ""], rows).trim_start_matches('\n'))
    }
}
