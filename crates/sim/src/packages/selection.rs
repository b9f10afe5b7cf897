//! Which version of a package is installed: the highest of those that may be.

use serde::Deserialize;
use windlass_api::kind::packaging::{PackageSpec, VersionSelection};
use windlass_api::version::KubernetesVersion;

use super::constraint::{Constraint, ConstraintError, version};

/// What the version has to fit.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    /// The version of the cluster that the package is installed in; `None` if nobody asks for it.
    pub kubernetes: Option<KubernetesVersion>,
    /// The version of the kapp-controller that installs it; `None` if nobody asks for it.
    pub kapp_controller: Option<KubernetesVersion>,
}

/// Why no version was chosen.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoVersion {
    /// None is left.
    #[error("Expected to find at least one version, but did not (details: {0})")]
    NoneLeft(String),
    /// A constraint that cannot be read.
    #[error(transparent)]
    Constraint(#[from] ConstraintError),
}

/// Which pre-releases count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
struct Prereleases {
    /// Those with one of these words in them; all of them if there are none.
    #[serde(default)]
    identifiers: Vec<String>,
}

/// The highest version that is wanted and fits, among all versions of a package.
pub(super) fn select<'a>(
    candidates: impl IntoIterator<Item = &'a PackageSpec>,
    wanted: Option<&VersionSelection>,
    fits: &Surroundings,
) -> Result<&'a PackageSpec, NoVersion> {
    let constraints = wanted.map_or("", |wanted| wanted.constraints.as_str());
    let constraint = Constraint::parse(constraints)?;
    let prereleases = prereleases(wanted);
    let mut left: Vec<(KubernetesVersion, &PackageSpec)> =
        candidates.into_iter().filter_map(|package| Some((version(&package.version)?, package))).collect();
    let mut details = vec![format!("all={}", left.len())];
    let mut keep = |what: &str, left: &mut Vec<_>, fits: &dyn Fn(&(KubernetesVersion, &PackageSpec)) -> bool| {
        left.retain(|candidate| fits(candidate));
        details.push(format!("after-{what}={}", left.len()));
    };
    keep("prereleases-filter", &mut left, &|(version, _)| counts(version, prereleases.as_ref()));
    if asks_for_kubernetes(left.iter().map(|(_, package)| *package)) {
        keep("kubernetes-version-check", &mut left, &|(_, package)| {
            let asked = package.kubernetes_version_selection.as_ref();
            meets(asked.map(|asked| asked.constraints.as_str()), fits.kubernetes.as_ref())
        });
    }
    if asks_for_kapp_controller(left.iter().map(|(_, package)| *package)) {
        keep("kapp-controller-version-check", &mut left, &|(_, package)| {
            let asked = package.kapp_controller_version_selection.as_ref();
            meets(asked.map(|asked| asked.constraints.as_str()), fits.kapp_controller.as_ref())
        });
    }
    keep("constraints-filter", &mut left, &|(version, _)| constraint.allows(version));
    let highest = left.into_iter().max_by(|(left, _), (right, _)| left.cmp(right));
    highest.map(|(_, package)| package).ok_or_else(|| NoVersion::NoneLeft(details.join(" -> ")))
}

/// Whether one of them wants a certain version of Kubernetes.
pub(super) fn asks_for_kubernetes<'a>(mut candidates: impl Iterator<Item = &'a PackageSpec>) -> bool {
    candidates.any(|package| package.kubernetes_version_selection.is_some())
}

/// Whether one of them wants a certain version of kapp-controller.
pub(super) fn asks_for_kapp_controller<'a>(mut candidates: impl Iterator<Item = &'a PackageSpec>) -> bool {
    candidates.any(|package| package.kapp_controller_version_selection.is_some())
}

/// Which pre-releases are wanted. Whoever names one pre-release need not say that it may be one.
fn prereleases(wanted: Option<&VersionSelection>) -> Option<Prereleases> {
    let wanted = wanted?;
    match &wanted.prereleases {
        Some(given) => Some(serde_json::from_value(given.clone()).unwrap_or_default()),
        None => version(&wanted.constraints)?.pre_release().map(|_| Prereleases::default()),
    }
}

