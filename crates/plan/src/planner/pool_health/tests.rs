use windlass_api::name::Uid;
use windlass_api::name::{NodeName, ObjectName};

use super::*;
use crate::inventory::{Failing, Leaving, PoolProgress, Template};
use crate::step::Revision;
use crate::target::{MachinesTarget, PoolVersion};

const BUDGET: &str = "Drain not completed yet (started at 1970-01-01T00:00:00Z):
* Pod shop/old-1: deletionTimestamp set, but still not removed from the Node
* Pod shop/web-1: cannot evict pod as it would violate the pod's disruption budget. The disruption budget web needs 2 healthy \
pods and has 2 currently
After above Pods have been removed from the Node, the following Pods will be evicted: shop/last";

fn after(minutes: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
}

fn machine(state: MachineState) -> PoolMachine {
    PoolMachine {
        name: "workers-1".parse().unwrap(),
        uid: Uid::new("1").unwrap(),
        up_to_date: true,
        created: Timestamp::UNIX_EPOCH,
        state,
        failing: None,
        leaving: None,
    }
}

fn joining(awaits: Milestone) -> PoolMachine {
    machine(MachineState::Joining { awaits })
}

fn ready() -> PoolMachine {
    machine(MachineState::Ready { node: NodeName::new("workers-1").unwrap() })
}

fn failing(why: &str) -> PoolMachine {
    let failing = Some(Failing { since: Timestamp::UNIX_EPOCH, why: why.to_owned() });
    PoolMachine { failing, ..joining(Milestone::ProviderId) }
}

fn leaving(step: DeletionReason, why: &str) -> PoolMachine {
    let (since, step, why) = (Timestamp::UNIX_EPOCH, step.as_str().to_owned(), why.to_owned());
    PoolMachine {
        leaving: Some(Leaving { since, step, why }),
        ..machine(MachineState::Deleting { node: NodeName::new("workers-1").ok() })
    }
}

/// A pool of two that is being rolled, with one of its machines.
fn pool(machine: PoolMachine) -> Pool {
    let template = || Template { name: ObjectName::new("template").unwrap(), spec: None };
    Pool {
        revision: Revision { uid: Uid::new("pool").unwrap(), resource_version: "1".to_owned() },
        replicas: 2,
        version: "v1.16.7".parse().unwrap(),
        infrastructure_template: template(),
        bootstrap_template: template(),
        progress: PoolProgress { observed: true, replicas: 3, up_to_date: 1, available: 2 },
        machines: vec![machine],
        moved_at: Some(Timestamp::UNIX_EPOCH),
        live: serde_json::Value::Null,
    }
}

fn target() -> PoolTarget {
    let machines = MachinesTarget { count: 2, class: "small".parse().ok(), storage_class: "fast".parse().ok() };
    PoolTarget { name: "default".parse().unwrap(), machines, version: PoolVersion::Release }
}

/// What is said of a pool so many minutes after it last moved, besides that it is rolled.
fn check(minutes: i64, machine: PoolMachine, said: &[&str]) {
    let (_, blocked) = judge(after(minutes), &target(), &pool(machine));
    let told: Vec<String> = blocked.iter().map(ToString::to_string).collect();
    let (last, causes) = told.split_last().unwrap();
    assert_eq!(causes, said, "after {minutes} minutes");
    let stalled = if minutes >= 30 { "has not moved since 1970-01-01T00:00:00Z" } else { "are as they should be" };
    assert!(last.contains(stalled), "{last}");
}

#[test]
fn pods_that_may_not_be_evicted_are_told_after_the_second_try() {
    let drains = || leaving(DeletionReason::DrainingNode, BUDGET);
    check(0, drains(), &[]);
    let said = "Machine workers-1 cannot be drained: Pod shop/web-1: cannot evict pod as it would violate the pod's disruption \
                budget. The disruption budget web needs 2 healthy pods and has 2 currently";
    check(1, drains(), &[said]);
    check(31, drains(), &[said]);

    // Pods that end take their time, as long as that is not forever.
    let ends = "Drain not completed yet:\n* Pod a/1: deletionTimestamp set, but still not removed from the Node";
    check(14, leaving(DeletionReason::DrainingNode, ends), &[]);
    let said = "Machine workers-1 cannot be drained: Drain not completed yet:; Pod a/1: deletionTimestamp set, but still not \
                removed from the Node";
    check(15, leaving(DeletionReason::DrainingNode, ends), &[said]);
    let detaches = leaving(DeletionReason::WaitingForVolumeDetach, "Waiting for Node volumes to be detached");
    check(15, detaches, &["Machine workers-1 cannot be drained: Waiting for Node volumes to be detached"]);
}

#[test]
fn a_machine_that_does_not_come_or_does_not_go_is_told() {
    check(4, failing("there is no VirtualMachineClass huge"), &[]);
    let said = "Machine workers-1 has failed: there is no VirtualMachineClass huge";
    check(5, failing("there is no VirtualMachineClass huge"), &[said]);
    check(14, joining(Milestone::ProviderId), &[]);
    let said = "Machine workers-1 has failed: after 15 minutes it is no node: its infrastructure has not booted it";
    check(15, joining(Milestone::ProviderId), &[said]);
    let said = "Machine workers-1 has failed: after 15 minutes it is no node: it has booted, and has not joined";
    check(15, joining(Milestone::Node), &[said]);
    let held = leaving(DeletionReason::WaitingForPreTerminateHook, "");
    let said = "Machine workers-1 has failed: after 15 minutes it is still on its way out: WaitingForPreTerminateHook";
    check(15, held, &[said]);
    check(15, ready(), &[]);
}

#[test]
fn a_pool_that_does_not_move_is_told_after_half_an_hour_and_has_failed_after_an_hour() {
    let state = |minutes: i64, pool: &Pool| judge(after(minutes), &target(), pool).0;
    let mut stands_still = pool(ready());
    assert_eq!(state(59, &stands_still), StageState::Running);
    assert_eq!(state(60, &stands_still), StageState::Failed);
    stands_still.moved_at = Some(after(10));
    assert_eq!(state(60, &stands_still), StageState::Running);
    stands_still.moved_at = None;
    assert_eq!(state(600, &stands_still), StageState::Running, "nobody remembers");
}

#[test]
fn a_pool_moves_when_a_machine_comes_goes_or_gets_further_and_not_when_one_speaks() {
    let before = pool(joining(Milestone::ProviderId)).fingerprint();
    let moved = |machine: PoolMachine| pool(machine).fingerprint() != before;
    assert!(!moved(failing("in other words")));
    assert!(moved(joining(Milestone::Node)));
    assert!(moved(ready()));
    assert!(moved(PoolMachine { uid: Uid::new("2").unwrap(), ..joining(Milestone::ProviderId) }));
    let drains = |why: &str| pool(leaving(DeletionReason::DrainingNode, why)).fingerprint();
    assert_eq!(drains("has 2 currently"), drains("has 3 currently"));
    assert_ne!(drains(""), pool(leaving(DeletionReason::WaitingForVolumeDetach, "")).fingerprint());
    let mut more = pool(joining(Milestone::ProviderId));
    more.progress.up_to_date = 2;
    assert_ne!(more.fingerprint(), before);
}
