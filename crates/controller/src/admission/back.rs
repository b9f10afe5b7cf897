//! Whether a cluster can take back what it asked for: as long as no update has begun with it, nothing has changed, and what the
//! machines have is what it may ask for again.

use kube::api::ListParams;
use kube::{Api, Client};
use windlass_api::kind::cluster_update::{ClusterUpdate, UpdateState};
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::label;
use windlass_api::version::KubernetesVersion;
use windlass_plan::resolve::Refusal;

use super::choice::Unknown;

/// The way back to what all machines of a cluster have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Back {
    /// There is none, or none is needed: the cluster asks for what it has.
    None,
    /// Nothing has begun.
    Open {
        /// What the machines have.
        to: KubernetesVersion,
    },
    /// An update has begun, and would go on whatever is asked for now.
    Begun {
        /// What the machines have.
        to: KubernetesVersion,
        /// Which update.
        update: String,
    },
}

impl Back {
    pub(super) async fn of(client: &Client, before: Option<&TanzuKubernetesCluster>) -> Result<Self, Unknown> {
        let Some(before) = before else { return Ok(Self::None) };
        let updates = updates(client, before).await?;
        let latest = updates.iter().max_by_key(|update| update.spec.ordinal);
        // What the machines have. Where some of them wait for a later hop, the oldest is no measure: the last update is.
        let has = match latest.map(|latest| (state(latest), &latest.spec)) {
            Some((Some(UpdateState::Succeeded), spec)) => Some(spec.to.distribution.as_str()),
            Some((Some(UpdateState::Aborted), spec)) => Some(spec.from.distribution.as_str()),
            None | Some(_) => before.status.as_ref().and_then(|status| status.version.as_deref()),
        };
        let asked = before.spec.distribution.full_version.as_deref();
        let to: Option<KubernetesVersion> = has.filter(|_| has != asked).and_then(|has| has.parse().ok());
        let Some(to) = to else { return Ok(Self::None) };
        Ok(match unfinished(before, &updates, latest) {
            None => Self::Open { to },
            Some(update) => Self::Begun { to, update },
        })
    }

    /// From where a change of the release leads: from what the machines have, as long as nothing has begun.
    pub(super) fn start(&self) -> Option<&KubernetesVersion> {
        match self {
            Self::Open { to } => Some(to),
            Self::None | Self::Begun { .. } => None,
        }
    }

    /// Whether it leads there.
    pub(super) fn is_open_to(&self, version: &KubernetesVersion) -> bool {
        matches!(self, Self::Open { to } if to == version)
    }

    /// A refusal, with what would have to be done first.
    pub(super) fn explained(&self, refusal: &Refusal, asked: &KubernetesVersion, cluster: &str) -> String {
        match self {
            Self::Begun { to, update } if to == asked => {
                format!("{refusal}; {update} has begun and has to be given up first: windlass abort {cluster}")
            }
            Self::None | Self::Open { .. } | Self::Begun { .. } => refusal.to_string(),
        }
    }
}

/// An update of the cluster that has begun and not ended. One that is announced has begun: its record comes next.
fn unfinished(
    cluster: &TanzuKubernetesCluster,
    updates: &[ClusterUpdate],
    latest: Option<&ClusterUpdate>,
) -> Option<String> {
    let announced = cluster.status.as_ref().and_then(|status| status.update.as_ref());
    let is_there = |update: &str| updates.iter().any(|one| one.metadata.name.as_deref() == Some(update));
    if let Some(announced) = announced.filter(|update| !is_there(update)) {
        return Some(announced.clone());
    }
    let has_ended =
        |update: &&ClusterUpdate| matches!(state(update), Some(UpdateState::Succeeded | UpdateState::Aborted));
    latest.filter(|update| !has_ended(update)).and_then(|update| update.metadata.name.clone())
}

fn state(update: &ClusterUpdate) -> Option<UpdateState> {
    update.status.as_ref().and_then(|status| status.state)
}

/// The updates of a cluster.
async fn updates(client: &Client, cluster: &TanzuKubernetesCluster) -> Result<Vec<ClusterUpdate>, Unknown> {
    let (name, namespace) = (&cluster.metadata.name, &cluster.metadata.namespace);
    let api: Api<ClusterUpdate> = Api::namespaced(client.clone(), namespace.as_deref().unwrap_or_default());
    let of_cluster =
        ListParams::default().labels(&format!("{}={}", label::CLUSTER_NAME, name.as_deref().unwrap_or_default()));
    let listed = api.list(&of_cluster).await.map_err(|source| Unknown::new("ClusterUpdates", source))?;
    Ok(listed.items)
}
