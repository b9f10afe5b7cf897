//! `windlass plan`: what an upgrade or another change would do, and what would hold it now.

pub mod deletion;
pub mod kept;
pub mod outlook;
mod text;
pub mod topology;

use std::path::PathBuf;

use serde::Serialize;
use windlass_api::name::{ClusterName, NamespacedName};
use windlass_api::version::{KubernetesVersion, VersionPrefix};
use windlass_controller::reconcile::preview::Preview;
use windlass_plan::change::{Classification, classify};
use windlass_plan::check::{Finding, Severity};
use windlass_plan::planner::Record;
use windlass_plan::report::{Report, StageReport, StageState, Wait};
use windlass_plan::resolve::Refusal;
use windlass_plan::risk::assess;
use windlass_plan::source::Trigger;
use windlass_plan::step::Stage;
use windlass_rehearse::evidence::evidence;
use windlass_rehearse::preview::{self, Foreseen, preview};
use windlass_rehearse::rehearsal::{Request, Wish};
use windlass_rehearse::report;
use windlass_runtime::chance::Seed;

use crate::changed::{Changed, class_cluster_name, cluster_name};
use crate::client::Connection;
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;
use crate::release;
use crate::snapshot;
use crate::wanted::{self, Wanted};
use crate::way::{self, Way};

use super::block_on;
use super::rehearse::restore;
use deletion::DeletionReport;
use outlook::{Outlook, Rehearsals};
use topology::ClassReport;

/// Show what an upgrade or another change would do: packages, control plane and workers, and what would hold it now
///
/// The clusters are read once, and the controllers are asked, on a copy in this process, what they would do. Nothing is
/// changed.
#[derive(clap::Args)]
pub struct Plan {
    /// The cluster
    cluster: ClusterName,
    #[command(flatten)]
    wanted: Wanted,
    /// How often it is rehearsed, to tell how long it takes; 0 is never [default: 5, and 0 where there are more than 40 machines]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000))]
    runs: Option<u32>,
    /// End with code 2 if there is something to change
    #[arg(long)]
    detailed_exitcode: bool,
    /// Write it as Markdown, for a review
    #[arg(long, conflicts_with = "output")]
    markdown: bool,
    /// Write it as a document instead, for scripts, or the name of the cluster
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    /// Keep it in a file: `upgrade --plan FILE` does what is in it, or nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["set", "delete"])]
    out: Option<PathBuf>,
    #[command(flatten)]
    connection: Connection,
}

impl Plan {
    /// Plans, and shows it.
    pub fn run(self) -> Result<Exit, Failure> {
        if self.wanted.wish() == Wish::Nothing {
            return Err(wanted::Error::Nothing.into());
        }
        let rehearsals = self.runs.map_or(Rehearsals::AsUsual, Rehearsals::Times);
        match foresee(&self.connection, &self.cluster, &self.wanted, rehearsals)? {
            Plans::Change(report) => self.show(*report),
            Plans::Deletion(report) => self.show_deletion(&report),
            Plans::OfClass(report) => self.show_of_class(&report),
        }
    }

    fn show_of_class(self, report: &ClassReport) -> Result<Exit, Failure> {
        if let Some(path) = &self.out {
            if report.envelope_digest.is_none() {
                return Err(Error::NoEnvelope { cluster: self.cluster }.into());
            }
            kept::write(path, "ClassPlanReport", report)?;
        }
        let exit = if self.detailed_exitcode && report.changes() { Exit::Changes } else { Exit::Done };
        if let Some(format) = self.output {
            format.tell(&class_cluster_name(&self.cluster), "ClassPlanReport", report)?;
            return Ok(exit);
        }
        output::data(&self.shown(report.text()))?;
        if let (Some(path), true) = (&self.out, report.changes()) {
            output::note(&format!("Next: windlass upgrade --plan {}", path.display()));
        } else if report.changes() {
            output::note(&format!("Next: windlass rehearse {} {}", self.cluster, self.wanted.words()));
        }
        Ok(exit)
    }

