//! The failures on record of rolling updates, each as a scenario: how it ends, and what the cluster says it waits for meanwhile.
//!
//! F1 to F22 are the numbers of the catalogue of failures; those with a `#`, and the letters, are of what is on record about the
//! tool that did this before. A failure that has a table of its own elsewhere is named with its test, and one that is not about
//! this flow with the reason; a test checks that none is forgotten.

mod catalogue;
mod control_plane;
mod etcd;
mod network;
mod people;
mod releases;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use windlass_rehearse::crash::Crashes;
use windlass_rehearse::rehearsal::{self, Ended, Rehearsal, Reported, Request, Verdict};
use windlass_sim::fault::{Action, Fault, NodeFault, Scenario, Span, When, Whom};

use crate::start::{self, TO};

/// How it ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// At the release that was asked for.
    Reached,
    /// Given up, until somebody does something.
    Failed,
    /// Neither: it waits for somebody who does something.
    Waits,
    /// The cluster is gone, as somebody wished.
    Gone,
}

/// What must be told of it.
#[derive(Debug, Clone, Copy)]
enum Told {
    /// Words of what it waited for or gave up for, which name what was done to it.
    Words(&'static [&'static str]),
    /// Nothing: it holds nothing up, and nothing is waited for that is not waited for without it.
    Nothing,
}

/// A failure: of which numbers, in a cluster of which size, with what going wrong; and what must come of it.
struct Row {
    ids: &'static [&'static str],
    size: (u32, u32),
    scenario: Scenario,
    end: End,
    /// What must never be and is not to be avoided: it was done by others.
    tolerated: &'static [&'static str],
    told: Told,
}

impl Row {
    fn run(&self) -> Ended {
        // Four attempts of a quarter of an hour, twice; or long enough to be sure that nothing more comes.
        let minutes = if self.end == End::Waits { 45 } else { 3 * 60 };
        let deadline = Duration::from_secs(minutes * 60);
        let request = Request { deadline, faults: self.scenario.clone(), ..start::update() };
        let start = start::of(self.size.0, self.size.1);
        rehearsal::hold(&start.world, &request, Crashes::none()).unwrap()
    }
}

fn check(row: &Row) -> Ended {
    let ended = row.run();
    let (rehearsal, name) = (&ended.rehearsal, format!("{:?} {}", row.ids, row.scenario.name));
    let end = match &rehearsal.verdict {
        Verdict::Reached { distribution } if distribution == TO => End::Reached,
        Verdict::Failed { .. } => End::Failed,
        Verdict::Stuck { .. } => End::Waits,
        Verdict::Gone => End::Gone,
        Verdict::Reached { .. } | Verdict::Refused { .. } | Verdict::GivenUp { .. } => panic!("{name}\n{rehearsal}"),
    };
    let said = said(rehearsal);
    assert_eq!(end, row.end, "{name}\n{said:#?}\n{rehearsal}");
    match row.told {
        Told::Words(all) => {
            for words in all {
                let is_said = said.iter().any(|line| line.contains(words));
                assert!(is_said, "{name}: nobody says {words:?}\n{said:#?}\n{rehearsal}");
            }
        }
        Told::Nothing => {
            let undisturbed = Row { scenario: Scenario::default(), ..*row }.run().rehearsal;
            let more: Vec<_> = shapes(rehearsal).difference(&shapes(&undisturbed)).cloned().collect();
            assert!(more.is_empty(), "{name}: {more:#?} is waited for\n{rehearsal}");
        }
    }
    let violated = |reported: &Reported| !row.tolerated.contains(&&*reported.violation.id);
    assert!(!rehearsal.violations.iter().any(violated), "{name}\n{rehearsal}");
    ended
}

/// All that `windlass why` would ever have told of the cluster, and why it ended as it did.
fn said(rehearsal: &Rehearsal) -> Vec<String> {
    let waited = rehearsal.waited.iter().flat_map(|waited| waited.why.iter().cloned());
    waited.chain([rehearsal.verdict.to_string()]).collect()
}

/// The same without numbers, as names that are drawn and counts differ from run to run; and without what a pool says of its roll,
/// which depends on when it is looked at.
fn shapes(rehearsal: &Rehearsal) -> BTreeSet<String> {
    let shape = |line: String| line.split(|letter: char| letter.is_ascii_digit()).collect::<String>();
    said(rehearsal).into_iter().filter(|line| !line.contains(" of the pool ")).map(shape).collect()
}

/// Something goes wrong.
fn fault(name: &str, fault: Fault, when: When) -> Scenario {
    Scenario { name: name.to_owned(), ..Scenario::default().and(fault, when) }
}

/// People do something.
fn action(name: &str, at: Span, action: Action) -> Scenario {
    Scenario { name: name.to_owned(), ..Scenario::default().then(at, action) }
}

/// The machine of the control plane that the upgrade makes first, in a start where there are no others to come.
fn first_replacement() -> Whom {
    Whom::named("my-tkc-control-plane-0-*")
}

fn late_role(when: When) -> Scenario {
    let how = NodeFault::LateRole { by: Span::minutes(12 * 60) };
    fault("the label of the role is late", Fault::Node { of: first_replacement(), how }, when)
}

/// Deletes an object.
fn delete(cluster: Option<&str>, api_version: &str, kind: &str, name: &str) -> Action {
    let (api_version, kind, name) = (api_version.to_owned(), kind.to_owned(), name.into());
    Action::Delete { cluster: cluster.map(|cluster| cluster.parse().unwrap()), api_version, kind, name }
}

/// Changes an object.
fn patch(api_version: &str, kind: &str, name: &str, patch: Value) -> Action {
    let (api_version, kind, name) = (api_version.to_owned(), kind.to_owned(), name.into());
    Action::Patch { cluster: None, api_version, kind, name, patch }
}
