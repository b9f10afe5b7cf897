//! The id of an update.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::{ObjectName, Uid, hash};
use crate::text::{quoted, travels_as_text};

/// What tells one update from all others: in the name of its Job, in annotations, and in the names of what it creates.
///
/// It is a hash of the cluster's uid and of the update's ordinal in that cluster, written in decimal. Whoever computes it
/// again gets the same id, so a Job that was deleted comes back under its name.
///
/// The ids of all clusters meet in one namespace (that of the Jobs). With 64 bits, among a million updates the chance that
/// any two have the same id is 10^12 / 2^65 = 3e-8; if it ever happens, the second Job is found to have another owner and
/// is not adopted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpdateId(pub(super) u64);

impl UpdateId {
    /// The id of a cluster's update; the creation of the cluster is its update 0.
    pub fn new(cluster: &Uid, ordinal: u64) -> Self {
        let hash = hash::of(&[cluster.as_str(), &ordinal.to_string()]);
        Self(mix(high_word(hash) ^ low_word(hash)))
    }

    /// The name of the Job that updates the control plane: `update-1280807`.
    pub fn job_name(self) -> ObjectName {
        ObjectName(format!("update-{self}").into_boxed_str())
    }

    /// The name of the Job that gives the update up: `abort-1280807`.
    pub fn abort_job_name(self) -> ObjectName {
        ObjectName(format!("abort-{self}").into_boxed_str())
    }
}

/// Spreads the last bytes that went into the hash over all bits (the finalizer of splitmix64): without it the ids of
/// consecutive updates would look alike.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

fn high_word(bits: u128) -> u64 {
    low_word(bits >> 64)
}

fn low_word(bits: u128) -> u64 {
    u64::try_from(bits & u128::from(u64::MAX)).unwrap_or_default()
}

impl fmt::Display for UpdateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text that is not the id of an update.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{quoted} is not the id of an update; accepted are decimal numbers below 2^64 without a sign or leading zeros")]
pub struct UpdateIdError {
    quoted: String,
}

impl FromStr for UpdateId {
    type Err = UpdateIdError;

    fn from_str(text: &str) -> Result<Self, UpdateIdError> {
        // Only the text that would be written back: `007` and `+7` are other names, and other Jobs.
        let id = text.parse().ok().filter(|id: &u64| id.to_string() == text);
        id.map(Self).ok_or_else(|| UpdateIdError { quoted: quoted(text) })
    }
}

travels_as_text!(UpdateId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_update_never_changes() {
        let cluster = Uid::new("208025ff-0cc9-4c88-b22d-5a43b1c33831").unwrap();
        let ids: Vec<String> = (0..3).map(|ordinal| UpdateId::new(&cluster, ordinal).to_string()).collect();
        assert_eq!(ids, ["14087507168931272006", "7243477841528164879", "17700423489843469516"]);
    }

    fn check(text: &str, accepted: bool) {
        let id = text.parse::<UpdateId>();
        assert_eq!(id.as_ref().ok().map(ToString::to_string).as_deref(), accepted.then_some(text));
    }

    #[test]
    fn an_id_is_read_only_as_it_would_be_written() {
        check("0", true);
        check("1280807", true);
        check("18446744073709551615", true);
        check("18446744073709551616", false);
        check("", false);
        check("007", false);
        check("+7", false);
        check("-7", false);
        check("7a", false);
    }

    #[test]
    fn the_job_of_an_update_is_named_after_it() {
        assert_eq!("1280807".parse::<UpdateId>().unwrap().job_name().as_str(), "update-1280807");
    }

    #[test]
    fn an_id_travels_as_text_because_it_is_no_quantity() {
        let id: UpdateId = serde_json::from_str(r#""1280807""#).unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), r#""1280807""#);
    }
}
