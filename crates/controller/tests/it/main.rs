//! The controllers on an embedded API server, in virtual time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod admission;
mod cluster;
mod cluster_admission;
mod execute;
mod hooks;
mod kept;
mod leadership;
mod metrics;
mod propagation;
mod recovery;
mod releases;
mod upgrader;
mod world;
