//! `windlass upgrade`: the one write by which an upgrade begins, or one after the other where it takes several.

mod class;
pub mod commit;
mod label;
pub mod rolled;

use std::io;
use std::path::PathBuf;

use kube::api::{Patch, PatchParams};
use serde::Serialize;
use serde_json::json;
use windlass_api::annotation;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::ClusterName;
use windlass_api::version::{KubernetesVersion, VersionPrefix};
use windlass_plan::resolve::Refusal;

use crate::ask::{Answer, ask};
use crate::changed::Changed;
use crate::client::{self, AnyCluster, Connection, FIELD_MANAGER, Management};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;
use crate::pending;
use crate::release;
use crate::wait::Patience;
use crate::way::{self, Way, WayHop};

use super::block_on;
use super::plan::{kept, plan, review};
use commit::{Commit, Committed};

/// Upgrade a cluster to a release
///
/// Sets the version of the cluster; the controllers do the rest: packages, then the control plane, then the workers.
/// A release that is several minors ahead is reached by one update after the other; workers are replaced only where they
/// would be left too far behind, and in the end. Whoever is interrupted types the same again.
/// Without --yes the upgrade is shown, and a person is asked.
#[derive(clap::Args)]
pub struct Args {
    /// The cluster
    #[arg(required_unless_present = "plan")]
    cluster: Option<ClusterName>,
    /// The release, or the beginning of its version
    #[arg(long, value_name = "RELEASE", required_unless_present = "plan")]
    to: Option<VersionPrefix>,
    /// What is in this file, which `plan --out` has kept, and nothing else
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cluster", "to", "envelope"])]
    plan: Option<PathBuf>,
    /// Only if this is still what would be done: the envelope that `plan` printed. No more is done than what it is about
    #[arg(long, value_name = "DIGEST")]
    envelope: Option<String>,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Write it as a document instead, for scripts, or the name of the cluster. With --wait, JSON is a line for each change, and one
    /// for the end
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    commit: Commit,
    #[command(flatten)]
    patience: Patience,
    #[command(flatten)]
    connection: Connection,
}

/// An upgrade that was asked for.
pub struct Upgrade {
    cluster: ClusterName,
    to: VersionPrefix,
    envelope: Option<String>,
    /// The release when that was looked at, and what it said.
    reviewed: Option<Reviewed>,
    dry_run: bool,
    yes: bool,
    output: Option<Changed>,
    commit: Commit,
    patience: Patience,
    connection: Connection,
}

/// What was reviewed.
struct Reviewed {
    /// The release, in full.
    release: String,
    envelope: String,
    /// The digest of what the release says.
    says: String,
}

impl Args {
    /// Begins the upgrade, and waits for its end if that is wanted.
    pub fn run(self) -> Result<Exit, Failure> {
        let kept = self.plan.as_deref().map(kept::read).transpose()?;
        let mut connection = self.connection;
        let (cluster, to) = match (&kept, self.cluster, self.to) {
            (Some(kept), ..) => {
                connection = connection.within(&kept.namespace);
                (kept.cluster.clone(), kept.to.clone())
            }
            (None, Some(cluster), Some(to)) => (cluster, to),
            // The command line is not understood without them.
            (None, ..) => return Err(Error::Nothing.into()),
        };
        let mut envelope = self.envelope;
        if let Some(kept) = kept {
            let now = plan(&connection, &cluster, &to)?;
            if let Some(why) = kept.differs(&now) {
                return Err(Error::Moved { cluster, to, why }.into());
            }
            envelope = Some(kept.envelope_digest);
        }
        let Self { dry_run, yes, output, commit, patience, .. } = self;
        let reviewed = None;
        Upgrade { cluster, to, envelope, reviewed, dry_run, yes, output, commit, patience, connection }.run()
    }
}

/// What `upgrade -o` writes.
#[derive(Serialize, schemars::JsonSchema)]
pub struct UpgradeReport<'a> {
    cluster: &'a ClusterName,
    #[serde(flatten)]
    way: &'a Way,
    outcome: Outcome,
}

