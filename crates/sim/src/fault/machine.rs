//! Machines that go wrong: what the infrastructure asks before each step.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_api::label;
use windlass_api::name::{NamespacedName, NodeName};

use super::deed::Deed;
use super::kind::{Fault, InfrastructureFault, MachineFault};
use super::pattern::Whom;
use super::{Bite, Faults, Injection, Live};

/// What comes of making a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Making {
    /// It is refused.
    Refused {
        /// In one word.
        reason: &'static str,
        /// In a sentence.
        message: &'static str,
    },
    /// There is one now, and it has no disk.
    Partial,
}

/// What comes of booting a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Booting {
    /// It does not boot.
    Never,
    /// It boots later.
    Late(Duration),
    /// Another one boots in its place.
    Twice,
}

/// A fault that holds for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held<T> {
    /// Which.
    pub(crate) what: T,
    /// For how long; for good without a time.
    pub(crate) left: Option<Duration>,
}

impl Faults {
    /// What goes wrong when a virtual machine is made.
    pub(crate) fn making(&self, machine: &ObjectMeta) -> Option<Held<Making>> {
        self.held(machine, |fault| match fault {
            Fault::Infrastructure { of, how } => Some((
                of,
                match how {
                    InfrastructureFault::Quota => (
                        Making::Refused { reason: "QuotaExceeded", message: "the quota of the namespace is used up" },
                        "is refused: the quota is used up",
                    ),
                    InfrastructureFault::Throttled => (
                        Making::Refused { reason: "TooManyRequests", message: "the infrastructure is asked too often" },
                        "is refused: the infrastructure is asked too often",
                    ),
                    InfrastructureFault::Partial => (Making::Partial, "is made without a disk"),
                },
            )),
            _ => None,
        })
    }

    /// What goes wrong when a machine boots.
    pub(crate) fn booting(&self, machine: &ObjectMeta) -> Option<Held<Booting>> {
        self.held(machine, |fault| match fault {
            Fault::Machine { of, how } => match how {
                MachineFault::NeverBoots => Some((of, (Booting::Never, "does not boot"))),
                MachineFault::BootsLate { by } => Some((of, (Booting::Late(by.0), "boots late"))),
                MachineFault::BootsTwice => {
                    Some((of, (Booting::Twice, "was made twice, and the second one takes its name")))
                }
                MachineFault::Vanishes { .. } | MachineFault::Unlisted => None,
            },
            _ => None,
        })
    }

    /// Whether a machine that has booted was made twice. Nothing is decided by asking.
    pub(crate) fn was_made_twice(&self, machine: &ObjectMeta) -> bool {
        let Some(live) = self.live() else { return false };
        let object = identity(machine);
        let twice =
            |injection: &Injection| matches!(injection.fault, Fault::Machine { how: MachineFault::BootsTwice, .. });
        let state = live.state();
        let mut all = live.scenario.faults.iter().enumerate();
        all.any(|(index, injection)| {
            twice(injection) && state.decided.get(&(index, object.clone())).copied().unwrap_or_default()
        })
    }

    /// Takes note that a machine has booted: it may be one that vanishes.
    pub(crate) fn booted(&self, cluster: &NamespacedName, node: &NodeName, infrastructure: &str) {
        let Some(live) = self.live() else { return };
        let (place, name) = (cluster.to_string(), node.as_str());
        for (index, injection) in live.open() {
            let Fault::Machine { of, how: MachineFault::Vanishes { after } } = &injection.fault else { continue };
            let object = format!("{place}/{name}");
            // It is said again that a machine has booted whenever somebody looks.
            if of.matches(&place, name)
                && live.holds(index, &injection.when, &object)
                && live.state().said.insert((index, object))
            {
                let at = live.clock.now().checked_add(after.0).unwrap_or(jiff::Timestamp::MAX);
                let (cluster, node) = (cluster.clone(), node.clone());
                live.later(at, Deed::Vanish { index, cluster, node, infrastructure: infrastructure.to_owned() });
            }
        }
    }

    /// Whether the object of a machine that is gone stays.
    pub(crate) fn finalizer_stays(&self, machine: &ObjectMeta) -> Option<Held<()>> {
        self.held(machine, |fault| match fault {
            Fault::FinalizerStays { of } => Some((of, ((), "is gone, and its finalizer stays"))),
            _ => None,
        })
    }

    /// The first fault of a sort that bites this one now.
    fn held<'a, T>(
        &'a self,
        machine: &ObjectMeta,
        select: impl Fn(&'a Fault) -> Option<(&'a Whom, (T, &'static str))>,
    ) -> Option<Held<T>> {
        let live = self.live()?;
        let cluster = &cluster_of(machine);
        let name = machine.name.as_deref().unwrap_or_default();
        live.open().find_map(|(index, injection)| {
            let (of, (what, text)) = select(&injection.fault)?;
            if !of.matches(cluster, name) || !live.holds(index, &injection.when, &identity(machine)) {
                return None;
            }
            let object = format!("WCPMachine/{name}");
            let text = &format!("the machine {name} {text}");
            live.say_once(index, &Bite { place: "management", cluster, object: &object, text });
            Some(Held { what, left: live.left(index) })
        })
    }
}

/// What tells a machine from all others: one that is made anew under the same name is another.
fn identity(machine: &ObjectMeta) -> String {
    let name = machine.name.as_deref().unwrap_or_default();
    format!("{}/{name} {}", cluster_of(machine), machine.uid.as_deref().unwrap_or_default())
}

/// The cluster that a machine says it belongs to, as patterns know it.
fn cluster_of(machine: &ObjectMeta) -> String {
    let labels = machine.labels.as_ref();
    let cluster = labels.and_then(|labels| labels.get(label::CLUSTER_NAME.name)).map_or("", String::as_str);
    format!("{}/{cluster}", machine.namespace.as_deref().unwrap_or_default())
}

impl Live {
    /// How long a fault lasts from now on; for good without a time.
    pub(super) fn left(&self, index: usize) -> Option<Duration> {
        let end = self.ends_at(index)?;
        Some(Duration::try_from(end.duration_since(self.clock.now())).unwrap_or_default())
    }
}