    fn show(self, report: PlanReport) -> Result<Exit, Failure> {
        let exit = match report.changes() {
            _ if report.findings.iter().any(|finding| finding.severity == Severity::Fatal) => Exit::Refused,
            true if self.detailed_exitcode => Exit::Changes,
            true | false => Exit::Done,
        };
        if let Some(path) = &self.out {
            kept::write(path, "PlanReport", &report)?;
        }
        if let Some(format) = self.output {
            let name = if report.by_label { class_cluster_name(&self.cluster) } else { cluster_name(&self.cluster) };
            format.tell(&name, "PlanReport", report)?;
            return Ok(exit);
        }
        output::data(&if self.markdown { report.markdown() } else { report.text() })?;
        if let (Some(path), true) = (&self.out, report.changes()) {
            output::note(&format!("Next: windlass upgrade --plan {}", path.display()));
        } else if report.changes() && exit != Exit::Refused {
            output::note(&format!("Next: windlass rehearse {} {}", self.cluster, self.wanted.words()));
        }
        Ok(exit)
    }

    /// A plan without a page of its own, as it is or as a part of one.
    fn shown(&self, text: String) -> String {
        if self.markdown { fenced(self.cluster.as_str(), &text) } else { text }
    }

    fn show_deletion(self, report: &DeletionReport) -> Result<Exit, Failure> {
        let exit = if self.detailed_exitcode { Exit::Changes } else { Exit::Done };
        if let Some(format) = self.output {
            format.tell_cluster(&self.cluster, "DeletionReport", report)?;
            return Ok(exit);
        }
        output::data(&self.shown(report.text()))?;
        output::note(&format!("Next: windlass rehearse {} {}", self.cluster, self.wanted.words()));
        Ok(exit)
    }
}

/// What would be done.
enum Plans {
    /// A cluster would be changed.
    Change(Box<PlanReport>),
    /// It would go.
    Deletion(DeletionReport),
    /// A cluster of a class would be changed, or go.
    OfClass(Box<ClassReport>),
}

/// Plans an upgrade. Of a way that takes several updates it is the first that is planned.
pub fn plan(connection: &Connection, cluster: &ClusterName, to: &VersionPrefix) -> Result<Planned, Failure> {
    match foresee(connection, cluster, &Wanted::release_only(to), Rehearsals::Times(0))? {
        Plans::Change(report) => Ok(Planned::Change(report)),
        Plans::OfClass(report) => Ok(Planned::OfClass(report)),
        // Nobody has asked for that.
        Plans::Deletion(_) => Err(wanted::Error::Nothing.into()),
    }
}

/// An upgrade that was planned.
pub enum Planned {
    /// Of a cluster whose updates are on record.
    Change(Box<PlanReport>),
    /// Of a cluster of a class.
    OfClass(Box<ClassReport>),
}

impl Planned {
    /// What it may do; nothing where that cannot be said.
    pub fn envelope_digest(&self) -> Option<&str> {
        match self {
            Self::Change(report) => Some(&report.envelope_digest),
            Self::OfClass(report) => report.envelope_digest.as_deref(),
        }
    }

    /// What its release says.
    pub fn release_digest(&self) -> Option<&str> {
        match self {
            Self::Change(report) => Some(&report.release_digest),
            Self::OfClass(report) => report.release_digest.as_deref(),
        }
    }

    /// The release, as clusters of that sort name it.
    pub fn to(&self) -> &str {
        match self {
            Self::Change(report) => &report.to,
            Self::OfClass(report) => &report.to,
        }
    }
}

/// A plan for a review, whichever sort of cluster it is of.
pub struct Reviewed {
    /// The cluster.
    pub subject: NamespacedName,
    /// For a message.
    pub text: String,
    /// For a page.
    pub markdown: String,
    /// The first of several updates, where it is not one.
    pub first: Option<KubernetesVersion>,
    /// How the release is asked for, and what is said then: the first of these that a file has.
    pub asks: Vec<(Trigger, String)>,
}

/// Plans an upgrade that others are to review.
pub fn review(connection: &Connection, cluster: &ClusterName, to: &VersionPrefix) -> Result<Reviewed, Failure> {
    match foresee(connection, cluster, &Wanted::release_only(to), Rehearsals::AsUsual)? {
        Plans::Change(report) => Ok(Reviewed {
            text: report.text(),
            markdown: report.markdown(),
            first: report.way.as_ref().and_then(|way| way.hops.first()).map(|hop| hop.to.clone()),
            // In full: what is merged later is what was reviewed, whatever is published meanwhile.
            asks: vec![if report.by_label {
                (Trigger::ReleaseVersion, report.to.trim_start_matches('v').to_owned())
            } else {
                (Trigger::Distribution, report.to)
            }],
            subject: report.subject,
        }),
        Plans::OfClass(report) => Ok(Reviewed {
            subject: report.subject.clone(),
            text: report.text(),
            markdown: fenced(report.subject.name.as_str(), &report.text()),
            first: None,
            // A label that names the release counts for more than the beginning of a version.
            asks: vec![(Trigger::ReleaseName, report.to.clone()), (Trigger::Topology, in_full(&report.to, to))],
        }),
        // Nobody has asked for that.
        Plans::Deletion(_) => Err(wanted::Error::Nothing.into()),
    }
}

