//! What goes wrong in a run, written down: a file that anybody can read, and that gives the same run each time.
//!
//! ```yaml
//! name: the API loses an answer, and a machine never boots
//! faults:
//! - fault: {kind: lostAnswer, to: {actor: controllers, verb: patch, resource: machinedeployments}, instead: gatewayTimeout}
//!   when: {nth: 2}
//! - fault: {kind: machine, of: {names: "*-workers-*"}, how: {fault: neverBoots}}
//!   when: {after: 5m, until: 30m, times: 1}
//! actions:
//! - at: 10m
//!   action: {do: delete, apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, name: default/my-tkc-control-plane-*}
//! infrastructure:
//!   zones: [{name: zone-a, machines: 20}]
//! ```

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::action::Scheduled;
use super::kind::{Fault, Moment};
use super::span::Span;
use crate::management::Infrastructure;

/// What goes wrong in a run. The empty one costs nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// What it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What goes wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Injection>,
    /// What people do in the meantime.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Scheduled>,
    /// How much there is to make machines of.
    #[serde(default, skip_serializing_if = "Infrastructure::is_usual")]
    pub infrastructure: Infrastructure,
}

/// A fault, and when it bites.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Injection {
    /// What goes wrong.
    pub fault: Fault,
    /// When.
    #[serde(default)]
    pub when: When,
}

/// When a fault bites. Times are counted from the start of the World that the scenario was given to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct When {
    /// From then on.
    #[serde(default, skip_serializing_if = "Span::is_zero")]
    pub after: Span,
    /// No longer than until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// No longer than so long from its first bite on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// Only the one of this number, from 1, of those that are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u64>,
    /// Each with this probability, by the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
    /// No more than so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
}

/// A file that is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It is not written as one.
    #[error("it is not written as a scenario: {why}")]
    Read {
        /// What is wrong, and where.
        why: String,
    },
    /// It says something that cannot be.
    #[error("it says what cannot be: {why}")]
    Senseless {
        /// Why not.
        why: String,
    },
}

impl Scenario {
    /// Reads a file.
    pub fn from_yaml(text: &str) -> Result<Self, ScenarioError> {
        let read: Self = serde_saphyr::from_str(text).map_err(|error| ScenarioError::Read { why: told(&error) })?;
        match read.senseless() {
            Some(why) => Err(ScenarioError::Senseless { why }),
            None => Ok(read),
        }
    }

    /// The file that says the same.
    pub fn to_yaml(&self) -> String {
        // A tree of texts, numbers and lists has no part that YAML cannot say.
        serde_saphyr::to_string(self).unwrap_or_default()
    }

    /// A scenario of one fault that bites whenever it can.
    pub fn of(fault: Fault) -> Self {
        Self::default().and(fault, When::default())
    }

    /// The same with one fault more.
    #[must_use]
    pub fn and(mut self, fault: Fault, when: When) -> Self {
        self.faults.push(Injection { fault, when });
        self
    }

    /// The same with something that people do.
    #[must_use]
    pub fn then(mut self, at: Span, action: super::action::Action) -> Self {
        self.actions.push(Scheduled { at, action });
        self
    }

    /// Nothing goes wrong, nobody does anything, and there is enough of everything.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty() && self.actions.is_empty() && self.infrastructure.is_usual()
    }

    /// The writes at which a process of Windlass crashes, and at which moment.
    pub fn crashes(&self) -> Vec<(u64, Moment)> {
        let crash = |injection: &Injection| match injection.fault {
            Fault::Crash { write, moment } => Some((write, moment)),
            _ => None,
        };
        self.faults.iter().filter_map(crash).collect()
    }

    /// What cannot be, in words.
    fn senseless(&self) -> Option<String> {
        self.faults.iter().enumerate().find_map(|(index, Injection { fault, when })| {
            let why = match (fault, when) {
                (_, When { chance: Some(chance), .. }) if !(0.0..=1.0).contains(chance) => {
                    format!("a chance of {chance} is not between 0 and 1")
                }
                (_, When { nth: Some(0), .. }) => "the first is number 1".to_owned(),
                (_, When { after, until: Some(until), .. }) if until <= after => {
                    format!("it ends at {until}, and begins at {after}")
                }
                (Fault::Crash { write: 0, .. }, _) => "the first write is number 1".to_owned(),
                (Fault::Refusal { code, .. }, _) if !(400..600).contains(code) => {
                    format!("{code} is not the status of a refusal")
                }
                (_, When { lasts: Some(lasts), .. }) if lasts.is_zero() => "it lasts for no time".to_owned(),
                (Fault::SplitLeadership { .. }, When { until: None, lasts: None, .. }) => {
                    "a standstill that has no end is a crash".to_owned()
                }
                _ => return None,
            };
            Some(format!("fault {} ({}): {why}", index + 1, fault.id()))
        })
    }
}

