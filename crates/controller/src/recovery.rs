//! Gets back the certificates and keys that machines need to join a cluster, from what its machines were given when they
//! booted.
//!
//! [`plan`] decides, by what [`pair`] and [`bootstrap`] read; `observe` and `restore` are the ends. A private key goes from one
//! Secret into another and nowhere else: neither a report, nor an error, nor an Event has a place for one.

pub mod bootstrap;
mod observe;
pub mod pair;
pub mod plan;
mod restore;

use kube::Client;
use serde::Serialize;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::name::{ClusterName, ClusterSecret, MachineName, NameError, Namespace, ObjectName};
use windlass_runtime::clock::Clock;
use windlass_runtime::events::{PublishError, Recorder};

use crate::said::said;
use pair::Identity;
use plan::{Decision, Found, Live, Verdict};

/// In whose name Events are published.
const CONTROLLER: &str = "windlass.dev/recovery";

/// How the certificates of a cluster are doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretsReport {
    /// The cluster.
    pub cluster: ClusterName,
    /// Its namespace.
    pub namespace: Namespace,
    /// How they are doing in all.
    pub assessment: Assessment,
    /// Each of the four.
    pub secrets: Vec<SecretReport>,
    /// The machines that Secrets can be taken from, newest first.
    pub machines: Vec<MachineReport>,
}

/// How all are doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Assessment {
    /// All are there, are pairs, and stay.
    Intact,
    /// Not all of that, and all of it can be helped.
    Recoverable,
    /// Something cannot be helped from here.
    Damaged,
    /// Something was done, and now all are intact.
    Recovered,
}

/// How one of them is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretReport {
    /// Its name.
    pub name: ObjectName,
    /// How it was found.
    pub state: SecretState,
    /// What is to be done, or was done.
    pub action: Action,
    /// Whether that was done.
    pub done: bool,
    /// The machine that it is taken from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<MachineName>,
    /// Why nothing can be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Which pair it is, or is to be, told by its public half.
    #[serde(flatten)]
    pub identity: Option<Identity>,
}

/// How a Secret was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SecretState {
    /// It is there, and stays.
    Intact,
    /// It is there, and goes with somebody else.
    AtRisk,
    /// It is not there.
    Missing,
    /// It is about to be gone.
    Leaving,
    /// It is there, and not what the cluster needs.
    Unusable,
}

/// What is to be done about a Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Nothing.
    None,
    /// The Cluster becomes its owner.
    Own,
    /// It is made anew.
    Restore,
    /// Something that only a person can do.
    Person,
}

/// A machine, as a place to take Secrets from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineReport {
    /// The machine.
    pub name: MachineName,
    /// The Secrets that it was given, whole.
    #[schemars(with = "Vec<String>")]
    pub has: Vec<ClusterSecret>,
    /// Why what it was given cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What a person has chosen.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether to write, or only to say what would be written.
    pub apply: bool,
    /// The only machine to take Secrets from.
    pub from: Option<MachineName>,
}

