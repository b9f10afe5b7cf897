//! The two writes of a recovery. Each can be made again: what is there is compared, never overwritten.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ObjectReference, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource as _};
use serde_json::json;
use windlass_api::kind::cluster_api::Cluster;
use windlass_api::name::{ClusterSecret, MachineName, Namespace};
use windlass_api::{annotation, label};
use windlass_runtime::events::{Kind, Notice, Recorder};

use super::bootstrap::Half;
use super::pair::Identity;
use super::plan::{Live, Offer};
use super::{Error, observe};
use crate::execute::write::SECRET_TYPE;
use crate::said::{is_already_exists, is_conflict};

/// Who wrote it.
const FIELD_MANAGER: &str = "windlass-recovery";
/// How often a Secret is read anew because it changed while an owner was being added.
const READS_MAX: usize = 8;

/// What is written for, and where.
pub(super) struct Scope<'a> {
    pub client: &'a Client,
    pub namespace: &'a Namespace,
    pub cluster: &'a Cluster,
    pub recorder: &'a Recorder,
}

impl Scope<'_> {
    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), self.namespace.as_str())
    }

    fn owner(&self) -> Result<OwnerReference, Error> {
        self.cluster.owner_ref(&()).ok_or(Error::NoIdentity)
    }

    /// Makes a Secret anew. One that somebody else has made in between is as good, if it is the same.
    pub async fn restore(
        &self,
        secret: ClusterSecret,
        from: &MachineName,
        offer: &Offer,
        identity: &Identity,
    ) -> Result<(), Error> {
        let cluster = super::name_of(self.cluster)?;
        let name = secret.object_name(&cluster).to_string();
        let recovered_from = annotation::RECOVERED_FROM.entry(&format!("Machine/{from}"));
        let bytes =
            |half: Half, pem: &super::bootstrap::Pem| (half.key().to_owned(), ByteString(pem.as_bytes().to_vec()));
        let object = Secret {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(self.namespace.to_string()),
                labels: Some([label::CLUSTER_NAME.entry(&cluster)].into()),
                annotations: Some([recovered_from].into()),
                owner_references: Some(vec![self.owner()?]),
                ..ObjectMeta::default()
            },
            data: Some([bytes(Half::Public, &offer.public), bytes(Half::Private, &offer.private)].into()),
            type_: Some(SECRET_TYPE.to_owned()),
            ..Secret::default()
        };
        let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
        let created = match self.secrets().create(&params, &object).await {
            Ok(created) => created,
            Err(error) if is_already_exists(&error) => {
                let read = self.secrets().get(&name).await;
                let there = read.map_err(Error::api("read", format!("Secret/{name}")))?;
                return match observe::live(secret, &there, self.cluster) {
                    Live::There { pair: Ok(found), .. } if found == *identity => Ok(()),
                    _ => Err(Error::Other { name }),
                };
            }
            Err(error) => return Err(Error::api("create", format!("Secret/{name}"))(error)),
        };
        let note = format!("Secret/{name} was lost, and is restored from Machine/{from}: {}", shown(identity));
        self.tell("SecretRecovered", "RestoreSecret", note, &created.object_ref(&())).await
    }

    /// Makes the Cluster that lives now an owner of a Secret.
    pub async fn own(&self, secret: ClusterSecret) -> Result<(), Error> {
        let name = secret.object_name(&super::name_of(self.cluster)?).to_string();
        let owner = self.owner()?;
        for _ in 0..READS_MAX {
            // The metadata alone: the keys in it are nobody's business here.
            let read = self.secrets().get_metadata(&name).await;
            let metadata = read.map_err(Error::api("read", format!("Secret/{name}")))?.metadata;
            let owners = metadata.owner_references.clone().unwrap_or_default();
            if owners.iter().any(|known| known.uid == owner.uid) {
                let related = ObjectReference {
                    api_version: Some("v1".into()),
                    kind: Some("Secret".into()),
                    name: Some(name.clone()),
                    namespace: metadata.namespace,
                    uid: metadata.uid,
                    ..ObjectReference::default()
                };
                let note = format!("Secret/{name} belonged to others only, and belongs to Cluster/{} now", owner.name);
                return self.tell("SecretOwned", "OwnSecret", note, &related).await;
            }
            let patch = json!({"metadata": {
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
                "ownerReferences": owners_with(owners, &owner),
            }});
            let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
            match self.secrets().patch_metadata(&name, &params, &Patch::Merge(patch)).await {
                // What was written is what the next round reads, and verifies.
                Ok(_) => {}
                Err(error) if is_conflict(&error) => {}
                Err(error) => return Err(Error::api("own", format!("Secret/{name}"))(error)),
            }
        }
        Err(Error::Contended { name })
    }

    /// Tells it on the object that people look at: whoever controls the Cluster, or else the Cluster.
    async fn tell(&self, reason: &str, action: &str, note: String, related: &ObjectReference) -> Result<(), Error> {
        let owners = self.cluster.metadata.owner_references.as_deref().unwrap_or_default();
        let regarding = owners.iter().find(|owner| owner.controller == Some(true)).map_or_else(
            || self.cluster.object_ref(&()),
            |owner| ObjectReference {
                api_version: Some(owner.api_version.clone()),
                kind: Some(owner.kind.clone()),
                name: Some(owner.name.clone()),
                namespace: Some(self.namespace.to_string()),
                uid: Some(owner.uid.clone()),
                ..ObjectReference::default()
            },
        );
        let notice = Notice {
            kind: Kind::Warning,
            reason: reason.to_owned(),
            action: action.to_owned(),
            note,
            related: Some(related.clone()),
        };
        self.recorder.publish(&regarding, &notice).await.map_err(Error::Event)
    }
}

/// The owners of a Secret with the Cluster among them. An earlier Cluster of that name is left out; whether others are still
/// there is for Kubernetes to find out, which no longer matters to the Secret.
fn owners_with(mut owners: Vec<OwnerReference>, cluster: &OwnerReference) -> Vec<OwnerReference> {
    let group = |owner: &OwnerReference| owner.api_version.split('/').next().unwrap_or_default().to_owned();
    let earlier = |owner: &OwnerReference| {
        owner.kind == cluster.kind && owner.name == cluster.name && group(owner) == group(cluster)
    };
    owners.retain(|owner| !earlier(owner));
    owners.push(cluster.clone());
    owners
}

/// A pair, as people may see it.
fn shown(identity: &Identity) -> String {
    match &identity.certificate {
        Some(certificate) => {
            format!("{}, {}, until {}", certificate.subject, certificate.sha256, certificate.expires)
        }
        None => format!("public key {}", identity.public_key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_takes_the_place_of_an_earlier_one_and_leaves_the_others() {
        let owner = |api_version: &str, kind: &str, uid: &str| OwnerReference {
            api_version: api_version.into(),
            kind: kind.into(),
            name: "my-tkc".into(),
            uid: uid.into(),
            ..OwnerReference::default()
        };
        let config = owner("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig", "c");
        let cluster = owner("cluster.x-k8s.io/v1beta2", "Cluster", "new");
        let owners = vec![owner("cluster.x-k8s.io/v1beta1", "Cluster", "old"), config.clone()];
        assert_eq!(owners_with(owners, &cluster), [config, cluster.clone()]);
        assert_eq!(owners_with(Vec::new(), &cluster), [cluster]);
    }
}
