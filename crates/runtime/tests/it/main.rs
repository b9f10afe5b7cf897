//! The runner on a scripted server, in virtual time.

mod determinism;
mod events;
mod faults;
mod own_writes;
mod runner;
mod stub;
mod world;
