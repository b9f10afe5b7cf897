//! The program that replaces a control plane, in a World.

mod abort;
mod cluster;
mod seam;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass_api::annotation::{MACHINE_NAME_BASE, MACHINE_UPDATE_ID, PRE_DRAIN_HOLD_PREFIX};
use windlass_api::kind::cluster_api::{Cluster, Machine};
use windlass_api::label;
use windlass_controller::upgrader;
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::{Virtual, run_virtual};
use windlass_sim::durations::Durations;
use windlass_sim::fault::Scenario;
use windlass_sim::world::{Settings, World};

use cluster::{Crash, NEW, OLD, Site};
use seam::Process;

fn base() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// Runs a body in a World that has a cluster with so many control-plane machines.
fn in_world<F: Future<Output = ()>>(machines: u32, body: impl FnOnce(Site) -> F) {
    let run = |time: Virtual| async move {
        let settings = Settings {
            clock: time.clock,
            seed: time.seed,
            durations: Durations::default(),
            faults: Scenario::default(),
        };
        let world = World::new(settings).await.unwrap();
        let site = Site::new(world, machines);
        site.live(site.create()).await;
        body(site).await;
    };
    run_virtual(Seed(7), base(), run).unwrap();
}

/// What is left of a cluster when all is done, without what differs from run to run.
async fn end(site: &Site) -> BTreeMap<String, String> {
    let machines = site.machines().list(&ListParams::default()).await.unwrap();
    let line = |machine: &Machine| {
        let annotations = machine.annotations();
        format!(
            "{} of {} base {} id {}",
            machine.spec.version.as_deref().unwrap_or("none"),
            machine.spec.infrastructure_ref.name,
            annotations.get(MACHINE_NAME_BASE.name).map_or("none", String::as_str),
            annotations.get(MACHINE_UPDATE_ID.name).map_or("none", String::as_str),
        )
    };
    machines.iter().map(|machine| (machine.name_any(), line(machine))).collect()
}

fn check_upgrade(count: u32) {
    in_world(count, |site| async move {
        let process = Process::new();
        let done = site.live(site.upgrade(&process)).await.unwrap();
        assert_eq!(
            done.to_string(),
            format!(
                "the control plane is at {NEW}; this run replaced {count} machine{}",
                if count == 1 { "" } else { "s" }
            )
        );

        let expected: BTreeMap<String, String> = (0..count)
            .map(|ordinal| {
                let (name, base) = cluster::replacement(ordinal);
                let line = format!("{NEW} of {name} base {base} id none");
                (name.to_string(), line)
            })
            .collect();
        assert_eq!(end(&site).await, expected);
        assert_eq!(site.member_names(), expected.keys().cloned().collect::<Vec<_>>());
        assert_eq!(process.created("machines"), count as usize, "{:?}", process.writes());
        assert_eq!(site.violations(), Vec::<String>::new());
        let requests = process.requests();
        assert!(requests <= 20 + 22 * count as usize, "{requests} requests for {count} machines");

        let again = Process::new();
        let done = site.live(site.upgrade(&again)).await.unwrap();
        assert_eq!((done.replaced, again.writes()), (0, Vec::new()), "an update that has ended changes nothing");
    });
}

#[test]
fn a_control_plane_of_one_is_replaced() {
    check_upgrade(1);
}

#[test]
fn a_control_plane_of_three_is_replaced_one_after_the_other() {
    check_upgrade(3);
}

/// Kills the program after each of its writes in turn, and runs it again.
fn check_every_crash(count: u32) {
    in_world(count, |site| async move {
        let crashes = site.live(site.upgrade_with_crashes()).await;
        let expected = end(&site).await;
        assert!(crashes.len() > 8 * count as usize, "only {} writes", crashes.len());

        for crash in &crashes {
            let Crash { after, created_before, .. } = crash;
            let (site, process) = (crash.site(), Process::new());
            let ended = site.live(site.upgrade(&process)).await;
            ended.unwrap_or_else(|error| panic!("killed after {after}: {}", error.report()));
            assert_eq!(end(&site).await, expected, "killed after {after}");
            assert_eq!(created_before + process.created("machines"), count as usize, "killed after {after}");
            assert_eq!(site.violations(), Vec::<String>::new(), "killed after {after}");
        }
    });
}

