//! The model: what was acknowledged is there, and what is there is a beginning of what was written.

mod crash;
mod directory;
mod platter;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use super::engine::Engine;
use super::key::Keys;
use super::record::Item;
use crate::store::{Change, ChangeKind, Entry, Key, Recovered};

/// splitmix64: tests need chance that a seed decides.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }

    pub(super) fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    pub(super) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }
}

pub(super) fn keys() -> Keys {
    Keys::of([7; 32])
}

/// What is there: of each place, its revision, and its objects' revisions and JSON.
type State = BTreeMap<String, (u64, BTreeMap<String, (u64, String)>)>;

/// All that was ever written, in order, and what was there after each.
#[derive(Default)]
struct History {
    items: Vec<Item>,
    states: Vec<State>,
}

impl History {
    fn state(&self) -> State {
        self.states.last().cloned().unwrap_or_default()
    }

    /// Something more happens.
    fn go_on(&mut self, dice: &mut Dice) -> Item {
        let mut state = self.state();
        let place = ["management", "default/one", "default/two"][dice.index(3)];
        let item = if place != "management" && dice.one_in(12) {
            state.remove(place);
            Item::Forget(place.into())
        } else {
            let (revision, objects) = state.entry(place.to_owned()).or_default();
            *revision += 1;
            let name = ["a", "b", "c", "d"][dice.index(4)];
            let key = Key::new("space", name);
            // Some are larger than a block of a disk.
            let filling = "x".repeat(if dice.one_in(9) { dice.index(9000) } else { dice.index(40) });
            let object = json!({"metadata": {"name": name, "uid": format!("u-{revision}")}, "filling": filling});
            let entry = Arc::new(Entry::new(key, *revision, object));
            let before = objects.contains_key(name);
            let kind = match (before, dice.one_in(4)) {
                (true, true) => ChangeKind::Deleted,
                (true, false) => ChangeKind::Modified,
                (false, _) => ChangeKind::Added,
            };
            if kind == ChangeKind::Deleted {
                objects.remove(name);
            } else {
                let json = String::from_utf8(entry.json.to_vec()).unwrap();
                objects.insert(name.to_owned(), (*revision, json));
            }
            let at = Timestamp::from_second(i64::try_from(self.items.len()).unwrap()).unwrap();
            let change = Change { kind, revision: *revision, at, object: entry, previous: None };
            let draws = self.items.len() as u64;
            Item::Change { place: place.into(), resource: "things".into(), change: Arc::new(change), draws }
        };
        self.items.push(item.clone());
        self.states.push(state);
        item
    }

    /// After how many items it was as it is in `found`, from `least` on.
    fn position(&self, found: &State, least: usize) -> Option<usize> {
        (least..=self.items.len())
            .find(|position| position.checked_sub(1).map_or(State::new(), |last| self.states[last].clone()) == *found)
    }

    /// Forgets what came after a position: it never happened.
    fn cut(&mut self, position: usize) {
        self.items.truncate(position);
        self.states.truncate(position);
    }
}

fn state_of(recovered: &BTreeMap<Arc<str>, Recovered>) -> State {
    let objects = |recovered: &Recovered| {
        let all = recovered.objects().map(|(_, entry)| {
            assert_eq!(&*entry.key.namespace, "space");
            (entry.key.name.to_string(), (entry.revision, String::from_utf8(entry.json.to_vec()).unwrap()))
        });
        all.collect()
    };
    recovered.iter().map(|(place, kept)| (place.to_string(), (kept.revision, objects(kept)))).collect()
}

/// The history that watches go on from: it leads from what was at the horizon to what is there, one revision after the other.
fn check_changes(recovered: &BTreeMap<Arc<str>, Recovered>) {
    for (place, kept) in recovered {
        let mut revision = kept.horizon;
        let mut latest: BTreeMap<String, Option<u64>> = BTreeMap::new();
        for (_, change) in &kept.changes {
            assert_eq!(change.revision, revision + 1, "{place}: a change is missing, or there twice");
            revision = change.revision;
            let name = change.object.key.name.to_string();
            let before = change.previous.as_ref().map(|entry| entry.revision);
            if let Some(known) = latest.get(&name) {
                assert_eq!(*known, before, "{place}: {name} was another before {revision}");
            }
            assert_eq!(change.kind == ChangeKind::Added, before.is_none(), "{place}: {name} at {revision}");
            latest.insert(name, (change.kind != ChangeKind::Deleted).then_some(revision));
        }
        assert_eq!(revision, kept.revision, "{place}: history ends too early");
        for (name, revision) in latest {
            let now = kept.objects().find(|(_, entry)| *entry.key.name == *name).map(|(_, entry)| entry.revision);
            assert_eq!(now, revision, "{place}: {name}");
        }
    }
}

fn open(disk: &platter::Platter) -> Result<(Engine, BTreeMap<Arc<str>, Recovered>), super::RecoverError> {
    Engine::open(Arc::new(disk.clone()), keys())
}
