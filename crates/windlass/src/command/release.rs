//! `windlass release`: which releases there are, what they are made of, whether they are used, and how to get from one to another.

pub mod activation;
pub mod difference;
pub mod show;
pub mod verify;

use serde::Serialize;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::release::TanzuKubernetesRelease;
use windlass_api::name::{ClusterName, ReleaseName};
use windlass_api::version::{KubernetesVersion, VersionPrefix};
use windlass_controller::classic::Unplanned;
use windlass_controller::classic::parts::published;
use windlass_plan::hook;
use windlass_plan::resolve::catalogue::Catalogue;
use windlass_plan::resolve::labelled::course::Course;

use crate::changed::Changed;
use crate::client::{self, AnyCluster, Connection, Management};
use crate::error::{Exit, Failure};
use crate::output;
use crate::release::{self, Summary, object};
use crate::way::{self, Way};

/// Show the releases that clusters can have
#[derive(clap::Subcommand)]
pub enum Release {
    List(List),
    Show(show::Show),
    Diff(difference::Diff),
    Path(Path),
    Verify(verify::Verify),
    Activate(activation::Activate),
    Deactivate(activation::Deactivate),
}

impl Release {
    /// Runs the one that was asked for.
    pub async fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::List(list) => list.run().await,
            Self::Show(show) => show.run().await,
            Self::Diff(diff) => diff.run().await,
            Self::Verify(verify) => verify.run().await,
            Self::Path(path) => path.run().await,
            Self::Activate(activate) => activate.run().await,
            Self::Deactivate(deactivate) => deactivate.run().await,
        }
    }
}

/// List the releases there are, oldest first
#[derive(clap::Args)]
pub struct List {
    /// Write it as a document instead, for scripts, or the names of the releases
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    connection: Connection,
}

/// What `release list -o` and `get releases -o` write.
#[derive(Serialize, schemars::JsonSchema)]
pub struct ReleaseList {
    pub items: Vec<Summary>,
}

impl List {
    async fn run(self) -> Result<Exit, Failure> {
        let releases = summaries(&self.connection.open().await?).await?;
        match self.output {
            Some(format) => {
                let names = names(releases.iter().map(|release| &release.version));
                format.tell(&names, "ReleaseList", ReleaseList { items: releases })?;
            }
            None => print(&releases)?,
        }
        Ok(Exit::Done)
    }
}

/// Releases by name, a line for each.
fn names<'a>(versions: impl Iterator<Item = &'a KubernetesVersion>) -> String {
    versions.map(|version| format!("release/{version}")).collect::<Vec<_>>().join("\n")
}

/// The releases there are: those of machine images and those that are objects of their own, oldest first, and then those that labels
/// name.
pub async fn summaries(management: &Management) -> Result<Vec<Summary>, client::Error> {
    let mut summaries = release::all(management).await?.iter().map(Summary::from).collect();
    object::merge(&mut summaries, object::all(management).await?);
    summaries.extend(release::labelled(management).await?);
    Ok(summaries)
}

/// The one release that begins so, or that is so.
fn the_one(asked: &VersionPrefix, mut releases: Vec<Summary>) -> Result<Summary, release::Error> {
    let known: Vec<KubernetesVersion> = releases.iter().map(|release| release.version.clone()).collect();
    releases.retain(|release| asked.matches(&release.version));
    if let Some(exact) = releases.iter().position(|release| asked.is_all_of(&release.version)) {
        return Ok(releases.swap_remove(exact));
    }
    match <[Summary; 1]>::try_from(releases) {
        Ok([release]) => Ok(release),
        Err(several) => {
            let found = several.into_iter().map(|release| release.version).collect();
            Err(release::Error::NotOne { asked: asked.clone(), found, known })
        }
    }
}

