//! Whether a cluster is held until the packages of its new release are in.
//!
//! The hold is taken in the very write that changes the release, so that Cluster API never sees the new version without it:
//! `spec.paused`, with an annotation that says for which release. Only that annotation is ours. A pause that its owner had asked
//! for before is marked as such, and stays when ours ends; and a pause cannot be ended past our hold by setting the field alone.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use windlass_api::kind::cluster_api::Cluster;
use windlass_api::{annotation, label};

/// How machines are kept back until packages are in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HoldBy {
    /// The cluster is paused.
    #[default]
    Pause,
    /// Cluster API asks before it goes on, and is told to wait. Nothing is written on the cluster.
    Hooks,
}

impl fmt::Display for HoldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pause => "pause",
            Self::Hooks => "hooks",
        })
    }
}

impl FromStr for HoldBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "pause" => Ok(Self::Pause),
            "hooks" => Ok(Self::Hooks),
            _ => Err(format!("{text:?} is no way to hold a cluster; accepted are pause and hooks")),
        }
    }
}

/// What of a cluster is about holding it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// `spec.paused`.
    pub paused: bool,
    /// The release that it has, or is to have.
    pub release: Option<String>,
    /// The release that we hold it for.
    pub hold: Option<String>,
    /// It stays paused when we let go.
    pub keep: bool,
}

/// What came of it, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// It is held from now on.
    Held {
        /// For this release.
        release: String,
        /// Its owner had paused it before.
        keep: bool,
    },
    /// Somebody has ended the pause, and we have not let go.
    StillHeld {
        /// For this release.
        release: String,
    },
    /// We have let go, and its owner has not.
    StillPaused,
}

impl Held {
    /// Reads it.
    pub fn of(cluster: &Cluster) -> Self {
        let text = |map: &Option<BTreeMap<String, String>>, key: &str| map.as_ref()?.get(key).cloned();
        let annotations = &cluster.metadata.annotations;
        Self {
            paused: cluster.spec.paused == Some(true),
            release: text(&cluster.metadata.labels, label::RELEASE.name),
            hold: text(annotations, annotation::HELD_FOR_RELEASE.name),
            keep: text(annotations, annotation::KEEP_PAUSED.name).is_some(),
        }
    }

    /// Whether its owner has paused it, and not only we.
    pub fn is_paused_by_owner(&self) -> bool {
        self.paused && (self.hold.is_none() || self.keep)
    }
}

/// What a cluster is to be that was one thing and is asked to be another. `can_end` says whether there is anything that would
/// end a hold: a cluster that has never answered, or whose release has no packages, would be held for ever.
///
/// Asked again about its own answer, it says the same.
pub fn held(before: &Held, asked: &Held, by: HoldBy, can_end: bool) -> (Held, Option<Told>) {
    let changed = before.release.is_some() && asked.release.is_some() && before.release != asked.release;
    if let Some(release) = asked.release.clone().filter(|_| changed) {
        // One that is held already is held for what it is asked to be now, and let go when that is in.
        let wanted = before.hold.is_some() || (by == HoldBy::Pause && can_end);
        if !wanted {
            return (asked.clone(), None);
        }
        let again = asked.hold.as_ref() == Some(&release);
        let keep = asked.keep || (asked.paused && before.hold.is_none() && !again);
        let told = Told::Held { release: release.clone(), keep };
        return (Held { paused: true, hold: Some(release), keep, release: asked.release.clone() }, Some(told));
    }
    match (&before.hold, &asked.hold) {
        (Some(_), Some(release)) if !asked.paused => {
            let told = Told::StillHeld { release: release.clone() };
            (Held { paused: true, keep: false, ..asked.clone() }, Some(told))
        }
        (Some(_), None) if asked.keep => {
            (Held { paused: true, keep: false, ..asked.clone() }, (!asked.paused).then_some(Told::StillPaused))
        }
        _ => (asked.clone(), None),
    }
}

