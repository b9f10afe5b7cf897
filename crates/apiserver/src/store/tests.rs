use futures::{FutureExt, StreamExt};
use serde_json::json;

use super::entry::name_types;
use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn things() -> Resource {
    "things.test".into()
}

fn thing(name: &str, value: &str) -> Value {
    json!({"apiVersion": "test/v1", "kind": "Thing", "metadata": {"name": name, "uid": format!("u-{name}")}, "value": value})
}

fn put(store: &Store, namespace: &str, name: &str, expect: Expect, value: &str) -> u64 {
    store.put(&things(), &Key::new(namespace, name), expect, thing(name, value), NOW).unwrap().revision
}

fn names(page: &Page) -> Vec<String> {
    page.entries.iter().map(|entry| entry.key.to_string()).collect()
}

const ALL: Range<'static> = Range { namespace: None, after: None, limit: 0 };

#[test]
fn revisions_rise_by_one_and_stand_in_the_object() {
    let store = Store::new(Retention::default());
    assert_eq!(put(&store, "a", "x", Expect::Absent, "1"), 1);
    assert_eq!(put(&store, "a", "x", Expect::Revision(1), "2"), 2);
    let entry = store.get("things.test", &Key::new("a", "x")).unwrap();
    let value = entry.to_value("test/v1", "Thing");
    assert_eq!(value["metadata"]["resourceVersion"], "2");
    assert_eq!((value["apiVersion"].as_str(), value["value"].as_str()), (Some("test/v1"), Some("2")));
    let mut out = Vec::new();
    entry.write_json(br#""apiVersion":"test/v1","kind":"Thing","#, &mut out);
    assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), value);
}

#[test]
fn what_is_followed_keeps_the_version_that_it_has_elsewhere() {
    let store = Store::new(Retention::default());
    let mut there = thing("x", "1");
    there["metadata"]["resourceVersion"] = json!("4711");
    let mut seen = store.subscribe(&things(), 0).unwrap();
    for _ in 0..2 {
        store.follow(&things(), &Key::new("a", "x"), &there, NOW);
    }
    let entry = store.get("things.test", &Key::new("a", "x")).unwrap();
    assert_eq!((entry.revision, &*entry.uid), (2, "u-x"));
    assert_eq!(entry.to_value("test/v1", "Thing"), there);
    let kinds = [(); 2].map(|()| seen.next().now_or_never().unwrap().unwrap().unwrap().1.kind);
    assert_eq!(kinds, [ChangeKind::Added, ChangeKind::Modified]);
}

#[test]
fn an_object_is_the_same_whether_it_is_young_or_not() {
    let store = Store::new(Retention::default());
    put(&store, "a", "x", Expect::Absent, "1");
    let entry = store.get("things.test", &Key::new("a", "x")).unwrap();
    let look = || {
        let trees = [entry.tree("test/v1", "Thing"), entry.tree("test/v2", "Other")].map(|tree| tree.to_string());
        let fields = ["value", "metadata.name", "metadata.none", "value.none"].map(|path| entry.field(path));
        let mut any = Value::clone(&entry.look());
        name_types(&mut any, "".into(), "".into());
        (trees, entry.to_value("test/v2", "Other"), any, fields, entry.metadata_json().to_owned())
    };
    assert!(entry.is_young());
    let young = look();
    for count in 0..YOUNG {
        put(&store, "b", &format!("y{count}"), Expect::Absent, "");
    }
    assert!(!entry.is_young());
    assert_eq!(look(), young);
    assert_eq!(young.4, young.1["metadata"].to_string());
    assert_eq!(young.3, [json!("1"), json!("x"), json!(null), json!(null)]);
}

#[test]
fn a_write_that_expects_something_else_writes_nothing() {
    let store = Store::new(Retention::default());
    put(&store, "a", "x", Expect::Absent, "1");
    let key = Key::new("a", "x");
    let found = store.put(&things(), &key, Expect::Absent, thing("x", "2"), NOW).unwrap_err();
    assert_eq!(found.current.unwrap().revision, 1);
    assert!(store.put(&things(), &key, Expect::Revision(7), thing("x", "2"), NOW).is_err());
    assert!(store.put(&things(), &Key::new("a", "y"), Expect::Revision(1), thing("y", "2"), NOW).is_err());
    assert!(store.remove(&things(), &key, 7, thing("x", "1"), NOW).is_err());
    assert_eq!(store.revision(), 1);
}

