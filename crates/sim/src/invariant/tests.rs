//! Every rule fires on a story in which it is broken, and is silent on the good one; exceptions go as far as they are
//! declared to, and no further.

mod addons;
mod control_plane;
mod document;
mod etcd;
mod ownership;
mod versions;
mod workers;

use super::{EXEMPTIONS, RULES};
use crate::timeline::script::{OLD, Script};

const MACHINES: &str = "machines.cluster.x-k8s.io";
const MEMBERS: &str = "members.etcd.sim.windlass.dev";
const TKC: &str = "tanzukubernetesclusters.run.tanzu.vmware.com";

/// What is done to a running cluster of three and one violates these rules, and no others.
#[track_caller]
fn check(violated: &[&str], act: impl FnOnce(&mut Script)) {
    check_with(3, violated, act);
}

#[track_caller]
fn check_with(control_plane_count: u32, violated: &[&str], act: impl FnOnce(&mut Script)) {
    let mut script = Script::running(control_plane_count);
    assert_eq!(script.violated(), [""; 0], "before anything is done: {:#?}", script.recorder.violations());
    act(&mut script);
    assert_eq!(script.violated(), violated, "{:#?}", script.recorder.violations());
}

#[test]
fn the_rules_have_different_ids_and_exceptions_name_a_rule() {
    let ids: std::collections::BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), RULES.len());
    assert!(EXEMPTIONS.iter().all(|exemption| ids.contains(exemption.rule)));
    assert!(RULES.iter().all(|rule| rule.demands.ends_with('.')));
}

#[test]
fn a_good_update_violates_nothing_and_its_exceptions_are_told() {
    for count in [1, 3] {
        let mut script = Script::running(count);
        let before = script.exempted();
        script.upgrade(count);
        assert_eq!(script.violated(), [""; 0], "{:#?}", script.recorder.violations());
        let during = &script.exempted()[before.len()..];
        let joins_below_quorum = usize::from(count == 1);
        assert_eq!(during.iter().filter(|id| *id == "E1").count(), joins_below_quorum);
        assert!(during.iter().any(|id| id == "V1") && during.iter().any(|id| id == "V5"), "{during:?}");
    }
}

#[test]
fn what_stays_wrong_is_told_once_and_again_when_it_comes_back() {
    let wrong = |script: &mut Script, on| script.power("cp-0", OLD, on);
    check_with(1, &["C2", "E1", "C2", "E1"], |script| {
        wrong(script, false);
        script.node("w-0", OLD, false, false);
        wrong(script, true);
        wrong(script, false);
    });
}