/// How it went.
#[derive(Debug, Clone, Copy, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    NothingToDo,
    /// It was asked for before, and was waited for.
    Reached,
    DryRun,
    Begun,
    /// It begins when somebody approves it.
    Waiting,
    /// The first of several updates is done, and no more was agreed on.
    FirstHop,
    Succeeded,
}

impl Outcome {
    /// What people are told. `at` is where the first of several updates ends.
    fn said(self, cluster: &ClusterName, from: &str, at: &str, to: &str) -> String {
        match self {
            Self::NothingToDo => format!("cluster {cluster} is asked to be at {to} already"),
            Self::Reached => format!("cluster {cluster} is at {to}, as was asked before"),
            Self::DryRun => format!("cluster {cluster} upgraded (dry run): {from} to {to}"),
            Self::Begun => format!("cluster {cluster} is being upgraded: {from} to {to}"),
            Self::Waiting => format!("cluster {cluster} waits for somebody to approve it: {from} to {to}"),
            Self::FirstHop => format!("cluster {cluster} is upgraded: {from} to {at}, on its way to {to}"),
            Self::Succeeded => format!("cluster {cluster} is upgraded: {from} to {to}"),
        }
    }
}

impl Upgrade {
    fn run(mut self) -> Result<Exit, Failure> {
        self.patience = self.patience.in_lines_of(self.output);
        if let Some(reviewed) = &self.envelope {
            let found = plan(&self.connection, &self.cluster, &self.to)?;
            if found.envelope_digest() != Some(reviewed.as_str()) {
                let found = found.envelope_digest().unwrap_or("none at all").to_owned();
                return Err(Error::Stale { cluster: self.cluster, to: self.to, found }.into());
            }
            let says = found.release_digest().unwrap_or_default().to_owned();
            self.reviewed = Some(Reviewed { release: found.to().to_owned(), envelope: reviewed.clone(), says });
        }
        if self.commit.is_asked_for() {
            return self.ask_by_commit();
        }
        block_on(self.begin())
    }

    /// What would be done is committed with the line that asks for it; nobody is asked, as nothing is done. It asks for the release
    /// in full.
    fn ask_by_commit(self) -> Result<Exit, Failure> {
        let plan = review(&self.connection, &self.cluster, &self.to)?;
        if let Some(first) = plan.first {
            return Err(Error::Long { cluster: self.cluster, to: self.to, first }.into());
        }
        let made = self.commit.make(&plan)?;
        if let Some(format) = self.output {
            format.tell_cluster(&self.cluster, "UpgradeCommit", &made)?;
            return Ok(Exit::Done);
        }
        let cluster = &self.cluster;
        let Committed { commit, to, place, pushed_to } = made;
        let told = commit.zip(place).map_or_else(
            || format!("the repository asks for {to} for {cluster} already"),
            |(commit, place)| format!("commit {commit} asks for {to} for {cluster}: {place}"),
        );
        output::data(&told)?;
        if let Some(remote) = pushed_to {
            output::note(&format!("It was pushed to {remote}"));
        }
        Ok(Exit::Done)
    }

    async fn begin(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let cluster = match management.any_cluster(&self.cluster).await? {
            AnyCluster::Machines(cluster) => cluster,
            AnyCluster::OfClass => return self.begin_of_class(&management).await,
            AnyCluster::ByLabel(cluster) => return self.begin_by_label(&management, &cluster).await,
        };
        let from = way::current(&cluster)?;
        let releases = release::all(&management).await?;
        match Way::find(&cluster, &from, &self.to, &releases) {
            Ok(way) if way.is_long() => self.go(&management, &cluster, &way).await,
            Err(refusal) if matches!(*refusal, Refusal::NoPath { .. }) => Err(release::Error::from(refusal).into()),
            // One ordinary update: what it leads to, and whether it may be, is for the server to say.
            Ok(_) | Err(_) => self.go_at_once(&management, from).await,
        }
    }

