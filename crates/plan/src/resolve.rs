//! From what a person typed to a release, and which changes of release are allowed.
//!
//! Admission asks before anything is stored and the planner asks again before an update begins: the same rules, the same
//! sentences. Nothing here reads a cluster or a clock: releases, images and what is on record are arguments.
//!
//! | module | the question |
//! |---|---|
//! | `hint` | which release does a version, or the beginning of one, mean; may a cluster go there in one update |
//! | [`hops`] | which releases are on the way to one that is several minors ahead, and where do workers roll |
//! | [`selector`] | which labels does a person ask for |
//! | [`catalogue`] | which release objects are there, with which images, and which of them cannot be read |
//! | [`query`] | which release object fits every part of a cluster |
//! | [`cluster`] | what is written into a cluster once that is known, and what is left as it is on record |
//! | [`updates`] | which releases could a cluster be updated to |
//! | [`compatibility`] | which releases can be used at all |
//! | [`shown`] | what is to be written on releases and images so that they show it |
//! | [`copy`] | how is a release kept with the cluster that has it |
//! | [`hold`] | is a cluster held until the packages of its release are in |
//! | [`labelled`] | which release does the label of a classic cluster name, and may the cluster go there |
//! | [`admit`] | what becomes of a cluster that somebody writes |

pub mod admit;
pub mod catalogue;
pub mod cluster;
pub mod compatibility;
pub mod copy;
mod hint;
pub mod hold;
pub mod hops;
pub mod labelled;
pub mod query;
mod refusal;
pub mod selector;
pub mod shown;
mod state;
pub mod updates;

use windlass_api::version::KubernetesVersion;

use crate::release::{Release, ReleaseState};

pub use hint::{change, exact, newest, not_back, requested};
pub use hops::{Hop, Position, hops, path};
pub use refusal::Refusal;

/// Something with the version of a release: the release itself, or only its version where that is all that is known.
pub trait Versioned {
    /// The version of the distribution.
    fn version(&self) -> &KubernetesVersion;

    /// The version of Kubernetes in it. Where the distribution is numbered like Kubernetes, that number says enough.
    fn kubernetes(&self) -> &KubernetesVersion {
        self.version()
    }

    /// Whether clusters may still be led to it.
    fn state(&self) -> ReleaseState {
        ReleaseState::Active
    }
}

impl Versioned for Release {
    fn version(&self) -> &KubernetesVersion {
        &self.distribution
    }

    fn kubernetes(&self) -> &KubernetesVersion {
        &self.kubernetes
    }

    fn state(&self) -> ReleaseState {
        self.state
    }
}

impl Versioned for KubernetesVersion {
    fn version(&self) -> &KubernetesVersion {
        self
    }
}

impl<T: Versioned + ?Sized> Versioned for &T {
    fn version(&self) -> &KubernetesVersion {
        (*self).version()
    }

    fn kubernetes(&self) -> &KubernetesVersion {
        (*self).kubernetes()
    }

    fn state(&self) -> ReleaseState {
        (*self).state()
    }
}

/// The versions that there are, in order.
fn known<R: Versioned>(releases: &[R]) -> Vec<KubernetesVersion> {
    let mut known: Vec<KubernetesVersion> = releases.iter().map(|release| release.version().clone()).collect();
    known.sort();
    known
}

/// Texts with commas between them; a remark where there are none.
fn listed<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if texts.is_empty() { "none at all".to_owned() } else { texts.join(", ") }
}
