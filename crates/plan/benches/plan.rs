//! What it costs to plan: a cluster of 3+50 machines at rest, and in each stage of an upgrade; and what is made once for each
//! release and each update.
//!
//! `cargo bench -p windlass-plan --bench plan`. The clusters are the fakes of the tests.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench prints its figures, reads a clock, and ends where there is none"
)]

#[allow(dead_code, reason = "tests use more of it")]
#[path = "../tests/it"]
mod it {
    pub mod fake;
    pub mod sample;
}

use std::hint::black_box;
use std::time::Duration;

use windlass_plan::check::check;
use windlass_plan::envelope::Envelope;
use windlass_plan::inventory::JobState;
use windlass_plan::planner::{PlanningInput, plan};
use windlass_plan::release::Release;
use windlass_plan::report::StageState;

use it::fake::Fake;
use it::sample::{self, image, target};

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 9;
/// Long enough for a clock of ten milliseconds to tell.
const ROUND_MIN: Duration = Duration::from_millis(400);
/// Of `/proc/self/stat`: Linux has counted in hundredths of a second since 2.4, whatever the kernel's own tick is.
const TICKS_A_SECOND: u64 = 100;

const CONTROL_PLANE: u32 = 3;
const WORKERS: u32 = 50;

fn main() {
    println!("{ROUNDS} rounds each; processor time in microseconds; {CONTROL_PLANE}+{WORKERS} machines\n");
    println!("{:<52} {:>8} {:>8}", "", "best", "median");
    let at_rest = created();
    let upgrading = |stage: usize| upgrade(at_rest.clone(), stage).input();
    let inputs = [
        ("at rest", at_rest.input()),
        ("in the middle of packages", upgrading(0)),
        ("in the middle of the control plane", upgrading(1)),
        ("in the middle of workers", upgrading(2)),
    ];
    for (when, input) in &inputs {
        report(&format!("plan {when}"), || plan(input));
    }
    for (when, input) in &inputs {
        let planned = plan(input);
        report(&format!("second opinion {when}"), || check(input, &planned));
    }
    let image = image("v1.16.7");
    report("read a release from its image", || Release::from_image(&image).unwrap());
    let (from, to) = (at_rest.target.end(), target(CONTROL_PLANE, WORKERS, "v1.16.7"));
    report("make the envelope of an update", || Envelope::of(&to, Some(&from)));
    let envelope = Envelope::of(&to, Some(&from));
    report("digest of an envelope", || envelope.digest());
}

/// Plans, and does it. Whether there was anything to do.
fn turn(fake: &mut Fake) -> bool {
    let planned = plan(&fake.input());
    if let Some(record) = &planned.record {
        fake.record(record);
    }
    for step in &planned.steps {
        fake.execute(step);
    }
    planned.record.is_some() || !planned.steps.is_empty()
}

/// A cluster at rest.
fn created() -> Fake {
    let mut fake = Fake::new(target(CONTROL_PLANE, WORKERS, "v1.15.5"));
    loop {
        let done = turn(&mut fake);
        if fake.tick().is_none() && !done {
            return fake;
        }
    }
}

/// The same, in the middle of a stage of an upgrade.
fn upgrade(mut fake: Fake, stage: usize) -> Fake {
    fake.target = target(CONTROL_PLANE, WORKERS, "v1.16.7");
    loop {
        let input: PlanningInput = fake.input();
        let planned = plan(&input);
        let replaced = input.inventory.control_plane.machines.iter().any(|it| it.version.minor().minor == 16);
        let job = input.inventory.control_plane.job.as_ref();
        let is_there = match stage {
            0 => planned.record.is_none() && planned.report.stages[0].state == StageState::Ready,
            1 => replaced && job.is_some_and(|job| matches!(job.state, JobState::Active { .. })),
            _ => input
                .inventory
                .pools
                .values()
                .any(|pool| pool.progress.observed && pool.progress.up_to_date == WORKERS / 2),
        };
        if is_there {
            return fake;
        }
        let done = turn(&mut fake);
        assert!(fake.tick().is_some() || done, "it never gets there");
    }
}

fn report<T>(what: &str, run: impl Fn() -> T) {
    let mut repeats = 1_u32;
    loop {
        let took = timed(repeats, &run);
        if took >= ROUND_MIN {
            break;
        }
        repeats = repeats.saturating_mul(2);
    }
    let mut rounds: Vec<Duration> = (0..ROUNDS).map(|_| timed(repeats, &run) / repeats).collect();
    rounds.sort();
    let microseconds = |duration: Duration| duration.as_secs_f64() * 1_000_000.0;
    let (best, median) = (microseconds(rounds[0]), microseconds(rounds[ROUNDS / 2]));
    println!("{what:<52} {best:>8.1} {median:>8.1}");
}

fn timed<T>(repeats: u32, run: impl Fn() -> T) -> Duration {
    let before = cpu();
    for _ in 0..repeats {
        black_box(run());
    }
    cpu().saturating_sub(before)
}

/// The processor time of this process so far, in user and kernel mode.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name in the second field may contain spaces; the fields after its parenthesis begin with the third.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11..=12].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 1000 / TICKS_A_SECOND)
}
