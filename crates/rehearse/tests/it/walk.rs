//! One cluster, one upgrade, through every room.
//!
//! The timelines are in `golden/`. `WINDLASS_UPDATE=1 cargo test -p windlass-rehearse` writes them anew; read the difference.

use std::path::Path;
use std::time::Duration;

use jiff::SignedDuration;
use windlass_api::kind::cluster_update::UpdateState;
use windlass_api::kind::tanzu::Phase;
use windlass_api::label;
use windlass_apiserver::store::Range;
use windlass_rehearse::assembly::{Assembly, Settings};
use windlass_rehearse::crash::Crashes;
use windlass_rehearse::rehearsal::{self, Ended, Request, Verdict, Wish};
use windlass_rehearse::settle;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::world;

use crate::start::{self, SEED, TO, cluster_name, later};

/// Compares with a golden file, or writes it anew.
pub fn check_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(name);
    if std::env::var_os("WINDLASS_UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{name} is not as it was; read what is new:\n{text}");
}

fn upgraded(start: &Ended, golden: &str) -> Ended {
    let ended = rehearsal::hold(&start.world, &start::update(), Crashes::none()).unwrap();
    let rehearsal = &ended.rehearsal;
    let text = rehearsal.text();
    assert_eq!(rehearsal.verdict, Verdict::Reached { distribution: TO.into() }, "{text}");
    assert!(rehearsal.violations.is_empty(), "{text}");
    check_golden(golden, &text);
    let order =
        ["kube-proxy-v1.16.7---vmware.1-guest.1 is applied", "control-plane-0-", "is switched to v1.16.7+vmware.1"];
    let after_the_request = text.split_once("begins, from").unwrap().1;
    assert!(order.map(|words| after_the_request.find(words).unwrap()).is_sorted(), "{text}");

    let cluster = settle::cluster(&ended.world, &cluster_name()).unwrap();
    let status = cluster.status.unwrap();
    assert_eq!((status.phase, status.version.as_deref()), (Some(Phase::Running), Some(TO)));
    assert_eq!(status.waiting_for, None);
    let update = settle::update(&ended.world, &cluster_name()).unwrap().status.unwrap();
    assert_eq!(update.state, Some(UpdateState::Succeeded));
    assert!(update.waiting_for.is_empty());
    assert_eq!(
        kube_proxies(&ended),
        ["kube-system/kube-proxy-v1.16.7---vmware.1-guest.1"],
        "the old one is not needed any more"
    );
    assert!(said(&ended).contains("the control plane is at v1.16.7"), "{}", said(&ended));
    ended
}

/// What the upgrader has said, as its pod's log has it.
fn said(ended: &Ended) -> String {
    let everything = Range { namespace: None, after: None, limit: 0 };
    let logs = ended.world.management().store().list(windlass_sim::log::LOGS, everything, |_| true);
    logs.entries.iter().map(|entry| entry.to_value("", "").to_string()).collect()
}

fn kube_proxies(ended: &Ended) -> Vec<String> {
    let workload = ended.world.workload(&cluster_name()).unwrap();
    let everything = Range { namespace: None, after: None, limit: 0 };
    let daemon_sets = workload
        .server()
        .store()
        .list("daemonsets.apps", everything, |entry| entry.label(label::ADDON.name) == Some("kube-proxy"));
    daemon_sets.entries.iter().map(|entry| entry.key.to_string()).collect()
}

/// What is refused the next day has no stages: those on record are of the update before.
fn the_next_rehearsal_does_not_tell_of_this_one(ended: &Ended) {
    let request =
        Request { ask: Wish::release("v1.99"), at: later() + SignedDuration::from_hours(24), ..start::update() };
    let next = rehearsal::rehearse(&ended.world, &request).unwrap();
    assert!(matches!(next.verdict, Verdict::Refused { .. }) && next.stages.is_empty(), "{next}");
    assert_eq!(ended.rehearsal.stages.len(), 3, "{}", ended.rehearsal);
}

/// Looks again from nothing, as restarted controllers do, and lets hours go by.
fn planning_again_changes_nothing(ended: &Ended) {
    for _ in 0..3 {
        let before = ended.world.recorder().writes();
        let world = run_virtual(SEED, later(), |time| async {
            let settings = world::Settings { clock: time.clock, ..ended.world.settings().clone() };
            let world = ended.world.fork(settings);
            let assembly = Assembly::new(world.clone(), Settings::rehearsal(&world));
            let hours = tokio::time::sleep(Duration::from_secs(4 * 60 * 60));
            assembly.run(hours).await;
            assert!(assembly.traffic().by_caller().values().any(|requests| requests.all > 0));
            assert_eq!(assembly.crashes().writes(), []);
            world
        });
        assert_eq!(world.unwrap().recorder().writes(), before);
    }
}

#[test]
fn a_cluster_of_one_and_one_is_created_and_then_planning_again_changes_nothing() {
    let created = start::one_and_one();
    assert!(created.rehearsal.violations.is_empty(), "{}", created.rehearsal);
    check_golden("create-1-1.out", &created.rehearsal.text());
    planning_again_changes_nothing(created);
}

#[test]
fn a_cluster_of_three_and_one_is_created() {
    let created = start::three_and_one();
    assert!(created.rehearsal.violations.is_empty(), "{}", created.rehearsal);
    check_golden("create-3-1.out", &created.rehearsal.text());
}

#[test]
fn a_cluster_of_one_and_one_is_upgraded_packages_first_then_control_plane_then_workers() {
    let ended = upgraded(start::one_and_one(), "upgrade-1-1.out");
    planning_again_changes_nothing(&ended);
    the_next_rehearsal_does_not_tell_of_this_one(&ended);
}

#[test]
fn a_cluster_of_three_and_one_is_upgraded_packages_first_then_control_plane_then_workers() {
    let ended = upgraded(start::three_and_one(), "upgrade-3-1.out");
    planning_again_changes_nothing(&ended);
}