/// The version of a release by its name; what a person typed where it has none.
fn in_full(release: &str, typed: &VersionPrefix) -> String {
    release.parse::<KubernetesVersion>().map_or_else(|_| typed.as_str().to_owned(), |version| version.to_string())
}

/// A page with a text as it is.
fn fenced(title: &str, text: &str) -> String {
    format!("# {title}\n\n```text\n{text}\n```\n")
}

/// Reads the clusters, then plans without them.
fn foresee(
    connection: &Connection,
    cluster: &ClusterName,
    wanted: &Wanted,
    rehearsals: Rehearsals,
) -> Result<Plans, Failure> {
    let (snapshot, namespace, way) = block_on(async {
        let management = connection.open().await?;
        let found = management.any_cluster(cluster).await?;
        let releases = release::all(&management).await?;
        let from = found.machines().and_then(|found| Some((found, way::current(found).ok()?)));
        let way = from.zip(wanted.to.as_ref()).map(|((found, from), to)| Way::find(found, &from, to, &releases));
        Ok((snapshot::read(&management).await?, management.namespace, way))
    })?;
    // What else is refused is refused by the API that would be asked, in its words.
    let way = match way {
        Some(Err(refusal)) if matches!(*refusal, Refusal::NoPath { .. }) => {
            return Err(release::Error::from(refusal).into());
        }
        Some(Ok(way)) => Some(way).filter(Way::is_long),
        Some(Err(_)) | None => None,
    };
    wanted.fits(way.as_ref())?;
    // Nothing random happens before the first step.
    let seed = Seed(0);
    let world = restore(&snapshot, seed)?;
    let subject = NamespacedName { namespace, name: cluster.clone().into() };
    let first = way.as_ref().and_then(|way| Some(way.wish(way.hops.first()?)));
    let wish = first.unwrap_or_else(|| wanted.wish());
    let hold_by = snapshot.hold_by();
    let request = Request { hold_by, ..Request::asking(subject, wish, seed, snapshot.taken_at) };
    let outlook = |changes: bool| {
        let risks = || assess(&evidence(&snapshot, &request.cluster, &request.ask));
        let outlook = changes.then(|| Outlook::of(&world, &request, risks(), rehearsals)).transpose();
        outlook.map(|outlook| outlook.unwrap_or_else(Outlook::none)).map_err(Error::Rehearse)
    };
    match preview(&world, &request).map_err(Error::Preview)? {
        Foreseen::Planned(preview) => {
            let changes = preview.planned.report.stages.iter().any(|stage| !stage.changes.is_empty());
            Ok(Plans::Change(Box::new(PlanReport::of(*preview, wanted, way, outlook(changes)?))))
        }
        Foreseen::OfClass(preview) => {
            let changes = Stage::ALL.iter().any(|stage| !preview.changes(*stage).is_empty());
            let report = ClassReport::of(*preview, &request.cluster, wanted, outlook(changes)?);
            Ok(Plans::OfClass(Box::new(report)))
        }
        Foreseen::Deleted(preview) => Ok(Plans::Deletion(DeletionReport::of(&preview, cluster))),
        Foreseen::Refused { why } => {
            let (cluster, to) = (cluster.clone(), wanted.release().cloned());
            let what = match &to {
                Some(to) => format!("upgraded to {to}"),
                None => format!("changed by {}", wanted.words()),
            };
            Err(Error::Refused { cluster, what, to, why }.into())
        }
    }
}

/// What an upgrade would do.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanReport {
    cluster: String,
    namespace: String,
    /// Both.
    #[serde(skip)]
    subject: NamespacedName,
    /// Its release is a label.
    #[serde(skip)]
    by_label: bool,
    /// The update that would begin, or that runs and comes first; none if there is nothing to do.
    update: Option<Update>,
    /// The release that it leads to.
    to: String,
    /// Why that one.
    why: String,
    /// The whole way, where this is only the first of several updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    way: Option<Way>,
    pub release_digest: String,
    /// What the whole update may do. It is what `ClusterUpdate.spec.envelopeDigest` will say.
    pub envelope_digest: String,
    /// What sort of update it is, and what each field that differs would do.
    change: Classification,
    stages: Vec<StageForeseen>,
    exemptions: Vec<String>,
    findings: Vec<Finding>,
    #[serde(flatten)]
    outlook: Outlook,
}

