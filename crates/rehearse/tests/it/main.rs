//! The whole system, in virtual time: clusters are created and updated by the controllers, in a World.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod aborts;
mod addons;
mod adopting;
mod certificates;
mod classes;
mod consent;
mod faults;
mod foreseen;
mod gates;
mod holds;
mod hops;
mod kept;
mod labels;
mod late_role;
mod matrix;
mod neighbours;
mod packages_first;
mod parity;
mod play;
mod propagation;
mod releases;
mod replicas;
mod report;
mod resumed;
mod rights;
mod risks;
mod sameness;
mod seed_002;
mod snapshots;
mod start;
mod sweeps;
mod walk;
mod webhook;
mod workers;