#[test]
fn a_control_plane_of_one_survives_every_crash_of_the_program() {
    check_every_crash(1);
}

#[test]
fn a_control_plane_of_three_survives_every_crash_of_the_program() {
    check_every_crash(3);
}

#[test]
fn a_machine_of_another_update_stops_the_program_before_it_writes() {
    in_world(1, |site| async move {
        let patch = json!({ "metadata": { "annotations": { MACHINE_UPDATE_ID.name: "99" } } });
        let (name, _) = cluster::original(0);
        let machines: Api<Machine> = site.machines();
        machines.patch(name.as_str(), &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();

        let process = Process::new();
        let refusal = site.live(site.upgrade(&process)).await.unwrap_err();
        assert_eq!(
            refusal.report(),
            format!(
                "the machine {name} takes part in the update 99, which has not ended: run that one again, with its own id"
            )
        );
        assert_eq!(process.writes(), Vec::<String>::new());
    });
}

#[test]
fn an_object_that_the_update_did_not_make_is_not_taken_over() {
    in_world(1, |site| async move {
        let (name, _) = cluster::replacement(0);
        site.create_stray_infrastructure(name.as_str()).await;
        let refusal = site.live(site.upgrade(&Process::new())).await.unwrap_err();
        assert!(matches!(refusal, upgrader::Error::NotOurs { kind: "WCPMachine", .. }), "{}", refusal.report());
        assert_eq!(end(&site).await.len(), 1, "the old machine is still all there is");
        assert!(end(&site).await.values().all(|line| line.starts_with(OLD)));
    });
}

#[test]
fn a_replacement_that_never_becomes_healthy_is_made_anew_under_the_same_name() {
    in_world(1, |site| async move {
        // There is no such image, so no machine boots from it.
        let (name, _) = cluster::replacement(0);
        let failure = site.live(site.upgrade_to_image(&Process::new(), "no-such-image")).await.unwrap_err();
        assert_eq!(failure.report(), format!("waited 15m for the machine {name} to be healthy: it has no providerID"));
        let failed = site.machines().get(name.as_str()).await.unwrap();

        let second = Process::new();
        let done = site.live(site.upgrade(&second)).await;
        assert_eq!(done.map_err(|error| error.report()).map(|done| done.replaced), Ok(1));
        let healthy = site.machines().get(name.as_str()).await.unwrap();
        assert_ne!(healthy.uid(), failed.uid());
        assert_eq!(end(&site).await.len(), 1);
        assert_eq!(site.member_names(), [name.to_string()]);
    });
}

#[test]
fn a_machine_that_dies_while_it_joins_leaves_no_member_behind() {
    in_world(3, |site| async move {
        let (name, _) = cluster::replacement(0);
        let dies_while_joining = async {
            site.unstarted_member().await;
            site.workload().power_off(&name.as_str().parse().unwrap());
            std::future::pending::<()>().await;
        };
        let process = Process::new();
        let first = site.live(async {
            tokio::select! {
                ended = site.upgrade(&process) => ended,
                () = dies_while_joining => unreachable!("it waits for ever"),
            }
        });
        let failure = first.await.unwrap_err().report();
        assert!(failure.starts_with(&format!("waited 15m for the machine {name} to be healthy: ")), "{failure}");
        assert_eq!(site.member_names().len(), 4, "one has not started");

        let second = site.live(site.upgrade(&Process::new())).await;
        assert_eq!(second.map_err(|error| error.report()).map(|done| done.replaced), Ok(3));
        assert_eq!(site.member_names().len(), 3);
        assert_eq!(site.violations(), Vec::<String>::new());
    });
}

#[test]
fn a_cluster_that_is_paused_on_the_way_is_left_alone_until_it_is_released() {
    in_world(3, |site| async move {
        let process = Process::new();
        let clusters: Api<Cluster> = Api::namespaced(site.world.client(), "default");
        let set = async |paused: bool| {
            let patch = Patch::Merge(json!({ "spec": { "paused": paused } }));
            clusters.patch("my-tkc", &PatchParams::default(), &patch).await.unwrap();
        };
        let paused_for_hours = async {
            site.unstarted_member().await;
            set(true).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
            let before = process.writes();
            tokio::time::sleep(Duration::from_secs(3 * 60 * 60)).await;
            assert_eq!(process.writes(), before, "nothing is touched");
            set(false).await;
        };
        let (ended, ()) = site.live(async { tokio::join!(site.upgrade(&process), paused_for_hours) }).await;
        assert_eq!(ended.map_err(|error| error.report()).map(|done| done.replaced), Ok(3));
        assert_eq!(process.created("machines"), 3, "{:?}", process.writes());
        assert_eq!(site.violations(), Vec::<String>::new());
    });
}

#[test]
fn a_machine_that_does_not_go_says_what_it_waits_for() {
    in_world(1, |site| async move {
        let (name, _) = cluster::original(0);
        let hook = format!("{PRE_DRAIN_HOLD_PREFIX}/backup");
        let patch = Patch::Merge(json!({ "metadata": { "annotations": { hook: "ann" } } }));
        site.machines().patch(name.as_str(), &PatchParams::default(), &patch).await.unwrap();
        let failure = site.live(site.upgrade(&Process::new())).await.unwrap_err().report();
        assert!(failure.starts_with(&format!("waited 15m for the machine {name} to be gone: ")), "{failure}");
        assert!(failure.contains("backup"), "{failure}");
    });
}

#[test]
fn a_replacement_whose_original_is_gone_is_never_deleted() {
    in_world(1, |site| async move {
        let crashes = site.live(site.upgrade_with_crashes()).await;
        let crash = crashes.into_iter().find(|crash| crash.after.starts_with("DELETE")).unwrap();
        let site = crash.site();
        site.live(site.only_machine_left()).await;
        let (name, _) = cluster::replacement(0);
        site.workload().power_off(&name.as_str().parse().unwrap());

        let second = Process::new();
        let failure = site.live(site.upgrade(&second)).await.unwrap_err();
        assert!(!second.writes().iter().any(|write| write.starts_with("DELETE")), "{:?}", second.writes());
        assert!(site.machines().get_opt(name.as_str()).await.unwrap().is_some(), "{}", failure.report());
    });
}

#[test]
fn a_replacement_that_took_over_in_etcd_is_never_deleted() {
    in_world(3, |site| async move {
        let crashes = site.live(site.upgrade_with_crashes()).await;
        let site = crashes.iter().find(|crash| crash.after == "remove an etcd member").unwrap().site();
        let (name, _) = cluster::replacement(0);
        site.workload().power_off(&name.as_str().parse().unwrap());
        site.live(tokio::time::sleep(Duration::from_secs(20 * 60))).await;

        let process = Process::new();
        let failure = site.live(site.upgrade(&process)).await.unwrap_err();
        let (original, _) = cluster::original(0);
        assert_eq!(
            failure.report(),
            format!(
                "the machine {name} is not healthy, and it cannot be made anew because {original}, which it replaces, is no \
                 healthy etcd member any more: a person has to repair it"
            )
        );
        assert_eq!(process.writes(), Vec::<String>::new());
    });
}

#[test]
fn certificates_that_belong_to_a_machine_are_given_to_the_cluster() {
    in_world(1, |site| async move {
        site.orphan_certificates().await;
        site.live(site.upgrade(&Process::new())).await.unwrap();
        for (name, owners) in site.certificate_owners().await {
            assert!(owners.iter().any(|owner| owner.starts_with("Cluster ")), "{name}: {owners:?}");
        }
    });
}

#[test]
fn the_label_of_a_replacement_names_its_update() {
    in_world(1, |site| async move {
        site.live(site.upgrade(&Process::new())).await.unwrap();
        let (name, _) = cluster::replacement(0);
        let machine = site.machines().get(name.as_str()).await.unwrap();
        assert_eq!(label::UPDATE_ID.get(machine.labels()).unwrap(), Some(cluster::update()));
        assert!(label::CONTROL_PLANE.is_in(machine.labels()));
    });
}