fn counts(version: &KubernetesVersion, wanted: Option<&Prereleases>) -> bool {
    let Some(pre_release) = version.pre_release() else { return true };
    let Some(wanted) = wanted else { return false };
    let named = || pre_release.split('.').any(|word| wanted.identifiers.iter().any(|known| known == word));
    wanted.identifiers.is_empty() || named()
}

/// Whether a version is one of those asked for. Where nobody knows the version, nobody is kept from it.
fn meets(asked: Option<&str>, version: Option<&KubernetesVersion>) -> bool {
    let (Some(asked), Some(version)) = (asked, version) else { return true };
    // kapp-controller leaves out the build: `v1.24.9+vmware.1` is 1.24.9.
    let bare = version.as_str().split('+').next().and_then(super::constraint::version);
    Constraint::parse(asked).is_ok_and(|constraint| constraint.allows(bare.as_ref().unwrap_or(version)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use windlass_api::kind::packaging::VersionConstraints;

    use super::*;

    const VERSIONS: [&str; 4] = ["1.0.0", "1.1.0-rc.1", "1.1.0+vmware.1", "1.1.0+vmware.2"];

    fn package(version: &str) -> PackageSpec {
        PackageSpec { ref_name: "a.b.c".to_owned(), version: version.to_owned(), ..PackageSpec::default() }
    }

    fn wanted(constraints: &str, prereleases: Option<Value>) -> VersionSelection {
        VersionSelection { constraints: constraints.to_owned(), prereleases }
    }

    fn check(constraints: &str, prereleases: Option<Value>, selected: &str) {
        let packages = VERSIONS.map(package);
        let wanted = wanted(constraints, prereleases);
        let found = select(&packages, Some(&wanted), &Surroundings::default());
        assert_eq!(found.map(|package| package.version.as_str()), Ok(selected), "{constraints}");
    }

    #[test]
    fn the_highest_is_chosen_and_builds_count() {
        check(">=1.0.0", None, "1.1.0+vmware.2");
        check("1.1.0+vmware.1", None, "1.1.0+vmware.1");
        check("", None, "1.1.0+vmware.2");
        check("<1.1.0", None, "1.0.0");
    }

    #[test]
    fn pre_releases_count_where_they_are_asked_for() {
        check("1.1.0-rc.1", None, "1.1.0-rc.1");
        check("<1.1.0", Some(json!({})), "1.1.0-rc.1");
        check("<1.1.0", Some(json!({"identifiers": ["rc"]})), "1.1.0-rc.1");
        check("<1.1.0", Some(json!({"identifiers": ["beta"]})), "1.0.0");
    }

    #[test]
    fn where_none_is_left_it_is_told_who_took_them_away() {
        let packages = VERSIONS.map(package);
        let error = select(&packages, Some(&wanted(">=2.0.0", None)), &Surroundings::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Expected to find at least one version, but did not \
             (details: all=4 -> after-prereleases-filter=3 -> after-constraints-filter=0)"
        );
    }

    #[test]
    fn a_package_for_another_kubernetes_is_passed_over() {
        let mut packages = VERSIONS.map(package);
        for package in packages.iter_mut().filter(|package| package.version.starts_with("1.1")) {
            package.kubernetes_version_selection = Some(VersionConstraints { constraints: ">=1.25.0".to_owned() });
        }
        let on = |kubernetes: &str| Surroundings { kubernetes: version(kubernetes), ..Surroundings::default() };
        let chosen = |kubernetes: &str| select(&packages, None, &on(kubernetes)).unwrap().version.clone();
        assert_eq!(chosen("1.24.9+vmware.1"), "1.0.0", "all of 1.1.* are for another one");
        assert_eq!(chosen("1.25.0+vmware.1"), "1.1.0+vmware.2");
        assert_eq!(select(&packages, None, &Surroundings::default()).unwrap().version, "1.1.0+vmware.2");
    }

    #[test]
    fn a_package_for_another_kapp_controller_is_passed_over() {
        let mut packages = VERSIONS.map(package);
        packages[3].kapp_controller_version_selection = Some(VersionConstraints { constraints: ">=0.50.0".to_owned() });
        let fits = Surroundings { kapp_controller: version("0.41.5"), ..Surroundings::default() };
        assert_eq!(select(&packages, None, &fits).unwrap().version, "1.1.0+vmware.1");
    }
}
