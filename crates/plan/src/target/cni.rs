//! Which network pods get: one of those that come with the release.

use super::TargetError;
use crate::release::{AddonRelease, Release};

/// What the network add-on is for.
const SLOT: &str = "cni";

/// What a cluster gets whose owner chose nothing, where the release has it.
const DEFAULT: &str = "antrea";

/// Leaves one network add-on in the release: the one that the owner chose; else the one that the cluster has, as pods keep the
/// network that they were started with; else the default, or the only one.
pub(super) fn choose(
    field: &str,
    asked: Option<&str>,
    present: Option<&str>,
    release: &mut Release,
) -> Result<(), TargetError> {
    let is_network = |addon: &AddonRelease| addon.slot == SLOT;
    let accepted: Vec<String> =
        release.addons.iter().filter(|(_, addon)| is_network(addon)).map(|(name, _)| name.to_string()).collect();
    let has = |name: &str| accepted.iter().any(|accepted| accepted == name);
    let of_cluster = || {
        let known_as = |(_, addon): &(_, &AddonRelease)| is_network(addon) && Some(&*addon.display_name) == present;
        release.addons.iter().find(known_as).map(|(name, _)| name.to_string())
    };
    let refused = |why: String| Err(TargetError::Cni { field: field.to_owned(), why });
    let chosen = match (asked, accepted.as_slice()) {
        (Some(asked), _) if has(asked) => asked.to_owned(),
        (Some(asked), []) => {
            let none = "has no network add-on; accepted is to choose none";
            return refused(format!("{asked:?} is not to be had: release {} {none}", release.distribution));
        }
        (Some(asked), accepted) => {
            let of = format!("is no network add-on of release {}", release.distribution);
            return refused(format!("{asked:?} {of}; accepted are {}", accepted.join(" and ")));
        }
        (None, []) => return Ok(()),
        (None, accepted) => match (of_cluster(), accepted) {
            (Some(present), _) => present,
            (None, [only]) => only.clone(),
            (None, _) if has(DEFAULT) => DEFAULT.to_owned(),
            (None, several) => {
                let several = several.join(" and ");
                return refused(format!("release {} leaves the choice; accepted are {several}", release.distribution));
            }
        },
    };
    release.addons.retain(|name, addon| !is_network(addon) || name.as_str() == chosen);
    Ok(())
}
