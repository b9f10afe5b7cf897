//! Crashes and failures by seed, on a simulated disk.

use super::platter::{Faults, Platter};
use super::*;

/// How many seeds `cargo test` tries; `WINDLASS_SEEDS=100000 cargo test -p windlass-apiserver durable` tries more.
const SEEDS: u64 = 1_000;

fn seeds() -> u64 {
    std::env::var("WINDLASS_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS)
}

/// How lives end.
#[derive(Clone, Copy)]
enum End {
    Kill,
    PowerCut,
    Either,
}

/// Several lives of one directory, under a disk that is as bad as it is told to be. After each, everything acknowledged is
/// there, and what is there is a beginning of what was written.
fn live(seed: u64, faults: Faults, end: End) {
    let mut dice = Dice::new(seed ^ 0x5eed);
    let disk = Platter::new(seed, Faults::default());
    let mut history = History::default();
    let mut acknowledged = 0;
    for life in 0..4 {
        let (mut engine, recovered) = open(&disk).unwrap_or_else(|error| panic!("seed {seed}, life {life}: {error:?}"));
        check_changes(&recovered);
        let position = history.position(&state_of(&recovered), acknowledged);
        let position =
            position.unwrap_or_else(|| panic!("seed {seed}, life {life}: it is no prefix after {acknowledged}"));
        history.cut(position);
        disk.set(faults);
        acknowledged = live_once(&mut engine, &mut history, position, &mut dice, &disk);
        disk.set(Faults::default());
        match end {
            // What was written stays, synced or not.
            End::Kill => {}
            End::Either if dice.one_in(2) => {}
            End::PowerCut | End::Either => disk.cut_power(),
        }
    }
}

/// Writes for a while, and says how much was acknowledged.
fn live_once(engine: &mut Engine, history: &mut History, from: usize, dice: &mut Dice, disk: &Platter) -> usize {
    let mut acknowledged = from;
    for _ in 0..dice.index(12) {
        for _ in 0..=dice.index(3) {
            history.go_on(dice);
        }
        // What could not be written is written again with what has come since, as the journal does.
        if engine.write(&history.items[acknowledged..]).is_ok() {
            acknowledged = history.items.len();
        }
        if dice.one_in(5) {
            let checkpoint = engine.begin_checkpoint();
            let meanwhile = dice.one_in(2);
            if meanwhile && acknowledged < history.items.len() && engine.write(&history.items[acknowledged..]).is_ok() {
                acknowledged = history.items.len();
            }
            // Some are never finished.
            if !dice.one_in(6)
                && let Ok(written) = checkpoint.write()
                && !dice.one_in(6)
            {
                engine.end_checkpoint(&written);
            }
        }
    }
    assert!(!disk.file_names().is_empty() || acknowledged == from);
    acknowledged
}

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    (0..seeds()).for_each(|seed| live(seed, Faults::default(), End::Kill));
}

#[test]
fn nothing_acknowledged_is_lost_when_the_power_fails_at_any_byte() {
    (0..seeds()).for_each(|seed| live(seed, Faults { short: 3, ..Faults::default() }, End::PowerCut));
}

#[test]
fn a_full_disk_loses_nothing() {
    (0..seeds()).for_each(|seed| live(seed, Faults { full: 4, short: 6, ..Faults::default() }, End::Either));
}

#[test]
fn a_disk_that_fails_loses_nothing() {
    let faults = Faults { write: 6, sync: 5, names: 8, short: 8, full: 12, lie: 0 };
    (0..seeds()).for_each(|seed| live(seed, faults, End::Either));
}

/// What a disk lost that said it had synced cannot be brought back. But it is never made up for by something else: what is there
/// is a beginning of what was written, or it is refused.
#[test]
fn a_disk_that_lies_leaves_a_beginning_or_is_found_out() {
    let (mut shorter, mut refused) = (0, 0);
    for seed in 0..seeds() {
        let mut dice = Dice::new(seed ^ 0x11e5);
        let disk = Platter::new(seed, Faults::default());
        let mut history = History::default();
        let (mut engine, _) = open(&disk).unwrap();
        disk.set(Faults { lie: 3, ..Faults::default() });
        let acknowledged = live_once(&mut engine, &mut history, 0, &mut dice, &disk);
        disk.set(Faults::default());
        disk.cut_power();
        match open(&disk) {
            Ok((_, recovered)) => {
                check_changes(&recovered);
                let position = history.position(&state_of(&recovered), 0);
                let position = position.unwrap_or_else(|| panic!("seed {seed}: it is no prefix"));
                shorter += u64::from(position < acknowledged);
            }
            // Any part of a header may be missing.
            Err(super::super::RecoverError::Io(error)) => panic!("seed {seed}: {error:?}"),
            Err(_) => refused += 1,
        }
    }
    assert!(shorter > 0 && refused > 0, "the disk has not lied: {shorter} {refused}");
}

