//! What is to be written on releases and images so that they show how they stand: nothing where nothing differs.

use std::collections::BTreeMap;

use jiff::Timestamp;
use windlass_api::condition::ConditionType;
use windlass_api::key::Present;
use windlass_api::kind::release::{OSImage, TanzuKubernetesRelease};
use windlass_api::kind::{Condition, condition};
use windlass_api::label;
use windlass_api::version::KubernetesVersion;

use super::catalogue::{Malformed, image_labels};
use super::compatibility::{Compatible, Fact, standing};

/// What is to be written on an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Change {
    /// Those of its labels that are ours, all of them, if one of them is not as it should be.
    pub labels: Option<BTreeMap<String, String>>,
    /// Labels that it has and should not have.
    pub gone: Vec<String>,
    /// All of its conditions, if one of ours is not as it should be. Those of others are among them as they are.
    pub conditions: Option<Vec<Condition>>,
}

impl Change {
    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.labels.is_none() && self.conditions.is_none()
    }

    fn of_labels(wanted: &BTreeMap<String, Option<String>>, live: Option<&BTreeMap<String, String>>) -> Self {
        let has = |key: &String| live.and_then(|live| live.get(key));
        let differs = wanted.iter().any(|(key, value)| has(key) != value.as_ref());
        let there = wanted.iter().filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
        let gone = wanted.iter().filter(|(key, value)| value.is_none() && has(key).is_some());
        Self {
            labels: differs.then(|| there.collect()),
            gone: gone.map(|(key, _)| key.clone()).collect(),
            conditions: None,
        }
    }
}

/// What is to be written on a release, among the images that there are.
pub fn on_release(
    release: &TanzuKubernetesRelease,
    images: &[OSImage],
    compatible: Result<&Compatible, &Malformed>,
    now: Timestamp,
) -> Change {
    let standing = standing(release, images, compatible);
    let change = Change::of_labels(&standing.labels, release.metadata.labels.as_ref());
    let before = release.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let wanted: Vec<Condition> = standing.conditions.iter().map(|fact| fact.dated(before, now)).collect();
    let differs = wanted.iter().any(|wanted| condition(before, &wanted.type_) != Some(wanted));
    let others = before.iter().filter(|old| condition(&wanted, &old.type_).is_none()).cloned();
    let conditions = differs.then(|| wanted.iter().cloned().chain(others).collect());
    Change { conditions, ..change }
}

/// What is to be written on an image: what its fields say, and whether they say it.
pub fn on_image(image: &OSImage) -> Change {
    let some = |(key, value)| (key, Some(value));
    let mut wanted: BTreeMap<String, Option<String>> = image_labels(image).into_iter().map(some).collect();
    let version = image.spec.kubernetes_version.parse::<KubernetesVersion>();
    let invalid = version.is_err().then(|| label::INVALID.text(&Present));
    wanted.insert(label::INVALID.name.to_owned(), invalid);
    if let Ok(version) = version {
        wanted.extend(label::version_prefixes(&version).into_iter().map(some));
    }
    Change::of_labels(&wanted, image.metadata.labels.as_ref())
}

impl Fact {
    /// The condition, with the time at which its status last changed. One that is true for no special reason says what it is
    /// about.
    pub fn dated(&self, before: &[Condition], now: Timestamp) -> Condition {
        let Self { type_, status, reason, message } = self;
        let old = ConditionType::among(*type_, before).filter(|old| old.status == status.as_str());
        let since = old.map(|old| old.last_transition_time.clone());
        Condition {
            type_: type_.as_str().to_owned(),
            status: status.as_str().to_owned(),
            observed_generation: None,
            last_transition_time: since.unwrap_or_else(|| now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
            reason: reason.map_or(type_.as_str(), |reason| reason.as_str()).to_owned(),
            message: message.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_api::kind::release::ReleaseStatus;

    use super::*;
    use crate::resolve::query::tests::release as sample;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    /// Writes a change, as the controller does.
    fn write(release: &mut TanzuKubernetesRelease, change: &Change) {
        let labels = release.metadata.labels.get_or_insert_default();
        labels.extend(change.labels.clone().unwrap_or_default());
        labels.retain(|key, _| !change.gone.contains(key));
        if let Some(conditions) = &change.conditions {
            release.status = Some(ReleaseStatus { conditions: conditions.clone() });
        }
    }

    #[test]
    fn what_is_shown_once_is_not_written_again_and_a_condition_keeps_its_time() {
        let (mut release, images) = sample("v1.24.9+vmware.1-tkg.1", &["deactivated", "invalid"], &[]);
        let nobody = Compatible::default();
        let change = on_release(&release, &images, Ok(&nobody), now());
        assert_eq!(change.gone, ["invalid"]);
        write(&mut release, &change);
        let later: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        assert!(on_release(&release, &images, Ok(&nobody), later).is_empty());

        let labels = release.metadata.labels.clone().unwrap();
        assert!(label::DEACTIVATED.is_in(&labels) && label::INCOMPATIBLE.is_in(&labels), "{labels:?}");
        release.metadata.labels.as_mut().unwrap().remove("v1.24");
        let conditions = release.status.as_mut().map(|status| &mut status.conditions).unwrap();
        conditions[2].message = "something else".to_owned();
        conditions.push(Condition { type_: "UpdatesAvailable".to_owned(), ..Condition::default() });
        let again = on_release(&release, &images, Ok(&nobody), later);
        assert!(again.labels.is_some_and(|labels| labels.contains_key("v1.24")));
        let again = again.conditions.unwrap();
        assert_eq!(again.last().map(|condition| condition.type_.as_str()), Some("UpdatesAvailable"), "it is not ours");
        assert_eq!(
            (again[2].reason.as_str(), again[2].last_transition_time.as_str()),
            ("Incompatible", "2026-01-01T00:00:00Z")
        );
    }

    #[test]
    fn an_image_is_found_by_what_is_on_it_and_is_invalid_if_that_is_no_version() {
        let (_, mut images) = sample("v1.24.9+vmware.1-tkg.1", &[], &["ubuntu"]);
        let change = on_image(&images[0]);
        let labels = change.labels.unwrap();
        for key in ["v1.24", "os-name", "image-type", "ova-version"] {
            assert!(labels.contains_key(key), "{key}: {labels:?}");
        }
        assert!(!labels.contains_key("invalid"));
        images[0].metadata.labels = Some(labels);
        assert!(on_image(&images[0]).is_empty());
        images[0].spec.kubernetes_version = "newest".to_owned();
        assert!(on_image(&images[0]).labels.is_some_and(|labels| labels.contains_key("invalid")));
    }
}
