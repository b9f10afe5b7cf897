//! Another API server's objects in the store of a World: what kapp-controller reads where it is the client of one.
//!
//! Packages are not among them. A real cluster serves those by a server of their own, behind its API server, and that is the
//! management API of the World.

use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use windlass_apiserver::ApiServer;
use windlass_apiserver::store::{Key, Resource};
use windlass_runtime::clock::Clock;

use super::values::Kind;
use super::{APPS, EVERYWHERE, INSTALLS, NAMESPACES, REPOSITORIES, SECRETS, SERVICE_ACCOUNTS};

/// Follows another API server.
pub(crate) struct Follower {
    /// A client of it.
    pub(crate) client: Client,
    /// Where the objects go.
    pub(crate) server: ApiServer,
    /// What time it is.
    pub(crate) clock: Clock,
}

impl Follower {
    /// Follows all that is read. Does not end.
    pub(crate) async fn run(self) {
        let own = [REPOSITORIES, INSTALLS, APPS, SECRETS, NAMESPACES, SERVICE_ACCOUNTS];
        let all = own.into_iter().chain(Kind::ALL.iter().map(|kind| kind.resource()));
        let changes = all.filter_map(|resource| {
            let kind = self.server.registry().stored(resource)?.clone();
            let (group, version) = kind.api_version.rsplit_once('/').unwrap_or(("", &kind.api_version));
            let known = ApiResource {
                group: group.to_owned(),
                version: version.to_owned(),
                api_version: kind.api_version.clone(),
                kind: kind.kind.clone(),
                plural: kind.plural.clone(),
            };
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &known);
            let resource = Resource::from(resource);
            // A definition may not be established yet, and a server may be started again.
            let changes = watcher(api, watcher::Config::default()).default_backoff();
            Some(changes.map(move |change| (resource.clone(), change)).boxed())
        });
        let mut changes = stream::select_all(changes);
        let mut listed: Vec<(Resource, Key)> = Vec::new();
        while let Some((resource, change)) = changes.next().await {
            match change {
                Ok(watcher::Event::Apply(object)) => drop(self.put(&resource, &object)),
                Ok(watcher::Event::Delete(object)) => self.remove(&resource, &key(&object)),
                Ok(watcher::Event::Init) => listed.retain(|(known, _)| *known != resource),
                Ok(watcher::Event::InitApply(object)) => listed.push((resource.clone(), self.put(&resource, &object))),
                Ok(watcher::Event::InitDone) => self.keep(&resource, &listed),
                Err(error) => tracing::debug!(%resource, %error, "what is followed cannot be read"),
            }
        }
    }

    fn put(&self, resource: &Resource, object: &DynamicObject) -> Key {
        let key = key(object);
        let value = serde_json::to_value(object).unwrap_or_default();
        self.server.store().follow(resource, &key, &value, self.now());
        key
    }

    /// What is not there is not here.
    fn keep(&self, resource: &Resource, listed: &[(Resource, Key)]) {
        for entry in self.server.store().list(resource, EVERYWHERE, |_| true).entries {
            if !listed.iter().any(|(known, key)| known == resource && *key == entry.key) {
                self.remove(resource, &entry.key);
            }
        }
    }

    fn remove(&self, resource: &Resource, key: &Key) {
        let store = self.server.store();
        if let Some(entry) = store.get(resource, key) {
            let last: Value = entry.to_value("", "");
            // Nobody else writes it.
            drop(store.remove(resource, key, entry.revision, last, self.now()));
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

fn key(object: &DynamicObject) -> Key {
    Key::new(&object.namespace().unwrap_or_default(), &object.name_any())
}
