//! The whole system, in virtual time: clusters are created and updated by the controllers, in a World.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod aborts;
mod certificates;
mod crashes;
mod faults;
mod gates;
mod holds;
mod hops;
mod releases;
mod sameness;
mod snapshots;
mod start;
mod walk;
