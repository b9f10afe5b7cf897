//! The steps of a run: when stages begin, and what becomes of machines.

use jiff::SignedDuration;
use serde::Serialize;
use windlass_sim::timeline::{Event, Lane, What};

use crate::rehearsal::Rehearsal;

/// A step of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Its name: `workers`, `control-plane-1-joins`.
    pub name: String,
    /// How long after the beginning it is.
    pub after: SignedDuration,
}

/// The steps of a run, in order: its beginning, its stages, and what becomes of the machines of the control plane and of the
/// first of each pool. The others of a pool are as the first.
pub fn steps(run: &Rehearsal) -> Vec<Step> {
    let mut steps = vec![Step { name: "begin".to_owned(), after: SignedDuration::ZERO }];
    let mut seen = Seen::default();
    for event in &run.timeline.events {
        if let Some(name) = seen.name(event).filter(|name| steps.iter().all(|step| step.name != *name)) {
            steps.push(Step { name, after: run.began.duration_until(event.at) });
        }
    }
    steps
}

/// The machines that came and those that went, in order, with what they are for.
#[derive(Default)]
struct Seen {
    came: Vec<Lane>,
    went: Vec<Lane>,
}

impl Seen {
    fn name(&mut self, event: &Event) -> Option<String> {
        if event.what == What::UpdateStage {
            return event.text.rsplit(' ').next().map(str::to_owned);
        }
        let (lane, word) = (event.lane.as_ref()?, word(event.what)?);
        let list = match event.what {
            What::MachineDeleting | What::MachineDeleted => &mut self.went,
            _ => &mut self.came,
        };
        if matches!(event.what, What::MachineCreated | What::MachineDeleting) {
            list.push(lane.clone());
        }
        let role = role(lane);
        let number = list.iter().filter(|one| self::role(one) == role).position(|one| one.machine == lane.machine)? + 1;
        (lane.control_plane || number == 1).then(|| format!("{role}-{number}-{word}"))
    }
}

fn role(lane: &Lane) -> &str {
    if lane.control_plane { "control-plane" } else { lane.pool.as_deref().unwrap_or("worker") }
}

fn word(what: What) -> Option<&'static str> {
    Some(match what {
        What::MachineCreated => "comes",
        What::NodeRegistered => "joins",
        What::NodeReady => "ready",
        What::MachineDeleting => "leaves",
        What::MachineDeleted => "gone",
        _ => return None,
    })
}
