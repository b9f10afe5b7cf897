//! The World as its users see it: through the API.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod behaviour;
mod definition;
mod faults;
mod log;
mod management;
mod packages;
mod plain;
mod seeds;
mod workload;
mod world;
