//! Changes that are broken on purpose, and survive it. Here is a slice; `.ci/run` crashes the upgrade of 3+3 after each of its
//! writes, and `windlass sweep` does the rest. What is covered by what is in docs/reliability.md.

mod labels;
mod mutations;
mod packages_first;
mod table;

use std::sync::LazyLock;

use windlass_rehearse::drive::Drive;
use windlass_rehearse::rehearsal::{Request, Verdict};
use windlass_rehearse::sweep::{Change, Kind, Pick, Size, Subject, Sweep, Trial, Tried};
use windlass_sim::world::World;

use crate::start::{self, SEED, TO};

/// On as many threads as there are cores: tests of this sort are few, and long.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

pub fn swept(start: &World, request: Request) -> Sweep {
    let sweep = Sweep::new(Subject::new(start.clone(), request)).unwrap();
    assert!(sweep.reference().broken.is_empty(), "{:?}", sweep.reference().broken);
    sweep
}

/// The upgrade of 1+1, run once without a fault.
pub fn one_and_one() -> &'static Sweep {
    static SWEPT: LazyLock<Sweep> = LazyLock::new(|| swept(&start::one_and_one().world, start::update()));
    &SWEPT
}

/// All that is picked of a kind is survived, and did bite.
pub fn check(sweep: &Sweep, kind: &str, pick: &Pick) -> Vec<Tried> {
    let kinds = Kind::called(kind);
    let trials: Vec<Trial> = kinds.into_iter().flat_map(|kind| sweep.trials(kind, pick)).collect();
    survives(sweep, &trials)
}

fn survives(sweep: &Sweep, trials: &[Trial]) -> Vec<Tried> {
    let tried = sweep.run(trials, threads(), |_| ());
    let failed = tried.iter().filter(|tried| !tried.bit || !tried.broken.is_empty());
    let failed: Vec<String> = failed.map(ToString::to_string).collect();
    assert!(!tried.is_empty() && failed.is_empty(), "{} of {}:\n{}", failed.len(), tried.len(), failed.join("\n"));
    tried
}

/// The trial of a kind at the first write that has these words.
fn at(sweep: &Sweep, kind: &str, words: &str) -> Trial {
    let write = sweep.reference().writes.iter().find(|write| write.what.contains(words));
    sweep.trial(&format!("{kind}-{}", write.unwrap().number)).unwrap()
}

/// And at the last one.
fn at_last(sweep: &Sweep, kind: &str, words: &str) -> Trial {
    let write = sweep.reference().writes.iter().rfind(|write| write.what.contains(words));
    sweep.trial(&format!("{kind}-{}", write.unwrap().number)).unwrap()
}

#[test]
fn the_upgrade_of_one_and_one_survives_a_crash_after_every_write() {
    let sweep = one_and_one();
    assert_eq!(sweep.reference().verdict, Verdict::Reached { distribution: TO.into() });
    let tried = check(sweep, "F01", &Pick::all(usize::MAX));
    assert_eq!(tried.len(), sweep.reference().writes.len());
}

#[test]
fn the_upgrade_of_three_and_three_survives_a_crash_after_a_slice_of_its_writes() {
    let sweep = swept(&start::of(3, 3).world, start::update());
    check(&sweep, "F01", &Pick { every: 32, ..Pick::all(usize::MAX) });
}

/// A pair of keys is never half there: what was made before the crash stays as it is (Sieve's mongodb-578).
#[test]
fn the_creation_of_a_cluster_survives_a_crash_after_each_of_its_secrets() {
    let size = Size { control_plane: 1, workers: 1 };
    let sweep = Sweep::new(Subject::make(Drive::Machines, Change::Create, size, SEED).unwrap()).unwrap();
    let secrets = sweep.reference().writes.iter().filter(|write| write.what.contains("secrets"));
    let trials: Vec<Trial> =
        secrets.map(|write| sweep.trial(&format!("crash-after-{}", write.number)).unwrap()).collect();
    assert!(trials.len() >= 4, "{:?}", sweep.reference().writes);
    survives(&sweep, &trials);
}

/// Trials that were broken once.
#[test]
fn what_a_sweep_found_does_not_come_back() {
    let sweep = one_and_one();
    let trials = [
        // The release was taken back between the look that decides and the record: the update began all the same.
        at(sweep, "reverted", "create configmaps"),
        // A later release was asked for in that moment: it was accepted, two minors from what the machines have.
        at(sweep, "retargeted", "create configmaps"),
        // The only machine of the control plane lost its etcd: the status was written at every look, and D8 was called broken
        // because of a network that the cluster does not have.
        at(sweep, "join", "create configmaps"),
        // Its answer is lost: a second one must not be made (k0smotron #1534, and clients that send again what timed out).
        at(sweep, "lost-answer", "create machines"),
        at(sweep, "lag", "create machines"),
        // A Machine goes while nobody answers for its node, which stayed for ever: the World had no cloud provider.
        at_last(sweep, "unreachable", "kube-system/kubeadm-config"),
        // Nobody can look at add-ons that are all there while the first machine is made: that is no D8.
        at(sweep, "unreachable", "create configmaps kube-system (workload)"),
        // The Job is deleted while the old machine goes: nobody forgot its API server, nor took the mark from the new one.
        at_last(sweep, "job-deleted", "kube-system/kubeadm-config"),
        // A conflict was taken for the Role that was to be made.
        at(sweep, "refused", "create roles"),
        // Uids in the record of add-ons are drawn in another order: an end is no other for that.
        at(sweep, "refused", "patch daemonsets"),
        // The only machine of the control plane vanishes: that is no fault of anybody.
        sweep.trial("swarm-9").unwrap(),
    ];
    survives(sweep, &trials);
}

#[test]
fn a_sweep_is_the_same_on_any_number_of_threads() {
    let sweep = one_and_one();
    let trials = sweep.trials(Kind::called("F01")[0], &Pick { every: 30, ..Pick::all(usize::MAX) });
    let [one, two] = [1, 2].map(|threads| sweep.run(&trials, threads, |_| ()));
    assert!(one.len() > 1);
    assert_eq!(serde_json::to_string(&one).unwrap(), serde_json::to_string(&two).unwrap());
}

/// What begins at a moment is one trial for all writes of that moment; what is done to a write is one for each.
#[test]
fn the_trials_of_a_kind_stand_for_each_write_once() {
    let sweep = one_and_one();
    let all: Vec<u64> = (1..=sweep.reference().writes.len() as u64).collect();
    for (name, shares) in [("crash-after", false), ("watch-ends", false), ("stale", true), ("boots-late", true)] {
        let trials = sweep.trials(Kind::called(name)[0], &Pick::all(usize::MAX));
        assert_eq!(trials.len() < all.len(), shares, "{name}: {}", trials.len());
        assert_eq!(trials.iter().flat_map(Trial::writes).collect::<Vec<_>>(), all, "{name}");
        let few = sweep.trials(Kind::called(name)[0], &Pick::all(2));
        assert_eq!(few.len(), 2);
        assert!(few.iter().zip(&trials).all(|(few, all)| few.writes().eq(all.writes())), "{name}");
    }
}

#[test]
fn a_name_that_is_no_trial_is_refused_with_those_that_are() {
    let sweep = one_and_one();
    let why = |name: &str| sweep.trial(name).err().unwrap().to_string();
    assert!(why("earthquake-1").contains("crash-after, "), "{}", why("earthquake-1"));
    assert!(why("crash-after-9999").contains("writes"), "{}", why("crash-after-9999"));
    assert!(why("crash-pair-1").contains("writes"), "{}", why("crash-pair-1"));
}