#[test]
fn lists_run_in_the_order_of_namespace_slash_name() {
    let store = Store::new(Retention::default());
    for (namespace, name) in [("a", "x"), ("a-b", "x"), ("a0", "x"), ("a", "b"), ("a.b", "x")] {
        put(&store, namespace, name, Expect::Absent, "");
    }
    assert_eq!(names(&store.list("things.test", ALL, |_| true)), ["a-b/x", "a.b/x", "a/b", "a/x", "a0/x"]);
    let one = Range { namespace: Some("a"), ..ALL };
    assert_eq!(names(&store.list("things.test", one, |_| true)), ["a/b", "a/x"]);
}

#[test]
fn pages_of_one_list_are_a_snapshot() {
    let store = Store::new(Retention::default());
    for name in ["a", "b", "c", "d"] {
        put(&store, "", name, Expect::Absent, "old");
    }
    let first = store.list("things.test", Range { limit: 2, ..ALL }, |_| true);
    assert_eq!((names(&first), first.remaining), (vec!["a".into(), "b".into()], Some(2)));

    put(&store, "", "bb", Expect::Absent, "new");
    put(&store, "", "c", Expect::Revision(3), "new");
    store.remove(&things(), &Key::new("", "d"), 4, thing("d", "old"), NOW).unwrap();

    let rest = Range { after: first.next.as_ref(), ..ALL };
    let second = store.list_at("things.test", rest, first.revision, |_| true).unwrap();
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second.entries[0].to_value("", "")["value"], "old");
    assert_eq!(names(&store.list("things.test", ALL, |_| true)), ["a", "b", "bb", "c"]);

    store.compact(store.revision());
    assert!(store.list_at("things.test", rest, first.revision, |_| true).is_err());
}

#[test]
fn a_subscription_sees_every_change_once_and_in_order() {
    let store = Store::new(Retention::default());
    put(&store, "", "a", Expect::Absent, "1");
    let mut subscription = store.subscribe(&things(), 0).unwrap();
    let mut next = || subscription.next().now_or_never().flatten().map(|change| change.unwrap().1);
    assert_eq!(next().map(|change| (change.kind, change.revision)), Some((ChangeKind::Added, 1)));
    assert!(next().is_none());
    put(&store, "", "a", Expect::Revision(1), "2");
    store.remove(&things(), &Key::new("", "a"), 2, thing("a", "2"), NOW).unwrap();
    let modified = next().unwrap();
    assert_eq!((modified.kind, modified.previous.as_ref().unwrap().revision), (ChangeKind::Modified, 1));
    let deleted = next().unwrap();
    assert_eq!((deleted.kind, deleted.object.revision), (ChangeKind::Deleted, 3));
    assert!(next().is_none());
}