/// A stage of it: what it would change, and what it would wait for.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StageForeseen {
    stage: Stage,
    state: StageState,
    changes: Vec<String>,
    waits: Vec<Wait>,
}

impl StageForeseen {
    fn of(report: &Report, stage: &StageReport) -> Self {
        Self { stage: stage.stage, state: stage.state, changes: stage.changes.clone(), waits: report.waits(stage) }
    }
}

/// An update.
#[derive(Serialize, schemars::JsonSchema)]
struct Update {
    name: String,
    from: String,
}

impl PlanReport {
    fn of(preview: Preview, wanted: &Wanted, way: Option<Way>, outlook: Outlook) -> Self {
        let Preview { input, planned, findings } = preview;
        let to = &input.target.release.distribution;
        // As those name it who ask: a label has no `v` in it.
        let by_label = input.target.fields.is_some();
        let named = |version: &str| if by_label { version.trim_start_matches('v') } else { version }.to_owned();
        let why = match &wanted.to {
            Some(hint) if wanted.set.is_empty() => why_release(hint, to, way.as_ref(), &named),
            _ => format!("it was asked for: {}", wanted.words()),
        };
        let update = match planned.record {
            Some(Record::Begin { name, from, .. }) => {
                Some(Update { name: name.to_string(), from: named(&from.distribution) })
            }
            Some(Record::Resumed | Record::Succeeded | Record::Failed { .. } | Record::Aborted) | None => None,
        };
        let report = planned.report;
        Self {
            cluster: input.target.cluster.name.to_string(),
            namespace: input.target.cluster.namespace.to_string(),
            subject: NamespacedName {
                namespace: input.target.cluster.namespace.clone(),
                name: input.target.cluster.name.clone().into(),
            },
            by_label,
            update,
            to: named(to.as_str()),
            why,
            change: classify(&input.target, &input.inventory),
            way,
            release_digest: planned.envelope.release_digest.clone(),
            envelope_digest: planned.envelope.digest(),
            stages: report.stages.iter().map(|stage| StageForeseen::of(&report, stage)).collect(),
            exemptions: report.exemptions,
            findings,
            outlook,
        }
    }

    /// Whether there is anything to change.
    fn changes(&self) -> bool {
        self.stages.iter().any(|stage| !stage.changes.is_empty())
    }
}

/// Why it is this release that a hint leads to.
fn why_release(
    hint: &VersionPrefix,
    to: &KubernetesVersion,
    way: Option<&Way>,
    named: &dyn Fn(&str) -> String,
) -> String {
    let (is_all, matches, hint) = (hint.is_all_of(to), hint.matches(to), named(hint.as_str()));
    match (is_all, matches) {
        _ if way.is_some_and(|way| way.to != *to) => format!("it is on the way to {hint}"),
        (true, _) => format!("{hint} was asked for"),
        (false, true) => format!("{hint} was asked for, and this is the newest release that begins so"),
        (false, false) => format!("the update to it is not done yet; {hint} would come after it"),
    }
}

/// There is no plan.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{cluster} cannot be {what}: {why}")]
    Refused { cluster: ClusterName, what: String, to: Option<VersionPrefix>, why: String },
    #[error("no envelope can be told of {cluster}: its release, or the template of that, cannot be acted on")]
    NoEnvelope { cluster: ClusterName },
    #[error("cannot plan")]
    Preview(#[source] preview::Error),
    #[error("cannot rehearse what is planned")]
    Rehearse(#[source] report::Error),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Refused { .. } | Self::NoEnvelope { .. } => Kind::User,
            Self::Preview(_) | Self::Rehearse(_) => Kind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Refused { cluster, to: Some(to), .. } => {
                format!("windlass release list, or windlass release path {cluster} --to {to}")
            }
            Self::Refused { cluster, to: None, .. } => {
                format!("windlass status {cluster}, and a value that is accepted")
            }
            Self::NoEnvelope { .. } => "windlass release verify, or the same without --out".to_owned(),
            Self::Rehearse(_) => "the same with --runs 0, which only plans".to_owned(),
            Self::Preview(_) => "windlass status, which shows what is known of the cluster".to_owned(),
        })
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Refused { .. } => Exit::Refused,
            Self::NoEnvelope { .. } | Self::Preview(_) | Self::Rehearse(_) => Exit::Failed,
        }
    }
}
