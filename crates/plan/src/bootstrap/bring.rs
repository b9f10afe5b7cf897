//! What is written next for the packages of a cluster, and whether its machines may follow.
//!
//! ```text
//! kapp-controller (from the management cluster) ─▶ well ─▶ namespace, account ─▶ CNI ─▶ CPI ─▶ CSI ─▶ all others
//! each: Package, values, PackageInstall
//! ```
//!
//! A core package that cannot be written keeps those after it from being written; any other keeps nobody.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::annotation;
use windlass_api::kind::Condition;
use windlass_api::kind::release::{ClusterBootstrap, ClusterBootstrapStatus, LocalReference};
use windlass_api::name::{ClusterSecret, NamespacedName, ObjectName, PackageName, PackagePart};

use super::blocked::WAY_OUT;
use super::clone::{self, with_owner};
use super::condition::{self, Gate, Told};
use super::gate::{Judged, PATIENCE, packages_first};
use super::hold::release;
use super::management::management_first;
use super::step::{Object, Step, Write};
use super::values::{self, FILE, Found, FoundValues};
use super::{Blocked, FINALIZER, Installed, Installs, Listed, SYSTEM_NAMESPACE, Subject, install, listed, settle};
use crate::release::PackageSlot;
use crate::render;
use crate::step::{Place, Revision};

/// What was observed.
#[derive(Debug, Clone, Copy)]
pub struct Bringing<'a> {
    /// The cluster.
    pub cluster: &'a Subject,
    /// Its packages: what [`settle`](super::settle()) was done with.
    pub bootstrap: &'a ClusterBootstrap,
    /// All packages that its release has; nothing where the release is gone.
    pub listed: Option<&'a [LocalReference]>,
    /// Packages of the system namespace, by name.
    pub packages: &'a BTreeMap<String, Value>,
    /// What values are made of, in the cluster's namespace.
    pub values: &'a FoundValues,
    /// The Secrets with values beside the `PackageInstall` of kapp-controller, by name, and the digests of what is in them.
    pub digests: &'a BTreeMap<String, String>,
    /// kapp-controller's own.
    pub kapp: &'a Installed,
    /// The metadata of the Secret with the kubeconfig.
    pub kubeconfig: Option<&'a Value>,
    /// The workload cluster.
    pub workload: &'a Workload,
    /// What somebody has not let go of yet, of a cluster that is held.
    pub moving: Option<&'a str>,
    /// The time.
    pub now: Timestamp,
}

/// What a workload cluster has for packages.
#[derive(Debug, Clone, PartialEq)]
pub enum Workload {
    /// It has no API yet.
    NotYet,
    /// It did not answer.
    Unreachable {
        /// What went wrong.
        why: String,
    },
    /// It answers, and knows nothing of packages: kapp-controller is not there yet.
    WithoutKinds,
    /// What it has.
    Reachable {
        /// Of what it has before its first package.
        prerequisites: Vec<Value>,
        /// Packages, by name.
        packages: BTreeMap<String, Value>,
        /// What is installed.
        installs: Installs,
        /// The Secrets with values, by name, and the digests of what is in them.
        digests: BTreeMap<String, String>,
    },
}

/// What comes of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Brought {
    /// What is written, in order.
    pub steps: Vec<Step>,
    /// What the status of the `ClusterBootstrap` is to say.
    pub status: ClusterBootstrapStatus,
    /// Why machines may not follow yet.
    pub blocked: Option<Blocked>,
    /// It has lasted so long that waiting will not help.
    pub stalled: bool,
    /// Something in the workload cluster is waited for, which has to be asked.
    pub awaits_workload: bool,
}

/// What is written next, and whether the machines of the cluster may follow.
pub fn bring(seen: &Bringing<'_>) -> Brought {
    let packages = match listed(&seen.bootstrap.spec.packages) {
        Ok(packages) => packages,
        Err(blocked) => return seen.brought(&[], Vec::new(), Some(blocked), &BTreeMap::new()),
    };
    let without_network = settle::is_unmanaged(seen.bootstrap);
    let is_managed = |listed: &Listed| match listed.slot {
        PackageSlot::Cni => !without_network,
        PackageSlot::Kapp => !seen.cluster.management,
        PackageSlot::Cpi | PackageSlot::Csi | PackageSlot::Additional { .. } => true,
    };
    let packages: Vec<Listed> = packages.into_iter().filter(is_managed).collect();
    let mut steps = seen.ownership(&packages);
    let (own, mut others) = (steps.len(), BTreeMap::new());
    let mut stopped = seen.write(&packages, &mut steps, &mut others).err();
    // No package is touched while what was begun before the hold may still go on.
    if let Some(object) = seen.moving.filter(|_| steps.len() > own) {
        steps.truncate(own);
        stopped = Some(Blocked::PauseAwaited { object: object.to_owned() });
    }
    let blocked = stopped
        .or_else(|| packages_first(packages.iter().map(|listed| seen.judged(listed))))
        .or_else(|| management_first(seen.cluster, seen.workload));
    seen.brought(&packages, steps, blocked, &others)
}

