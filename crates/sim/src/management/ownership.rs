//! Who owns what, and what holds up a deletion: lists in an object's metadata, changed as a whole.
//!
//! Whoever writes one of these lists sends the resource version that it was read at, so that nothing of others is lost.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;

/// A reference that says "this belongs to me, and I look after it".
pub(super) fn controlled_by<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference { controller: Some(true), block_owner_deletion: Some(true), ..owned_by(owner) }
}

/// A reference that says "this goes when I go".
pub(super) fn owned_by<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.meta().name.clone().unwrap_or_default(),
        uid: owner.meta().uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    }
}

/// The owners of an object.
pub(super) fn owners(meta: &ObjectMeta) -> &[OwnerReference] {
    meta.owner_references.as_deref().unwrap_or_default()
}

/// The owners with this one among them; `None` if it already is.
pub(super) fn with_owner(meta: &ObjectMeta, owner: OwnerReference) -> Option<Vec<OwnerReference>> {
    let owners = owners(meta);
    if owners.iter().any(|known| known.uid == owner.uid && known.controller == owner.controller) {
        return None;
    }
    let mut with: Vec<OwnerReference> = owners.iter().filter(|known| known.uid != owner.uid).cloned().collect();
    with.push(owner);
    Some(with)
}

/// Whether the owner is one of the object's.
pub(super) fn is_owned_by<K: Resource>(meta: &ObjectMeta, owner: &K) -> bool {
    owners(meta).iter().any(|known| Some(&known.uid) == owner.meta().uid.as_ref())
}

/// The name of the object of this kind that looks after the object.
pub(super) fn controller<K: Resource<DynamicType = ()>>(meta: &ObjectMeta) -> Option<&str> {
    let owner = owners(meta).iter().find(|owner| owner.controller == Some(true))?;
    let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    (owner.kind == K::kind(&()) && group == K::group(&())).then_some(owner.name.as_str())
}

/// Whether this finalizer holds up the object's deletion.
pub(super) fn is_held(meta: &ObjectMeta, finalizer: &str) -> bool {
    meta.finalizers.iter().flatten().any(|known| known == finalizer)
}

/// The finalizers with this one among them; `None` if it already is.
pub(super) fn with_finalizer(meta: &ObjectMeta, finalizer: &str) -> Option<Vec<String>> {
    if is_held(meta, finalizer) {
        return None;
    }
    Some(meta.finalizers.iter().flatten().cloned().chain([finalizer.to_owned()]).collect())
}

/// The finalizers without this one; `None` if it is not among them.
pub(super) fn without_finalizer(meta: &ObjectMeta, finalizer: &str) -> Option<Vec<String>> {
    is_held(meta, finalizer)
        .then(|| meta.finalizers.iter().flatten().filter(|known| *known != finalizer).cloned().collect())
}
