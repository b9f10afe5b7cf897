//! The runner on a scripted server and on the embedded one, in virtual time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod determinism;
mod embedded;
mod faults;
mod own_writes;
mod runner;
mod stub;
mod world;
