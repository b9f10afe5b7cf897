//! What stands in the way of an update, or may go wrong on it, named before anything is touched.
//!
//! ```text
//! Evidence ─▶ assess ─▶ [Risk]
//! ```
//!
//! [`Evidence`] is all that is known; [`assess`] asks every check of the catalogue about it. `docs/risks.md` has the catalogue,
//! with how each check decides.
//!
//! **Invariant**: a check that lacks evidence says so, as a risk of its own severity ([`Severity::Unknown`]). Silence means that
//! it was looked at and nothing was found.

mod api;
mod custody;
mod drain;
pub mod evidence;
mod extension;
mod health;
mod id;
mod progress;
mod release;
mod removal;
mod room;
mod skew;

use std::fmt;

use serde::Serialize;

pub use evidence::{Evidence, Known};
pub use id::RiskId;
pub use removal::kinds as kinds_that_lose_versions;

use evidence::Gap;

/// Something that stands in the way of an update, or may go wrong on it. The order is that in which people are told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Risk {
    /// How bad it is.
    pub severity: Severity,
    /// Which check of the catalogue has found it.
    #[schemars(with = "String")]
    pub id: RiskId,
    /// The object that it is about, as `Kind ns/name`.
    pub object: String,
    /// What is wrong with it, with figures.
    pub message: String,
    /// What is behind it, nearest first.
    pub because: Vec<String>,
    /// What to type, or which field to change.
    pub way_out: String,
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}: {}", self.severity, self.id, self.object, self.message)
    }
}

impl Risk {
    /// Whether the update should not begin.
    pub fn blocks(&self) -> bool {
        self.severity == Severity::Blocks
    }
}

/// How bad a risk is. The worst comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// The update will not begin, or not come to its end, while this is so; or it loses what cannot be brought back.
    Blocks,
    /// The update may take longer than it should, or harm what runs in the cluster.
    Risky,
    /// It could not be decided: something was not read.
    Unknown,
    /// Good to know; nobody has to do anything.
    Info,
}

impl Severity {
    /// All of them, the worst first.
    pub const ALL: [Self; 4] = [Self::Blocks, Self::Risky, Self::Unknown, Self::Info];

    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            Self::Risky => "risky",
            Self::Unknown => "unknown",
            Self::Info => "info",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One check, or a few that look at the same.
type Check = fn(&Evidence, &mut Found);

const CHECKS: [Check; 9] = [
    api::check,
    skew::check,
    drain::check,
    extension::check,
    custody::check,
    room::check,
    release::check,
    health::check,
    progress::check,
];

/// All that can be said about an update before it begins: the worst first, then in the order of the catalogue. Risks that are
/// the same in every word are one.
pub fn assess(evidence: &Evidence) -> Vec<Risk> {
    let mut found = Found::default();
    for check in CHECKS {
        check(evidence, &mut found);
    }
    found.risks.sort();
    found.risks.dedup();
    found.risks
}

/// What the checks have found so far.
#[derive(Default)]
struct Found {
    risks: Vec<Risk>,
}

impl Found {
    /// What was read, and nothing where it was not. Those who depend on it are then unknown.
    fn read<'e, T>(&mut self, ids: &[RiskId], known: &'e Known<Vec<T>>) -> &'e [T] {
        match known.as_result() {
            Ok(read) => read,
            Err(gap) => {
                self.unknown(ids, gap);
                &[]
            }
        }
    }

    /// What was read, if it was, as above.
    fn read_one<'e, T>(&mut self, ids: &[RiskId], known: &'e Known<T>) -> Option<&'e T> {
        known.as_result().map_err(|gap| self.unknown(ids, gap)).ok()
    }

    /// These could not be decided.
    fn unknown(&mut self, ids: &[RiskId], gap: &Gap) {
        self.risks.extend(ids.iter().map(|id| Risk {
            severity: Severity::Unknown,
            id: *id,
            object: gap.what.clone(),
            message: format!("unknown because {} could not be read", gap.what),
            because: vec![gap.why.clone()],
            way_out: gap.way_out.clone(),
        }));
    }

    fn raise(&mut self, risk: Risk) {
        self.risks.push(risk);
    }
}

/// `one`, `one and two`, `one, two and 3 more`: no list in a sentence is longer.
fn shown<T: fmt::Display>(items: &[T]) -> String {
    match items {
        [] => "none".to_owned(),
        [one] => one.to_string(),
        [one, two] => format!("{one} and {two}"),
        [one, two, three] => format!("{one}, {two} and {three}"),
        [one, two, rest @ ..] => format!("{one}, {two} and {} more", rest.len()),
    }
}

/// `1 pod`, `2 pods`.
fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// `is` of one, `are` of any other number.
fn are(number: usize) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

/// The namespace and the name of an object: `kubectl` takes them apart.
fn parts(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or(("default", name))
}
