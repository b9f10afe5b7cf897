//! `windlass verify`: whether a cluster has the packages and the pods that it should have, and no others.

use serde::Serialize;
use windlass_api::name::ClusterName;
use windlass_plan::creation::{self, Check, Outcome};
use windlass_plan::roster::{Facts, Finding, PodCount, Role, Runs, findings, pods};

use crate::client::{Connection, Management};
use crate::error::{Exit, Failure};
use crate::facts;
use crate::output::{self, Document, Format};
use crate::roster;

/// Check that the pods and packages of a cluster are there, and none that must not be
///
/// Which pods run where is a table: docs/packages.md. Pods that it does not know are people's own. Of the management cluster it is
/// also told what is verified before a cluster is created. Ends with code 5 if something is wrong.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  windlass verify wl\n  windlass verify --management -o json")]
#[group(id = "which", required = true, multiple = false, args = ["cluster", "management"])]
pub struct Verify {
    /// The cluster
    cluster: Option<ClusterName>,
    /// The management cluster
    #[arg(long)]
    management: bool,
    /// Write it as a document instead, for scripts
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    connection: Connection,
}

/// What was found in a cluster; what `verify -o` writes.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// Nothing for the management cluster.
    cluster: Option<ClusterName>,
    role: Role,
    /// What is wrong; nothing if all is well.
    pub findings: Vec<Wrong>,
    /// Of a management cluster: what is verified before a cluster is created.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checks: Vec<Check>,
    /// The pods that the table knows.
    pods: Vec<PodCount>,
}

/// Something that is wrong.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Wrong {
    /// The object, as kubectl names it.
    pub object: String,
    /// What is wrong with it.
    pub message: String,
    /// What somebody can do about it.
    pub way_out: String,
    #[serde(flatten)]
    finding: Finding,
}

impl Verify {
    /// Checks it.
    pub async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let verdict = match self.cluster {
            Some(cluster) => {
                let facts = roster::of_cluster(&management, &cluster).await?;
                Verdict::of(&facts, Some(cluster))
            }
            None => of_management(&management).await?,
        };
        let exit = if verdict.is_well() { Exit::Done } else { Exit::OperationFailed };
        match self.output {
            Some(format) => output::document(format, &Document::new("Verdict", verdict))?,
            None => output::data(&verdict.text())?,
        }
        Ok(exit)
    }
}

/// Whether the management cluster is as it should be.
pub async fn of_management(management: &Management) -> Result<Verdict, Failure> {
    let verdict = Verdict::of(&roster::of_management(management).await?, None);
    Ok(Verdict { checks: creation::checks(&facts::read(management, None).await), ..verdict })
}

impl Verdict {
    fn of(facts: &Facts, cluster: Option<ClusterName>) -> Self {
        let wrong = |finding: Finding| Wrong {
            object: finding.object(),
            message: finding.to_string(),
            way_out: finding.way_out(cluster.as_ref().map(ClusterName::as_str)),
            finding,
        };
        let findings = findings(facts).into_iter().map(wrong).collect();
        Self { role: facts.role, findings, checks: Vec::new(), pods: pods(facts), cluster }
    }

    fn is_well(&self) -> bool {
        self.findings.is_empty() && !self.checks.iter().any(|check| check.outcome == Outcome::Failed)
    }

    fn text(&self) -> String {
        let rows = self.pods.iter().map(cells);
        let table = output::table(&["NAMESPACE", "POD", "OF", "SHOULD RUN", "PODS", "READY"], rows);
        let misplaced = self.pods.iter().filter(|pod| pod.should_run == Runs::No);
        let notes = misplaced.filter_map(|pod| Some(format!("{}: {}", pod.name, pod.note?)));
        let name = self.cluster.as_ref().map_or("the management cluster", ClusterName::as_str);
        let well = format!("✔ {name} has what it should have, and nothing that must not be there");
        let wrong = self.findings.iter().map(|Wrong { message, way_out, .. }| format!("✖ {message}\n  try: {way_out}"));
        let verdict = if self.findings.is_empty() { well } else { wrong.collect::<Vec<_>>().join("\n") };
        let checks = (!self.checks.is_empty()).then(|| self.checks.iter().map(told).collect::<Vec<_>>().join("\n"));
        let parts: Vec<String> = std::iter::once(table).chain(notes).chain(checks).chain([verdict]).collect();
        parts.join("\n\n")
    }
}

fn told(check: &Check) -> String {
    let sign = match check.outcome {
        Outcome::Well => "✔",
        Outcome::Unknown => "-",
        Outcome::Warning => "!",
        Outcome::Failed => "✖",
    };
    let way = check.way.as_ref().map(|way| format!("\n  try: {way}")).unwrap_or_default();
    format!("{sign} {}: {}{way}", check.subject, check.said)
}

fn cells(pod: &PodCount) -> Vec<String> {
    let should = match pod.should_run {
        Runs::Yes => "yes",
        Runs::No => "no",
        Runs::ControlPlane => "control plane",
        Runs::Sometimes => "for a while",
    };
    vec![
        pod.namespace.to_owned(),
        pod.name.to_owned(),
        pod.package.unwrap_or("Kubernetes").to_owned(),
        should.to_owned(),
        pod.count.to_string(),
        pod.ready.to_string(),
    ]
}
