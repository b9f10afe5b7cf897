//! The upgrade of a cluster of a class, packages first, broken on purpose: a slice. `windlass sweep --drive topology` does the rest.

use std::sync::LazyLock;

use windlass_plan::resolve::hold::HoldBy;
use windlass_rehearse::drive::Drive;
use windlass_rehearse::rehearsal::{Request, Verdict};
use windlass_rehearse::sweep::{Change, Size, Subject, Sweep};

use super::{at, at_last, survives};
use crate::start::SEED;

const NEW: &str = "v1.25.7---vmware.2-tkg.1";

/// The upgrade of 1+1, held by pausing.
static BY_PAUSING: LazyLock<Sweep> = LazyLock::new(|| swept(made()));

/// The same, held by hooks.
static BY_HOOKS: LazyLock<Sweep> = LazyLock::new(|| {
    let Subject { start, request, .. } = made();
    swept(Subject::new(start, Request { hold_by: HoldBy::Hooks, ..request }))
});

/// The cluster, made once.
fn made() -> Subject {
    static MADE: LazyLock<Subject> = LazyLock::new(|| {
        let size = Size { control_plane: 1, workers: 1 };
        Subject::make(Drive::Topology(HoldBy::Pause), Change::Upgrade, size, SEED).unwrap()
    });
    Subject::new(MADE.start.clone(), MADE.request.clone())
}

fn swept(subject: Subject) -> Sweep {
    let sweep = Sweep::new(subject).unwrap();
    assert!(sweep.reference().broken.is_empty(), "{:?}", sweep.reference().broken);
    assert_eq!(sweep.reference().verdict, Verdict::Reached { distribution: NEW.into() });
    sweep
}

#[test]
fn packages_first_by_pausing_survives_crashes_lost_answers_old_reads_and_people() {
    let sweep = &*BY_PAUSING;
    survives(
        sweep,
        &[
            at(sweep, "crash-after", "patch clusterbootstraps default/wl"),
            // The one write that lets machines go.
            at_last(sweep, "crash-before", "patch clusters default/wl"),
            at_last(sweep, "lost-answer", "patch clusters default/wl"),
            at(sweep, "two-leaders", "packageinstalls tkg-system/wl-antrea"),
            at(sweep, "reverted", "packageinstalls tkg-system/wl-antrea"),
            at(sweep, "paused", "packageinstalls tkg-system/wl-antrea"),
        ],
    );
}

#[test]
fn packages_first_by_hooks_survives_crashes_and_a_package_that_fails() {
    let sweep = &*BY_HOOKS;
    survives(
        sweep,
        &[
            at(sweep, "crash-after", "patch clusterbootstraps/status default/wl"),
            at(sweep, "image-missing", "patch clusterbootstraps default/wl"),
            at(sweep, "retargeted", "packageinstalls tkg-system/wl-antrea"),
        ],
    );
}

/// Trials that were broken once.
#[test]
fn what_a_sweep_of_packages_first_found_does_not_come_back() {
    let sweep = &*BY_PAUSING;
    survives(
        sweep,
        &[
            // What was read of the management cluster was old, and packages in the workload cluster were taken back to it.
            sweep.trial("older-list-1").unwrap(),
            // A cluster that was held for its packages never went when it was deleted; and its kapp-controller was left behind.
            at(sweep, "deleted", "packageinstalls tkg-system/wl-antrea"),
        ],
    );
}
