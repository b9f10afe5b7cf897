//! `windlass approve` and `windlass reject`: what somebody says to an update that does not begin without it.

use std::fmt::Debug;
use std::io;

use kube::api::{ListParams, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::kind::cluster_update::ClusterUpdate;
use windlass_api::kind::release::ClusterBootstrap;
use windlass_api::name::{ClusterName, NameError};
use windlass_api::{annotation, label};
use windlass_plan::bootstrap::course::Course;

use crate::ask::{Answer, ask};
use crate::changed::Changed;
use crate::client::{self, AnyCluster, Connection, FIELD_MANAGER, Management};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;
use crate::pending::{self, Pending};

/// Agree to an update that waits for it
///
/// What is agreed to is the envelope that `windlass plan` prints, and nothing else: when the cluster is asked to be something else, or
/// is something else by then, it waits for another approval. Who approved is on the record of the update.
///
/// Updates have to be approved in namespaces with the label windlass.dev/approval: required, or second-person, where whoever asked may
/// not approve. The verb approve on tanzukubernetesclusters is needed, or on clusters where Cluster API replaces the machines.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  windlass approve my-tkc\n  windlass approve my-tkc --envelope sha256:… --yes --reason CHG-1042"
)]
pub struct Approve {
    #[command(flatten)]
    decide: Decide,
}

/// Say that an update that waits for approval is not wanted
///
/// It does not begin, until somebody approves it after all or something else is asked for.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  windlass reject my-tkc --reason 'not before the holidays'")]
pub struct Reject {
    #[command(flatten)]
    decide: Decide,
}

#[derive(clap::Args)]
struct Decide {
    /// The cluster, or the update that would begin: my-tkc-2
    target: String,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Only if this is what waits: the envelope that was reviewed
    #[arg(long, value_name = "DIGEST")]
    envelope: Option<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Write it as a document instead, for scripts, or the name of the cluster
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    connection: Connection,
}

/// An object that stands for a cluster, as clients read and write it.
trait Stands: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned {}
impl<K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned> Stands
    for K
{
}

/// What `approve -o` and `reject -o` write.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionReport<'a> {
    cluster: &'a ClusterName,
    decision: Decision,
    /// What it is about.
    envelope: &'a str,
    /// What would be done.
    update: &'a str,
    /// Who decided, as the server has it.
    by: Option<&'a str>,
    reason: Option<&'a str>,
}

/// What somebody says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Decision {
    Approved,
    Rejected,
}

impl Approve {
    /// Approves.
    pub async fn run(self) -> Result<Exit, Failure> {
        self.decide.run(Decision::Approved).await
    }
}

impl Reject {
    /// Rejects.
    pub async fn run(self) -> Result<Exit, Failure> {
        self.decide.run(Decision::Rejected).await
    }
}

impl Decision {
    fn verb(self) -> &'static str {
        match self {
            Self::Approved => "approve",
            Self::Rejected => "reject",
        }
    }

    /// The annotation that says it, and the one that would say the opposite.
    fn annotations(self) -> [&'static str; 2] {
        match self {
            Self::Approved => [annotation::APPROVED.name, annotation::REJECTED.name],
            Self::Rejected => [annotation::REJECTED.name, annotation::APPROVED.name],
        }
    }
}

