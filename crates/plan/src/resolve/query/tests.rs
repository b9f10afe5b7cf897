use windlass_api::kind::release::{LocalReference, OSImage, TanzuKubernetesRelease};

use super::*;

/// An image of an operating system, for a version.
pub(in crate::resolve) fn image(version: &str, os: &str) -> OSImage {
    let mut image = OSImage::default();
    image.metadata.name = Some(format!("{}-{os}", version.replace('+', "---")));
    image.spec.kubernetes_version = version.to_owned();
    os.clone_into(&mut image.spec.os.name);
    "linux".clone_into(&mut image.spec.os.type_);
    "amd64".clone_into(&mut image.spec.os.arch);
    "ova".clone_into(&mut image.spec.image.type_);
    image.spec.image.reference.insert("version".to_owned(), format!("{version}-{os}").into());
    image
}

/// A release of a version, with these labels and images of these operating systems.
pub(in crate::resolve) fn release(
    version: &str,
    labels: &[&str],
    systems: &[&str],
) -> (TanzuKubernetesRelease, Vec<OSImage>) {
    let images: Vec<OSImage> = systems.iter().map(|os| image(version, os)).collect();
    let mut release = TanzuKubernetesRelease::default();
    release.metadata.name = Some(version.replace('+', "---"));
    release.metadata.labels = Some(labels.iter().map(|label| ((*label).to_owned(), String::new())).collect());
    version.clone_into(&mut release.spec.version);
    release.spec.kubernetes.version = version.split("-tkg").next().unwrap_or_default().to_owned();
    let name = |image: &OSImage| LocalReference { name: image.metadata.name.clone().unwrap_or_default() };
    release.spec.os_images = images.iter().map(name).collect();
    release.spec.bootstrap_packages = Some(Vec::new());
    (release, images)
}

pub(in crate::resolve) fn catalogue(
    releases: impl IntoIterator<Item = (TanzuKubernetesRelease, Vec<OSImage>)>,
) -> Catalogue {
    let (releases, images): (Vec<_>, Vec<_>) = releases.into_iter().unzip();
    Catalogue::read(&releases, &images.concat())
}

/// A with two images, B with one, and C that is not compatible.
pub(in crate::resolve) fn sample() -> Catalogue {
    catalogue([
        release("v1.24.9+vmware.1-tkg.1", &[], &["ubuntu", "photon"]),
        release("v1.24.10+vmware.1-tkg.1", &[], &["ubuntu"]),
        release("v1.24.10+vmware.1-tkg.2", &["incompatible"], &["ubuntu"]),
    ])
}

pub(in crate::resolve) fn part(version: &str, os_images: &str) -> PartQuery {
    PartQuery {
        version: version.parse().unwrap(),
        releases: Selector::default(),
        os_images: os_images.parse().unwrap(),
    }
}

/// A query about a control plane and pools, each with a selector of images.
pub(in crate::resolve) fn query(version: &str, control_plane: &str, pools: &[&str]) -> Query {
    let pool =
        |(number, os_images): (usize, &&str)| (format!("md-{number}").parse().unwrap(), part(version, os_images));
    Query {
        control_plane: Some(part(version, control_plane)),
        pools: pools.iter().enumerate().map(pool).collect(),
        in_use: None,
    }
}

/// The release and the images that fit; or why none does.
fn check_in(catalogue: &Catalogue, query: &Query, wanted: &str) {
    let found = match resolve(query, catalogue) {
        Ok(None) => "nothing was asked".to_owned(),
        Ok(Some(resolution)) => {
            let images: Vec<&str> =
                resolution.os_images.values().map(|image| image.labels["os-name"].as_str()).collect();
            format!("{} on {}", resolution.release.version, images.join(", "))
        }
        Err(unresolved) => unresolved.to_string(),
    };
    assert_eq!(found, wanted);
}

fn check(version: &str, control_plane: &str, pools: &[&str], wanted: &str) {
    check_in(&sample(), &query(version, control_plane, pools), wanted);
}

const KNOWN: &str = "there are v1.24.9+vmware.1-tkg.1, v1.24.10+vmware.1-tkg.1, v1.24.10+vmware.1-tkg.2";

#[test]
fn the_newest_release_with_an_image_for_every_part_is_chosen() {
    check("v1.24", "os-name=ubuntu", &[], "v1.24.10+vmware.1-tkg.1 on ubuntu");
    check("v1.24", "os-name=photon", &[], "v1.24.9+vmware.1-tkg.1 on photon");
    check("v1.24", "os-name=ubuntu", &["os-name=photon"], "v1.24.9+vmware.1-tkg.1 on ubuntu, photon");
    check("v1.24", "", &[], "v1.24.10+vmware.1-tkg.1 on ubuntu");
    check("v1.24.9", "os-name=ubuntu", &[], "v1.24.9+vmware.1-tkg.1 on ubuntu");
    check("v1.24.9+vmware.1", "os-name=ubuntu", &[], "v1.24.9+vmware.1-tkg.1 on ubuntu");
    check("v1.24.9---vmware.1-tkg.1", "os-name=photon", &[], "v1.24.9+vmware.1-tkg.1 on photon");
}

#[test]
fn two_images_are_a_question_and_the_answer_names_what_tells_them_apart() {
    check(
        "v1.24.9---vmware.1-tkg.1",
        "",
        &[],
        &format!(
            "no release fits; the control plane: v1.24.9+vmware.1-tkg.1 has 2 images that fit: \
             v1.24.9---vmware.1-tkg.1-ubuntu (alone by os-name=ubuntu), \
             v1.24.9---vmware.1-tkg.1-photon (alone by os-name=photon); {KNOWN}"
        ),
    );
}

