//! The failures on record of rolling updates, each as a scenario: how it ends, and what the cluster says it waits for meanwhile.
//!
//! The numbers are those of the catalogue of failures: F1 to F22. A failure that has a table of its own elsewhere is named with
//! its test, and one that is not about this flow with the reason; a test checks that none is forgotten.

mod catalogue;
mod control_plane;
mod etcd;
mod network;
mod people;
mod releases;
mod workers;

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

/// One failure: of which number, in a cluster of which size, with what going wrong; and what must come of it.
struct Row {
    id: &'static str,
    size: (u32, u32),
    scenario: Scenario,
    end: End,
    /// What must never be and is not to be avoided: it was done by others.
    tolerated: &'static [&'static str],
    /// Words of what it waited for or gave up for, which name what was done to it.
    because: &'static [&'static str],
}

impl Row {
    fn run(&self) -> Ended {
        // Four attempts of a quarter of an hour, twice.
        let deadline = Duration::from_secs(3 * 60 * 60);
        let request = Request { deadline, faults: self.scenario.clone(), ..start::update() };
        let start = start::of(self.size.0, self.size.1);
        rehearsal::hold(&start.world, &request, Crashes::none()).unwrap()
    }
}

fn check(row: &Row) -> Ended {
    let ended = row.run();
    let rehearsal = &ended.rehearsal;
    let end = match &rehearsal.verdict {
        Verdict::Reached { distribution } if distribution == TO => End::Reached,
        Verdict::Failed { .. } => End::Failed,
        Verdict::Stuck { .. } => End::Waits,
        Verdict::Gone => End::Gone,
        Verdict::Reached { .. } | Verdict::Refused { .. } | Verdict::GivenUp { .. } => {
            panic!("{}\n{rehearsal}", row.id)
        }
    };
    let said = said(rehearsal);
    assert_eq!(end, row.end, "{} {}\n{said:#?}\n{rehearsal}", row.id, row.scenario.name);
    for words in row.because {
        assert!(
            said.iter().any(|line| line.contains(words)),
            "{}: nobody says {words:?}\n{said:#?}\n{rehearsal}",
            row.id
        );
    }
    // What an update that gave up has made stays, and is nobody's exception any more.
    let left_behind: &[&str] = if end == End::Failed { &["V1", "V4", "V5"] } else { &[] };
    let violated = |reported: &Reported| {
        let id = &&*reported.violation.id;
        !left_behind.contains(id) && !row.tolerated.contains(id)
    };
    assert!(!rehearsal.violations.iter().any(violated), "{}\n{rehearsal}", row.id);
    ended
}

/// All that the cluster ever said it waited for, and why it ended as it did.
fn said(rehearsal: &Rehearsal) -> Vec<String> {
    let waited = rehearsal.waited.iter().flat_map(|waited| waited.why.iter().cloned());
    waited.chain([rehearsal.verdict.to_string()]).collect()
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
