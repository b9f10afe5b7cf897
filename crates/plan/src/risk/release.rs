//! What the release brings: images that are there, packages that fit.

use super::evidence::{Ahead, Evidence, Gap, ImageState, Package, Pod};
use super::{Found, Risk, RiskId, Severity, removal, shown};

pub(super) fn check(evidence: &Evidence, found: &mut Found) {
    if !evidence.rolls.any() {
        return;
    }
    pulls(evidence, found);
    let packages = found.read(&[RiskId::ImageMissing, RiskId::PkgIncompatible], &evidence.packages);
    for package in packages {
        missing(package, found);
    }
    not_asked(packages, found);
    incompatible(packages, evidence, found);
    ahead(evidence, found);
    for package in found.read(&[RiskId::PkgUnmanaged], &evidence.unmanaged) {
        found.raise(Risk {
            severity: Severity::Risky,
            id: RiskId::PkgUnmanaged,
            object: format!("Package {package}"),
            message: "somebody else has brought it in: the update leaves it at its version, whether that fits or not"
                .into(),
            because: vec!["its objects are in the cluster without the label of Windlass".to_owned()],
            way_out: "see that its version works with the release, or delete it: Windlass then brings in its own"
                .into(),
        });
    }
}

/// Packages come first: from then on, and until the last machine is replaced, the new network runs on old nodes and talks to old API
/// servers.
fn ahead(evidence: &Evidence, found: &mut Found) {
    let packages = found.read(&[RiskId::PkgAhead], &evidence.ahead);
    let Some(network) = packages.iter().find(|package| package.is_network) else { return };
    let versions = [&evidence.from, &evidence.to].map(|known| found.read_one(&[RiskId::PkgAhead], known));
    let [Some(from), Some(to)] = versions else { return };
    let is_same_minor = from.kubernetes.minor() == to.kubernetes.minor();
    let Ahead { name, from: old, to: new, .. } = network;
    let others: Vec<String> = packages
        .iter()
        .filter(|package| !package.is_network)
        .map(|package| format!("{} {}", package.name, package.to))
        .collect();
    let beside = (!others.is_empty()).then(|| format!("{} are new by then, too", shown(&others)));
    found.raise(Risk {
        severity: if is_same_minor { Severity::Info } else { Severity::Risky },
        id: RiskId::PkgAhead,
        object: format!("Package {name}"),
        message: format!(
            "{new} of {} comes in place of {old} before any machine does: until the last one is replaced it runs on nodes of {}, \
             and until the control plane is, with API servers of {}",
            to.distribution, from.kubernetes, from.kubernetes
        ),
        because: ["packages come before nodes".to_owned()].into_iter().chain(beside).collect(),
        way_out: format!(
            "see that {name} {new} works with Kubernetes {}; windlass rehearse tells how long that lasts",
            from.kubernetes
        ),
    });
}

fn missing(package: &Package, found: &mut Found) {
    for image in &package.images {
        let ImageState::Missing(looked) = &image.state else { continue };
        found.raise(Risk {
            severity: Severity::Blocks,
            id: RiskId::ImageMissing,
            object: format!("Package {}", package.name),
            message: format!(
                "its image {} is missing: {} {} could not start, and machines wait for packages",
                image.name, package.name, package.version
            ),
            because: vec![format!("{looked} does not have it")],
            way_out: format!("put {} there, or name another image in the package", image.name),
        });
    }
}

/// What only a registry can answer is one gap, not one for each image.
fn not_asked(packages: &[Package], found: &mut Found) {
    let images = packages.iter().flat_map(|package| &package.images);
    let mut names: Vec<&str> =
        images.filter(|image| image.state == ImageState::NotAsked).map(|image| image.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    if !names.is_empty() {
        let gap = Gap {
            what: format!("the registry of {}", shown(&names)),
            why: "whoever rehearses opens no socket".to_owned(),
            way_out: format!("crane manifest {}, or any other client of a registry", names[0]),
        };
        found.unknown(&[RiskId::ImageMissing], &gap);
    }
}

/// Pods that wait for an image now do so after the update as well.
fn pulls(evidence: &Evidence, found: &mut Found) {
    let failing = |pod: &Pod| pod.pull_failures.first().cloned();
    for pod in found.read(&[RiskId::ImageMissing], &evidence.pods) {
        let Some(failure) = failing(pod) else { continue };
        let of = pod.package.as_ref();
        found.raise(Risk {
            severity: if of.is_some() { Severity::Blocks } else { Severity::Risky },
            id: RiskId::ImageMissing,
            object: format!("Pod {}", pod.name),
            message: match of {
                Some(package) => format!(
                    "its image {} cannot be had, so the package {package} is not well, and machines wait for packages",
                    failure.image
                ),
                None => format!("its image {} cannot be had", failure.image),
            },
            because: vec![failure.why],
            way_out: format!("push {}, or name another image in {}", failure.image, owner(pod)),
        });
    }
}

fn owner(pod: &Pod) -> String {
    pod.owner.clone().unwrap_or_else(|| format!("Pod {}", pod.name))
}

fn incompatible(packages: &[Package], evidence: &Evidence, found: &mut Found) {
    for why in found.read(&[RiskId::PkgIncompatible], &evidence.not_offered) {
        found.raise(Risk {
            severity: Severity::Blocks,
            id: RiskId::PkgIncompatible,
            object: format!("TanzuKubernetesCluster {}", evidence.cluster),
            message: why.clone(),
            because: Vec::new(),
            way_out: "choose what the release has, or another release".to_owned(),
        });
    }
    let Some(to) = found.read_one(&[RiskId::PkgIncompatible], &evidence.to) else { return };
    for package in packages {
        for kind in &package.kinds {
            let Some(gone) = removal::at(&to.kubernetes, &kind.api_version, &kind.kind) else { continue };
            found.raise(Risk {
                severity: Severity::Blocks,
                id: RiskId::PkgIncompatible,
                object: format!("Package {}", package.name),
                message: format!(
                    "its {} {} is of {}, which {} does not know: the package cannot be applied",
                    kind.kind, kind.object, kind.api_version, to.kubernetes
                ),
                because: vec![format!("that version of the kind is gone since {}", gone.since)],
                way_out: match gone.instead {
                    Some(instead) => format!("have whoever made the release write it as {instead}"),
                    None => "have whoever made the release leave it out".to_owned(),
                },
            });
        }
    }
}