    /// One update.
    async fn go_at_once(&self, management: &Management, from: KubernetesVersion) -> Result<Exit, Failure> {
        let wish = Wish { version: self.to.as_str(), full_version: None, on_the_way_to: None };
        let tried = self.patch(management, &wish, true).await?;
        let to = way::current(&tried)?;
        tell_warnings(management);
        let hops = if from == to { Vec::new() } else { vec![WayHop { to: to.clone(), workers: true }] };
        let way = Way { from, to, hops, by_label: false };
        if way.hops.is_empty() {
            // It may have been asked for a moment ago, by somebody who did not wait.
            let generation = tried.metadata.generation.unwrap_or_default();
            let reached = self.patience.wait(management, &self.cluster, generation).await?.is_some();
            return self.tell(&way, if reached { Outcome::Reached } else { Outcome::NothingToDo });
        }
        if self.dry_run {
            return self.tell(&way, Outcome::DryRun);
        }
        if !self.yes {
            self.ask_way(&way)?;
        }
        let begun = self.patch(management, &wish, false).await?;
        tell_warnings(management);
        self.end(management, &way, &begun).await
    }

    /// Several updates, one after the other. The last is waited for only if that is wanted.
    async fn go(&self, management: &Management, cluster: &TanzuKubernetesCluster, way: &Way) -> Result<Exit, Failure> {
        output::say(&way.table());
        let [first, rest @ ..] = way.hops.as_slice() else { return self.tell(way, Outcome::NothingToDo) };
        self.patch(management, &self.wish(way, first), true).await?;
        tell_warnings(management);
        if self.dry_run {
            return self.tell(way, Outcome::DryRun);
        }
        if !self.yes {
            self.ask_way(way)?;
        }
        // What was begun before is brought to its end first.
        if way::waits(cluster, &way.from).is_some() {
            let generation = cluster.metadata.generation.unwrap_or_default();
            self.patience.wait_anyway(management, &self.cluster, generation).await?;
        }
        let mut begun = self.patch(management, &self.wish(way, first), false).await?;
        tell_warnings(management);
        for hop in rest {
            let generation = begun.metadata.generation.unwrap_or_default();
            self.patience.wait_anyway(management, &self.cluster, generation).await?;
            // What was reviewed is what is done: the plan was one of the first update.
            if self.envelope.is_some() {
                return self.tell(way, Outcome::FirstHop);
            }
            begun = self.patch(management, &self.wish(way, hop), false).await?;
            tell_warnings(management);
        }
        self.end(management, way, &begun).await
    }

    async fn end(&self, management: &Management, way: &Way, begun: &TanzuKubernetesCluster) -> Result<Exit, Failure> {
        let generation = begun.metadata.generation.unwrap_or_default();
        if self.patience.wait(management, &self.cluster, generation).await?.is_some() {
            return self.tell(way, Outcome::Succeeded);
        }
        if pending::needs_approval(begun) {
            return self.tell(way, Outcome::Waiting);
        }
        output::note(&format!("Next: windlass status {} --watch", self.cluster));
        self.tell(way, Outcome::Begun)
    }