impl Decide {
    async fn run(self, decision: Decision) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        match self.find(&management).await? {
            (name, AnyCluster::Machines(cluster)) => {
                self.decide(&management, (&name, &*cluster), Pending::of(&*cluster), decision).await
            }
            (name, AnyCluster::ByLabel(cluster)) => {
                self.decide(&management, (&name, &*cluster), Pending::of(&*cluster), decision).await
            }
            (name, AnyCluster::OfClass) => self.decide_of_class(&management, &name, decision).await,
        }
    }

    /// Of a cluster of a class its packages say what waits.
    async fn decide_of_class(
        &self,
        management: &Management,
        name: &ClusterName,
        decision: Decision,
    ) -> Result<Exit, Failure> {
        let cluster = management.api::<Cluster>().get(name.as_str()).await;
        let cluster = cluster.map_err(client::Error::while_trying(&format!("read the cluster {name}")))?;
        let bootstrap = management.api::<ClusterBootstrap>().get_opt(name.as_str()).await;
        let bootstrap = bootstrap.map_err(client::Error::while_trying(&format!("read the packages of {name}")))?;
        let course = Course { cluster: &cluster, bootstrap: bootstrap.as_ref() };
        let pending = course.pending().and_then(Pending::told);
        self.decide(management, (name, &cluster), pending, decision).await
    }

    async fn decide<K: Stands>(
        &self,
        management: &Management,
        (name, cluster): (&ClusterName, &K),
        pending: Option<Pending>,
        decision: Decision,
    ) -> Result<Exit, Failure> {
        let Some(pending) = pending else { return Err(Error::Nothing { cluster: name.clone() }.into()) };
        if let Some(reviewed) = self.envelope.as_ref().filter(|reviewed| **reviewed != pending.digest) {
            let (reviewed, found) = (reviewed.clone(), pending.digest);
            return Err(Error::Stale { cluster: name.clone(), reviewed, found }.into());
        }
        if !self.yes {
            output::say(pending.what());
            confirm(name, decision)?;
        }
        let decided = self.write(management, (name, cluster), &pending, decision).await?;
        self.tell(name, &decided, &pending, decision)?;
        Ok(Exit::Done)
    }

    /// The cluster; by its name, or by that of the update that it waits to begin.
    async fn find(&self, management: &Management) -> Result<(ClusterName, AnyCluster), Failure> {
        let name = |text: &str| ClusterName::new(text).map_err(|source| Error::Name { text: text.to_owned(), source });
        let target = self.target.trim_start_matches("clusterupdate/");
        let of_update =
            target.rsplit_once('-').and_then(|(cluster, ordinal)| Some((cluster, ordinal.parse::<u64>().ok()?)));
        let missing = match management.any_cluster(&name(target)?).await {
            Ok(cluster) => return Ok((name(target)?, cluster)),
            Err(error) => error,
        };
        let (Some((of, ordinal)), client::Error::NoCluster { .. }) = (of_update, &missing) else {
            return Err(missing.into());
        };
        let of = name(of)?;
        let Ok(cluster) = management.any_cluster(&of).await else { return Err(missing.into()) };
        let next = next_update(management, &of).await?;
        if next != ordinal {
            return Err(Error::OtherUpdate { cluster: of, asked: target.to_owned(), next }.into());
        }
        Ok((of, cluster))
    }

    /// Who decides, decides about the cluster as it was read.
    async fn write<K: Stands>(
        &self,
        management: &Management,
        (name, cluster): (&ClusterName, &K),
        pending: &Pending,
        decision: Decision,
    ) -> Result<K, Failure> {
        let [says, opposite] = decision.annotations();
        let patch = Patch::Merge(json!({"metadata": {
            "resourceVersion": cluster.meta().resource_version,
            "annotations": {
                says: pending.digest,
                opposite: null,
                annotation::DECIDED_BECAUSE.name: self.reason,
            },
        }}));
        let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patched = management.api::<K>().patch(name.as_str(), &parameters, &patch).await;
        match patched {
            Err(kube::Error::Api(status)) if status.code == 409 => Err(Error::Changed { cluster: name.clone() }.into()),
            patched => {
                let attempt = format!("{} the update of {name}", decision.verb());
                Ok(patched.map_err(client::Error::while_trying(&attempt))?)
            }
        }
    }

    fn tell<K: Stands>(
        &self,
        cluster: &ClusterName,
        decided: &K,
        pending: &Pending,
        decision: Decision,
    ) -> Result<(), output::Error> {
        let by = pending::decided_by(decided.meta());
        if let Some(format) = self.output {
            let report = DecisionReport {
                cluster,
                decision,
                envelope: &pending.digest,
                update: pending.what(),
                by,
                reason: self.reason.as_deref(),
            };
            let named = format!("{}.{}/{cluster}", K::kind(&()).to_lowercase(), K::group(&()));
            return format.tell(&named, "DecisionReport", report);
        }
        let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
        output::data(&match decision {
            Decision::Approved => format!("the update of {cluster} is approved{by}, and begins"),
            Decision::Rejected => format!("the update of {cluster} is rejected{by}, and does not begin"),
        })
    }
}