/// What is wrong with a file, in one line: the error itself repeats it below a picture of the place.
fn told(error: &serde_saphyr::Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    cause.unwrap_or_else(|| error.to_string().lines().next().unwrap_or_default().to_owned())
}

impl When {
    /// The one of this number only.
    pub fn nth(number: u64) -> Self {
        Self { nth: Some(number), ..Self::default() }
    }

    /// Only so many.
    pub fn times(times: u64) -> Self {
        Self { times: Some(times), ..Self::default() }
    }

    /// Each with this probability.
    pub fn chance(chance: f64) -> Self {
        Self { chance: Some(chance), ..Self::default() }
    }

    /// In this span of time only.
    pub fn between(after: Span, until: Span) -> Self {
        Self { after, until: Some(until), ..Self::default() }
    }

    /// So long, from its first bite on.
    #[must_use]
    pub fn lasting(self, lasts: Span) -> Self {
        Self { lasts: Some(lasts), ..self }
    }

    /// How long it is, where that is known before it bites: what begins by itself bites at once.
    pub(super) fn length(&self) -> Option<Duration> {
        let until = self.until.map(|until| until.0.saturating_sub(self.after.0));
        until.into_iter().chain(self.lasts.map(|lasts| lasts.0)).min()
    }

    /// From then on.
    pub fn from(after: Span) -> Self {
        Self { after, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
name: all that a file can say
faults:
- fault: {kind: lostAnswer, to: {actor: controllers, verb: patch, resource: machinedeployments}, instead: gatewayTimeout}
  when: {nth: 2}
- fault: {kind: machine, of: {names: "*-workers-*"}, how: {fault: vanishes, after: 5m}}
  when: {after: 5m, until: 30m, times: 1, chance: 0.5}
- fault: {kind: wrongClock, actor: controllers, how: {skew: step, by: -1h}}
- fault: {kind: crash, write: 7, moment: before}
- fault: {kind: anyOrder}
actions:
- at: 10m
  action: {do: delete, apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, name: default/my-tkc-control-plane-*}
infrastructure:
  zones: [{name: zone-a, machines: 20}]
"#;

    #[test]
    fn a_scenario_is_read_from_a_file_and_written_so_that_it_can_be_read() {
        let read = Scenario::from_yaml(FILE).unwrap();
        assert_eq!(
            read.faults.iter().map(|injection| injection.fault.id()).collect::<Vec<_>>(),
            ["F05", "F19", "F15", "F02", "F16"]
        );
        assert_eq!(read.faults[1].when.until, Some(Span::minutes(30)));
        assert_eq!((read.actions.len(), read.crashes()), (1, vec![(7, Moment::Before)]));
        assert_eq!(Scenario::from_yaml(&read.to_yaml()).unwrap(), read, "{}", read.to_yaml());
        assert!(!read.is_empty() && Scenario::default().is_empty());
    }

    fn check(text: &str, why: &str) {
        let error = Scenario::from_yaml(text).unwrap_err();
        assert!(error.to_string().contains(why) && error.to_string().lines().count() == 1, "{error}");
    }

    #[test]
    fn what_is_not_understood_or_cannot_be_is_refused_with_the_reason() {
        check("faults: [{fault: {kind: earthquake}}]", "earthquake");
        check("faults: [{fault: {kind: anyOrder, often: true}}]", "often");
        check("faults: [{fault: {kind: anyOrder}, when: {after: soon}}]", "soon");
        check("faults: [{fault: {kind: anyOrder}, when: {chance: 2}}]", "fault 1 (F16): a chance of 2");
        check("faults: [{fault: {kind: anyOrder}, when: {nth: 0}}]", "the first is number 1");
        check("faults: [{fault: {kind: leaseLost}, when: {after: 5m, until: 1m}}]", "ends at 60s, and begins at 300s");
        check("faults: [{fault: {kind: refusal, to: {}, code: 200}}]", "200 is not the status of a refusal");
        check("faults: [{fault: {kind: splitLeadership, takeover: 1s, noticesAfter: 1s}}]", "no end");
    }
}
