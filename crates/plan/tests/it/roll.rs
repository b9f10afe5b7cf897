//! The loop that replaces a control plane, over a fake of the cluster: to the end, from every crash, with the rules of a safe
//! replacement looked at after every change.

mod cluster;

use jiff::SignedDuration;
use windlass_plan::roll::{Next, RollInput, RollStep, Waiting, abort, irrevocable, next};

use cluster::Cluster;

/// No walk is longer: 11 kinds of steps, and a few looks while waiting, for each machine.
const STEPS_MAX: usize = 500;

/// One run of the program: it remembers when it began and what it waits for, and nothing else.
struct Run {
    began: jiff::Timestamp,
    waiting: Option<Waiting>,
}

impl Run {
    fn begin(cluster: &Cluster) -> Self {
        Self { began: cluster.now, waiting: None }
    }

    /// Asks once and does what was said. Returns the step, if it was one; `Err` with the last word, if it was that.
    fn go_on(&mut self, cluster: &mut Cluster) -> Result<Option<RollStep>, Next> {
        let input = cluster.input(self.began, self.waiting.clone());
        self.act(cluster, next(&input))
    }

    /// The same for whoever gives up.
    fn go_back(&mut self, cluster: &mut Cluster) -> Result<Option<RollStep>, Next> {
        let input = cluster.input_of_abort(self.began, self.waiting.clone());
        let next = abort::next(&input);
        if let Next::Do(step) = &next {
            assert_eq!(windlass_plan::check::roll(&input, step), [], "{step:?}");
        }
        self.act(cluster, next)
    }

    fn act(&mut self, cluster: &mut Cluster, next: Next) -> Result<Option<RollStep>, Next> {
        match next {
            Next::Do(step) => {
                self.waiting = None;
                cluster.execute(&step);
                Ok(Some(step))
            }
            Next::Wait { wait, .. } => {
                let since = self.waiting.take().filter(|waiting| waiting.wait.is_same(&wait));
                let since = since.map_or(cluster.now, |waiting| waiting.since);
                self.waiting = Some(Waiting { wait, since });
                cluster.pass(SignedDuration::from_secs(30));
                Ok(None)
            }
            end => Err(end),
        }
    }
}

/// Runs until there is a last word, and gives the steps that led there.
fn run(cluster: &mut Cluster) -> (Vec<RollStep>, Next) {
    let mut run = Run::begin(cluster);
    let mut steps = Vec::new();
    for _ in 0..STEPS_MAX {
        match run.go_on(cluster) {
            Ok(step) => steps.extend(step),
            Err(end) => return (steps, end),
        }
        cluster.check();
    }
    panic!("no end after {STEPS_MAX} steps: {steps:?}");
}

fn check_replaced(cluster: &mut Cluster, count: usize) {
    cluster.check_ended(count);
    let again = run(cluster);
    assert_eq!(again, (Vec::new(), Next::Done), "an update that has ended changes nothing");
}

fn created(steps: &[RollStep]) -> usize {
    steps.iter().filter(|step| matches!(step, RollStep::CreateMachine { .. })).count()
}

/// Replaces a control plane, and then again with a crash after each of its steps.
fn check_every_crash(count: usize) {
    let mut cluster = Cluster::of(count);
    let (steps, end) = run(&mut cluster);
    assert_eq!(end, Next::Done, "{steps:?}");
    assert_eq!(created(&steps), count);
    check_replaced(&mut cluster, count);

    for crash_after in 1..=steps.len() {
        let mut cluster = Cluster::of(count);
        let mut first = Run::begin(&cluster);
        let mut done = Vec::new();
        while done.len() < crash_after {
            done.extend(first.go_on(&mut cluster).unwrap());
            cluster.check();
        }
        drop(first);
        let (rest, end) = run(&mut cluster);
        let after = done.last();
        assert_eq!(end, Next::Done, "after {after:?}: {rest:?}");
        assert_eq!([done.clone(), rest].concat(), steps, "after {after:?}");
        check_replaced(&mut cluster, count);
    }
}

#[test]
fn a_control_plane_of_one_is_replaced_whatever_step_was_the_last_of_a_run() {
    check_every_crash(1);
}

#[test]
fn a_control_plane_of_three_is_replaced_whatever_step_was_the_last_of_a_run() {
    check_every_crash(3);
}

#[test]
fn a_control_plane_of_five_is_replaced_whatever_step_was_the_last_of_a_run() {
    check_every_crash(5);
}

