//! Makes a World of a snapshot.

mod revision;

use std::sync::Arc;

use serde_json::Value;
use windlass_api::{annotation, label};
use windlass_apiserver::ApiServer;
use windlass_apiserver::kind::store_name;
use windlass_apiserver::store::{Expect, Key, Range, Resource, Store};
use windlass_sim::workload::{Member, Seen};
use windlass_sim::world::{self, World};

use super::kinds::{self, Infrastructure};
use super::{EtcdMember, Snapshot};
use crate::evidence::profiles;

/// A snapshot that is none of a World.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// There is no World to put it into.
    #[error("make a World for the snapshot")]
    World(#[source] world::Error),
}

impl Snapshot {
    /// A World with the objects of the snapshot, as they were: with their uids and their status. Those that are
    /// [only data](Snapshot::only_data) are left out, and so is what no World serves. Nothing runs in it yet.
    pub async fn world(&self, settings: world::Settings) -> Result<World, RestoreError> {
        let world = World::new(settings).await.map_err(RestoreError::World)?;
        // Far from where any server can be that made objects of the snapshot: it makes fewer than a million of them a second.
        let draw = u64::try_from(self.taken_at.as_second()).unwrap_or_default() << 20;
        world.management().identities().skip_to(draw);
        // The catalogue is the snapshot's own.
        for kind in kinds::restored_management().map(kinds::Row::resource) {
            clear(world.management(), &store_name(&kind.plural, &kind.group));
        }
        for profile in profiles(&self.management).added() {
            let offered = world.offer_infrastructure(
                &profile.group,
                &profile.version,
                &profile.template,
                profile.cluster.as_deref(),
            );
            offered.await.map_err(RestoreError::World)?;
        }
        let infrastructure = Infrastructure::among(&self.management);
        put_all(world.management(), &infrastructure.with_management(), &self.management);
        for (cluster, snapshot) in &self.workloads {
            let workload = world.workloads().ensure(cluster);
            workload.server().identities().skip_to(draw);
            if snapshot.objects.iter().any(|object| object["kind"] == "PodSecurityPolicy") {
                workload.serve_security_policies();
            }
            if snapshot.objects.iter().any(kinds::is_of_packages) {
                workload.serve_packages().await.map_err(RestoreError::World)?;
            }
            let mut objects = snapshot.objects.clone();
            revision::align(&mut objects);
            put_all(workload.server(), kinds::workload(), &objects);
            workload.adopt(&snapshot.members.iter().map(seen).collect::<Vec<_>>());
        }
        Ok(world)
    }
}

/// Removes all objects of a resource.
fn clear(server: &ApiServer, resource: &Resource) {
    let everything = Range { namespace: None, after: None, limit: 0 };
    for entry in server.store().list(resource, everything, |_| true).entries {
        let last = entry.to_value("", "");
        // Nobody else writes yet, so the object is as it was listed.
        drop(server.store().remove(resource, &entry.key, entry.revision, last, server.now()));
    }
}

fn seen(member: &EtcdMember) -> Seen {
    let EtcdMember { id, name, learner, healthy, leader, version, alarms } = member.clone();
    Seen { member: Member { id, name, learner, healthy, leader, version }, alarms }
}

fn put_all(server: &ApiServer, rows: &[kinds::Row<'_>], objects: &[Value]) {
    let registry = server.registry();
    for object in objects.iter().filter(|object| !kinds::is_only_data(rows, object)) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let key = Key::new(&text(&object["metadata"]["namespace"]), &text(&object["metadata"]["name"]));
        if let Some(found) = registry.find_kind(group, version, &kind) {
            put(server.store(), &store_name(&found.plural, &found.group), &key, unmanaged(object), server);
        } else {
            tracing::debug!(kind, api_version, object = %key, "a World does not serve this kind");
        }
    }
}

/// The object without who wrote it: without their fields, such entries would say that their writers own nothing. And without having
/// to be approved, nor, of a cluster of a class, to be what was reviewed: what is rehearsed is what follows once it is.
fn unmanaged(object: &Value) -> Value {
    let mut object = object.clone();
    let reviewed =
        (!object["spec"]["topology"].is_null()).then_some(("annotations", annotation::REVIEWED_ENVELOPE.name));
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        let required = [("labels", label::APPROVAL.name), ("annotations", annotation::APPROVAL.name)];
        for (field, key) in required.into_iter().chain(reviewed) {
            if let Some(entries) = metadata.get_mut(field).and_then(Value::as_object_mut) {
                entries.remove(key);
            }
        }
    }
    object
}

/// Writes an object past the API, whose verbs would give it another uid and take its status.
fn put(store: &Store, resource: &Resource, key: &Key, object: Value, server: &ApiServer) {
    let current = store.get(resource, key).map(|entry| Arc::clone(&entry));
    let expect = current.map_or(Expect::Absent, |entry| Expect::Revision(entry.revision));
    // Nobody else writes yet, so what is expected is so.
    drop(store.put(resource, key, expect, object, server.now()));
}
