//! The planner, as a function: looped over a fake of the world it yields whole lives of clusters.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod envelope;
mod fake;
mod gates;
mod properties;
mod render;
mod sample;
mod story;
