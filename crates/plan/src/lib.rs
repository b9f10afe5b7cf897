//! The pure core: what to do next to a cluster, and why not more.
//!
//! ```text
//! release + target ─┐
//!                   ├─▶ plan ─▶ Planned { record, steps, report, envelope } ─▶ check ─▶ [Finding]
//! inventory ────────┘
//! ```
//!
//! [`planner::plan`] proposes only the *next* admissible steps. Looped over a World it yields a whole update: rehearsal,
//! preview and the tests of ordering are one mechanism.
//!
//! **Invariant**: same input, same output, byte for byte. No clock, no client, no randomness, no hash order; the crate's
//! dependencies and its own `clippy.toml` see to it.

#![deny(missing_docs)]

pub mod bootstrap;
pub mod change;
pub mod check;
pub mod creation;
pub mod diff;
mod digest;
pub mod envelope;
pub mod gate;
mod gzip;
pub mod hook;
pub mod inventory;
pub mod legacy;
pub mod package;
pub mod planner;
pub mod profile;
pub mod propagation;
pub mod release;
pub mod render;
pub mod report;
pub mod resolve;
pub mod risk;
pub mod roll;
pub mod roster;
pub mod source;
pub mod step;
pub mod target;
pub mod why;
pub mod word;
