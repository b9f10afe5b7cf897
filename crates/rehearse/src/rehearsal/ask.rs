//! What is asked of a World, as a person would ask it.

use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use windlass_api::annotation;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::NamespacedName;
use windlass_api::version::KubernetesVersion;
use windlass_sim::world::World;

use super::{Error, Request};

/// What is asked.
pub(crate) enum Ask<'a> {
    /// A cluster that is there shall be of another release, perhaps only on its way to a later one.
    Release { to: &'a str, on_the_way_to: Option<&'a KubernetesVersion> },
    /// A cluster shall be made.
    Create(&'a TanzuKubernetesCluster),
}

impl<'a> Ask<'a> {
    /// What a request for an update asks.
    pub(crate) fn release(request: &'a Request) -> Self {
        Self::Release { to: &request.to, on_the_way_to: request.on_the_way_to.as_ref() }
    }
}

/// What the API answered.
pub(crate) enum Answer {
    /// Yes: the cluster is to be of this release, in full.
    Accepted { distribution: String },
    /// No, for this reason.
    Refused { why: String },
}

/// Asks it of a cluster.
pub(crate) async fn ask(world: &World, cluster: &NamespacedName, ask: &Ask<'_>) -> Result<Answer, Error> {
    let clusters: Api<TanzuKubernetesCluster> = Api::namespaced(world.client(), cluster.namespace.as_str());
    let asked = match ask {
        Ask::Release { to, on_the_way_to } => {
            // What the notes on rolling updates tell people: the full version must go, or it would contradict the hint.
            let mut patch = json!({"spec": {"distribution": {"fullVersion": null, "version": to}}});
            patch["metadata"]["annotations"][annotation::ON_THE_WAY_TO.name] = json!(on_the_way_to);
            clusters.patch(cluster.name.as_str(), &PatchParams::default(), &Patch::Merge(patch)).await
        }
        Ask::Create(object) => clusters.create(&PostParams::default(), object).await,
    };
    match asked {
        Ok(cluster) => {
            Ok(Answer::Accepted { distribution: cluster.spec.distribution.full_version.unwrap_or_default() })
        }
        Err(kube::Error::Api(refusal)) if refusal.code == 403 || refusal.code == 422 => {
            Ok(Answer::Refused { why: refusal.message.clone() })
        }
        Err(source) => Err(Error::Ask { cluster: cluster.clone(), source: Box::new(source) }),
    }
}
