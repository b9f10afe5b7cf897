//! The words on the wire: versions, names, labels, annotations, conditions, kinds.
//!
//! Everything that Windlass reads from an API or writes to one is spelled here, once. A text is checked where it comes in
//! and is a type from then on: [`version::KubernetesVersion`], [`name::ClusterName`], [`name::UpdateId`]. Whoever holds
//! such a value need not ask again whether it is well-formed, whichever of its spellings it came in.
//!
//! ```
//! use windlass_api::name::{Child, ClusterName, NameLimit, Role};
//! use windlass_api::version::{KubernetesVersion, VersionPrefix};
//!
//! let hint: VersionPrefix = "v1.16.7".parse()?;
//! let release: KubernetesVersion = "v1.16.7---vmware.1-guest.1".parse()?;
//! assert!(hint.matches(&release));
//! assert_eq!(release.to_string(), "v1.16.7+vmware.1-guest.1");
//! assert_eq!(release.tag().to_string(), "v1.16.7_vmware.1-guest.1");
//!
//! let cluster = ClusterName::new("my-tkc")?;
//! let child = Child { cluster: &cluster, update: "1280807".parse()?, role: &Role::ControlPlane, ordinal: 0 };
//! assert_eq!(child.name(NameLimit::LabelValue).as_str(), "my-tkc-control-plane-0-1280807");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Invariant**: no logic beyond parsing, ordering and spelling. Nothing here decides what should happen to a cluster,
//! and no input, however odd, makes it panic.

#![deny(missing_docs)]

pub mod annotation;
pub mod condition;
pub mod hook;
pub mod key;
pub mod kind;
pub mod label;
pub mod machine_image;
pub mod name;
pub mod quota;
pub mod reason;
mod text;
pub mod version;
