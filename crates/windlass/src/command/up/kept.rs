//! What `up --data-dir` keeps: the World's stores, and beside them what only the command knows, in a store of its own: the World's
//! seed and time, the authority of each API, and its port. All of it is one history, sealed with one key.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use windlass_apiserver::durable::{self, Journal};
use windlass_apiserver::listen;
use windlass_apiserver::listen::tls::Authority;
use windlass_apiserver::store::{Expect, Keeper, Key, Resource, Retention, Store, Waits};
use windlass_runtime::chance::Seed;
use windlass_sim::world::KeptStores;

use super::wall_now;

/// The place of our own store among those of the World.
const PLACE: &str = "up";
const WORLDS: &str = "worlds.up.windlass.dev";
const AUTHORITIES: &str = "authorities.up.windlass.dev";
const PORTS: &str = "ports.up.windlass.dev";
/// The one World there is.
const WORLD: &str = "world";
/// The API that is not of a workload cluster.
pub const MANAGEMENT: &str = "management";

/// A data directory that is open. Cheap to clone.
#[derive(Clone)]
pub struct Kept {
    journal: Journal,
    store: Store,
}

/// The World that was kept.
pub struct Past {
    /// What decides everything random in it.
    pub seed: Seed,
    /// What time it is there.
    pub now: Timestamp,
    /// Its stores.
    pub stores: KeptStores,
}

#[derive(Serialize, Deserialize)]
struct Record<T> {
    record: T,
}

#[derive(Serialize, Deserialize)]
struct World {
    seed: u64,
    now: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct Pair {
    certificate: String,
    key: String,
}

impl Kept {
    /// Opens the directory, or makes it. There is no past in one whose World never came to be: nobody was told of it.
    pub fn open(path: &Path, key_file: &Path) -> Result<(Self, Option<Past>), durable::OpenError> {
        let (journal, mut stores) = durable::open(path, key_file, Waits::TheDoor)?;
        let own = stores.remove(PLACE).unwrap_or_default();
        let now = stores.values().map(|store| store.at).max().unwrap_or_default();
        let store = Store::recovered(Retention::default(), Some(journal.backend(PLACE)), None, own);
        let kept = Self { journal, store };
        let Some(world) = kept.read::<World>(WORLDS, WORLD) else {
            for place in stores.keys() {
                kept.journal.forget(place);
            }
            return Ok((kept, None));
        };
        let past = Past { seed: Seed(world.seed), now: now.max(world.now), stores };
        Ok((kept, Some(past)))
    }

    /// Who keeps the stores of the World.
    pub fn keeper(&self) -> Arc<dyn Keeper> {
        Arc::new(self.journal.clone())
    }

    /// The World has come to be, or time has passed in it.
    pub fn note_world(&self, seed: Seed, now: Timestamp) {
        self.write(WORLDS, WORLD, &World { seed: seed.0, now });
    }

    /// The authority of an API, as it was; a new one where there was none.
    pub fn authority(&self, name: &str) -> Result<Authority, listen::Error> {
        if let Some(Pair { certificate, key }) = self.read(AUTHORITIES, name) {
            return Authority::restored(&certificate, &key, wall_now());
        }
        let authority = Authority::new(wall_now())?;
        let pair = Pair { certificate: authority.certificate_pem().to_owned(), key: authority.key_pem() };
        self.write(AUTHORITIES, name, &pair);
        Ok(authority)
    }

    /// The port of an API, if it had one.
    pub fn port(&self, name: &str) -> Option<u16> {
        self.read(PORTS, name)
    }

    /// Takes note of the port of an API.
    pub fn note_port(&self, name: &str, port: u16) {
        if self.port(name) != Some(port) {
            self.write(PORTS, name, &port);
        }
    }

    /// The cluster is gone: another one of its name has nothing of it.
    pub fn forget(&self, name: &str) {
        for resource in [AUTHORITIES, PORTS] {
            let key = Key::new("", name);
            let Some(entry) = self.store.get(resource, &key) else { continue };
            let last = entry.to_value("", "");
            // Nobody else writes here.
            drop(self.store.remove(&Resource::from(resource), &key, entry.revision, last, wall_now()));
        }
    }

    /// Resolves when all that was noted so far will last.
    pub async fn durable(&self) -> std::io::Result<()> {
        self.store.durable(self.store.revision()).await
    }

    /// Writes what is left to write, and gives the directory back.
    pub fn close(&self) -> std::io::Result<()> {
        self.journal.close()
    }

    fn read<T: DeserializeOwned>(&self, resource: &str, name: &str) -> Option<T> {
        let entry = self.store.get(resource, &Key::new("", name))?;
        serde_json::from_slice::<Record<T>>(&entry.json).ok().map(|record| record.record)
    }

    fn write<T: Serialize>(&self, resource: &str, name: &str, record: &T) {
        let key = Key::new("", name);
        let object = serde_json::json!({"metadata": {"name": name}, "record": record});
        let known = self.store.get(resource, &key);
        let expect = known.map_or(Expect::Absent, |entry| Expect::Revision(entry.revision));
        // Two who write the same at once write the same.
        drop(self.store.put(&Resource::from(resource), &key, expect, object, wall_now()));
    }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("journal", &self.journal).finish_non_exhaustive()
    }
}
