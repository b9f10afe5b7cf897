use super::*;
use crate::chance::Seed;

const BACKOFF: Backoff =
    Backoff { base: Duration::from_secs(4), cap: Duration::from_secs(60), soonest: Duration::from_secs(1) };
const PATIENCE: Duration = Duration::from_secs(10);

fn queue(order: Order) -> Queue {
    Queue::new(order, BACKOFF, Seed(1).stream("jitter"), PATIENCE)
}

fn fifo() -> Queue {
    queue(Order::Fifo)
}

fn key(name: &str) -> Key {
    Key::cluster(name)
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The names of everything that can be taken now.
fn take_all(queue: &mut Queue, seconds: u64) -> Vec<String> {
    queue.wake(at(seconds));
    std::iter::from_fn(|| queue.take(at(seconds))).map(|turn| turn.key.name).collect()
}

fn seen_until(version: u64) -> Arc<AtomicU64> {
    Arc::new(AtomicU64::new(version))
}

#[test]
fn keys_are_taken_first_come_first_served_and_once() {
    let mut queue = fifo();
    for name in ["b", "a", "b", "c"] {
        queue.add(&key(name), at(0));
    }
    assert_eq!(take_all(&mut queue, 0), ["b", "a", "c"]);
}

#[test]
fn a_permuted_order_depends_on_its_stream_only() {
    let taken = |seed| {
        let mut queue = queue(Order::Permuted(Seed(seed).stream("order")));
        for n in 0..10 {
            queue.add(&key(&n.to_string()), at(0));
        }
        take_all(&mut queue, 0)
    };
    assert_eq!(taken(1), taken(1));
    assert_ne!(taken(1), taken(2));
    let mut sorted = taken(1);
    sorted.sort();
    assert_eq!(sorted, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
}

#[test]
fn a_change_during_a_turn_gives_one_more_turn_and_none_at_the_same_time() {
    let mut queue = fifo();
    queue.add(&key("a"), at(0));
    assert_eq!(take_all(&mut queue, 0), ["a"]);
    queue.add(&key("a"), at(0));
    queue.add(&key("a"), at(0));
    assert!(take_all(&mut queue, 0).is_empty());
    queue.finish(&key("a"), Ending::Done, vec![], at(0));
    assert_eq!(take_all(&mut queue, 0), ["a"]);
    queue.finish(&key("a"), Ending::Done, vec![], at(0));
    assert!(take_all(&mut queue, 0).is_empty());
    assert!(queue.entries.is_empty(), "a key that is done is forgotten");
}

#[test]
fn a_requeue_fires_at_its_time_and_a_change_comes_before_it() {
    let mut queue = fifo();
    queue.add(&key("a"), at(0));
    assert_eq!(take_all(&mut queue, 0), ["a"]);
    assert_eq!(queue.finish(&key("a"), Ending::Again(at(60)), vec![], at(1)), Some(at(60)));
    assert_eq!(queue.next_timer(), Some(at(61)));
    assert!(take_all(&mut queue, 60).is_empty());
    assert_eq!(take_all(&mut queue, 61), ["a"]);
    queue.finish(&key("a"), Ending::Again(at(60)), vec![], at(61));
    queue.add(&key("a"), at(70));
    assert_eq!(take_all(&mut queue, 70), ["a"]);
    assert_eq!(queue.next_timer(), None, "the change took the place of the timer");
}

#[test]
fn timers_that_fire_together_fire_in_the_order_of_time_and_key() {
    let mut queue = fifo();
    for (name, delay) in [("c", 5), ("b", 9), ("a", 9)] {
        queue.add(&key(name), at(0));
        queue.take(at(0)).unwrap();
        queue.finish(&key(name), Ending::Again(at(delay)), vec![], at(0));
    }
    assert_eq!(take_all(&mut queue, 20), ["c", "a", "b"]);
}

#[test]
fn a_requeue_after_nothing_still_lets_time_pass() {
    let mut queue = fifo();
    queue.add(&key("a"), at(0));
    queue.take(at(0)).unwrap();
    queue.finish(&key("a"), Ending::Again(Duration::ZERO), vec![], at(0));
    assert!(take_all(&mut queue, 0).is_empty());
    assert_eq!(queue.next_timer(), Some(TICK));
}

#[test]
fn failures_back_off_longer_each_time_and_success_resets() {
    let mut queue = fifo();
    let fail = |queue: &mut Queue, now: u64| {
        queue.add(&key("a"), at(now));
        assert_eq!(take_all(queue, now), ["a"]);
        queue.finish(&key("a"), Ending::Failed, vec![], at(now)).unwrap()
    };
    let first = fail(&mut queue, 0);
    let second = fail(&mut queue, 100);
    let third = fail(&mut queue, 200);
    assert!(at(2) <= first && first <= at(4) && first <= second && second <= third, "{first:?} {second:?} {third:?}");
    assert!(third >= at(8));
    queue.add(&key("a"), at(300));
    assert_eq!(take_all(&mut queue, 300), ["a"]);
    queue.finish(&key("a"), Ending::Done, vec![], at(300));
    assert!(fail(&mut queue, 400) <= at(4));
}

#[test]
fn a_failing_key_that_keeps_changing_is_not_a_hot_loop() {
    let mut queue = fifo();
    let (mut turns, mut now) = (0, Duration::ZERO);
    queue.add(&key("a"), now);
    while now < at(60) {
        queue.wake(now);
        if let Some(turn) = queue.take(now) {
            turns += 1;
            queue.add(&turn.key, now);
            queue.finish(&turn.key, Ending::Failed, vec![], now);
        }
        queue.add(&key("a"), now);
        now += TICK;
    }
    assert_eq!(turns, 60, "one per `soonest`, however often it changes");
}

#[test]
fn a_key_waits_until_its_own_writes_are_seen() {
    let mut queue = fifo();
    let (machines, secrets) = (seen_until(5), seen_until(5));
    queue.add(&key("a"), at(0));
    queue.take(at(0)).unwrap();
    let writes = vec![Write { seen: machines.clone(), version: 8 }, Write { seen: secrets.clone(), version: 6 }];
    queue.finish(&key("a"), Ending::Done, writes, at(0));
    queue.add(&key("a"), at(0));
    queue.add(&key("b"), at(0));
    assert_eq!(take_all(&mut queue, 1), ["b"], "others are not held up");

    machines.store(9, Ordering::Release);
    queue.unpark();
    assert!(take_all(&mut queue, 2).is_empty(), "the secret has not been seen");
    secrets.store(6, Ordering::Release);
    queue.unpark();
    assert_eq!(queue.take(at(3)), Some(Turn { key: key("a"), caught_up: true, waited: at(3) }));
    assert_eq!(queue.next_timer(), None);
}

#[test]
fn a_key_loses_patience_with_writes_that_are_not_seen_but_is_told_until_they_are() {
    let mut queue = fifo();
    let seen = seen_until(1);
    let turn = |caught_up, waited| Some(Turn { key: key("a"), caught_up, waited: at(waited) });
    queue.add(&key("a"), at(0));
    queue.take(at(0)).unwrap();
    queue.finish(&key("a"), Ending::Done, vec![Write { seen: seen.clone(), version: 2 }], at(0));
    queue.add(&key("a"), at(1));
    assert!(take_all(&mut queue, 9).is_empty());
    queue.wake(PATIENCE);
    for waited in [9, 0] {
        assert_eq!(queue.take(PATIENCE), turn(false, waited));
        queue.finish(&key("a"), Ending::Done, vec![], PATIENCE);
        queue.add(&key("a"), PATIENCE);
    }
    seen.store(2, Ordering::Release);
    assert_eq!(queue.take(PATIENCE), turn(true, 0));
    queue.finish(&key("a"), Ending::Done, vec![], PATIENCE);
    assert!(queue.entries.is_empty());
}

#[test]
fn how_long_a_key_was_due_is_counted_from_its_time() {
    let mut queue = fifo();
    queue.add(&key("a"), at(0));
    queue.take(at(0)).unwrap();
    queue.finish(&key("a"), Ending::Again(at(5)), vec![], at(0));
    queue.add(&key("b"), at(6));
    queue.wake(at(7));
    assert_eq!(queue.ready(), 2);
    let waited = |queue: &mut Queue| queue.take(at(8)).map(|turn| (turn.key.name, turn.waited));
    assert_eq!(waited(&mut queue), Some(("b".to_owned(), at(2))));
    assert_eq!(waited(&mut queue), Some(("a".to_owned(), at(3))));
    assert_eq!(queue.ready(), 0);
}

#[test]
fn of_many_writes_to_one_cache_the_latest_is_waited_for() {
    let mut queue = fifo();
    let seen = seen_until(1);
    queue.add(&key("a"), at(0));
    queue.take(at(0)).unwrap();
    let writes = [4, 9, 7].map(|version| Write { seen: seen.clone(), version });
    queue.finish(&key("a"), Ending::Done, writes.into(), at(0));
    assert_eq!(queue.entries[&key("a")].writes.len(), 1);
    queue.add(&key("a"), at(0));
    for (version, taken) in [(8, 0), (9, 1)] {
        seen.store(version, Ordering::Release);
        queue.unpark();
        assert_eq!(take_all(&mut queue, 1).len(), taken, "seen up to {version}");
    }
}