#[test]
fn a_subscription_to_all_merges_resources_by_revision() {
    let store = Store::new(Retention::default());
    let mut subscription = store.subscribe_all();
    let other: Resource = "others.test".into();
    for i in 0..6 {
        let resource = if i % 2 == 0 { things() } else { other.clone() };
        let key = Key::new("", &format!("n{i}"));
        store.put(&resource, &key, Expect::Absent, thing("n", ""), NOW).unwrap();
    }
    let mut seen = Vec::new();
    while let Some((_, change)) = subscription.try_next().unwrap() {
        seen.push(change.revision);
    }
    assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn history_is_kept_by_age_and_bounded_by_number() {
    let retention = Retention { age: std::time::Duration::from_secs(75), events_min: 2, events_max: 4 };
    let store = Store::new(retention);
    let at = |second| Timestamp::from_second(second).unwrap();
    let write = |i: u64, second| {
        let expect = if i == 1 { Expect::Absent } else { Expect::Revision(i - 1) };
        store.put(&things(), &Key::new("", "a"), expect, thing("a", ""), at(second)).unwrap();
    };
    (1..=4).for_each(|i| write(i, 0));
    assert!(store.subscribe(&things(), 0).is_ok(), "four young changes fit");
    write(5, 1);
    assert_eq!(store.subscribe(&things(), 0).err(), Some(Expired { oldest: 1 }), "a fifth does not");
    write(6, 200);
    assert_eq!(store.subscribe(&things(), 3).err(), Some(Expired { oldest: 4 }), "old ones go, but two stay");
}

#[test]
fn a_quiet_subscription_does_not_expire_while_others_are_busy() {
    let store = Store::new(Retention::default());
    let mut subscription = store.subscribe(&things(), 0).unwrap();
    for i in 0..3 {
        store.put(&"others.test".into(), &Key::new("", &format!("n{i}")), Expect::Absent, thing("n", ""), NOW).unwrap();
    }
    let quiet = store.subscribe(&things(), 0).unwrap();
    assert_eq!(subscription.caught_up(), Ok(Some(3)));
    store.compact(3);
    for mut subscription in [subscription, quiet] {
        assert!(subscription.try_next().unwrap().is_none(), "it has missed nothing");
    }
    assert_eq!(store.subscribe(&things(), 0).err(), Some(Expired { oldest: 3 }), "who comes now may have");
}

#[test]
fn a_subscription_expires_when_a_change_that_it_has_not_seen_is_thrown_away() {
    let store = Store::new(Retention::default());
    let (mut one, mut all) = (store.subscribe(&things(), 0).unwrap(), store.subscribe_all());
    put(&store, "", "a", Expect::Absent, "1");
    store.compact(1);
    assert_eq!(one.try_next().err(), Some(Expired { oldest: 1 }));
    assert_eq!(all.try_next().err(), Some(Expired { oldest: 1 }));
}

#[test]
fn a_fork_goes_its_own_way() {
    let store = Store::new(Retention::default());
    put(&store, "", "a", Expect::Absent, "1");
    let fork = store.fork(None);
    put(&fork, "", "a", Expect::Revision(1), "fork");
    put(&store, "", "b", Expect::Absent, "1");
    assert_eq!(names(&fork.list("things.test", ALL, |_| true)), ["a"]);
    assert_eq!(names(&store.list("things.test", ALL, |_| true)), ["a", "b"]);
    assert!(fork.subscribe(&things(), 0).is_err(), "history stays behind");
    assert!(fork.subscribe(&things(), 1).is_ok());
}

#[test]
fn dependents_follow_owner_references() {
    let store = Store::new(Retention::default());
    let owned = |uid: &str| json!({"metadata": {"name": "c", "uid": "u-c", "ownerReferences": [{"uid": uid, "blockOwnerDeletion": true}]}});
    let key = Key::new("", "c");
    store.put(&things(), &key, Expect::Absent, owned("p1"), NOW).unwrap();
    assert_eq!(store.dependents("p1").len(), 1);
    store.put(&things(), &key, Expect::Revision(1), owned("p2"), NOW).unwrap();
    assert_eq!((store.dependents("p1").len(), store.dependents("p2").len()), (0, 1));
    store.remove(&things(), &key, 2, owned("p2"), NOW).unwrap();
    assert!(store.dependents("p2").is_empty());
}

/// Notes down what it sees.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Observer for Notes {
    fn committed(&self, resource: &Resource, change: &Arc<Change>) {
        self.0.lock().unwrap().push(format!("{:?} {resource} {} {}", change.kind, change.object.key, change.revision));
    }
}

#[test]
fn an_observer_sees_every_change_in_order_and_a_fork_has_its_own() {
    let (notes, of_fork) = (Arc::new(Notes::default()), Arc::new(Notes::default()));
    let store = Store::with_seams(Retention::default(), None, Some(notes.clone()));
    put(&store, "", "a", Expect::Absent, "1");
    put(&store, "", "a", Expect::Revision(1), "2");
    assert!(store.put(&things(), &Key::new("", "a"), Expect::Absent, thing("a", "3"), NOW).is_err());
    let fork = store.fork(Some(of_fork.clone()));
    store.remove(&things(), &Key::new("", "a"), 2, thing("a", "2"), NOW).unwrap();
    put(&fork, "", "a", Expect::Revision(2), "4");

    assert_eq!(
        *notes.0.lock().unwrap(),
        ["Added things.test a 1", "Modified things.test a 2", "Deleted things.test a 3"],
        "refused writes are no changes"
    );
    assert_eq!(*of_fork.0.lock().unwrap(), ["Modified things.test a 3"]);
}
