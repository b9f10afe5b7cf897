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
        let has = before.status.as_ref().and_then(|status| status.version.as_deref());
        let asked = before.spec.distribution.full_version.as_deref();
        let to: Option<KubernetesVersion> = has.filter(|_| has != asked).and_then(|has| has.parse().ok());
        let Some(to) = to else { return Ok(Self::None) };
        Ok(match unfinished(client, before).await? {
            None => Self::Open { to },
            Some(update) => Self::Begun { to, update },
        })
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
async fn unfinished(client: &Client, cluster: &TanzuKubernetesCluster) -> Result<Option<String>, Unknown> {
    let (name, namespace) = (&cluster.metadata.name, &cluster.metadata.namespace);
    let api: Api<ClusterUpdate> = Api::namespaced(client.clone(), namespace.as_deref().unwrap_or_default());
    let of_cluster =
        ListParams::default().labels(&format!("{}={}", label::CLUSTER_NAME, name.as_deref().unwrap_or_default()));
    let listed = api.list(&of_cluster).await.map_err(|source| Unknown::new("ClusterUpdates", source))?;
    let has_ended = |update: &ClusterUpdate| {
        let state = update.status.as_ref().and_then(|status| status.state);
        matches!(state, Some(UpdateState::Succeeded | UpdateState::Aborted))
    };
    let announced = cluster.status.as_ref().and_then(|status| status.update.as_ref());
    let is_there = |update: &str| listed.items.iter().any(|one| one.metadata.name.as_deref() == Some(update));
    if let Some(announced) = announced.filter(|update| !is_there(update)) {
        return Ok(Some(announced.clone()));
    }
    let latest = listed.items.into_iter().max_by_key(|update| update.spec.ordinal);
    Ok(latest.filter(|update| !has_ended(update)).and_then(|update| update.metadata.name))
}
