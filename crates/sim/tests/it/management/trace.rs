//! What was recorded from real Cluster API happens here in the same order.
//!
//! `cluster-api-1.13.json` has the order of machine events in upgrades by one minor. How events of machines interleave that do
//! not wait for each other is chance; what one machine goes through, how many there are at most and how many in all is not. Where
//! a rollout has one machine under way at a time, nothing interleaves, and the order is the same to the letter.

use std::collections::BTreeMap;
use std::fmt;

use futures::StreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt};
use serde::Deserialize;
use windlass_api::kind::cluster_api::Machine;

use super::stage::Stage;

/// What was recorded.
#[derive(Deserialize)]
pub struct Trace {
    pub sequence: Vec<String>,
    pub peak: BTreeMap<String, usize>,
    pub created: usize,
    pub gone: usize,
}

/// A recorded trace.
pub fn recorded(name: &str) -> Trace {
    #[derive(Deserialize)]
    struct File {
        traces: BTreeMap<String, Trace>,
    }
    let mut file: File = serde_json::from_str(include_str!("../../cluster-api-1.13.json")).unwrap();
    file.traces.remove(name).unwrap()
}

/// Something that happens to a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub what: &'static str,
    pub role: &'static str,
    pub age: &'static str,
    pub uid: String,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.what, self.role, self.age)
    }
}

/// What is known of a machine that was seen.
#[derive(Clone, Copy)]
struct Seen {
    role: &'static str,
    age: &'static str,
    running: bool,
    leaving: bool,
}

/// Machines as their watch tells of them.
#[derive(Default)]
pub struct Run {
    machines: BTreeMap<String, Seen>,
    pub steps: Vec<Step>,
    pub peak: BTreeMap<String, usize>,
}

impl Run {
    /// Follows the machines until something is over. Those that are there at the beginning are the old ones.
    pub async fn until(stage: &Stage, over: impl Future<Output = ()>) -> Self {
        let machines = Api::<Machine>::default_namespaced(stage.client());
        let mut events = watcher::watcher(machines, watcher::Config::default()).boxed();
        let mut run = Self::default();
        let mut over = std::pin::pin!(over);
        let mut age = "old";
        loop {
            let event = tokio::select! {
                biased;
                event = events.next() => event.unwrap().unwrap(),
                () = &mut over => return run,
            };
            match event {
                Event::Init => {}
                Event::InitDone => age = "new",
                Event::InitApply(machine) | Event::Apply(machine) => run.see(&machine, age),
                Event::Delete(machine) => {
                    let uid = machine.uid().unwrap();
                    run.see(&machine, age);
                    let seen = run.machines.remove(&uid).unwrap();
                    run.step("gone", seen, uid);
                }
            }
        }
    }

    fn see(&mut self, machine: &Machine, age: &'static str) {
        let uid = machine.uid().unwrap();
        let role = if machine.labels().contains_key("cluster.x-k8s.io/control-plane") { "cp" } else { "worker" };
        let running = machine.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
        let leaving = machine.metadata.deletion_timestamp.is_some();
        let before = self.machines.insert(uid.clone(), Seen { role, age, running, leaving });
        let seen = Seen { age: before.map_or(age, |before| before.age), ..self.machines[&uid] };
        self.machines.insert(uid.clone(), seen);
        if before.is_none() && seen.age == "new" {
            self.step("create", seen, uid.clone());
        }
        if running && seen.age == "new" && !before.is_some_and(|before| before.running) {
            self.step("running", seen, uid.clone());
        }
        if leaving && !before.is_some_and(|before| before.leaving) {
            self.step("delete", seen, uid);
        }
        let present = self.machines.values().filter(|other| other.role == role).count();
        let peak = self.peak.entry(role.to_owned()).or_default();
        *peak = present.max(*peak);
    }

    fn step(&mut self, what: &'static str, seen: Seen, uid: String) {
        self.steps.push(Step { what, role: seen.role, age: seen.age, uid });
    }

    /// The steps of one role, as they were recorded.
    pub fn of(&self, role: &str) -> Vec<String> {
        self.steps.iter().filter(|step| step.role == role).map(ToString::to_string).collect()
    }

    /// What each machine went through.
    fn lives(&self) -> Vec<Vec<String>> {
        let mut lives: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for step in &self.steps {
            lives.entry(&step.uid).or_default().push(step.to_string());
        }
        lives.into_values().collect()
    }
}

/// The steps of one role in what was recorded.
fn of_role(trace: &Trace, role: &str) -> Vec<String> {
    let is_of = |step: &&String| step.split(' ').nth(1) == Some(role);
    trace.sequence.iter().filter(is_of).cloned().collect()
}

/// Where in a sequence something happens.
fn places(sequence: &[String], what: &str) -> Vec<usize> {
    (0..sequence.len()).filter(|&index| sequence[index].starts_with(what)).collect()
}

/// No old machine goes before another new one runs, and none is made beyond the surge before another old one is gone.
fn keeps_the_order(sequence: &[String], surge: usize) -> bool {
    let (created, running) = (places(sequence, "create"), places(sequence, "running"));
    let (deleted, gone) = (places(sequence, "delete"), places(sequence, "gone"));
    deleted.iter().zip(&running).all(|(deleted, running)| running < deleted)
        && created.iter().skip(surge).zip(&gone).all(|(created, gone)| gone < created)
}

/// What a run has in common with what was recorded of one role.
pub fn check_role(run: &Run, trace: &Trace, role: &str, surge: usize) {
    let (real, ours) = (of_role(trace, role), run.of(role));
    assert_eq!(run.peak[role], trace.peak[role], "the most machines at a time: {ours:#?}");
    let count = |sequence: &[String]| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for step in sequence {
            *counts.entry(step.clone()).or_default() += 1;
        }
        counts
    };
    assert_eq!(count(&ours), count(&real), "{ours:#?}");
    for life in run.lives().iter().filter(|life| life[0].contains(role)) {
        let lives = [
            ["create", "running"].map(|what| format!("{what} {role} new")),
            ["delete", "gone"].map(|what| format!("{what} {role} old")),
        ];
        assert!(lives.iter().any(|known| known == life.as_slice()), "a machine went through {life:?}");
    }
    if surge > 1 {
        // What the order is held to is true of what was recorded.
        assert!(keeps_the_order(&real, surge) && keeps_the_order(&ours, surge), "{ours:#?}");
    } else {
        assert_eq!(ours, real);
    }
}