impl<'b> Bringing<'b> {
    /// The writes for all packages, up to the first core package that cannot be written.
    fn write(
        &self,
        packages: &[Listed],
        steps: &mut Vec<Step>,
        others: &mut BTreeMap<String, Blocked>,
    ) -> Result<(), Blocked> {
        if !self.cluster.provisioned {
            return Err(Blocked::NoWorkloadApi);
        }
        for kapp in packages.iter().filter(|listed| listed.slot == PackageSlot::Kapp) {
            let written = self.kapp(kapp)?;
            if !written.is_empty() {
                steps.extend(written);
                return Err(self.being_written(kapp));
            }
            // Who installs the others is as it should be before it is given anything.
            if let Some(complaint) = self.judged(kapp).complaint() {
                return Err(complaint);
            }
        }
        steps.extend(self.prerequisites()?);
        let mut being_written = None;
        for listed in packages.iter().filter(|listed| listed.slot != PackageSlot::Kapp) {
            match self.package(listed) {
                Ok(written) if written.is_empty() => {}
                Ok(written) => {
                    let core = listed.slot.is_core();
                    being_written = being_written.or_else(|| core.then(|| self.being_written(listed)));
                    let alone = (!core).then(|| listed.short());
                    steps.extend(written.into_iter().map(|step| step.of(alone)));
                }
                Err(blocked) if listed.slot.is_core() => return Err(blocked),
                Err(blocked) => drop(others.insert(listed.short().to_owned(), blocked)),
            }
        }
        being_written.map_or(Ok(()), Err)
    }

    fn being_written(&self, listed: &Listed) -> Blocked {
        let why = format!("{} is being written", listed.version());
        Blocked::PackageNotReady { package: listed.short().to_owned(), install: self.install_of(listed), why }
    }

    /// The `PackageInstall` of a package, as `namespace/name`.
    fn install_of(&self, listed: &Listed) -> String {
        let namespace = match listed.slot {
            PackageSlot::Kapp => self.cluster.namespace.as_str(),
            _ => SYSTEM_NAMESPACE,
        };
        format!("{namespace}/{}", listed.child(&self.cluster.name, PackagePart::Install))
    }