/// Why Secrets could not be looked at, or not be recovered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Cluster API has no such cluster.
    #[error("there is no Cluster {name} in the namespace {namespace}, which its Secrets could belong to")]
    NoCluster {
        /// Its name.
        name: ClusterName,
        /// Where it should be.
        namespace: Namespace,
    },
    /// Secrets that belong to it would go with it.
    #[error("Cluster/{name} is being deleted, and its Secrets with it")]
    Leaving {
        /// Its name.
        name: ClusterName,
    },
    /// An object without a name or a uid.
    #[error("the API server gave out a Cluster without a name or a uid")]
    NoIdentity,
    /// A name that is none.
    #[error("the API server gave out a name that is none")]
    Name(#[source] NameError),
    /// The chosen machine is not one of them.
    #[error("Machine/{machine} is no machine of the control plane of {cluster}; there are {known}")]
    NoSource {
        /// The machine that was chosen.
        machine: MachineName,
        /// The cluster.
        cluster: ClusterName,
        /// Those there are.
        known: String,
    },
    /// Somebody else has made a Secret of that name.
    #[error("Secret/{name} was made by somebody else in between, and is another one")]
    Other {
        /// Its name.
        name: String,
    },
    /// Somebody keeps changing it.
    #[error("Secret/{name} was changed by somebody else at every try to own it")]
    Contended {
        /// Its name.
        name: String,
    },
    /// What was done could not be told.
    #[error("the Secret is written, and the Event about it could not be")]
    Event(#[source] PublishError),
    /// The API refused, or could not be reached.
    #[error("{verb} {object}: {}", said(source))]
    Api {
        /// What was attempted.
        verb: &'static str,
        /// On what.
        object: String,
        /// What the API said.
        source: Box<kube::Error>,
    },
}

impl Error {
    fn api(verb: &'static str, object: String) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Api { verb, object, source: Box::new(source) }
    }
}

/// Says how the certificates of a cluster are doing, and what would help.
pub async fn check(client: &Client, namespace: &Namespace, name: &ClusterName) -> Result<SecretsReport, Error> {
    let cluster = observe::cluster(client, namespace, name).await?;
    let found = observe::find(client, namespace, &cluster).await?;
    Ok(report(namespace, name, &found, &plan::decide(&found, None), false))
}

/// Restores what is missing and owns what is at risk, or says what would be done. What cannot be helped stops nothing else.
pub async fn recover(
    client: &Client,
    clock: &Clock,
    namespace: &Namespace,
    name: &ClusterName,
    options: &Options,
) -> Result<SecretsReport, Error> {
    let cluster = observe::cluster(client, namespace, name).await?;
    let found = observe::find(client, namespace, &cluster).await?;
    if let Some(machine) = &options.from
        && !found.sources.iter().any(|source| source.machine == *machine)
    {
        let known: Vec<&str> = found.sources.iter().map(|source| source.machine.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Error::NoSource { machine: machine.clone(), cluster: name.clone(), known });
    }
    let decisions = plan::decide(&found, options.from.as_ref());
    if options.apply {
        let recorder = Recorder::new(client.clone(), clock.clone(), CONTROLLER, CONTROLLER);
        let scope = restore::Scope { client, namespace, cluster: &cluster, recorder: &recorder };
        for decision in &decisions {
            carry_out(&scope, &found, decision).await?;
        }
    }
    Ok(report(namespace, name, &found, &decisions, options.apply))
}

async fn carry_out(scope: &restore::Scope<'_>, found: &Found, decision: &Decision) -> Result<(), Error> {
    match (&decision.verdict, &decision.identity) {
        (Verdict::Own, _) => scope.own(decision.secret).await,
        (Verdict::Restore { from }, Some(identity)) => {
            let source = found.sources.iter().find(|source| source.machine == *from);
            match source.and_then(|source| source.offers.as_ref().ok()?.get(&decision.secret)) {
                Some(offer) => scope.restore(decision.secret, from, offer, identity).await,
                None => Ok(()),
            }
        }
        (Verdict::Restore { .. }, None) | (Verdict::Intact | Verdict::Refused { .. }, _) => Ok(()),
    }
}

fn name_of(cluster: &Cluster) -> Result<ClusterName, Error> {
    cluster.metadata.name.as_deref().ok_or(Error::NoIdentity)?.parse().map_err(Error::Name)
}

fn report(
    namespace: &Namespace,
    cluster: &ClusterName,
    found: &Found,
    decisions: &[Decision],
    applied: bool,
) -> SecretsReport {
    let secrets: Vec<SecretReport> =
        decisions.iter().map(|decision| judged(cluster, found, decision, applied)).collect();
    let any = |action| secrets.iter().any(|secret| secret.action == action);
    let assessment = if any(Action::Person) {
        Assessment::Damaged
    } else if !any(Action::Own) && !any(Action::Restore) {
        Assessment::Intact
    } else if applied {
        Assessment::Recovered
    } else {
        Assessment::Recoverable
    };
    let machines = found.sources.iter().map(|source| MachineReport {
        name: source.machine.clone(),
        has: source
            .offers
            .iter()
            .flatten()
            .filter(|(_, offer)| offer.pair.is_ok())
            .map(|(secret, _)| *secret)
            .collect(),
        why: source.offers.as_ref().err().cloned(),
    });
    let machines = machines.collect();
    SecretsReport { cluster: cluster.clone(), namespace: namespace.clone(), assessment, secrets, machines }
}

fn judged(cluster: &ClusterName, found: &Found, decision: &Decision, applied: bool) -> SecretReport {
    let (action, from, why) = match &decision.verdict {
        Verdict::Intact => (Action::None, None, None),
        Verdict::Own => (Action::Own, None, None),
        Verdict::Restore { from } => (Action::Restore, Some(from.clone()), None),
        Verdict::Refused { why } => (Action::Person, None, Some(why.clone())),
    };
    let state = match (found.secrets.get(&decision.secret), action) {
        (None | Some(Live::Absent), _) => SecretState::Missing,
        (Some(Live::Leaving), _) => SecretState::Leaving,
        (Some(Live::There { .. }), Action::Own) => SecretState::AtRisk,
        (Some(Live::There { .. }), Action::Person) => SecretState::Unusable,
        (Some(Live::There { .. }), Action::None | Action::Restore) => SecretState::Intact,
    };
    SecretReport {
        name: decision.secret.object_name(cluster),
        state,
        action,
        done: applied && matches!(action, Action::Own | Action::Restore),
        from,
        why,
        identity: decision.identity.clone(),
    }
}
