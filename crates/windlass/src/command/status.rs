//! `windlass status`: one word first, then what waits for what.

use futures::StreamExt as _;
use serde::Serialize;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::ClusterName;

use crate::changed::{Changed, class_cluster_name, cluster_name};
use crate::client::{self, Connection, Management};
use crate::course::{self, ClassReport};
use crate::error::{Exit, Failure};
use crate::output::{self, Document};
use crate::report::{self, Report};
use crate::watch::Watch;

/// Show how a cluster is doing, and what it waits for
#[derive(clap::Args)]
pub struct Status {
    /// The cluster
    cluster: ClusterName,
    /// Show it again whenever it changes
    #[arg(short, long)]
    watch: bool,
    /// Write it as a document instead, for scripts, or the name of the cluster
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    connection: Connection,
}

impl Status {
    /// Shows it, once or until Ctrl-C.
    pub async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let cluster = match management.cluster(&self.cluster).await {
            Err(client::Error::OfClass { .. }) => return self.run_of_class(&management).await,
            found => found?,
        };
        if !self.watch {
            self.show(&management, &cluster).await?;
            return Ok(Exit::Done);
        }
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
            ended = self.follow(&management) => ended.map(|()| Exit::Done),
        }
    }

    async fn run_of_class(&self, management: &Management) -> Result<Exit, Failure> {
        if !self.watch {
            let gone =
                || client::Error::NoCluster { name: self.cluster.clone(), namespace: management.namespace.clone() };
            let report = ClassReport::read(management, &self.cluster).await?.ok_or_else(gone)?;
            match self.output {
                Some(format) => format.tell(&class_cluster_name(&self.cluster), "ClassStatusReport", report)?,
                None => output::data(&report.text())?,
            }
            return Ok(Exit::Done);
        }
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
            ended = self.follow_of_class(management) => ended.map(|()| Exit::Done),
        }
    }

    async fn follow_of_class(&self, management: &Management) -> Result<(), Failure> {
        let mut events = course::events(management, &self.cluster);
        let mut last = None;
        loop {
            match ClassReport::read(management, &self.cluster).await {
                Ok(None) => {
                    output::say(&format!("{} is gone.", self.cluster));
                    return Ok(());
                }
                Ok(Some(report)) => {
                    let shown = match self.output {
                        None => format!("{}\n", report.text()),
                        Some(Changed::Name) => class_cluster_name(&self.cluster),
                        Some(format) => Self::state(format, &Document::new("ClassStatusReport", &report))?,
                    };
                    if last.as_ref() != Some(&shown) {
                        output::data(&shown)?;
                        last = Some(shown);
                    }
                }
                Err(error) => output::say(&format!("not watched: {error}")),
            }
            if events.next().await.is_none() {
                return Ok(());
            }
        }
    }

    async fn follow(&self, management: &Management) -> Result<(), Failure> {
        let mut watch = Watch::new(management, &self.cluster);
        let mut last = None;
        while let Some(change) = watch.next().await {
            match change {
                Ok(seen) if seen.gone => {
                    output::say(&format!("{} is gone.", self.cluster));
                    return Ok(());
                }
                Ok(seen) => {
                    let Some(report) = seen.report(management.now()) else { continue };
                    let shown = self.text(&report)?;
                    if last.as_ref() != Some(&shown) {
                        output::data(&shown)?;
                        last = Some(shown);
                    }
                }
                Err(error) => output::say(&format!("not watched: {error}")),
            }
        }
        Ok(())
    }

    async fn show(&self, management: &Management, cluster: &TanzuKubernetesCluster) -> Result<(), Failure> {
        let report = report::read(management, cluster).await?;
        match self.output {
            Some(format) => format.tell_cluster(&self.cluster, "StatusReport", report)?,
            None => output::data(&report.text())?,
        }
        Ok(())
    }

    /// While watching, JSON has one line for each state.
    fn text(&self, report: &Report) -> Result<String, output::Error> {
        match self.output {
            None => Ok(format!("{}\n", report.text())),
            Some(Changed::Name) => Ok(cluster_name(&self.cluster)),
            Some(format) => Self::state(format, &Document::new("StatusReport", report)),
        }
    }

    fn state(format: Changed, document: &impl Serialize) -> Result<String, output::Error> {
        match format {
            Changed::Json | Changed::Name => serde_json::to_string(document).map_err(output::Error::Json),
            Changed::Yaml => {
                let yaml = serde_saphyr::to_string(document);
                Ok(format!("---\n{}", yaml.map_err(|source| output::Error::Yaml(Box::new(source)))?))
            }
        }
    }
}
