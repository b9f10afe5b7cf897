//! The copy of a release that is kept for a cluster: made before anything is made of the release, and removed when nobody needs
//! it.

use serde_json::Value;
use windlass_api::annotation;
use windlass_plan::check::check;
use windlass_plan::inventory::{ImageState, Releases};
use windlass_plan::planner::{Planned, Record, plan};
use windlass_plan::release::Release;
use windlass_plan::step::{Action, Place, Stage, Step};
use windlass_plan::target::Target;

use crate::fake::Fake;
use crate::sample::{cluster, image, target};
use crate::story::{assert_at_rest, checked_plan, live, running_cluster};

fn roles(planned: &Planned) -> Vec<&str> {
    planned.steps.iter().map(|step| step.role.as_str()).collect()
}

/// What is found in a plan that was tampered with.
fn found(fake: &Fake, tamper: impl Fn(&mut Planned)) -> Vec<String> {
    let input = fake.input();
    let mut planned = plan(&input);
    assert_eq!(check(&input, &planned), []);
    tamper(&mut planned);
    check(&input, &planned).into_iter().map(|finding| format!("{} {}", finding.id, finding.object)).collect()
}

/// The same version, of which the image says something else.
fn says_something_else(version: &str) -> Target {
    let mut image = image(version);
    let annotations = image.metadata.annotations.as_mut().unwrap();
    let addon = annotations.get_mut(&format!("{}pvcsi", annotation::ADDON_PREFIX)).unwrap();
    *addon = addon.replace("feature: 'on'", "feature: 'off'");
    Target::new(&cluster(1, 1), Release::from_image(&image).unwrap()).unwrap()
}

fn digests(fake: &Fake) -> Vec<&str> {
    fake.inventory.releases.kept.iter().map(|kept| kept.digest.as_str()).collect()
}

fn removal(fake: &Fake) -> Step {
    let kept = &fake.inventory.releases.kept[0];
    Step {
        stage: Stage::Packages,
        role: "release/earlier".to_owned(),
        place: Place::Management,
        action: Action::Delete {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some("default".to_owned()),
            name: kept.name.to_string(),
            expect: kept.revision.clone(),
        },
        why: "somebody has tampered with the plan".to_owned(),
    }
}

#[test]
fn a_release_is_kept_before_anything_is_made_of_it() {
    let fake = Fake::new(target(1, 1, "v1.15.5"));
    let planned = checked_plan(&fake);
    assert_eq!(roles(&planned)[..2], ["release", "cluster/WCPCluster"]);
    let Action::Create { object } = &planned.steps[0].action else { panic!("{:?}", planned.steps[0]) };
    assert_eq!(object["immutable"], true);
    assert_eq!(object["metadata"]["ownerReferences"][0]["kind"], "TanzuKubernetesCluster");
    assert_eq!(object["metadata"]["labels"]["windlass.dev/kept-release"], "v1.15.5_vmware.1-guest.1");
    let digest = fake.target.release.original_digest().unwrap();
    let data = serde_json::from_value(object["data"].clone()).unwrap();
    assert_eq!(Release::from_kept(&data, digest).unwrap(), fake.target.release);

    let forgotten = found(&fake, |planned| drop(planned.steps.remove(0)));
    assert_eq!(forgotten, ["P3 WCPCluster/my-tkc", "P3 Cluster/my-tkc"]);
    let other = found(&fake, |planned| {
        let Action::Create { object } = &mut planned.steps[0].action else { panic!() };
        object["data"]["image"] = Value::from("another");
    });
    assert_eq!(other.len(), 3, "{other:?}");
}

#[test]
fn an_update_is_on_record_when_its_release_is_kept() {
    let mut fake = running_cluster(1, 1);
    fake.target = target(1, 1, "v1.16.7");
    let planned = checked_plan(&fake);
    let Some(Record::Begin { from, to, .. }) = &planned.record else { panic!("{:?}", planned.record) };
    assert_eq!(roles(&planned), ["release"]);
    assert_eq!(from.release, fake.inventory.releases.in_use);
    assert_eq!(to.release.as_deref(), fake.target.release.original_digest());
    assert_eq!(found(&fake, |planned| planned.steps.clear()), ["P3 ClusterUpdate/my-tkc-1"]);

    fake.execute(&planned.steps[0]);
    let planned = checked_plan(&fake);
    assert!(planned.steps.is_empty() && matches!(planned.record, Some(Record::Begin { .. })), "{planned:?}");
    assert_eq!(digests(&fake).len(), 2, "what it leads from is needed for the way back");

    live(&mut fake);
    assert_eq!(digests(&fake), [fake.target.release.original_digest().unwrap()]);
    assert_at_rest(&fake);
}

