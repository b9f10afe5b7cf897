//! Makes a World of a snapshot.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use windlass_apiserver::ApiServer;
use windlass_apiserver::kind::store_name;
use windlass_apiserver::store::{Expect, Key, Range, Resource, Store};
use windlass_sim::world::{self, World};

use super::{Snapshot, kinds};

/// A snapshot that is none of a World.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// There is no World to put it into.
    #[error("make a World for the snapshot")]
    World(#[source] world::Error),
    /// An object is of a kind that a World does not know.
    #[error("restore {object}: there is no kind {kind} in {api_version}")]
    UnknownKind {
        /// The object.
        object: String,
        /// Its kind.
        kind: String,
        /// The version of its kind.
        api_version: String,
    },
}

impl Snapshot {
    /// A World with the objects of the snapshot, as they were: with their uids and their status. Nothing runs in it yet.
    pub async fn world(&self, settings: world::Settings) -> Result<World, RestoreError> {
        let world = World::new(settings).await.map_err(RestoreError::World)?;
        // Far from where any server can be that made objects of the snapshot: it makes fewer than a million of them a second.
        let draw = u64::try_from(self.taken_at.as_second()).unwrap_or_default() << 20;
        world.management().identities().skip_to(draw);
        // The catalogue is the snapshot's own.
        for kind in kinds::management() {
            clear(world.management(), &store_name(&kind.plural, &kind.group));
        }
        put_all(world.management(), &self.management)?;
        for (cluster, snapshot) in &self.workloads {
            let workload = world.workloads().ensure(cluster);
            workload.server().identities().skip_to(draw);
            if snapshot.objects.iter().any(|object| object["kind"] == "PodSecurityPolicy") {
                workload.serve_security_policies();
            }
            put_all(workload.server(), &snapshot.objects)?;
            workload.adopt();
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

fn put_all(server: &ApiServer, objects: &[Value]) -> Result<(), RestoreError> {
    let registry = server.registry();
    let mut unknown = BTreeSet::new();
    for object in objects {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let key = Key::new(&text(&object["metadata"]["namespace"]), &text(&object["metadata"]["name"]));
        let Some(found) = registry.find_kind(group, version, &kind) else {
            unknown.insert((format!("{kind}/{}", key.name), kind, api_version.clone()));
            continue;
        };
        put(server.store(), &store_name(&found.plural, &found.group), &key, object.clone(), server);
    }
    match unknown.into_iter().next() {
        Some((object, kind, api_version)) => Err(RestoreError::UnknownKind { object, kind, api_version }),
        None => Ok(()),
    }
}

/// Writes an object past the API, whose verbs would give it another uid and take its status.
fn put(store: &Store, resource: &Resource, key: &Key, object: Value, server: &ApiServer) {
    let current = store.get(resource, key).map(|entry| Arc::clone(&entry));
    let expect = current.map_or(Expect::Absent, |entry| Expect::Revision(entry.revision));
    // Nobody else writes yet, so what is expected is so.
    drop(store.put(resource, key, expect, object, server.now()));
}
