//! What is asked of a World, as a person would ask it.

use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, ValidationDirective};
use serde_json::json;
use windlass_api::annotation;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_api::name::NamespacedName;
use windlass_sim::world::World;

use super::Error;
use super::wish::{Wish, distribution};

/// What is asked.
pub(crate) enum Ask<'a> {
    /// Something of a cluster that is there.
    Change(&'a Wish),
    /// A cluster shall be made.
    Create(&'a TanzuKubernetesCluster),
}

/// What the API answered.
pub(crate) enum Answer {
    /// Yes.
    Accepted,
    /// No, for this reason.
    Refused { why: String },
}

/// Asks it of a cluster.
pub(crate) async fn ask(world: &World, cluster: &NamespacedName, ask: &Ask<'_>) -> Result<Answer, Error> {
    let clusters: Api<TanzuKubernetesCluster> = Api::namespaced(world.client(), cluster.namespace.as_str());
    let name = cluster.name.as_str();
    // A field that there is not would be dropped, and the rehearsal be one of nothing.
    let strictly = PatchParams { field_validation: Some(ValidationDirective::Strict), ..PatchParams::default() };
    let asked = match ask {
        Ask::Change(Wish::Release { to, on_the_way_to }) => {
            let mut patch = json!({"spec": {"distribution": distribution(to)}});
            patch["metadata"]["annotations"][annotation::ON_THE_WAY_TO.name] = json!(on_the_way_to);
            clusters.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
        }
        Ask::Change(Wish::Patch(patch)) => clusters.patch(name, &strictly, &Patch::Merge(patch)).await.map(drop),
        Ask::Change(Wish::Delete) => clusters.delete(name, &DeleteParams::background()).await.map(drop),
        Ask::Change(Wish::Nothing) => Ok(()),
        Ask::Create(object) => clusters.create(&PostParams::default(), object).await.map(drop),
    };
    match asked {
        Ok(()) => Ok(Answer::Accepted),
        Err(kube::Error::Api(refusal)) if matches!(refusal.code, 400 | 403 | 422) => {
            Ok(Answer::Refused { why: in_short(&refusal.message) })
        }
        Err(source) => Err(Error::Ask { cluster: cluster.clone(), source: Box::new(source) }),
    }
}

/// What the API says of a field that there is not, without the object that it says it of.
fn in_short(message: &str) -> String {
    message.split_once("strict decoding error: ").map_or(message, |(_, field)| field).to_owned()
}