/// The releases as a table; a remark where there are none.
pub fn print(releases: &[Summary]) -> Result<(), output::Error> {
    if releases.is_empty() {
        output::say("No releases found: no machine image says what is on it, and there is no TanzuKubernetesRelease.");
        return Ok(());
    }
    let rows = releases.iter().map(|release| {
        let addons = release.addons.iter().map(|addon| format!("{} {}", addon.name, addon.version));
        let object = release.object.as_ref();
        let label = release.label.as_ref();
        vec![
            label.map_or_else(|| release.version.to_string(), |label| label.name.clone()),
            release.kubernetes.to_string(),
            release.etcd.clone(),
            output::cell(label.map(|label| label.state.as_str()).or(object.map(|object| object.ready.as_str()))),
            output::cell(object.map(|object| &object.compatible)),
            addons.collect::<Vec<_>>().join(", "),
        ]
    });
    output::data(&output::table(&["RELEASE", "KUBERNETES", "ETCD", "READY", "COMPATIBLE", "ADD-ONS"], rows))
}

/// Show the releases on the way from a cluster's own to another
#[derive(clap::Args)]
pub struct Path {
    /// The cluster
    cluster: ClusterName,
    /// The release to get to, or the beginning of its version
    #[arg(long, value_name = "RELEASE")]
    to: VersionPrefix,
    /// Write it as a document instead, for scripts, or the names of the releases
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    connection: Connection,
}

/// What `release path -o` writes.
#[derive(Serialize, schemars::JsonSchema)]
pub struct ReleasePath {
    cluster: ClusterName,
    #[serde(flatten)]
    way: Way,
}

impl Path {
    async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let way = match management.any_cluster(&self.cluster).await? {
            AnyCluster::OfClass => self.of_class(&management).await?,
            AnyCluster::ByLabel(cluster) => self.by_label(&management, &cluster).await?,
            AnyCluster::Machines(cluster) => {
                let releases = release::all(&management).await?;
                let from = way::current(&cluster)?;
                Way::find(&cluster, &from, &self.to, &releases).map_err(release::Error::from)?
            }
        };
        let path = ReleasePath { cluster: self.cluster, way };
        match self.output {
            Some(format) => {
                let hops = path.way.hops.iter().map(|hop| format!("release/{}", path.way.named(&hop.to)));
                format.tell(&hops.collect::<Vec<_>>().join("\n"), "ReleasePath", path)?;
            }
            None => path.print()?,
        }
        Ok(Exit::Done)
    }

    /// The way of a cluster of a class: from the release of its label, by those that can be used.
    async fn of_class(&self, management: &Management) -> Result<Way, Failure> {
        let cluster = management.api::<Cluster>().get(self.cluster.as_str()).await;
        let cluster = cluster.map_err(client::Error::while_trying(&format!("read the cluster {}", self.cluster)))?;
        let name = hook::release(&cluster).and_then(|name| name.parse::<ReleaseName>().ok());
        let from = name.and_then(|name| name.version().ok());
        let from = from.ok_or_else(|| way::Unresolved::of_class(&self.cluster))?;
        let releases = management.all::<TanzuKubernetesRelease>("releases").await?;
        let usable = Catalogue::read(&releases, &[]).usable();
        Ok(Way::of_class(&from, &self.to, &usable).map_err(release::Error::from)?)
    }

    /// The way of a cluster whose release is a label: from the one that it was last brought to.
    async fn by_label(&self, management: &Management, cluster: &Cluster) -> Result<Way, Failure> {
        let course = Course { cluster, update: None };
        let from = course.deployed().or_else(|| course.asked()).and_then(|text| text.parse::<KubernetesVersion>().ok());
        let from = from.ok_or_else(|| way::Unresolved::by_label(&self.cluster))?;
        let published = published(&management.client).await.map_err(Unplanned::from).map_err(release::Error::from)?;
        let unlabelled = |why| release::Error::from(Unplanned::from(why));
        let (from, to) = (published.find(&from).map_err(unlabelled)?, published.chosen(&self.to).map_err(unlabelled)?);
        let releases: Vec<&windlass_plan::release::Release> = published.releases().collect();
        Ok(Way::by_label(from, to, &releases).map_err(release::Error::from)?)
    }
}

impl ReleasePath {
    fn print(&self) -> Result<(), output::Error> {
        if self.way.hops.is_empty() {
            output::say(&format!("{} is at {} already.", self.cluster, self.way.named(&self.way.to)));
            return Ok(());
        }
        output::data(&self.way.table())?;
        output::note(&format!("Next: windlass plan {} --to {}", self.cluster, self.way.named(&self.way.to)));
        Ok(())
    }
}
