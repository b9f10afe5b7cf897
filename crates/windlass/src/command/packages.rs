//! `windlass packages`: what should run in a cluster, what does, and how it is.

use serde::Serialize;
use windlass_api::name::ClusterName;
use windlass_plan::roster::{Category, Does, Row, Should, placement_words, rows};

use crate::client::Connection;
use crate::error::{Exit, Failure};
use crate::output::{self, Document, Format};
use crate::roster;

/// Show the packages of a cluster: what should run, what does, its version and how it is
///
/// Without a name, of the management cluster. WANTED is the version that was asked for, OBSERVED the one that kapp-controller has
/// brought in; it does not say which that is while it tries or fails. A package that runs and should not, or should and does not,
/// is marked.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  windlass packages          the management cluster's\n  windlass packages wl -n dev -o json"
)]
pub struct Packages {
    /// The cluster [default: the management cluster]
    cluster: Option<ClusterName>,
    /// Write it as a document instead, for scripts
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    connection: Connection,
}

/// What `packages -o` writes.
#[derive(Serialize, schemars::JsonSchema)]
pub struct PackageList {
    /// Nothing for the management cluster.
    cluster: Option<ClusterName>,
    items: Vec<Row>,
}

impl Packages {
    /// Shows them.
    pub async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let facts = match &self.cluster {
            Some(cluster) => roster::of_cluster(&management, cluster).await?,
            None => roster::of_management(&management).await?,
        };
        let items = rows(&facts);
        match self.output {
            Some(format) => {
                let list = PackageList { cluster: self.cluster, items };
                output::document(format, &Document::new("PackageList", list))?;
            }
            None if items.is_empty() => {
                output::say("No packages found: what runs in it came as add-ons, if anything did.");
            }
            None => output::data(&table(&items))?,
        }
        Ok(Exit::Done)
    }
}

fn table(items: &[Row]) -> String {
    let header = ["PACKAGE", "CATEGORY", "PLACEMENT", "SHOULD RUN", "RUNS", "WANTED", "OBSERVED", "STATE", "WHY"];
    output::table(&header, items.iter().map(cells))
}

fn cells(row: &Row) -> Vec<String> {
    let should = match row.should_run {
        Should::Yes => "yes",
        Should::No => "no",
        Should::Open => "-",
    };
    let does = match (row.should_run, row.runs) {
        (Should::Yes, Does::No) => "✖ no",
        (Should::No, Does::Yes) => "✖ yes",
        (_, Does::Yes) => "yes",
        (_, Does::No) => "no",
        (_, Does::Unknown) => "unknown",
    };
    let message = row.message.as_deref().and_then(|message| message.lines().next()).unwrap_or_default();
    vec![
        row.package.clone(),
        output::cell(row.category.map(Category::word)),
        placement_words(&row.placement),
        should.to_owned(),
        does.to_owned(),
        output::cell(row.wanted_version.as_ref()),
        output::cell(row.observed_version.as_ref()),
        row.state.word().to_owned(),
        message.to_owned(),
    ]
}
