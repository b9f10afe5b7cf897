//! Which of a cluster's Secrets are there. Their metadata is read, and nothing else.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::ListParams;
use windlass_api::label;
use windlass_api::name::{ClusterSecret, Uid};

use super::{Gaps, Subject};
use crate::reconcile::context::Context;
use crate::said::said;

/// Which Secrets are there.
#[derive(Default)]
pub(super) struct Found {
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

pub(super) async fn find(ctx: &Context, subject: &Subject<'_>, cluster: &Uid, gaps: &mut Gaps) -> Found {
    let api: Api<Secret> = Api::namespaced(ctx.access.client.clone(), subject.namespace.as_str());
    let of_cluster = ListParams::default().labels(&format!("{}={}", label::CLUSTER_NAME, subject.name));
    let listed = match api.list_metadata(&of_cluster).await {
        Ok(listed) => listed.items,
        Err(error) => {
            gaps.note(format!("Secrets of {}", subject.key), said(&error));
            return Found::default();
        }
    };
    let mut found = Found::default();
    for secret in ALL {
        let name = secret.object_name(subject.name);
        let Some(live) = listed.iter().find(|live| live.metadata.name.as_deref() == Some(name.as_str())) else {
            continue;
        };
        if let Some(why) = leaving(&live.metadata, cluster) {
            gaps.note(format!("Secret/{name}"), why);
            continue;
        }
        if secret == ClusterSecret::Kubeconfig {
            found.kubeconfig.clone_from(&live.metadata.resource_version);
        }
        found.present.insert(secret);
    }
    found
}

/// Why a Secret that is there now cannot be relied on: machines that trusted it would not trust its successor. One without an
/// owner was brought by a person, and stays.
fn leaving(secret: &ObjectMeta, cluster: &Uid) -> Option<&'static str> {
    let owners = secret.owner_references.as_deref().unwrap_or_default();
    if secret.deletion_timestamp.is_some() {
        Some("it is being deleted")
    } else if owners.is_empty() || owners.iter().any(|owner| owner.uid == cluster.as_str()) {
        None
    } else {
        Some("it belongs to an earlier cluster of the same name")
    }
}