/// Every first replacement stays as it was when it had got so far: the run fails in time, and the next one makes it anew.
fn check_stuck(count: usize, stage: u32, ends: &str) {
    let mut cluster = Cluster::of(count);
    cluster.stuck_at = Some(stage);
    let (_, end) = run(&mut cluster);
    assert!(format!("{end:?}").contains(ends), "{end:?}");
    cluster.stuck_at = None;
    let (steps, end) = run(&mut cluster);
    assert_eq!(end, Next::Done, "{steps:?}");
    assert_eq!(created(&steps), count, "the first of them once more: {steps:?}");
    check_replaced(&mut cluster, count);
}

#[test]
fn a_replacement_that_gets_stuck_is_made_anew_by_the_next_run() {
    check_stuck(3, cluster::BOOTING, "it has no providerID");
    check_stuck(3, cluster::REGISTERING, "it has no node");
    check_stuck(3, cluster::STARTING, "its programs do not run");
    check_stuck(1, cluster::BOOTING, "it has no providerID");
    check_stuck(5, cluster::STARTING, "its programs do not run");
}

#[test]
fn a_run_that_is_killed_again_and_again_gives_a_machine_no_more_time() {
    let mut cluster = Cluster::of(3);
    cluster.stuck_at = Some(cluster::BOOTING);
    let mut deleted = false;
    // A run every two minutes: none of them sees the whole time of the machine.
    for _ in 0..12 {
        let mut run = Run::begin(&cluster);
        let until = cluster.now + SignedDuration::from_mins(2);
        while cluster.now < until && !deleted {
            let Ok(step) = run.go_on(&mut cluster) else { break };
            deleted |= matches!(step, Some(RollStep::DeleteMachine { .. }));
            cluster.check();
        }
    }
    assert!(deleted, "it had its time, and the machine that it was to replace is well");
    assert_eq!(cluster.deaths.len(), 1);
    assert!(cluster.deaths[0] <= SignedDuration::from_mins(18), "{:?}", cluster.deaths);
}

/// Whether an attempt can still be given up.
fn is_revocable(input: &RollInput) -> bool {
    let etcd = input.observed.etcd.as_deref().map_err(String::as_str);
    irrevocable(&input.observed.machines, etcd, input.attempt.id).is_none()
}

#[test]
fn an_abort_is_possible_until_the_first_member_is_removed() {
    let mut cluster = Cluster::of(3);
    let mut run = Run::begin(&cluster);
    let mut removed = false;
    loop {
        let input = cluster.input(run.began, None);
        assert_eq!(is_revocable(&input), !removed, "{:?}", input.observed.machines);
        match run.go_on(&mut cluster) {
            Ok(step) => removed |= matches!(step, Some(RollStep::RemoveMember { .. })),
            Err(end) => break assert_eq!(end, Next::Done),
        }
    }
    assert!(removed);
}

/// Gives up after so many looks of an attempt, with a crash after so many steps of giving up. Returns how many steps that took;
/// `None` if it was too late.
fn give_up(count: usize, after: usize, crash_after: usize) -> Option<usize> {
    let mut cluster = Cluster::of(count);
    let mut first = Run::begin(&cluster);
    for _ in 0..after {
        first.go_on(&mut cluster).ok()?;
    }
    drop(first);
    let mut steps = 0;
    let mut run = Run::begin(&cluster);
    for _ in 0..STEPS_MAX {
        match run.go_back(&mut cluster) {
            Ok(step) => steps += usize::from(step.is_some()),
            Err(Next::Done) => {
                cluster.check_given_up(count);
                return Some(steps);
            }
            Err(end) => {
                assert!(format!("{end:?}").contains("Irrevocable"), "after {after} looks: {end:?}");
                return None;
            }
        }
        if steps == crash_after {
            run = Run::begin(&cluster);
        }
    }
    panic!("no end after {after} looks");
}

#[test]
fn an_attempt_is_given_up_from_wherever_it_is_and_whatever_step_was_the_last_of_a_run() {
    for count in [1, 3] {
        let mut given_up = 0;
        let mut after = 0;
        while let Some(steps) = give_up(count, after, usize::MAX) {
            for crash_after in 1..=steps {
                assert_eq!(give_up(count, after, crash_after), Some(steps), "{after} looks, then {crash_after} steps");
            }
            given_up += 1;
            after += 1;
        }
        assert!(given_up > 12, "only {given_up}");
        assert_eq!(give_up(count, after + 1, usize::MAX), None, "there is only forward");
    }
}
