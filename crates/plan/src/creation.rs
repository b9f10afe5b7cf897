//! The creation of a cluster of a class, as far as it is decided: what a file asks for, what is verified before anything is
//! written, and what is awaited afterwards.
//!
//! ```text
//! file ─▶ [legacy] ─▶ manifest ─▶ check ─▶ (written, with stamp) ─▶ course: came, awaited, stalled
//! ```
//!
//! Who reads and writes is elsewhere: everything here is a function of what was read, and of a clock that is an argument.

mod check;
mod course;
mod fit;
mod manifest;
mod node;
mod proxy;
mod release;
mod stamp;
mod v1beta1;

pub use check::{Check, Facts, Gap, Outcome, Subject, Wanted, checks};
pub use course::{Awaited, Course, End, Look, Observed, Stall, Thing, awaited};
pub use fit::{Misfit, misfit};
pub use manifest::{Given, Manifest, ManifestError};
pub use node::NodeFact;
pub use proxy::{Proxy, ProxyFacts};
pub use release::{ReleaseFact, release_facts};
pub use stamp::{operation, seen};

#[cfg(test)]
mod tests;
