//! Injected time and chance, and the deterministic runner that controllers run on.
//!
//! A controller is a reconcile function and the watches that wake it. [`runner::Runner`] joins them, on a real cluster
//! and on the embedded one alike: [`watch::Watch`] feeds a [`cache::Cache`] and names the [`key::Key`]s to look at
//! again, an ordered queue decides what runs next, and [`runner::Outcome`] says when to come back.
//!
//! **Invariant**: with tokio's paused clock and one seed, the event log of a run is the same, byte for byte, every time.
//! Nothing here reads a wall clock, draws a number from outside the seed, or iterates in hash order.

pub mod backoff;
pub mod cache;
pub mod chance;
pub mod clock;
pub mod events;
pub mod key;
mod queue;
pub mod runner;
pub mod steady;
pub mod trace;
pub mod trimmed;
pub mod virtual_time;
pub mod watch;
