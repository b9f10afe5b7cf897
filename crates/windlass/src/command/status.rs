//! `windlass status`: one word first, then what waits for what.

use futures::StreamExt as _;
use windlass_api::name::ClusterName;

use crate::changed::Changed;
use crate::client::{self, Connection, Management};
use crate::doing::{Doing, Sort};
use crate::error::{Exit, Failure};
use crate::output;

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
        let sort = Sort::of(&management, &self.cluster).await?;
        if !self.watch {
            let gone =
                || client::Error::NoCluster { name: self.cluster.clone(), namespace: management.namespace.clone() };
            let doing = sort.read(&management, &self.cluster).await?.ok_or_else(gone)?;
            match self.output {
                Some(format) => format.object(&sort.written(&self.cluster), &doing.document())?,
                None => output::data(&doing.text())?,
            }
            return Ok(Exit::Done);
        }
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
            ended = self.follow(&management, sort) => ended.map(|()| Exit::Done),
        }
    }

    async fn follow(&self, management: &Management, sort: Sort) -> Result<(), Failure> {
        let mut looks = sort.follow(management, &self.cluster);
        let mut last = None;
        while let Some(seen) = looks.next().await {
            match seen {
                Ok(None) => {
                    output::say(&format!("{} is gone.", self.cluster));
                    return Ok(());
                }
                Ok(Some(doing)) => {
                    let shown = self.shown(sort, &doing)?;
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

    /// While watching, JSON has one line for each state.
    fn shown(&self, sort: Sort, doing: &Doing) -> Result<String, output::Error> {
        match self.output {
            None => Ok(format!("{}\n", doing.text())),
            Some(Changed::Name) => Ok(sort.written(&self.cluster)),
            Some(Changed::Json) => doing.line(),
            Some(Changed::Yaml) => {
                let yaml = serde_saphyr::to_string(&doing.document());
                Ok(format!("---\n{}", yaml.map_err(|source| output::Error::Yaml(Box::new(source)))?))
            }
        }
    }
}