/// Which update of a cluster is the next one.
async fn next_update(management: &Management, cluster: &ClusterName) -> Result<u64, Failure> {
    let of_cluster = ListParams::default().labels(&format!("{}={cluster}", label::CLUSTER_NAME));
    let listed = management.api::<ClusterUpdate>().list(&of_cluster).await;
    let listed = listed.map_err(client::Error::while_trying(&format!("list the updates of {cluster}")))?;
    Ok(listed.items.iter().map(|update| update.spec.ordinal).max().unwrap_or_default() + 1)
}

/// It is not decided.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("nothing of {cluster} waits for approval")]
    Nothing { cluster: ClusterName },
    #[error("{text:?} is no name of a cluster")]
    Name { text: String, source: NameError },
    #[error("{asked} is not what waits: the next update of {cluster} is {cluster}-{next}")]
    OtherUpdate { cluster: ClusterName, asked: String, next: u64 },
    #[error("what waits for {cluster} has the envelope {found}, and {reviewed} was reviewed")]
    Stale { cluster: ClusterName, reviewed: String, found: String },
    #[error("the update of {cluster} is not decided about: {}", if *asked { "the answer was no" } else { "nobody is there to ask, and --yes was not given" })]
    NotConfirmed { cluster: ClusterName, verb: &'static str, asked: bool },
    #[error("cannot ask on this terminal")]
    Terminal(#[source] io::Error),
    #[error("the update of {cluster} is not decided about: the cluster was changed by somebody else after it was read")]
    Changed { cluster: ClusterName },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Terminal(_) | Self::Changed { .. } => Kind::Environment,
            Self::Nothing { .. }
            | Self::Name { .. }
            | Self::OtherUpdate { .. }
            | Self::Stale { .. }
            | Self::NotConfirmed { .. } => Kind::User,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Nothing { cluster } | Self::Changed { cluster } | Self::Stale { cluster, .. } => {
                format!("windlass status {cluster}")
            }
            Self::Name { .. } => "windlass get clusters".to_owned(),
            Self::OtherUpdate { cluster, .. } => format!("windlass get updates -l {}={cluster}", label::CLUSTER_NAME),
            Self::NotConfirmed { cluster, verb, .. } => {
                format!("windlass status {cluster}, then windlass {verb} {cluster} --yes")
            }
            Self::Terminal(_) => "--yes".to_owned(),
        })
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Stale { .. } | Self::Changed { .. } => Exit::Stale,
            Self::Nothing { .. }
            | Self::Name { .. }
            | Self::OtherUpdate { .. }
            | Self::NotConfirmed { .. }
            | Self::Terminal(_) => Exit::Failed,
        }
    }
}

/// Asks whoever sits there.
fn confirm(cluster: &ClusterName, decision: Decision) -> Result<(), Error> {
    let verb = decision.verb();
    let refused = |asked| Error::NotConfirmed { cluster: cluster.clone(), verb, asked };
    let mut question = verb.to_owned();
    question[..1].make_ascii_uppercase();
    match ask(&format!("{question} that for {cluster}?")).map_err(Error::Terminal)? {
        Answer::Yes => Ok(()),
        Answer::No => Err(refused(true)),
        Answer::NobodyThere => Err(refused(false)),
    }
}
