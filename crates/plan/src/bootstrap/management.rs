//! A management cluster that manages itself: what makes it one comes before its machines.
//!
//! Its management packages bring the releases, and run what installs packages and rolls machines. While one of them is half new,
//! whoever would have to go on with an update of this very cluster may be the one that does not run. Its core packages do not
//! wait: management packages need a network themselves.

use super::gate::deployed;
use super::{Blocked, Installed, Subject, Workload};
use crate::roster::{Category, Install, State, package};

/// Refuses to let the machines of a management cluster follow while one of its management packages is not well.
pub(super) fn management_first(cluster: &Subject, workload: &Workload) -> Option<Blocked> {
    match workload {
        Workload::Reachable { installs, .. } if cluster.management => installs.values().find_map(complaint),
        Workload::Reachable { .. } | Workload::NotYet | Workload::Unreachable { .. } | Workload::WithoutKinds => None,
    }
}

/// What keeps a management package from being well; nothing for any other.
fn complaint(installed: &Installed) -> Option<Blocked> {
    let told = Install::of(installed.install.as_ref()?);
    let is_management = package(&told.package).is_some_and(|row| row.category == Category::Management);
    let install = format!("{}/{}", told.namespace, told.name);
    let not_ready = |package: String, why: &str| {
        let why = format!("{why}; what makes this a management cluster comes first");
        Some(Blocked::PackageNotReady { package, install: install.clone(), why })
    };
    let package = told.package.clone();
    match told.state {
        _ if !is_management => None,
        State::Succeeded => {
            let wanted = told.observed.unwrap_or_default();
            match deployed(installed.app.as_ref(), &wanted) {
                Ok(true) => None,
                Ok(false) => not_ready(package, &format!("{wanted} is being brought in")),
                Err(why) => not_ready(package, &why),
            }
        }
        State::Failed | State::DeleteFailed => {
            let why = told.message.unwrap_or_default();
            Some(Blocked::PackageFailed { package, install, why })
        }
        State::Held => Some(Blocked::PackageHeld { package, install, by: "it is paused or canceled".to_owned() }),
        State::Reconciling | State::Deleting | State::NotInstalled | State::ByManifests => {
            not_ready(package, told.state.word())
        }
    }
}
