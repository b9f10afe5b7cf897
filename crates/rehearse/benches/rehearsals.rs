//! What rehearsals cost as people ask for them: one large cluster many times, and many clusters once; on all cores.
//!
//! `cargo bench -p windlass-rehearse --bench rehearsals`. "Virtual ÷ wall" is how much of the update's own time goes by in a second
//! of ours, all rehearsals that run at a time together.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench prints its figures, and ends where there are none"
)]
#![allow(clippy::disallowed_methods, reason = "a bench measures the time of this machine")]

#[path = "shared/start.rs"]
mod start;

use std::time::{Duration, Instant};

use windlass_rehearse::rehearsal::Verdict;
use windlass_rehearse::report::{self, Asked, Origin, Report};
use windlass_sim::world::World;

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    println!("{:<38} {:>8} {:>12} {:>14} {:>9}", "", "wall, s", "for each, ms", "virtual ÷ wall", "peak, MB");
    let large = start::create(3, 50).world;
    for runs in [1, 20] {
        measure(&format!("one cluster of 3+50, {runs} times"), runs, || vec![reported(&large, runs)]);
    }
    let start = start::create(3, 10).world;
    for clusters in [10, 100, 1000] {
        measure(&format!("{clusters} clusters of 3+10, once each"), clusters, || fleet(&start, clusters));
    }
}

/// Each cluster in a World of its own, as it is read from a snapshot: as many at a time as there are cores. Of each only its report
/// is kept.
fn fleet(start: &World, clusters: u32) -> Vec<Report> {
    let asked: Vec<u32> = (0..clusters).collect();
    let cores = report::cores();
    let part = |core: usize| asked.iter().skip(core).step_by(cores).map(|_| reported(start, 1)).collect::<Vec<_>>();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|core| scope.spawn(move || part(core))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

fn reported(start: &World, runs: u32) -> Report {
    let request = start::request("v1.16.7", "2026-01-02T00:00:00Z");
    let asked = Asked { request, runs, threads: report::cores(), origin: Origin::default(), risks: Vec::new() };
    let (report, _) = report::report(start, &asked).unwrap();
    assert!(matches!(report.verdict, Verdict::Reached { .. }), "{}", report.text());
    report
}

fn measure(what: &str, rehearsals: u32, run: impl FnOnce() -> Vec<Report>) {
    let began = Instant::now();
    let reports = run();
    let wall = began.elapsed();
    let virtual_time: Duration = reports.iter().map(|report| report.took.p50.unsigned_abs() * report.runs).sum();
    println!(
        "{what:<38} {:>8.1} {:>12.0} {:>14.0} {:>9}",
        wall.as_secs_f64(),
        wall.as_secs_f64() * 1000.0 / f64::from(rehearsals),
        virtual_time.as_secs_f64() / wall.as_secs_f64(),
        peak_megabytes(),
    );
}

/// The most memory that this process has held so far.
fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1024
}