    /// What is asked of the cluster at a hop. The last is asked for in the words of the person.
    fn wish<'a>(&'a self, way: &'a Way, hop: &'a WayHop) -> Wish<'a> {
        Wish {
            version: if hop.to == way.to { self.to.as_str() } else { hop.to.as_str() },
            full_version: Some(&hop.to),
            on_the_way_to: way.on_the_way_to(hop),
        }
    }

    /// A hint is resolved anew only where the full version is taken away with it.
    async fn patch(
        &self,
        management: &Management,
        wish: &Wish<'_>,
        dry_run: bool,
    ) -> Result<TanzuKubernetesCluster, client::Error> {
        let distribution = json!({"version": wish.version, "fullVersion": wish.full_version});
        let annotations = json!({annotation::ON_THE_WAY_TO.name: wish.on_the_way_to});
        let patch = json!({"metadata": {"annotations": annotations}, "spec": {"distribution": distribution}});
        let field_manager = Some(FIELD_MANAGER.to_owned());
        let parameters = PatchParams { dry_run, field_manager, ..PatchParams::default() };
        let api = management.api::<TanzuKubernetesCluster>();
        let patched = api.patch(self.cluster.as_str(), &parameters, &Patch::Merge(patch)).await;
        patched.map_err(client::Error::while_trying(&format!("upgrade {} to {}", self.cluster, wish.version)))
    }

    fn ask_way(&self, way: &Way) -> Result<(), Error> {
        let Way { from, to, hops, .. } = way;
        let steps = if hops.len() > 1 { format!(", by {} updates", hops.len()) } else { String::new() };
        self.ask(&from.to_string(), &to.to_string(), &steps)
    }

    /// Nobody is there to answer where standard input is no terminal: then it is a refusal, never a wait.
    fn ask(&self, from: &str, to: &str, steps: &str) -> Result<(), Error> {
        let refused = |asked| Error::NotConfirmed { cluster: self.cluster.clone(), to: to.to_owned(), asked };
        let question = format!("Upgrade {} from {from} to {to}{steps}?", self.cluster);
        match ask(&question).map_err(Error::Terminal)? {
            Answer::Yes => Ok(()),
            Answer::No => Err(refused(true)),
            Answer::NobodyThere => Err(refused(false)),
        }
    }

    fn tell(&self, way: &Way, outcome: Outcome) -> Result<Exit, Failure> {
        let (cluster, Way { from, to, hops, .. }) = (&self.cluster, way);
        if let Some(format) = self.output {
            let report = UpgradeReport { cluster, way, outcome };
            if self.patience.is_in_lines() {
                output::data(&output::line("UpgradeReport", &report)?)?;
            } else {
                format.tell_cluster(cluster, "UpgradeReport", report)?;
            }
        } else {
            let at = hops.first().map_or(from, |hop| &hop.to);
            output::data(&outcome.said(cluster, &from.to_string(), &at.to_string(), &to.to_string()))?;
        }
        if let Outcome::FirstHop = outcome {
            output::note(&format!("Next: windlass plan {cluster} --to {to}"));
        }
        Ok(if let Outcome::Waiting = outcome { Exit::Waiting } else { Exit::Done })
    }
}

/// What is asked of a cluster, in one write.
struct Wish<'a> {
    version: &'a str,
    full_version: Option<&'a KubernetesVersion>,
    on_the_way_to: Option<&'a KubernetesVersion>,
}

fn tell_warnings(management: &Management) {
    management.warnings().iter().for_each(|warning| output::warning(warning));
}

/// Nobody said yes, or not to this.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{cluster} is not upgraded: {}", if *asked { "the answer was no" } else { "nobody is there to ask, and --yes was not given" })]
    NotConfirmed { cluster: ClusterName, to: String, asked: bool },
    #[error(
        "{cluster} is not upgraded: what would be done has the envelope {found}, which is not the one that was reviewed"
    )]
    Stale { cluster: ClusterName, to: VersionPrefix, found: String },
    #[error("{cluster} is not upgraded: {why}")]
    Moved { cluster: ClusterName, to: VersionPrefix, why: String },
    #[error("neither a cluster and a release nor a plan is given")]
    Nothing,
    #[error("cannot ask on this terminal")]
    Terminal(#[source] io::Error),
    #[error("{cluster} reaches {to} by several updates, and a commit asks for one")]
    Long { cluster: ClusterName, to: VersionPrefix, first: KubernetesVersion },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::NotConfirmed { .. } | Self::Stale { .. } | Self::Moved { .. } | Self::Nothing | Self::Long { .. } => {
                Kind::User
            }
            Self::Terminal(_) => Kind::Environment,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NotConfirmed { cluster, to, .. } => {
                Some(format!("windlass rehearse {cluster} --to {to}, then windlass upgrade {cluster} --to {to} --yes"))
            }
            Self::Stale { cluster, to, .. } => Some(format!("windlass plan {cluster} --to {to}")),
            Self::Moved { cluster, to, .. } => {
                Some(format!("windlass plan {cluster} --to {to} --out FILE, and a review of it"))
            }
            Self::Nothing => Some("windlass upgrade --help".to_owned()),
            Self::Terminal(_) => Some("--yes".to_owned()),
            Self::Long { first, .. } => Some(format!("--to {first} first, and the next when that is merged and done")),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Stale { .. } | Self::Moved { .. } => Exit::Stale,
            Self::NotConfirmed { .. } | Self::Nothing | Self::Terminal(_) | Self::Long { .. } => Exit::Failed,
        }
    }
}
