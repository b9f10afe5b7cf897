//! The World as its users see it: through the API.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod definition;
mod management;
mod workload;
mod world;
