//! What fits a part of a cluster, and what would tell images apart.

use std::collections::BTreeMap;

use windlass_api::label;

use super::{Part, PartQuery, Query, WhyNot};
use crate::resolve::catalogue::{Catalogue, Image, ReleaseObject};

/// The releases that fit every part, with at least one image for each, oldest first.
pub(super) fn common<'c>(query: &Query, catalogue: &'c Catalogue) -> Vec<&'c ReleaseObject> {
    let mut parts = query.parts().map(|(_, part)| releases(query, part, catalogue));
    let Some(first) = parts.next() else { return Vec::new() };
    let shared = |mut common: Vec<&'c ReleaseObject>, part: Vec<&'c ReleaseObject>| {
        common.retain(|release| part.iter().any(|other| other.name == release.name));
        common
    };
    parts.fold(first, shared)
}

/// The releases that fit one part, oldest first.
pub(super) fn releases<'c>(query: &Query, part: &PartQuery, catalogue: &'c Catalogue) -> Vec<&'c ReleaseObject> {
    let prefix = label::version_prefix(&part.version);
    let labelled = catalogue.releases.iter().filter(|release| {
        release.labels.contains_key(&prefix)
            && part.releases.matches(&release.labels)
            && exclusion(query, release).is_none()
    });
    let mut labelled: Vec<&ReleaseObject> = labelled.collect();
    if labelled.iter().any(|release| release.name.as_str() == prefix) {
        labelled.retain(|release| release.name.as_str() == prefix);
    }
    labelled.retain(|release| release.os_images.iter().any(|image| image_fits(part, image)));
    labelled
}

/// The label for which a release is passed over. What a cluster has, it keeps.
pub(super) fn exclusion(query: &Query, release: &ReleaseObject) -> Option<&'static str> {
    if query.in_use.as_ref() == Some(&release.name) {
        return None;
    }
    excluded(&release.labels)
}

/// The first of the labels that keep something from being chosen.
pub(in crate::resolve) fn excluded(labels: &BTreeMap<String, String>) -> Option<&'static str> {
    label::EXCLUDED_FROM_RESOLUTION.iter().find(|key| key.is_in(labels)).map(|key| key.name)
}

fn image_fits(part: &PartQuery, image: &Image) -> bool {
    excluded(&image.labels).is_none() && part.os_images.matches(&image.labels)
}

/// The one image of each part; or, for the parts with several, what they are.
pub(super) fn images<'c>(
    query: &Query,
    release: &'c ReleaseObject,
) -> Result<BTreeMap<Part, &'c Image>, BTreeMap<Part, WhyNot>> {
    let (mut chosen, mut ambiguous) = (BTreeMap::new(), BTreeMap::new());
    for (part, asked) in query.parts() {
        let fitting: Vec<&Image> = release.os_images.iter().filter(|image| image_fits(asked, image)).collect();
        match fitting.as_slice() {
            [image] => drop(chosen.insert(part, *image)),
            several => drop(ambiguous.insert(
                part,
                WhyNot::Ambiguous {
                    release: release.version.clone(),
                    images: several.iter().map(|image| (image.name.clone(), told_apart(image, several))).collect(),
                },
            )),
        }
    }
    if ambiguous.is_empty() { Ok(chosen) } else { Err(ambiguous) }
}

/// The selector that fits this image and none of the others: one label if there is such a one, those of the operating system
/// first, or a few.
fn told_apart(image: &Image, among: &[&Image]) -> Option<String> {
    let first = [label::OS_NAME, label::OS_VERSION, label::OS_ARCH, label::OS_TYPE, label::IMAGE_TYPE];
    let first = first.iter().map(|key| key.name);
    let others = image.labels.keys().map(String::as_str);
    let mut rest: Vec<&&Image> = among.iter().filter(|other| other.name != image.name).collect();
    let mut selector: Vec<String> = Vec::new();
    for key in first.chain(others) {
        let Some(value) = image.labels.get(key) else { continue };
        let same = |other: &Image| other.labels.get(key) == Some(value);
        if among.iter().all(|other| other.name == image.name || !same(other)) {
            return Some(format!("{key}={value}"));
        }
        if rest.iter().any(|other| !same(other)) {
            rest.retain(|other| same(other));
            selector.push(format!("{key}={value}"));
        }
        if rest.is_empty() {
            return Some(selector.join(","));
        }
    }
    None
}
