//! Updates in which something goes wrong: they end as they should, and nothing is violated on the way.

use serde_json::json;
use windlass_rehearse::rehearsal::{Rehearsal, Request, Verdict, rehearse};
use windlass_rehearse::sweep::Pick;
use windlass_sim::actor::Caller;
use windlass_sim::fault::{
    Action, EtcdFault, Fault, Loss, MachineFault, Place, Requests, Scenario, Skew, Span, WatchEnd, WebhookFault, When,
    Whom,
};
use windlass_sim::timeline::What;

use crate::start::{self, FROM, TO};
use crate::sweeps;

#[test]
fn an_upgrade_survives_a_crash_before_any_of_its_writes() {
    let sweep = sweeps::one_and_one();
    let tried = sweeps::check(sweep, "F02", &Pick::all(usize::MAX));
    assert_eq!(tried.len(), sweep.reference().writes.len());
}

#[test]
fn an_upgrade_survives_two_crashes_in_a_row() {
    let sweep = sweeps::one_and_one();
    let pairs = sweep.reference().writes.len() / 3;
    sweeps::check(sweep, "F03", &Pick { every: 3, ..Pick::all(pairs) });
}

fn with(faults: Scenario) -> Rehearsal {
    let request = Request { faults, ..start::update() };
    rehearse(&start::one_and_one().world, &request).unwrap()
}

fn marks(rehearsal: &Rehearsal) -> Vec<String> {
    let faults = rehearsal.timeline.events.iter().filter(|event| event.what == What::Fault);
    faults.map(|event| event.text.clone()).collect()
}

/// It is reached all the same, with the machines that it takes, and the timeline says what bit.
fn survives(faults: Scenario, said: &str) -> Rehearsal {
    let rehearsal = with(faults);
    assert_eq!(rehearsal.verdict, Verdict::Reached { distribution: TO.into() }, "{rehearsal}");
    assert!(rehearsal.violations.is_empty(), "{rehearsal}");
    assert_eq!(rehearsal.machines.len(), 4, "two come and two go\n{rehearsal}");
    assert!(marks(&rehearsal).iter().any(|mark| mark.contains(said)), "{said} is not in {:#?}", marks(&rehearsal));
    rehearsal
}

#[test]
fn controllers_that_stood_still_do_no_harm_beside_those_that_took_over() {
    for after in [1, 120, 600] {
        let fault = Fault::SplitLeadership { takeover: Span::seconds(20), notices_after: Span::seconds(30) };
        let when = When::between(Span::seconds(after), Span::seconds(after + 60));
        let rehearsal = survives(Scenario::default().and(fault, when), "F13: the controllers stand still");
        let marks = marks(&rehearsal);
        assert!(marks.iter().any(|mark| mark.contains("go on that stood still")), "{marks:?}");
    }
}

#[test]
fn an_upgrade_survives_what_the_management_api_does_to_its_clients() {
    let writes = || Requests::to("write", "*").by(Caller::Controllers);
    let often = When::chance(0.2);
    let refused = Fault::Refusal { on: writes(), code: 503, retry_after_seconds: None };
    survives(Scenario::default().and(refused, often), "F04: ");
    let lost = Fault::LostAnswer { on: writes(), instead: Loss::GatewayTimeout };
    survives(Scenario::default().and(lost, often), "F05: ");
    survives(Scenario::default().and(Fault::Repetition { on: writes() }, often), "F06: ");
    let slow =
        Fault::Delay { on: Requests::default().by(Caller::Upgrader), least: Span::default(), most: Span::seconds(20) };
    survives(Scenario::of(slow), "F07: ");
    let dropped = Fault::WatchEnds {
        on: Requests::default().by(Caller::Controllers),
        how: WatchEnd::Expired,
        after: Span::seconds(30),
    };
    survives(Scenario::default().and(dropped, When::times(20)), "F08: ");
    let lag = Fault::Lag { on: Requests::default().by(Caller::Controllers), by: Span::seconds(3) };
    survives(Scenario::of(lag), "F11: ");
}

#[test]
fn an_upgrade_survives_wrong_clocks_and_any_order() {
    let clock =
        Fault::WrongClock { caller: Caller::Controllers, how: Skew::Step { by: jiff::SignedDuration::from_hours(1) } };
    survives(Scenario::of(clock), "F15: ");
    survives(Scenario::of(Fault::AnyOrder {}), "F16: ");
}