    fn judged<'a>(&self, listed: &'a Listed) -> Judged<'a>
    where
        'b: 'a,
    {
        let installed = match (listed.slot, self.workload) {
            (PackageSlot::Kapp, _) => Some(self.kapp),
            (_, Workload::Reachable { installs, .. }) => {
                installs.get(listed.child(&self.cluster.name, PackagePart::Install).as_str())
            }
            (_, Workload::NotYet | Workload::Unreachable { .. } | Workload::WithoutKinds) => None,
        };
        let package = self.packages.get(&listed.package.to_string());
        let declared =
            package.is_some_and(|it| !it["metadata"]["annotations"][annotation::WAITS_FOR_NEW_NODES.name].is_null());
        Judged { listed, installed, install: self.install_of(listed), may_wait: declared }
    }

    /// The Package of a package.
    fn source(&self, listed: &Listed) -> Result<&Value, Blocked> {
        let name = listed.package.to_string();
        self.packages.get(&name).ok_or(Blocked::PackageMissing { package: name })
    }

    fn kapp(&self, listed: &Listed) -> Result<Vec<Step>, Blocked> {
        self.source(listed)?;
        let namespace = self.cluster.namespace.as_str();
        let mut steps = Vec::new();
        let secret = match self.values(listed)? {
            Values::None => None,
            // It is where it is needed.
            Values::Secret { name, .. } => Some(name),
            Values::Inline(text) => {
                let name = listed.child(&self.cluster.name, PackagePart::DataValues).to_string();
                steps.extend(self.inline(listed, namespace, Place::Management, &text, self.digests.get(&name)));
                Some(name)
            }
        };
        let live = self.kapp.install.as_ref();
        let wanted = install::of_kapp(self.cluster, listed, secret.as_deref(), live);
        if !install::is_as_wanted(&wanted, live) {
            let why = format!("{} installs all other packages of {}", listed.version(), self.cluster.name);
            steps.push(Step::new(Place::Management, Write::Apply { object: wanted }, why));
        }
        Ok(steps)
    }

    /// What the workload cluster has before its first package.
    fn prerequisites(&self) -> Result<Vec<Step>, Blocked> {
        let found = match self.workload {
            Workload::NotYet => return Err(Blocked::NoWorkloadApi),
            Workload::Unreachable { why } => return Err(Blocked::WorkloadUnreachable { why: why.clone() }),
            Workload::WithoutKinds => {
                let why = "the workload cluster does not know PackageInstalls yet".to_owned();
                let install = format!("{}/{}-kapp-controller", self.cluster.namespace, self.cluster.name);
                return Err(Blocked::PackageNotReady { package: "kapp-controller".to_owned(), install, why });
            }
            Workload::Reachable { prerequisites, .. } => prerequisites,
        };
        let is_there = |wanted: &Value| {
            let same = |found: &&Value| crate::package::is_same(wanted, found);
            found.iter().find(same).is_some_and(|found| render::covers(wanted, found))
        };
        let missing = install::prerequisites().into_iter().filter(|wanted| !is_there(wanted));
        let why = "packages are installed with it";
        Ok(missing.map(|object| Step::new(Place::Workload, Write::Apply { object }, why)).collect())
    }

    /// Package, values and `PackageInstall` of a package in the workload cluster.
    fn package(&self, listed: &Listed) -> Result<Vec<Step>, Blocked> {
        let Workload::Reachable { packages, installs, digests, .. } = self.workload else { return Ok(Vec::new()) };
        let source = self.source(listed)?;
        let values = self.values(listed)?;
        let (name, version) = (listed.package.to_string(), listed.version());
        let mut steps = Vec::new();
        let object = install::package(source);
        if !packages.get(&name).is_some_and(|live| render::covers(&object, live)) {
            steps.push(Step::new(Place::Workload, Write::Apply { object }, format!("{version} can be installed")));
        }
        let secret = listed.child(&self.cluster.name, PackagePart::DataValues).to_string();
        let there = digests.get(&secret);
        let has_values = match values {
            Values::None => false,
            Values::Inline(text) => {
                steps.extend(self.inline(listed, SYSTEM_NAMESPACE, Place::Workload, &text, there));
                true
            }
            Values::Secret { name, digest } => {
                if there != Some(&digest) {
                    let from = NamespacedName {
                        namespace: self.cluster.namespace.clone(),
                        name: ObjectName::new(&name).map_err(|error| Self::unreadable(listed, &error.to_string()))?,
                    };
                    let object = install::values(self.cluster, listed, SYSTEM_NAMESPACE);
                    let why = format!("{} has its values", listed.short());
                    steps.push(Step::new(Place::Workload, Write::CopySecret { from, object }, why));
                }
                true
            }
        };
        let live = installs.get(listed.child(&self.cluster.name, PackagePart::Install).as_str());
        let live = live.and_then(|live| live.install.as_ref());
        let wanted = install::of_package(self.cluster, listed, has_values.then_some(secret.as_str()), live);
        if !install::is_as_wanted(&wanted, live) {
            let why = format!("{} is to be at {version}", listed.short());
            steps.push(Step::new(Place::Workload, Write::Apply { object: wanted }, why));
        }
        Ok(steps)
    }

    /// A Secret with values that are in the `ClusterBootstrap` itself, unless it is there.
    fn inline(
        &self,
        listed: &Listed,
        namespace: &str,
        place: Place,
        text: &str,
        there: Option<&String>,
    ) -> Option<Step> {
        let digest = values::digest([(FILE, text.as_bytes())]);
        if there == Some(&digest) {
            return None;
        }
        let mut object = install::values(self.cluster, listed, namespace);
        object["stringData"] = json!({FILE: text});
        if place == Place::Management {
            object["metadata"]["ownerReferences"] = install::owners(self.cluster);
        }
        Some(Step::new(place, Write::Apply { object }, format!("{} has its values", listed.short())))
    }

    fn unreadable(listed: &Listed, why: &str) -> Blocked {
        Blocked::Unreadable { field: format!("{}.valuesFrom", listed.slot.field()), why: why.to_owned() }
    }

    /// The values of a package.
    fn values(&self, listed: &Listed) -> Result<Values, Blocked> {
        let Some(from) = &listed.values else { return Ok(Values::None) };
        let Some(reference) = clone::reference(from) else {
            let Some(inline) = &from.inline else { return Ok(Values::None) };
            return values::text(inline).map(Values::Inline).map_err(|why| Self::unreadable(listed, &why));
        };
        let awaited = |why: String| Blocked::ValuesAwaited { package: listed.short().to_owned(), why };
        match self.values.get(&reference) {
            None => Err(awaited(format!("there is no {reference} in {}", self.cluster.namespace))),
            Some(Found { secret: Err(why), .. }) => Err(awaited(why.clone())),
            Some(Found { secret: Ok((name, digest)), .. }) => {
                Ok(Values::Secret { name: name.clone(), digest: digest.clone() })
            }
        }
    }

    /// What makes the `ClusterBootstrap` the owner of what its values are made of, and what keeps a cluster until packages that
    /// were added to it are gone.
    fn ownership(&self, packages: &[Listed]) -> Vec<Step> {
        let mut steps = Vec::new();
        if !self.cluster.network.is_empty() {
            let patch = json!({"metadata": {"annotations": self.cluster.network}});
            let (object, expect) = (self.cluster.object(), self.cluster.revision.clone());
            let why = "the values of its packages are made of them";
            // What else is written to the Cluster comes with the next look.
            return vec![Step::new(Place::Management, Write::Patch { object, patch, expect }, why)];
        }
        let owner = json!({
            "apiVersion": "run.tanzu.vmware.com/v1alpha3", "kind": "ClusterBootstrap",
            "name": self.bootstrap.metadata.name, "uid": self.bootstrap.metadata.uid,
            "controller": true, "blockOwnerDeletion": true,
        });
        for (reference, found) in self.values {
            let is_cluster = |owner: &Value| owner["uid"] == self.cluster.revision.uid.as_str();
            let owners = found.metadata["ownerReferences"].as_array().cloned().unwrap_or_default();
            let controlled = owners.iter().any(|owner| owner["controller"] == true);
            // What somebody else made stays theirs.
            if controlled || !owners.iter().any(is_cluster) {
                continue;
            }
            let object = Object {
                api_version: found.api_version.clone(),
                kind: reference.kind.clone(),
                namespace: Some(self.cluster.namespace.to_string()),
                name: reference.name.clone(),
            };
            let owners = with_owner(&found.metadata, owner.clone());
            if let (Some(owners), Some(expect)) = (owners, clone::revision(&found.metadata)) {
                let patch = json!({"metadata": {"ownerReferences": owners}});
                let why = "it belongs to the ClusterBootstrap that refers to it";
                steps.push(Step::new(Place::Management, Write::Patch { object, patch, expect }, why));
            }
        }
        let added = packages.iter().any(|listed| !listed.slot.is_core());
        if added && !self.cluster.management {
            steps.extend(self.finalizers());
        }
        steps
    }

    fn finalizers(&self) -> Vec<Step> {
        let kubeconfig = Object {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: Some(self.cluster.namespace.to_string()),
            name: ClusterSecret::Kubeconfig.object_name(&self.cluster.name).to_string(),
        };
        let of_bootstrap = self.bootstrap.metadata.finalizers.clone().unwrap_or_default();
        let mut held: Vec<(Object, Option<Revision>, Vec<String>)> = vec![
            (self.cluster.object(), Some(self.cluster.revision.clone()), self.cluster.finalizers.clone()),
            (settle::object(self.cluster), settle::state(self.bootstrap).ok(), of_bootstrap),
        ];
        if let Some(metadata) = self.kubeconfig {
            let known = metadata["finalizers"].as_array().cloned().unwrap_or_default();
            let known = known.iter().filter_map(|known| known.as_str().map(str::to_owned)).collect();
            held.push((kubeconfig, clone::revision(metadata), known));
        }
        let keep = |(object, expect, known): (Object, Option<Revision>, Vec<String>)| {
            let missing = !known.iter().any(|known| known == FINALIZER);
            let expect = expect.filter(|_| missing)?;
            let finalizers: Vec<String> = known.into_iter().chain([FINALIZER.to_owned()]).collect();
            let patch = json!({"metadata": {"finalizers": finalizers}});
            let why = "packages that were added go before the cluster does";
            Some(Step::new(Place::Management, Write::Patch { object, patch, expect }, why))
        };
        held.into_iter().filter_map(keep).collect()
    }

    /// All that comes of it: the status, and the end of our hold where machines may follow.
    fn brought(
        &self,
        packages: &[Listed],
        mut steps: Vec<Step>,
        blocked: Option<Blocked>,
        others: &BTreeMap<String, Blocked>,
    ) -> Brought {
        let before = self.bootstrap.status.clone().unwrap_or_default();
        let resolved = before.resolved_tkr.clone();
        let blocked = blocked.or_else(|| self.held_for_another(resolved.as_deref()));
        let stalled = blocked.is_some() && is_stalled(&before.conditions, self.now);
        let told: Vec<Told<'_>> = packages.iter().map(|listed| self.told(listed, others)).collect();
        let gate = Gate {
            blocked: blocked.as_ref(),
            stalled: blocked.as_ref().filter(|_| stalled).map(|blocked| told_stalled(self.cluster, blocked)),
            outside: self.outside(packages),
        };
        let conditions = condition::conditions(&before.conditions, &told, &gate, self.now);
        let awaits_workload =
            blocked.is_some() || packages.iter().any(|listed| self.judged(listed).complaint().is_some());
        if steps.is_empty() && blocked.is_none() {
            let held_for = self.cluster.held_for.as_deref().unwrap_or_default();
            let why = format!("the packages of {held_for} are in: the machines may follow");
            steps.extend(release(self.cluster, why));
        }
        let status = ClusterBootstrapStatus { resolved_tkr: resolved, conditions };
        Brought { steps, status, blocked, stalled, awaits_workload }
    }

    fn told<'a>(&self, listed: &'a Listed, others: &'a BTreeMap<String, Blocked>) -> Told<'a>
    where
        'b: 'a,
    {
        let unknown = listed.slot != PackageSlot::Kapp && !matches!(self.workload, Workload::Reachable { .. });
        Told { listed, installed: self.judged(listed).installed, blocked: others.get(listed.short()), unknown }
    }

    /// Packages that the release does not have in any version.
    fn outside(&self, packages: &[Listed]) -> Vec<String> {
        let Some(known) = self.listed else { return Vec::new() };
        let names: Vec<PackageName> = known.iter().filter_map(|listed| listed.name.parse().ok()).collect();
        let is_outside = |listed: &&Listed| !names.iter().any(|name| name.ref_name == listed.package.ref_name);
        packages.iter().filter(is_outside).map(|listed| listed.package.to_string()).collect()
    }

    fn held_for_another(&self, resolved: Option<&str>) -> Option<Blocked> {
        let held_for = self.cluster.held_for.as_deref().filter(|held_for| resolved != Some(held_for))?;
        let release = self.cluster.release.to_string();
        Some(Blocked::HeldForAnother { held_for: held_for.to_owned(), release })
    }
}

