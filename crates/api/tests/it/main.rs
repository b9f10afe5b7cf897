//! Laws of the words, tried on many.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod definition;
mod name;
mod version;
