//! The words on the wire: versions, names, labels, annotations, conditions. The kinds are still to come.
//!
//! Everything that Windlass reads from an API or writes to one is spelled here, once. A text is checked where it comes in
//! and is a type from then on: [`version::KubernetesVersion`], [`name::ClusterName`], [`name::UpdateId`]. Whoever holds
//! such a value need not ask again whether it is well-formed, whichever of its spellings it came in.
//!
//! **Invariant**: no logic beyond parsing, ordering and spelling. Nothing here decides what should happen to a cluster,
//! and no input, however odd, makes it panic.

#![deny(missing_docs)]

pub mod annotation;
pub mod condition;
pub mod key;
pub mod label;
pub mod machine_image;
pub mod name;
pub mod reason;
mod text;
pub mod version;