#[test]
fn an_image_that_says_something_else_is_an_update_of_its_own() {
    let mut fake = running_cluster(1, 1);
    fake.target = says_something_else("v1.15.5");
    let planned = checked_plan(&fake);
    let Some(Record::Begin { from, to, cause, .. }) = &planned.record else { panic!("{:?}", planned.record) };
    assert!(from.release.is_some() && from.release != to.release);
    assert_eq!(cause.summary, "the image of v1.15.5+vmware.1-guest.1 says something else (release)");
    assert!(planned.envelope.replaced.is_empty(), "no machine is made otherwise");

    let story = live(&mut fake);
    assert!(story.contains("apply ConfigMap pvcsi-settings"), "{story}");
    assert_eq!(digests(&fake), [fake.target.release.original_digest().unwrap()]);
    assert_at_rest(&fake);
}

#[test]
fn a_cluster_that_is_still_being_made_takes_what_its_image_says_now() {
    let mut fake = Fake::new(target(1, 1, "v1.15.5"));
    for step in &checked_plan(&fake).steps {
        fake.execute(step);
    }
    fake.target = says_something_else("v1.15.5");
    let planned = checked_plan(&fake);
    assert_eq!((&planned.record, roles(&planned)[0]), (&None, "release"));
    live(&mut fake);
    assert_at_rest(&fake);
    assert_eq!(digests(&fake), [fake.target.release.original_digest().unwrap()]);
}

#[test]
fn a_cluster_from_before_releases_were_kept_gets_its_copy_and_no_update() {
    let mut fake = running_cluster(1, 1);
    fake.inventory.releases = Releases::default();
    let planned = checked_plan(&fake);
    assert_eq!((&planned.record, roles(&planned)), (&None, vec!["release"]));
    live(&mut fake);
    assert_at_rest(&fake);
    assert_eq!(fake.inventory.update, None);
}

#[test]
fn what_is_kept_and_needed_is_not_removed() {
    let fake = running_cluster(1, 1);
    let removed = found(&fake, |planned| planned.steps.push(removal(&fake)));
    assert_eq!(removed, [format!("D10 ConfigMap/{}", fake.inventory.releases.kept[0].name)]);

    // What an update leads from is needed until it is over.
    let mut fake = running_cluster(1, 1);
    fake.target = target(1, 1, "v1.16.7");
    for _ in 0..2 {
        let planned = checked_plan(&fake);
        planned.steps.iter().for_each(|step| fake.execute(step));
        planned.record.iter().for_each(|record| fake.record(record));
    }
    let removed = found(&fake, |planned| planned.steps.push(removal(&fake)));
    assert_eq!(removed, [format!("D10 ConfigMap/{}", fake.inventory.releases.kept[0].name)]);
}

#[test]
fn what_has_become_of_an_image_is_told_with_its_name() {
    let release = Release::from_image(&image("v1.16.7")).unwrap();
    let check = |state: ImageState, reason: Option<&str>, words: &str| {
        assert_eq!(state.reason(), reason);
        assert!(state.told(&release).unwrap_or_default().contains(words), "{state:?}");
    };
    check(ImageState::There, None, "");
    check(
        ImageState::Gone,
        Some("ImageGone"),
        "there is no VirtualMachineImage with the distribution v1.16.7+vmware.1",
    );
    check(ImageState::Replaced, Some("ImageReplaced"), "does not say what it said");
    check(ImageState::Malformed { why: "no JSON".into() }, Some("ImageMalformed"), "no JSON; the cluster goes on");
    check(ImageState::Ambiguous { why: "a and b".into() }, Some("ImageAmbiguous"), "a and b, and the cluster goes on");
}
