//! Through which versions an upgrade goes.
//!
//! A class that lists its versions lets clusters be asked for one several minors ahead: the control plane then goes through the
//! last of each minor, and workers take a step where they would otherwise fall more than three minors behind.

use windlass_api::version::KubernetesVersion;

/// How many minors workers may be behind their control plane.
const BEHIND_MAX: u64 = 3;

/// The versions that are still ahead of a control plane, without the one that it has.
pub(super) fn control_plane(at: &str, target: &str, offered: &[String]) -> Vec<String> {
    if at == target {
        return Vec::new();
    }
    let (Some(from), Some(to)) = (parse(at), parse(target)) else { return vec![target.to_owned()] };
    let mut steps: Vec<(KubernetesVersion, &String)> = Vec::new();
    for text in offered {
        let Some(version) = parse(text) else { continue };
        if version.minor() <= from.minor() || version.minor() >= to.minor() {
            continue;
        }
        match steps.last_mut() {
            Some(last) if last.0.minor() == version.minor() => *last = (version, text),
            _ => steps.push((version, text)),
        }
    }
    steps.into_iter().map(|(_, text)| text.clone()).chain([target.to_owned()]).collect()
}

/// The versions that are still ahead of workers, if their control plane has one and is on its way through others.
pub(super) fn workers(at: &str, control_plane_at: &str, ahead: &[String]) -> Vec<String> {
    let reached = Some(control_plane_at.to_owned()).filter(|reached| reached != at);
    let steps: Vec<String> = reached.into_iter().chain(ahead.iter().cloned()).collect();
    let mut taken: Vec<String> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let from = taken.last().map_or(at, String::as_str);
        let must = match steps.get(index + 1) {
            None => true,
            Some(next) => falls_behind(from, next),
        };
        if must {
            taken.push(step.clone());
        }
    }
    taken
}

fn falls_behind(at: &str, next: &str) -> bool {
    match (parse(at), parse(next)) {
        (Some(at), Some(next)) => !at.distance_from(&next).is_within(BEHIND_MAX, 0),
        _ => true,
    }
}

fn parse(text: &str) -> Option<KubernetesVersion> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(versions: &[&str]) -> Vec<String> {
        versions.iter().map(|&version| version.to_owned()).collect()
    }

    fn check(at: &str, target: &str, offered: &[&str], expected: &[&str]) {
        assert_eq!(control_plane(at, target, &texts(offered)), texts(expected), "{at} to {target}");
    }

    #[test]
    fn a_control_plane_goes_through_the_last_version_of_each_minor() {
        check("v1.31.0", "v1.31.0", &[], &[]);
        check("v1.31.0", "v1.31.4", &[], &["v1.31.4"]);
        check("v1.31.0", "v1.32.0", &[], &["v1.32.0"]);
        let offered = ["v1.31.0", "v1.32.1", "v1.32.4", "v1.33.0", "v1.34.0", "v1.34.2"];
        check("v1.31.0", "v1.34.0", &offered, &["v1.32.4", "v1.33.0", "v1.34.0"]);
        check("v1.33.0", "v1.34.2", &offered, &["v1.34.2"]);
    }

    fn check_workers(at: &str, control_plane_at: &str, ahead: &[&str], expected: &[&str]) {
        assert_eq!(workers(at, control_plane_at, &texts(ahead)), texts(expected), "{at} under {control_plane_at}");
    }

    #[test]
    fn workers_take_a_step_before_they_fall_too_far_behind_and_at_the_end() {
        check_workers("v1.31.0", "v1.31.0", &[], &[]);
        check_workers("v1.31.0", "v1.32.0", &[], &["v1.32.0"]);
        check_workers("v1.31.0", "v1.31.0", &["v1.32.0"], &["v1.32.0"]);
        check_workers("v1.31.0", "v1.31.0", &["v1.32.0", "v1.33.0", "v1.34.0"], &["v1.34.0"]);
        let five = ["v1.32.0", "v1.33.0", "v1.34.0", "v1.35.0"];
        check_workers("v1.31.0", "v1.31.0", &five, &["v1.34.0", "v1.35.0"]);
        check_workers("v1.31.0", "v1.34.0", &["v1.35.0"], &["v1.34.0", "v1.35.0"]);
    }
}
