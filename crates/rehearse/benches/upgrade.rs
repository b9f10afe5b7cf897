//! What it costs to create and to upgrade a cluster in virtual time: processor time and requests, in all and for each
//! simulated machine, and what that means for a thousand clusters.
//!
//! `cargo bench -p windlass-rehearse`; with `-- --traffic` it tells who asks what instead, and with `-- --checker` what the
//! timeline and all invariants cost of it. Machines are counted as they are asked for; an upgrade makes each of them anew.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench prints its figures, and ends where there are none"
)]

#[path = "shared/start.rs"]
mod start;

use std::time::Duration;

use windlass_rehearse::crash::Crashes;
use windlass_rehearse::rehearsal::{self, Ended, Verdict};
use windlass_sim::timeline::Recorder;
use windlass_sim::world::World;

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 9;
/// Of `/proc/self/stat`: Linux has counted in hundredths of a second since 2.4, whatever the kernel's own tick is.
const TICKS_A_SECOND: u64 = 100;

fn main() {
    if std::env::args().any(|argument| argument == "--traffic") {
        println!("Requests of the upgrade of 3+10\n\n{}", upgrade(&create(3, 10).world).traffic.text());
        return;
    }
    if std::env::args().any(|argument| argument == "--checker") {
        checker();
        return;
    }
    println!("{ROUNDS} rounds each; processor time in milliseconds\n");
    println!(
        "{:<14} {:>8} {:>8} {:>12} {:>10} {:>12} {:>16} {:>18}",
        "", "best", "median", "ms/machine", "requests", "req/machine", "virtual minutes", "1,000 clusters, s"
    );
    for (control_plane, workers) in [(1, 1), (3, 3), (3, 10)] {
        let created = rounds(|| create(control_plane, workers));
        report(&format!("create {control_plane}+{workers}"), control_plane + workers, &created);
        let start = create(control_plane, workers).world;
        let upgraded = rounds(|| upgrade(&start));
        report(&format!("upgrade {control_plane}+{workers}"), control_plane + workers, &upgraded);
    }
}

/// The same upgrade with a recorder that looks at nothing, and with one that looks at everything: alternating, so that both meet
/// the same neighbours.
fn checker() {
    let start = create(3, 10).world;
    let settings = start.settings().clone();
    let unwatched = start.fork_recorded_by(settings, Recorder::blind());
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        without.push(upgrade_cpu(&unwatched));
        with.push(upgrade_cpu(&start));
    }
    without.sort_unstable();
    with.sort_unstable();
    println!("upgrade 3+10, {ROUNDS} rounds each; processor time in milliseconds\n");
    for (which, place) in [("best", 0), ("median", ROUNDS / 2)] {
        let (without, with) = (without[place].as_secs_f64() * 1000.0, with[place].as_secs_f64() * 1000.0);
        let share = 100.0 * (with - without) / with;
        println!(
            "{which:<8} unwatched {without:>7.1}   watched {with:>7.1}   share of timeline and rules {share:>5.1} %"
        );
    }
}

fn upgrade_cpu(start: &World) -> Duration {
    const REPEATS: u32 = 10;
    let before = cpu();
    for _ in 0..REPEATS {
        upgrade(start);
    }
    cpu().saturating_sub(before) / REPEATS
}

struct Round {
    cpu: Duration,
    requests: u64,
    took: Duration,
}

fn rounds(run: impl Fn() -> Ended) -> Vec<Round> {
    let mut rounds: Vec<Round> = (0..ROUNDS)
        .map(|_| {
            // One run is a few ticks of the clock that is read, so it is repeated until it is a few hundred.
            const REPEATS: u32 = 10;
            let before = cpu();
            let mut last = run();
            for _ in 1..REPEATS {
                last = run();
            }
            let cpu = cpu().saturating_sub(before) / REPEATS;
            let requests = last.rehearsal.requests.values().map(|requests| requests.all).sum();
            Round { cpu, requests, took: last.rehearsal.took.unsigned_abs() }
        })
        .collect();
    rounds.sort_by_key(|round| round.cpu);
    rounds
}

fn report(what: &str, machines: u32, rounds: &[Round]) {
    let (best, median) = (&rounds[0], &rounds[rounds.len() / 2]);
    let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
    println!(
        "{what:<14} {:>8.1} {:>8.1} {:>12.2} {:>10} {:>12} {:>16} {:>18.0}",
        ms(best.cpu),
        ms(median.cpu),
        ms(median.cpu) / f64::from(machines),
        median.requests,
        median.requests / u64::from(machines),
        median.took.as_secs() / 60,
        median.cpu.as_secs_f64() * 1000.0,
    );
}

fn create(control_plane: u32, workers: u32) -> Ended {
    reached(start::create(control_plane, workers))
}

fn upgrade(start: &World) -> Ended {
    reached(rehearsal::hold(start, &start::request("v1.16.7", "2026-01-02T00:00:00Z"), Crashes::none()).unwrap())
}

fn reached(ended: Ended) -> Ended {
    assert!(matches!(ended.rehearsal.verdict, Verdict::Reached { .. }), "{}", ended.rehearsal);
    ended
}

/// The processor time of this process so far, in user and kernel mode.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name in the second field may contain spaces; the fields after its parenthesis begin with the third.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11..=12].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 1000 / TICKS_A_SECOND)
}