#[test]
fn whoever_asks_for_an_upgrade_while_its_webhook_is_down_asks_again() {
    let down = Fault::Webhook { how: WebhookFault::Down };
    let when = When::between(Span::default(), Span::seconds(60));
    let rehearsal = survives(Scenario::default().and(down, when), "F33: ");
    let asked = rehearsal.timeline.events.iter().find(|event| event.what == What::ClusterRequested).unwrap();
    assert!(rehearsal.began.duration_until(asked.at).as_secs() >= 60, "{rehearsal}");
}

#[test]
fn a_machine_that_has_booted_is_not_the_one_that_boots_late() {
    let how = MachineFault::BootsLate { by: Span::minutes(40) };
    let late = Fault::Machine { of: Whom::named("*-workers-*"), how };
    let rehearsal = survives(Scenario::default().and(late, When::times(1)), "F19: ");
    assert!(rehearsal.took.as_mins() >= 40, "{rehearsal}");
}

#[test]
fn an_alarm_of_etcd_keeps_the_control_plane_as_it_is() {
    let fault = Fault::Etcd { of: Whom::default(), how: EtcdFault::Corrupt };
    let rehearsal = with(Scenario::of(fault));
    assert!(!matches!(rehearsal.verdict, Verdict::Reached { .. }), "{rehearsal}");
    assert!(rehearsal.machines.is_empty() && rehearsal.violations.is_empty(), "{rehearsal}");
}

fn wish(at: Span, version: &str) -> Scenario {
    let action = Action::Patch {
        cluster: None,
        api_version: "run.tanzu.vmware.com/v1alpha1".into(),
        kind: "TanzuKubernetesCluster".into(),
        name: "default/my-tkc".into(),
        patch: json!({"spec": {"distribution": {"version": version, "fullVersion": null}}}),
    };
    Scenario::default().then(at, action)
}

#[test]
fn a_change_that_is_taken_back_soon_leaves_a_whole_cluster() {
    for seconds in [2, 6, 30, 120, 300] {
        survives(wish(Span::seconds(seconds), "v1.15.5"), "a cluster is never taken back to an older version");
    }
}

/// The look that decides takes seconds here. A wish that is taken back in the meantime is the last one that counts, and one that
/// is taken back later is answered: no cluster waits for ever for what it was asked for in between.
#[test]
fn a_change_that_is_taken_back_while_it_is_decided_on_is_taken_back_or_refused() {
    let nodes = Requests { place: Some(Place::Workload), ..Requests::to("list", "nodes") }.by(Caller::Controllers);
    let ends = [1, 3, 5, 8, 20].map(|seconds| {
        let slow = Fault::Delay { on: nodes.clone(), least: Span::seconds(6), most: Span::seconds(6) };
        let when = When::between(Span::default(), Span::seconds(60));
        let rehearsal = with(wish(Span::seconds(seconds), "v1.15.5").and(slow, when));
        assert!(rehearsal.violations.is_empty(), "{rehearsal}");
        let is_refused = marks(&rehearsal).iter().any(|mark| mark.contains("never taken back to an older version"));
        let (end, machines) = if is_refused { (TO, 4) } else { (FROM, 0) };
        assert_eq!(rehearsal.verdict, Verdict::Reached { distribution: end.into() }, "after {seconds} s\n{rehearsal}");
        assert_eq!(rehearsal.machines.len(), machines, "after {seconds} s\n{rehearsal}");
        is_refused
    });
    assert!(ends.is_sorted() && ends.contains(&false) && ends.contains(&true), "{ends:?}");
}

#[test]
fn another_wish_in_the_middle_of_an_update_waits_for_its_end() {
    let rehearsal = with(wish(Span::seconds(120), "v1.17.4"));
    assert!(rehearsal.violations.is_empty(), "{rehearsal}");
    assert_eq!(
        marks(&rehearsal),
        ["a user changes TanzuKubernetesCluster default/my-tkc: TanzuKubernetesCluster/my-tkc"]
    );
    let events = &rehearsal.timeline.events;
    let reached = events.iter().filter(|event| event.what == What::ClusterVersion);
    let reached: Vec<&str> = reached.map(|event| event.text.rsplit(" has ").next().unwrap_or_default()).collect();
    assert_eq!(reached.first().copied(), Some(&*format!("{TO} on all machines")), "{rehearsal}");
}
