//! Linearizability: what clients were answered could have been answered by one register for each name, each request at one
//! moment between its sending and its answer.
//!
//! The checker knows nothing of revisions but that each write gives an object another one: it searches for an order, as Wing and
//! Gong did, name by name. A request without an answer may have happened at any time after it was sent, or never.

use std::collections::{BTreeMap, BTreeSet};

/// A request to one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// A new object with this value.
    Create(u64),
    /// This value, if the object is still at the revision that was seen.
    Replace(u64, u64),
    /// The object goes, if it is still at the revision that was seen.
    Delete(u64),
    /// What is there?
    Read,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// It was written, at this revision.
    Written(u64),
    /// It is gone.
    Gone,
    /// This value at this revision is there.
    There(u64, u64),
    /// Nothing is there.
    Nothing,
    /// Something else is there than was expected.
    Conflict,
    /// Nobody knows.
    Unknown,
}

/// A request, and when it was sent and answered, on a clock that only counts.
#[derive(Debug, Clone)]
pub struct Operation {
    pub sent: u64,
    pub answered: u64,
    pub asked: Asked,
    pub told: Told,
}

/// The register: a value, and the revision at which it was written.
type Register = Option<(u64, u64)>;

/// What the register is after the operation, if the answer is one that it could have given. A write whose revision nobody was
/// told is at a revision of its own.
fn step(register: Register, operation: &Operation, number: usize) -> Vec<Register> {
    let unknown = operation.told == Told::Unknown;
    let revision = |told: &Told| match told {
        Told::Written(revision) => *revision,
        _ => u64::MAX - number as u64,
    };
    let written = unknown || matches!(operation.told, Told::Written(_));
    // A revision that nobody was told may turn out to be any.
    let is_at = |seen: u64| register.is_some_and(|(_, at)| at == seen || at > u64::MAX / 2);
    let same = |is_so: bool| if is_so { vec![register] } else { Vec::new() };
    match (&operation.asked, &operation.told) {
        (Asked::Create(value), _) if written && register.is_none() => vec![Some((*value, revision(&operation.told)))],
        (Asked::Replace(value, seen), _) if written && is_at(*seen) => vec![Some((*value, revision(&operation.told)))],
        (Asked::Delete(seen), Told::Gone | Told::Unknown) if is_at(*seen) => vec![None],
        (Asked::Create(_), Told::Conflict) => same(register.is_some()),
        (Asked::Replace(_, seen) | Asked::Delete(seen), Told::Conflict) => {
            same(register.is_some_and(|(_, at)| at != *seen))
        }
        (Asked::Replace(..) | Asked::Delete(_) | Asked::Read, Told::Nothing) => same(register.is_none()),
        (Asked::Read, Told::There(value, at)) => match register {
            Some((is, known)) if is == *value && (known == *at || known > u64::MAX / 2) => vec![Some((*value, *at))],
            _ => Vec::new(),
        },
        (Asked::Read, Told::Unknown) => same(true),
        _ => Vec::new(),
    }
}

/// Whether there is an order.
pub fn is_linearizable(operations: &[Operation]) -> bool {
    let mut operations = operations.to_vec();
    operations.sort_by_key(|operation| operation.sent);
    let all = operations.len();
    let mut dead: BTreeSet<(Vec<u64>, Register)> = BTreeSet::new();
    // Done ones as bits, and what the register is.
    let mut stack: Vec<(Vec<u64>, Register)> = vec![(vec![0; all.div_ceil(64)], None)];
    while let Some((done, register)) = stack.pop() {
        if !dead.insert((done.clone(), register)) {
            continue;
        }
        let is_done = |number: usize| done[number / 64] >> (number % 64) & 1 == 1;
        let open = || operations.iter().enumerate().filter(|(number, _)| !is_done(*number));
        // Those whose outcome nobody knows may never happen.
        if open().all(|(_, operation)| operation.told == Told::Unknown) {
            return true;
        }
        let earliest = open().filter(|(_, o)| o.told != Told::Unknown).map(|(_, o)| o.answered).min();
        for (number, operation) in open().filter(|(_, operation)| earliest.is_none_or(|end| operation.sent <= end)) {
            for next in step(register, operation, number) {
                let mut done = done.clone();
                done[number / 64] |= 1 << (number % 64);
                stack.push((done, next));
            }
        }
    }
    false
}

/// Checks the operations on each name.
pub fn check(log: &BTreeMap<String, Vec<Operation>>) {
    for (name, operations) in log {
        if !is_linearizable(operations) {
            let mut sorted = operations.clone();
            sorted.sort_by_key(|operation| operation.sent);
            let lines: Vec<String> = sorted.iter().map(|operation| format!("{operation:?}")).collect();
            panic!("{name} is no register:\n{}", lines.join("\n"));
        }
    }
}

fn operation(sent: u64, answered: u64, asked: Asked, told: Told) -> Operation {
    Operation { sent, answered, asked, told }
}

#[test]
fn the_checker_knows_a_history_that_no_register_has() {
    let created = operation(1, 2, Asked::Create(7), Told::Written(10));
    let check = |more: &[Operation], expected: bool| {
        let operations = [std::slice::from_ref(&created), more].concat();
        assert_eq!(is_linearizable(&operations), expected, "{operations:?}");
    };
    check(&[operation(3, 4, Asked::Read, Told::There(7, 10))], true);
    // A stale read.
    check(&[operation(3, 4, Asked::Read, Told::Nothing)], false);
    // A lost update: both have replaced the same state.
    let lost = [
        operation(3, 5, Asked::Replace(8, 10), Told::Written(11)),
        operation(4, 6, Asked::Replace(9, 10), Told::Written(12)),
    ];
    check(&lost, false);
    let won = [
        operation(3, 5, Asked::Replace(8, 10), Told::Written(11)),
        operation(4, 6, Asked::Replace(9, 10), Told::Conflict),
    ];
    check(&won, true);
    // Reads that see a write, and then do not.
    let back = [
        operation(3, 9, Asked::Replace(8, 10), Told::Written(11)),
        operation(4, 5, Asked::Read, Told::There(8, 11)),
        operation(6, 7, Asked::Read, Told::There(7, 10)),
    ];
    check(&back, false);
    // What nobody was told of may have happened, late, or not.
    let unknown = operation(3, 4, Asked::Delete(10), Told::Unknown);
    check(&[unknown.clone(), operation(8, 9, Asked::Read, Told::Nothing)], true);
    check(&[unknown.clone(), operation(8, 9, Asked::Read, Told::There(7, 10))], true);
    let revived =
        [unknown, operation(5, 6, Asked::Read, Told::Nothing), operation(8, 9, Asked::Read, Told::There(7, 10))];
    check(&revived, false);
    // A conflict with nobody.
    check(&[operation(3, 4, Asked::Replace(8, 10), Told::Conflict)], false);
}