impl Told {
    /// In words.
    pub fn words(&self) -> String {
        let key = annotation::HELD_FOR_RELEASE;
        match self {
            Self::Held { release, keep: false } => format!(
                "spec.paused: set, with the annotation {key}={release}: the packages of the release come first, and its \
                 machines when they are in"
            ),
            Self::Held { release, keep: true } => format!(
                "spec.paused: set, and stays set when the packages of {release} are in: its machines come when somebody \
                 sets it to false"
            ),
            Self::StillHeld { release } => format!(
                "spec.paused: stays set, because the packages of {release} are not in yet; its machines go without them if \
                 somebody removes the annotation {key}"
            ),
            Self::StillPaused => {
                "spec.paused: stays set, because the owner of the cluster had set it before".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `paused a>b +keep`: a cluster with the label `a` that is held for `b`.
    fn state(text: &str) -> Held {
        let mut held = Held::default();
        for word in text.split(' ') {
            match word.split_once('>') {
                _ if word == "paused" => held.paused = true,
                _ if word == "+keep" => held.keep = true,
                Some((release, newer)) => {
                    (held.release, held.hold) = (Some(release.to_owned()), Some(newer.to_owned()));
                }
                None if word != "-" => held.release = Some(word.to_owned()),
                None => {}
            }
        }
        held
    }

    fn check_by(by: HoldBy, can_end: bool, before: &str, asked: &str, expected: &str) {
        let (before, asked, expected) = (state(before), state(asked), state(expected));
        let (found, _) = held(&before, &asked, by, can_end);
        assert_eq!(found, expected, "{before:?} {asked:?}");
        let (again, _) = held(&before, &found, by, can_end);
        assert_eq!(again, found, "asked again: {before:?} {asked:?}");
        let (later, told) = held(&found, &found, by, can_end);
        assert_eq!((later, told), (found, None), "nothing is left to do: {before:?} {asked:?}");
    }

    fn check(before: &str, asked: &str, expected: &str) {
        check_by(HoldBy::Pause, true, before, asked, expected);
    }

    #[test]
    fn a_cluster_is_held_in_the_write_that_changes_its_release_and_for_the_newest() {
        check("a", "b", "paused b>b");
        check("paused b>b", "paused c>b", "paused c>c");
        check("paused b>b", "paused a>b", "paused a>a");
        check("a", "a", "a");
        // The first release of a cluster is no change of release, and who asks for none is asked for nothing.
        check("-", "a", "a");
        check("a", "-", "-");
    }

    #[test]
    fn the_pause_of_an_owner_is_marked_and_survives_ours() {
        check("paused a", "paused b", "paused b>b +keep");
        check("a", "paused b", "paused b>b +keep");
        check("paused b>b +keep", "paused c>b +keep", "paused c>c +keep");
        // Whoever lets go without knowing of it: the pause stays.
        check("paused b>b +keep", "b +keep", "paused b");
        check("paused b>b +keep", "paused b +keep", "paused b");
        check("paused b>b +keep", "paused b", "paused b");
        // A pause without a change is the owner's own business.
        check("a", "paused a", "paused a");
        check("paused a", "a", "a");
    }

    #[test]
    fn a_hold_ends_with_its_annotation_and_not_with_the_field_alone() {
        check("paused b>b", "b>b", "paused b>b");
        check("paused b>b +keep", "b>b +keep", "paused b>b");
        check("paused b>b", "b", "b");
        check("paused b>b", "paused b", "paused b");
        check("paused b>b", "paused b>b +keep", "paused b>b +keep");
    }

    #[test]
    fn nothing_is_held_that_nobody_would_let_go_or_that_hooks_hold() {
        check_by(HoldBy::Pause, false, "a", "b", "b");
        check_by(HoldBy::Hooks, true, "a", "b", "b");
        check_by(HoldBy::Hooks, true, "paused a", "paused b", "paused b");
        // What was held before the setting was changed follows the release, so that it ends.
        check_by(HoldBy::Hooks, true, "paused b>b", "paused c>b", "paused c>c");
    }

    #[test]
    fn who_has_paused_a_cluster_can_be_told() {
        for (text, owner) in [("a", false), ("paused a", true), ("paused b>b", false), ("paused b>b +keep", true)] {
            assert_eq!(state(text).is_paused_by_owner(), owner, "{text}");
        }
        assert_eq!("hooks".parse(), Ok(HoldBy::Hooks));
        assert!("stop".parse::<HoldBy>().unwrap_err().contains("pause and hooks"));
    }
}
