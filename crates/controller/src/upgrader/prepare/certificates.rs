//! The certificates of a cluster belong to the Cluster. A Secret that belongs to nothing but the configuration of a machine is
//! gone with that machine, and with it goes every later join.

use json_patch::{AddOperation, Patch, PatchOperation, TestOperation, jsonptr::PointerBuf};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::{ObjectMeta, PartialObjectMeta};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use windlass_api::name::ClusterSecret;
use windlass_plan::roll::Ownership;

use crate::upgrader::attempt::Attempt;
use crate::upgrader::{Error, write};

/// How often a Secret is read anew because it changed while an owner was being added.
const READS_MAX: usize = 8;

/// Sees to it that the Cluster that lives now, known by its uid, owns a Secret. Owners are only ever added.
pub async fn own(attempt: &Attempt<'_>, secret: ClusterSecret) -> Result<(), Error> {
    let name = secret.object_name(&attempt.arguments.cluster_name);
    let name = name.as_str();
    let api: Api<Secret> = attempt.management();
    let doing = || format!("make the cluster {} an owner of the Secret {name}", attempt.cluster);
    for _ in 0..READS_MAX {
        // The metadata alone: the keys in it are nobody's business here.
        let found = api.get_metadata_opt(name).await.map_err(Error::api(doing()))?;
        let secret = found.ok_or_else(|| Error::without_certificate(name))?;
        if ownership(&secret, attempt) == Ownership::Cluster {
            return Ok(());
        }
        let patch = kube::api::Patch::Json::<()>(add_owner(&secret.metadata, attempt));
        match api.patch_metadata(name, &write::patch(), &patch).await {
            // What was written is what the next round reads, and verifies.
            Ok(_) => {}
            Err(error) if was_changed(&error) => {}
            Err(error) => return Err(Error::api(doing())(error)),
        }
    }
    Err(Error::Unusable {
        kind: "Secret",
        name: name.to_owned(),
        why: format!("the cluster {} does not stay among its owners", attempt.cluster),
    })
}

/// Who owns a certificate.
pub fn ownership(secret: &PartialObjectMeta<Secret>, attempt: &Attempt<'_>) -> Ownership {
    let is_owner = |owner: &OwnerReference| owner.uid == attempt.owner.uid && owner.kind == attempt.owner.kind;
    if secret.owner_references().iter().any(is_owner) { Ownership::Cluster } else { Ownership::Others }
}

/// A patch that fits only the state that was read.
fn add_owner(metadata: &ObjectMeta, attempt: &Attempt<'_>) -> Patch {
    let owners = ["metadata", "ownerReferences"];
    let test = TestOperation {
        path: PointerBuf::from_tokens(["metadata", "resourceVersion"]),
        value: json!(metadata.resource_version),
    };
    let owner = json!(attempt.owner);
    let add = match metadata.owner_references {
        Some(_) => AddOperation { path: PointerBuf::from_tokens(owners.into_iter().chain(["-"])), value: owner },
        None => AddOperation { path: PointerBuf::from_tokens(owners), value: Value::Array(vec![owner]) },
    };
    Patch(vec![PatchOperation::Test(test), PatchOperation::Add(add)])
}

/// Whether the state was another: a test in a patch that does not hold is answered with 422.
fn was_changed(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 409 | 422))
}
