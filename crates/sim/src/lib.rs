//! The World: machines, Cluster API and workload clusters, simulated on embedded API servers.
//!
//! ```text
//! World ── management: ApiServer ◀── kube::Client ── management/*  infrastructure, Cluster API, bootstrap, Jobs
//!   │
//!   ├───── workload/*: an ApiServer per workload cluster ◀── store ── kubelets, scheduler, workload controllers, etcd
//!   │
//!   └───── packages/*: a kapp-controller in the management cluster, and in every workload cluster that has one installed
//! ```
//!
//! **Invariant**: a simulator keeps no state but objects, so that a World can be forked at any write and goes on in the same
//! way. What is not an object in reality (a machine that is switched on, a member of etcd) is a record in the store, under a
//! resource that the API does not serve.
//!
//! **Invariant**: everything random comes from the seed, by the name of what it is for; everything that waits, waits on
//! tokio's clock.

#![deny(missing_docs)]

pub mod actor;
mod admission;
pub mod catalogue;
pub mod door;
pub mod durations;
pub mod fault;
pub mod invariant;
pub mod log;
pub mod management;
mod packages;
pub mod program;
pub mod timeline;
mod truth;
pub mod workload;
pub mod world;
