//! Which of a cluster's Secrets are there. Their metadata is read, and nothing else.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use windlass_api::kind::bootstrap::KubeadmConfig;
use windlass_api::label;
use windlass_api::name::ClusterSecret;
use windlass_runtime::trimmed;

use super::{Gaps, Which};
use crate::reconcile::context::Reach;
use crate::said::said;

/// Which Secrets are there.
#[derive(Default)]
pub(crate) struct Found {
    /// Those that belong to this cluster.
    pub present: BTreeSet<ClusterSecret>,
    /// The state of the kubeconfig.
    pub kubeconfig: Option<String>,
}

const ALL: [ClusterSecret; 5] = [
    ClusterSecret::CertificateAuthority,
    ClusterSecret::Etcd,
    ClusterSecret::FrontProxy,
    ClusterSecret::ServiceAccount,
    ClusterSecret::Kubeconfig,
];

/// Finds those that are there and can be relied on. `owners` are the uids of what lasts as long as the cluster does.
pub(crate) async fn find(ctx: &Reach, subject: &Which<'_>, owners: &BTreeSet<String>, gaps: &mut Gaps) -> Found {
    let api: Api<Secret> = Api::namespaced(ctx.access.client.clone(), subject.namespace.as_str());
    let of_cluster = ListParams::default().labels(&format!("{}={}", label::CLUSTER_NAME, subject.name));
    let listed = match trimmed::list_metadata(&api, &of_cluster).await {
        Ok(listed) => listed,
        Err(error) => {
            gaps.note(format!("Secrets of {}", subject.key), said(&error));
            return Found::default();
        }
    };
    let named = |secret: ClusterSecret| {
        let name = secret.object_name(subject.name);
        let live = listed.iter().find(|live| live.metadata.name.as_deref() == Some(name.as_str()))?;
        Some((secret, &live.metadata))
    };
    let secrets: Vec<(ClusterSecret, &ObjectMeta)> = ALL.into_iter().filter_map(named).collect();
    let keepers = match keepers(ctx, subject, owners, &secrets).await {
        Ok(keepers) => keepers,
        Err(error) => {
            gaps.note(format!("KubeadmConfigs of {}", subject.key), said(&error));
            return Found::default();
        }
    };
    let mut found = Found::default();
    for (secret, live) in secrets {
        if let Some(why) = leaving(live, &keepers) {
            gaps.note(format!("Secret/{}", secret.object_name(subject.name)), why);
            continue;
        }
        if secret == ClusterSecret::Kubeconfig {
            found.kubeconfig.clone_from(&live.resource_version);
        }
        found.present.insert(secret);
    }
    found
}

/// Who keeps a cluster's Secrets: those who own all of it (the Cluster, and its control plane where that makes them), and the configurations
/// of its machines. Clusters that others have made have their
/// certificates from the configuration of their first machine; whoever replaces that machine makes the Cluster their owner
/// before anything else. Configurations are read only where a Secret belongs to anybody but the Cluster.
async fn keepers(
    ctx: &Reach,
    subject: &Which<'_>,
    owners: &BTreeSet<String>,
    secrets: &[(ClusterSecret, &ObjectMeta)],
) -> Result<BTreeSet<String>, kube::Error> {
    let mut keepers = owners.clone();
    if secrets.iter().all(|(_, secret)| leaving(secret, &keepers).is_none()) {
        return Ok(keepers);
    }
    let api: Api<KubeadmConfig> = Api::namespaced(ctx.access.client.clone(), subject.namespace.as_str());
    let of_cluster = ListParams::default().labels(&format!("{}={}", label::CLUSTER_NAME, subject.name));
    let configurations = trimmed::list_metadata(&api, &of_cluster).await?;
    // One that goes takes with it what belongs to nobody else.
    let live = configurations.iter().filter(|configuration| configuration.metadata.deletion_timestamp.is_none());
    keepers.extend(live.filter_map(ResourceExt::uid));
    Ok(keepers)
}

/// Why a Secret that is there now cannot be relied on: machines that trusted it would not trust its successor. One without an
/// owner was brought by a person, and stays.
fn leaving(secret: &ObjectMeta, keepers: &BTreeSet<String>) -> Option<&'static str> {
    let owners = secret.owner_references.as_deref().unwrap_or_default();
    if secret.deletion_timestamp.is_some() {
        Some("it is being deleted")
    } else if owners.is_empty() || owners.iter().any(|owner| keepers.contains(&owner.uid)) {
        None
    } else {
        Some(
            "it belongs to nothing that this cluster has, and goes with that: an earlier cluster of the same name left it",
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(owners: &[&str], relied_on: bool) {
        let owner = |uid: &&str| json!({ "apiVersion": "v1", "kind": "Any", "name": "any", "uid": uid });
        let references: Vec<serde_json::Value> = owners.iter().map(owner).collect();
        let secret: ObjectMeta = serde_json::from_value(json!({ "ownerReferences": references })).unwrap();
        let keepers = BTreeSet::from(["of-the-cluster".to_owned(), "of-a-configuration".to_owned()]);
        assert_eq!(leaving(&secret, &keepers).is_none(), relied_on, "{owners:?}");
    }

    #[test]
    fn a_secret_is_relied_on_while_something_of_this_cluster_keeps_it() {
        check(&[], true);
        check(&["of-the-cluster"], true);
        check(&["of-a-configuration"], true);
        check(&["of-another", "of-the-cluster"], true);
        check(&["of-another"], false);
    }
}
