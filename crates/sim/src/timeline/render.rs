//! A timeline as people read it.

use std::fmt::Write;

use jiff::{SignedDuration, Timestamp};

use super::Timeline;

impl Timeline {
    /// The timeline as text: elapsed time, place, actor, sentence and reason of each event; then exceptions, by their reasons,
    /// and violations, if there are any.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let place_width = self.events.iter().map(|event| event.place.len()).max().unwrap_or_default();
        let actor_width = self.events.iter().map(|event| event.actor.as_str().len()).max().unwrap_or_default();
        for event in &self.events {
            let elapsed = self.elapsed(event.at);
            let why = event.why.as_ref().map(|why| format!(" [{why}]")).unwrap_or_default();
            line(
                &mut text,
                format_args!(
                    "{elapsed}  {:place_width$}  {:actor_width$}  {}{why}",
                    event.place, event.actor, event.text
                ),
            );
        }
        if !self.exempted.is_empty() {
            line(&mut text, format_args!("\nExceptions that are declared, and were made use of:"));
        }
        let mut reasons: Vec<(&str, &str)> = Vec::new();
        for exempted in &self.exempted {
            let reason = (exempted.id.as_str(), exempted.why.as_str());
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        for (id, why) in reasons {
            line(&mut text, format_args!("{id}: {why}"));
            for exempted in self.exempted.iter().filter(|exempted| (&*exempted.id, &*exempted.why) == (id, why)) {
                let elapsed = self.elapsed(exempted.at);
                line(&mut text, format_args!("{elapsed}  {:place_width$}  {}", exempted.cluster, exempted.message));
            }
        }
        if !self.violations.is_empty() {
            line(&mut text, format_args!("\nViolations:"));
        }
        for violation in &self.violations {
            let elapsed = self.elapsed(violation.at);
            line(
                &mut text,
                format_args!(
                    "{elapsed}  {}  {}: {} (write {})",
                    violation.id, violation.cluster, violation.message, violation.write
                ),
            );
        }
        text
    }

    fn elapsed(&self, at: Timestamp) -> String {
        elapsed(at.duration_since(self.from))
    }
}

/// `1:02:03`: hours are not limited, and what is below a second is left out.
pub(super) fn elapsed(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().max(0);
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Writing to a text cannot fail.
fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    if writeln!(text, "{line}").is_err() {
        text.push('\n');
    }
}
