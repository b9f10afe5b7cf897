//! The planner, as a function: looped over a fake of the world it yields whole lives of clusters.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod abort;
mod bootstrap;
mod change;
mod classic;
mod drives;
mod envelope;
mod examples;
mod fake;
mod fuzz;
mod gates;
mod hook;
mod hops;
mod kept;
mod legacy;
mod model;
mod profiles;
mod propagation;
mod properties;
mod releases;
mod render;
mod report;
mod risk;
mod roll;
mod roster;
mod sample;
mod second_opinion;
mod seed;
mod source;
mod story;
mod templates;
mod why;