#[test]
fn the_newest_is_chosen_before_its_images_are_counted() {
    let catalogue = catalogue([
        release("v1.24.9+vmware.1-tkg.1", &[], &["ubuntu"]),
        release("v1.24.10+vmware.1-tkg.1", &[], &["ubuntu", "photon"]),
    ]);
    let refusal = resolve(&query("v1.24", "", &[]), &catalogue).unwrap_err();
    let why = &refusal.parts[&Part::ControlPlane];
    assert!(
        matches!(why, WhyNot::Ambiguous { images, .. } if images.len() == 2),
        "an older one is not taken instead: {why}"
    );
}

#[test]
fn what_nearly_fits_is_named_with_what_keeps_it_from_fitting() {
    check(
        "v1.24.10---vmware.1-tkg.2",
        "os-name=ubuntu",
        &[],
        &format!(
            "no release fits; the control plane: no release that begins with v1.24.10+vmware.1-tkg.2 can be used: \
             v1.24.10+vmware.1-tkg.2 is incompatible; {KNOWN}"
        ),
    );
    check(
        "v1.24.10+vmware.1-tkg.2",
        "",
        &[],
        &format!(
            "no release fits; the control plane: no release that begins with v1.24.10+vmware.1-tkg.2 can be used: \
             v1.24.10+vmware.1-tkg.2 is incompatible; {KNOWN}"
        ),
    );
    check("v1.25", "", &[], &format!("no release fits; the control plane: no release begins with v1.25; {KNOWN}"));
    check(
        "v1.24",
        "os-name=windows",
        &["os-name=ubuntu"],
        &format!(
            "no release fits; the control plane: no release that begins with v1.24 can be used: \
             v1.24.9+vmware.1-tkg.1 has no image that fits (v1.24.9---vmware.1-tkg.1-ubuntu is not os-name=windows, \
             v1.24.9---vmware.1-tkg.1-photon is not os-name=windows), \
             v1.24.10+vmware.1-tkg.1 has no image that fits (v1.24.10---vmware.1-tkg.1-ubuntu is not os-name=windows), \
             v1.24.10+vmware.1-tkg.2 is incompatible; {KNOWN}"
        ),
    );
    let mut query = query("v1.24", "os-name=ubuntu", &["os-name=photon"]);
    query.control_plane.as_mut().unwrap().version = "v1.24.10".parse().unwrap();
    check_in(
        &sample(),
        &query,
        &format!(
            "no release fits; the control plane: alone it could have v1.24.10+vmware.1-tkg.1, but a cluster has one release \
             for all its parts; pool md-0: alone it could have v1.24.9+vmware.1-tkg.1, but a cluster has one release for all \
             its parts; {KNOWN}"
        ),
    );
}

#[test]
fn a_release_is_chosen_by_its_labels_too() {
    let catalogue = catalogue([
        release("v1.24.9+vmware.1-tkg.1", &["blessed"], &["ubuntu"]),
        release("v1.24.10+vmware.1-tkg.1", &[], &["ubuntu"]),
        release("v1.24.11+vmware.1-tkg.1", &["blessed", "deactivated"], &["ubuntu"]),
        release("v1.24.12+vmware.1-tkg.1", &["blessed", "invalid"], &["ubuntu"]),
    ]);
    let mut asked = query("v1.24", "", &[]);
    asked.control_plane.as_mut().unwrap().releases = "blessed".parse().unwrap();
    check_in(&catalogue, &asked, "v1.24.9+vmware.1-tkg.1 on ubuntu");
}

#[test]
fn an_image_can_be_out_of_use_as_well() {
    let (release, mut images) = release("v1.24.9+vmware.1-tkg.1", &[], &["ubuntu", "photon"]);
    images[0].metadata.labels = Some([("deactivated".to_owned(), String::new())].into());
    check_in(&catalogue([(release, images)]), &query("v1.24", "", &[]), "v1.24.9+vmware.1-tkg.1 on photon");
}

#[test]
fn a_query_about_nothing_has_no_answer() {
    check_in(&sample(), &Query::default(), "nothing was asked");
}

#[test]
fn what_cannot_be_read_is_named() {
    let (mut broken, images) = release("v1.25.7+vmware.1-tkg.1", &[], &["ubuntu"]);
    broken.spec.version = "newest".to_owned();
    let catalogue = catalogue([(broken, images)]);
    let refusal = resolve(&query("v1.25", "", &[]), &catalogue).unwrap_err().to_string();
    let wanted = "no release fits; the control plane: no release begins with v1.25; there are none at all; not readable: \
                  TanzuKubernetesRelease/v1.25.7---vmware.1-tkg.1: spec.version: \"newest\" is not a version";
    assert!(refusal.starts_with(wanted), "{refusal}");
}

#[test]
fn images_that_only_a_combination_of_labels_tells_apart_are_told_apart() {
    let (mut release, mut images) = release("v1.24.9+vmware.1-tkg.1", &[], &["ubuntu", "photon"]);
    for (name, os, arch) in [("third", "ubuntu", "arm64"), ("fourth", "photon", "arm64")] {
        let mut image = image("v1.24.9+vmware.1-tkg.1", os);
        image.metadata.name = Some(name.to_owned());
        image.spec.os.arch = arch.to_owned();
        image.spec.image.reference.clear();
        release.spec.os_images.push(LocalReference { name: name.to_owned() });
        images.push(image);
    }
    for image in &mut images {
        image.spec.image.reference.clear();
    }
    let refusal = resolve(&query("v1.24", "", &[]), &catalogue([(release, images)])).unwrap_err().to_string();
    assert!(refusal.contains("third (alone by os-name=ubuntu,os-arch=arm64)"), "{refusal}");
}
