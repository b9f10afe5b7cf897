//! Several minors, one update after the other: the control plane goes through each, the workers only where they must.

use std::time::Duration;

use windlass_rehearse::crash::Crashes;
use windlass_rehearse::rehearsal::{self, Change, Ended, Request, Verdict, Wish};
use windlass_rehearse::settle;
use windlass_sim::world::World;

use crate::start::{self, SEED, cluster_name, later};

const HOP: &str = "v1.16.8+vmware.1-guest.1";
const END: &str = "v1.17.4+vmware.1-guest.1";

/// One update, hours after the one before it.
fn update(world: &World, to: &str, on_the_way_to: Option<&str>, hours: u64) -> Ended {
    let at = later() + Duration::from_secs(hours * 60 * 60);
    let on_the_way_to = on_the_way_to.map(|text| text.parse().unwrap());
    let wish = Wish::Release { to: to.to_owned(), on_the_way_to };
    let request = Request::asking(cluster_name(), wish, SEED, at);
    let ended = rehearsal::hold(world, &request, Crashes::none()).unwrap();
    let text = ended.rehearsal.text();
    assert_eq!(ended.rehearsal.verdict, Verdict::Reached { distribution: to.to_owned() }, "{text}");
    assert!(ended.rehearsal.violations.is_empty(), "{text}");
    ended
}

/// How many machines of the control plane, and how many workers, came in an update.
fn made(ended: &Ended) -> (usize, usize) {
    let machines = ended.rehearsal.machines.iter().filter(|machine| machine.change == Change::Created);
    let (control_plane, workers): (Vec<_>, Vec<_>) =
        machines.partition(|machine| machine.name.contains("control-plane"));
    (control_plane.len(), workers.len())
}

fn version(ended: &Ended) -> Option<String> {
    settle::cluster(&ended.world, &cluster_name()).unwrap().status.unwrap().version
}

/// The same release asked for once more: nothing is made.
fn asking_again_changes_nothing(ended: &Ended, to: &str, on_the_way_to: Option<&str>, hours: u64) {
    assert_eq!(made(&update(&ended.world, to, on_the_way_to, hours)), (0, 0), "planning again changes nothing");
}

#[test]
fn over_two_minors_the_control_plane_is_replaced_twice_and_the_workers_once() {
    let hop = update(&start::three_and_one().world, HOP, Some(END), 0);
    assert_eq!(made(&hop), (3, 0), "{}", hop.rehearsal.text());
    assert_eq!(version(&hop).as_deref(), Some(start::FROM), "what all machines have");
    asking_again_changes_nothing(&hop, HOP, Some(END), 4);

    let end = update(&hop.world, END, None, 8);
    assert_eq!(made(&end), (3, 1), "{}", end.rehearsal.text());
    assert_eq!(version(&end).as_deref(), Some(END));
    asking_again_changes_nothing(&end, END, None, 12);
}

#[test]
fn whoever_stays_at_a_hop_gets_the_workers_there_too() {
    let hop = update(&start::one_and_one().world, HOP, Some(END), 0);
    let stay = update(&hop.world, HOP, None, 4);
    assert_eq!(made(&stay), (0, 1), "{}", stay.rehearsal.text());
    assert_eq!(version(&stay).as_deref(), Some(HOP));
    asking_again_changes_nothing(&stay, HOP, None, 8);
}