/// The conditions of a `ClusterBootstrap` while it cannot be settled.
pub fn waiting(cluster: &Subject, bootstrap: &ClusterBootstrap, blocked: &Blocked, now: Timestamp) -> Vec<Condition> {
    let before = bootstrap.status.clone().unwrap_or_default().conditions;
    // What keeps an upgrade from being given up has not lasted for as long as the upgrade has; and whoever decides takes their time.
    let stalled = is_stalled(&before, now) && cluster.given_up.is_none() && !blocked.is_decision();
    let stalled = stalled.then(|| told_stalled(cluster, blocked));
    condition::with_gate(&before, &Gate { blocked: Some(blocked), stalled, outside: Vec::new() }, now)
}

/// Whether machines have waited for so long that waiting will not help.
fn is_stalled(before: &[Condition], now: Timestamp) -> bool {
    let waited = condition::waiting_since(before).map(|since| now.duration_since(since));
    waited.is_some_and(|waited| waited >= PATIENCE)
}

/// What is said then: what it is waited for, what would help, and how machines could go on without it.
fn told_stalled(cluster: &Subject, blocked: &Blocked) -> String {
    let minutes = PATIENCE.as_mins();
    let told = format!("{blocked}, and that for more than {minutes} min{WAY_OUT}{}", blocked.way_out());
    let ways = [Blocked::way_on(cluster), Blocked::way_back(cluster)];
    ways.into_iter().flatten().fold(told, |told, way| format!("{told}; {way}"))
}

/// The values of a package.
enum Values {
    None,
    /// In the `ClusterBootstrap` itself.
    Inline(String),
    /// In a Secret of the cluster's namespace.
    Secret {
        name: String,
        digest: String,
    },
}