/// Only the last frame of all may be damaged without anybody noticing: it looks like one that was never whole.
#[test]
fn a_flipped_bit_is_found_or_was_in_the_last_frame() {
    let (mut found, mut harmless) = (0, 0);
    for seed in 0..seeds() {
        let mut dice = Dice::new(seed ^ 0xf11b);
        let disk = Platter::new(seed, Faults::default());
        let mut history = History::default();
        let (mut engine, _) = open(&disk).unwrap();
        let mut frames = vec![0];
        for _ in 0..2 + dice.index(8) {
            let from = history.items.len();
            history.go_on(&mut dice);
            engine.write(&history.items[from..]).unwrap();
            frames.push(history.items.len());
            if dice.one_in(4) {
                let written = engine.begin_checkpoint().write().unwrap();
                engine.end_checkpoint(&written);
            }
        }
        let Some((name, at, length)) = disk.flip() else { continue };
        match open(&disk) {
            Ok((_, recovered)) => {
                let position = history.position(&state_of(&recovered), frames[frames.len() - 2]);
                assert!(position.is_some(), "seed {seed}: bit {at} of {length} of {name} has changed what was written");
                harmless += 1;
            }
            Err(super::super::RecoverError::Io(error)) => panic!("seed {seed}: {error:?}"),
            Err(_) => found += 1,
        }
    }
    assert!(found > harmless && harmless > 0, "{found} {harmless}");
}

#[test]
fn a_log_that_is_missing_is_noticed() {
    let disk = Platter::new(1, Faults::default());
    let mut history = History::default();
    let mut dice = Dice::new(1);
    for _ in 0..3 {
        let (mut engine, _) = open(&disk).unwrap();
        let from = history.items.len();
        history.go_on(&mut dice);
        engine.write(&history.items[from..]).unwrap();
    }
    let names = disk.file_names();
    assert_eq!(names.len(), 3, "{names:?}");
    disk.lose(&names[1]);
    let error = open(&disk).err().unwrap();
    assert_eq!(error.to_string(), format!("{} is damaged: the changes 2 to 2 before it are missing", names[2]));
}

#[test]
fn another_key_changes_nothing_and_a_rotated_one_seals_everything_anew() {
    let disk = Platter::new(1, Faults::default());
    let mut history = History::default();
    let mut dice = Dice::new(1);
    let (mut engine, _) = open(&disk).unwrap();
    for _ in 0..9 {
        let from = history.items.len();
        history.go_on(&mut dice);
        engine.write(&history.items[from..]).unwrap();
    }
    drop(engine);
    let before = disk.everything();
    let wrong = Engine::open(Arc::new(disk.clone()), Keys::of([8; 32])).err().unwrap();
    assert!(matches!(wrong, super::super::RecoverError::OtherKey { .. }), "{wrong:?}");
    assert_eq!(disk.everything(), before);

    let both = Keys::of([7; 32]).after([8; 32]);
    let (mut engine, recovered) = Engine::open(Arc::new(disk.clone()), both).unwrap();
    assert_eq!(state_of(&recovered), history.state());
    assert!(engine.is_due());
    let written = engine.begin_checkpoint().write().unwrap();
    engine.end_checkpoint(&written);
    drop(engine);
    let (_, recovered) = Engine::open(Arc::new(disk.clone()), Keys::of([8; 32])).unwrap();
    assert_eq!(state_of(&recovered), history.state(), "the first key is not needed any more");
}

#[test]
fn nothing_that_is_written_can_be_read_without_the_key() {
    const SECRET: &str = "correct horse battery staple";
    let disk = Platter::new(3, Faults { short: 3, write: 9, sync: 9, ..Faults::default() });
    let (mut engine, _) = open(&disk).unwrap();
    let mut items = Vec::new();
    for revision in 1..200 {
        let object = json!({"metadata": {"name": "mine"}, "data": {"password": SECRET}});
        let entry = Arc::new(Entry::new(Key::new("private-namespace", "mine"), revision, object));
        let change =
            Change { kind: ChangeKind::Added, revision, at: Timestamp::UNIX_EPOCH, object: entry, previous: None };
        let (place, resource) = ("management".into(), "secrets".into());
        items.push(Item::Change { place, resource, change: Arc::new(change), draws: 0 });
        if engine.write(&items).is_ok() {
            items.clear();
        }
        if revision % 17 == 0
            && let Ok(written) = engine.begin_checkpoint().write()
        {
            engine.end_checkpoint(&written);
        }
    }
    let files = disk.everything();
    assert!(files.len() > 10);
    for words in [SECRET, "private-namespace", "password", "secrets", "management"] {
        let found = files.iter().any(|file| file.windows(words.len()).any(|window| window == words.as_bytes()));
        assert!(!found, "{words:?} can be read");
    }
}
