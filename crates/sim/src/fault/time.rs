//! Clocks that are wrong. Only what they show is: who waits, waits by the true one.

use jiff::{SignedDuration, Timestamp};
use windlass_runtime::clock::Clock;

use super::kind::{Fault, Skew};
use super::{Bite, Faults, Live, When};
use crate::actor::Caller;

impl Faults {
    /// The clock of a caller: the true one, unless a scenario has another for it.
    pub fn clock(&self, caller: Caller, clock: &Clock) -> Clock {
        let Some(live) = self.live() else { return clock.clone() };
        let is_its = |fault: &Fault| matches!(fault, Fault::WrongClock { caller: whose, .. } if *whose == caller);
        if !live.scenario.faults.iter().any(|injection| is_its(&injection.fault)) {
            return clock.clone();
        }
        let faults = self.clone();
        clock.bent(move |now| faults.shown(caller, now))
    }

    /// What the clock of a caller shows.
    fn shown(&self, caller: Caller, now: Timestamp) -> Timestamp {
        let Some(live) = self.live() else { return now };
        live.open().fold(now, |shown, (index, injection)| match injection.fault {
            Fault::WrongClock { caller: whose, how } if whose == caller => {
                let wrong = live.bend(shown, how, &injection.when);
                if wrong != shown {
                    live.count(index);
                    let text = format!("the clock of the {caller} shows {wrong}");
                    let object = caller.as_str();
                    live.say_once(index, &Bite { place: "management", cluster: "", object, text: &text });
                }
                wrong
            }
            _ => shown,
        })
    }
}

impl Live {
    fn bend(&self, now: Timestamp, how: Skew, when: &When) -> Timestamp {
        let began = self.at(when.after);
        match how {
            Skew::Step { by } => now.checked_add(by).unwrap_or(now),
            Skew::Frozen => began,
            Skew::Rate { times } => {
                let seconds = now.duration_since(began).as_secs_f64() * times.clamp(0.0, 1_000.0);
                let bent = SignedDuration::try_from_secs_f64(seconds).ok();
                bent.and_then(|bent| began.checked_add(bent).ok()).unwrap_or(now)
            }
        }
    }
}
