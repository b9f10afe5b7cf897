//! Every line of releases that a World has can be created, and taken to its end minor by minor.

use std::time::Duration;

use windlass_rehearse::crash::Crashes;
use windlass_rehearse::rehearsal::{self, Ended, Request, Verdict};

use crate::start::{SEED, cluster_name, empty, founded, later, manifest};

fn reached(ended: &Ended, release: &str) {
    let text = ended.rehearsal.text();
    assert_eq!(ended.rehearsal.verdict, Verdict::Reached { distribution: release.to_owned() }, "{text}");
    assert!(ended.rehearsal.violations.is_empty(), "{text}");
}

/// Creates a cluster at the first release, and goes to each of the others.
fn check(first: &str, others: &[&str]) {
    let mut manifest = manifest(1, 1);
    manifest.spec.distribution.version = Some(first.to_owned());
    let request = Request::new(cluster_name(), first, SEED, founded());
    let mut ended = rehearsal::create(&empty(), &request, &manifest).unwrap();
    reached(&ended, first);
    for (hours, release) in (0..).step_by(4).zip(others) {
        let at = later() + Duration::from_secs(hours * 60 * 60);
        let request = Request::new(cluster_name(), release, SEED, at);
        ended = rehearsal::hold(&ended.world, &request, Crashes::none()).unwrap();
        reached(&ended, release);
    }
}

#[test]
fn the_releases_that_are_objects_of_their_own_have_images_that_clusters_run_on() {
    check("v1.24.9+vmware.1-tkg.1", &["v1.25.7+vmware.2-tkg.1", "v1.26.5+vmware.2-tkg.1"]);
}

#[test]
fn the_current_releases_have_images_that_clusters_run_on() {
    check("v1.35.2+vmware.1-tkg.1", &["v1.36.1+vmware.1-tkg.1"]);
}
