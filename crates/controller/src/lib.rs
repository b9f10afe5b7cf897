//! Effects: the only code of Windlass that reads from and writes to clusters.
//!
//! [`reconcile`] is the path of a change: resolve, observe, plan, check, execute, record. [`admission`] resolves and refuses
//! before anything is stored. [`upgrader`] is the program that replaces the machines of a control plane; it runs in the pods
//! of a Job. [`classic`] brings clusters whose objects are their owners' to the release that a label names. [`bootstrap`] brings the packages of a release into clusters, before their machines, and [`hooks`] has Cluster API wait
//! for them. [`propagation`] copies classes of clusters to the namespaces that need them. [`recovery`] gets back certificates that were lost.
//!
//! **Invariant**: no decision is made here that `windlass-plan` could make, and nothing here knows whether the world that it
//! runs in is real.

#![deny(missing_docs)]

pub mod access;
pub mod admission;
pub mod bootstrap;
pub mod certificates;
pub mod classic;
pub mod control_plane;
pub mod controllers;
pub mod execute;
pub mod hooks;
pub mod leadership;
pub mod metrics;
pub mod observe;
pub mod propagation;
pub mod reconcile;
pub mod record;
pub mod recovery;
pub mod releases;
pub mod resolve;
pub mod rights;
mod said;
pub mod upgrader;
pub mod webhooks;
