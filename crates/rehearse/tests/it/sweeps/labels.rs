//! An upgrade by label, broken on purpose: a slice. `windlass sweep --drive label` does the rest.

use std::sync::LazyLock;

use windlass_rehearse::drive::Drive;
use windlass_rehearse::rehearsal::Verdict;
use windlass_rehearse::sweep::{Change, Size, Subject, Sweep};

use super::{at, at_last, survives};
use crate::start::SEED;

/// The upgrade of 1+1.
static BY_LABEL: LazyLock<Sweep> = LazyLock::new(|| {
    let size = Size { control_plane: 1, workers: 1 };
    let sweep = Sweep::new(Subject::make(Drive::Label, Change::Upgrade, size, SEED).unwrap()).unwrap();
    assert!(sweep.reference().broken.is_empty(), "{:?}", sweep.reference().broken);
    assert_eq!(sweep.reference().verdict, Verdict::Reached { distribution: "v36.1.0".into() });
    sweep
});

#[test]
fn an_upgrade_by_label_survives_crashes_lost_answers_and_people() {
    let sweep = &*BY_LABEL;
    survives(
        sweep,
        &[
            at(sweep, "crash-after", "create clusterupdates"),
            at(sweep, "crash-before", "patch kubeadmcontrolplanes default/shop-control-plane"),
            at(sweep, "crash-after", "patch kubeadmcontrolplanes default/shop-control-plane"),
            at(sweep, "lost-answer", "create wcpmachinetemplates"),
            at_last(sweep, "crash-after", "patch machinedeployments default/shop-workers"),
            at(sweep, "two-leaders", "patch kubeadmcontrolplanes default/shop-control-plane"),
            at(sweep, "reverted", "create clusterupdates"),
            // The label was taken back after the look that decides, and Cluster API was told all the same.
            at(sweep, "reverted", "create wcpmachinetemplates"),
            at(sweep, "reverted", "patch kubeadmcontrolplanes default/shop-control-plane"),
            at(sweep, "retargeted", "patch kubeadmcontrolplanes default/shop-control-plane"),
            at(sweep, "paused", "patch kubeadmcontrolplanes default/shop-control-plane"),
            at(sweep, "annotated", "patch machinedeployments default/shop-workers"),
            // Each watch ended as soon as it had begun, and was begun again without a pause: no time went by any more.
            at(sweep, "watch-ends", "patch clusterupdates/status default/shop-1"),
        ],
    );
}
