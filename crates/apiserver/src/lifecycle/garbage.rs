//! Garbage collection: an object goes when all its owners are gone.
//!
//! An owner is identified by its uid and looked up in the dependent's own namespace (or among kinds without namespaces), as
//! Kubernetes does: a reference across namespaces names nobody, and the dependent is deleted.

use serde_json::Value;

use super::{FOREGROUND, ORPHAN};
use crate::server::ApiServer;
use crate::status::ApiError;
use crate::store::{Entry, Key};
use crate::verb::delete::{Deletion, Propagation};

/// What became of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// It is there.
    Solid,
    /// It waits for its dependents to go.
    Waiting,
    /// It is gone, or never was.
    Dangling,
    /// Nobody can tell: its kind is not served, or a kind without namespaces names one with. The dependent stays.
    Unknowable,
}

impl ApiServer {
    /// Decides whether an object that names owners may stay.
    pub(super) async fn check_owners(&self, resource: &str, key: &Key) -> Result<(), ApiError> {
        let Some((kind, entry)) = self.stored(resource, key) else { return Ok(()) };
        let object = entry.tree(&kind.api_version, &kind.kind);
        let owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let states: Vec<Owner> = owners.iter().map(|owner| self.owner(owner, kind.namespaced, key)).collect();
        if states.is_empty() || states.contains(&Owner::Unknowable) {
            return Ok(());
        }
        if states.contains(&Owner::Solid) {
            // The others no longer count.
            if states.iter().all(|state| *state == Owner::Solid) {
                return Ok(());
            }
            let stay: Vec<Value> =
                owners.into_iter().zip(&states).filter(|(_, state)| **state == Owner::Solid).map(|(o, _)| o).collect();
            return self
                .rewrite(&kind, &entry, |object| object["metadata"]["ownerReferences"] = stay.clone().into())
                .await;
        }
        if entry.deleting && !has_finalizer(&object, FOREGROUND) && !has_finalizer(&object, ORPHAN) {
            return Ok(());
        }
        let has_dependents = !self.store().dependents(&entry.uid).is_empty();
        let propagation = if has_finalizer(&object, ORPHAN) {
            Propagation::Orphan
        } else if has_finalizer(&object, FOREGROUND) || (states.contains(&Owner::Waiting) && has_dependents) {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        self.collect(&kind, &entry, propagation).await
    }

    fn owner(&self, reference: &Value, namespaced: bool, dependent: &Key) -> Owner {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let api_version = text("apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let registry = self.registry();
        let Some(kind) = registry.find_kind(group, version, text("kind")) else { return Owner::Unknowable };
        if kind.namespaced && !namespaced {
            return Owner::Unknowable;
        }
        let namespace = if kind.namespaced { &*dependent.namespace } else { "" };
        match self.store().get(&kind.resource, &Key::new(namespace, text("name"))) {
            Some(entry) if &*entry.uid == text("uid") => {
                let waits = entry.deleting && has_finalizer(&entry.look(), FOREGROUND);
                if waits { Owner::Waiting } else { Owner::Solid }
            }
            _ => Owner::Dangling,
        }
    }

    /// Deletes on behalf of the collector.
    async fn collect(&self, kind: &crate::kind::Kind, entry: &Entry, propagation: Propagation) -> Result<(), ApiError> {
        let deletion = Deletion {
            propagation: Some(propagation),
            uid: Some(entry.uid.to_string()),
            ..Deletion::by_system("system:serviceaccount:kube-system:generic-garbage-collector")
        };
        match self.delete_one(kind, &entry.key, &deletion).await {
            Err(error) if error.code != http::StatusCode::NOT_FOUND => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// After an object is gone: its dependents may go, and an owner that waited for it may go.
    pub(super) async fn after_removal(&self, uid: &str, owners: &[Value], key: &Key) -> Result<(), ApiError> {
        for (resource, dependent) in self.store().dependents(uid) {
            self.check_owners(&resource, &dependent).await?;
        }
        for owner in owners {
            let text = |field: &str| owner[field].as_str().unwrap_or_default();
            let api_version = text("apiVersion");
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let Some(kind) = self.registry().find_kind(group, version, text("kind")).cloned() else { continue };
            let namespace = if kind.namespaced { &*key.namespace } else { "" };
            self.delete_dependents_first(&kind.resource, &Key::new(namespace, text("name"))).await?;
        }
        Ok(())
    }

    /// Serves the finalizers that the collector puts on an object: dependents go first, or are let go.
    pub(super) async fn delete_dependents_first(&self, resource: &str, key: &Key) -> Result<(), ApiError> {
        let Some((kind, entry)) = self.stored(resource, key) else { return Ok(()) };
        if !entry.deleting {
            return Ok(());
        }
        let object = entry.tree(&kind.api_version, &kind.kind);
        if has_finalizer(&object, ORPHAN) {
            self.orphan_dependents(&entry.uid).await?;
            return self.rewrite(&kind, &entry, |object| remove_finalizer(object, ORPHAN)).await;
        }
        if has_finalizer(&object, FOREGROUND) {
            for (resource, dependent) in self.store().dependents(&entry.uid) {
                self.check_owners(&resource, &dependent).await?;
            }
            let blocked = self.store().dependents(&entry.uid).iter().any(|(resource, dependent)| {
                self.store().get(resource, dependent).is_some_and(|dependent| {
                    dependent.owners.iter().any(|owner| owner.uid == entry.uid && owner.blocks)
                })
            });
            if !blocked {
                return self.rewrite(&kind, &entry, |object| remove_finalizer(object, FOREGROUND)).await;
            }
        }
        Ok(())
    }

    async fn orphan_dependents(&self, uid: &str) -> Result<(), ApiError> {
        for (resource, key) in self.store().dependents(uid) {
            let Some((kind, entry)) = self.stored(&resource, &key) else { continue };
            self.rewrite(&kind, &entry, |object| {
                if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
                    owners.retain(|owner| owner["uid"].as_str() != Some(uid));
                }
            })
            .await?;
        }
        Ok(())
    }
}

/// Whether an object waits for a finalizer.
pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|list| list.iter().any(|item| item == finalizer))
}

/// Takes a finalizer off.
pub(crate) fn remove_finalizer(object: &mut Value, finalizer: &str) {
    if let Some(list) = object["metadata"]["finalizers"].as_array_mut() {
        list.retain(|item| item != finalizer);
    }
}
