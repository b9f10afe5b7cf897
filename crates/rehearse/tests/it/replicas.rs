//! Two replicas, and an update whose leader is killed, or stands still, at every point that there is: it always ends as it would
//! have, and no object is made twice.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use windlass_api::kind::cluster_update::UpdateState;
use windlass_api::kind::tanzu::TanzuKubernetesCluster;
use windlass_rehearse::assembly::replicas::Stall;
use windlass_rehearse::assembly::{Assembly, Settings};
use windlass_rehearse::crash::Crashes;
use windlass_rehearse::state::State;
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::actor::Caller;
use windlass_sim::fault::Moment;
use windlass_sim::timeline::Turnover;
use windlass_sim::world::{self, World};

use crate::play::{self, until};
use crate::start::{self, SEED, later};

/// How a run ended.
struct Run {
    state: State,
    /// How often each object came and went, leases and Events apart.
    objects: BTreeMap<String, Turnover>,
    writes: Vec<windlass_rehearse::crash::Write>,
    left: usize,
}

/// The upgrade of one and one, by two replicas.
fn upgraded(points: Vec<(u64, Moment)>, stall: Option<Stall>) -> Run {
    let start = &start::one_and_one().world;
    run_virtual(SEED, later(), |time| async move {
        let world = start.fork(world::Settings { clock: time.clock, ..start.settings().clone() });
        world.recorder().count_objects();
        let crashes = Crashes::at(points);
        let settings = Settings { crashes: crashes.clone(), ..Settings::rehearsal(&world) };
        let assembly = Assembly::new(world.clone(), settings);
        let script = async |world: World| {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let tkcs: Api<TanzuKubernetesCluster> = Api::default_namespaced(world.client());
            let to = json!({"spec": {"distribution": {"version": "v1.16.7", "fullVersion": null}}});
            tkcs.patch("my-tkc", &PatchParams::default(), &Patch::Merge(to)).await.unwrap();
            let over = |world: &World| play::update(world).state == Some(UpdateState::Succeeded);
            until(&world, "upgraded", over).await;
            // Long enough for whoever is late to do what it should not.
            tokio::time::sleep(Duration::from_secs(20 * 60)).await;
        };
        Box::pin(assembly.run_replicas(&[stall, None], script(world.clone()))).await;
        let violations = world.recorder().violations();
        assert!(violations.is_empty(), "{violations:?}");
        let lasting = |(name, _): &(String, Turnover)| !name.contains("leases") && !name.contains("events");
        let objects = world.recorder().objects().into_iter().filter(lasting).collect();
        Run { state: State::of(&world), objects, writes: crashes.writes(), left: crashes.left() }
    })
    .unwrap()
}

fn check(expected: &Run, run: &Run, how: &str) {
    let differences = expected.state.differences(&run.state);
    // Pods of the Job may be others: a kill of theirs is an attempt.
    let differences: Vec<String> = differences.into_iter().filter(|line| !line.contains("leases")).collect();
    assert!(differences.is_empty(), "{how}: {differences:#?}");
    let turnover = |run: &Run, of: &str| -> BTreeMap<String, Turnover> {
        run.objects.iter().filter(|(name, _)| name.contains(of)).map(|(name, it)| (name.clone(), *it)).collect()
    };
    for of in ["machines", "jobs", "clusterupdates", "kubeadmconfig", "secrets", "templates"] {
        assert_eq!(turnover(run, of), turnover(expected, of), "{how}: {of} made or removed another number of times");
    }
}

#[test]
fn a_leader_that_is_killed_at_any_write_is_followed_by_one_that_ends_the_update() {
    let expected = upgraded(Vec::new(), None);
    let made = expected.objects.iter().filter(|(name, it)| name.contains(" machines") && it.created > 0).count();
    assert!(
        made >= 2 || expected.objects.keys().any(|name| name.contains("machines")),
        "{:#?}",
        expected.objects.keys()
    );
    let by_controllers = expected.writes.iter().filter(|write| write.caller == Caller::Controllers);
    let numbers: Vec<u64> = by_controllers.map(|write| write.number).collect();
    let mut chance = Seed(25).stream("kills");
    let mut kills = 0;
    while kills < 50 {
        let pick = chance.below(u64::try_from(numbers.len()).unwrap());
        let number = numbers[usize::try_from(pick).unwrap()];
        let moment = if chance.below(2) == 0 { Moment::Before } else { Moment::After };
        let run = upgraded(vec![(number, moment)], None);
        assert_eq!(run.left, 0, "nobody was killed at {number}");
        check(&expected, &run, &format!("killed {moment:?} write {number}"));
        kills += 1;
    }
}

#[test]
fn a_leader_that_stands_still_and_goes_on_does_no_harm() {
    let expected = upgraded(Vec::new(), None);
    let mut chance = Seed(13).stream("stalls");
    for _ in 0..10 {
        let after = Duration::from_millis(chance.range(1_000..600_000));
        let lasts = Duration::from_millis(chance.range(5_000..120_000));
        let stall = Stall { after, lasts };
        check(&expected, &upgraded(Vec::new(), Some(stall)), &format!("{stall:?}"));
    }
}
