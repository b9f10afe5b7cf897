//! Why a cluster cannot be created, or was not.

use std::io;

use windlass_api::name::{ClusterName, NameError, Namespace};
use windlass_api::version::VersionPrefix;
use windlass_plan::creation::{Check, ManifestError, Misfit, Stall};
use windlass_plan::legacy::LegacyError;
use windlass_plan::target::CONTROL_PLANE_COUNTS;

use crate::error::{Exit, Explained, Kind};

/// What was left out could not be chosen, or what was given cannot be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "--control-plane {count} cannot be: etcd needs an odd number of machines to lose one; accepted are 1, 3 and 5"
    )]
    ControlPlane { count: u32 },
    #[error("the cluster has no name")]
    NoName,
    #[error("the cluster has a name that cannot be")]
    Name(#[source] NameError),
    #[error("cannot read -f {file:?}")]
    File { file: String, source: io::Error },
    #[error("-f {file:?} cannot be read: {why}")]
    Document { file: String, why: String },
    #[error("-f {file:?} is for the cluster {inside}, and the name that was given is {given}")]
    OtherName { file: String, inside: String, given: ClusterName },
    #[error("-f {file:?} is for the namespace {namespace}")]
    OtherNamespace { file: String, namespace: String },
    #[error("{option} says nothing here: the TanzuKubernetesCluster in -f {file:?} is created as it is written")]
    Fixed { option: &'static str, file: String },
    #[error("--timeout says nothing here: a TanzuKubernetesCluster is waited for only with --wait")]
    NobodyWaits,
    #[error("--class cannot be chosen: there are no VirtualMachineClasses")]
    NoClasses,
    #[error("--storage-class cannot be chosen: there are no StorageClasses")]
    NoStorageClasses,
    #[error("--storage-class cannot be chosen: none is the default; there are {known}")]
    NoDefaultStorageClass { known: String },

    #[error("-f {file:?}: {source}")]
    Flat { file: String, source: LegacyError },
    #[error("-f {file:?}: {source}")]
    Manifest { file: String, source: ManifestError },
    #[error("cannot write {file:?}")]
    Keep { file: String, source: io::Error },
    #[error("{file:?} is there, and is not what this configuration is converted to: it is not written over")]
    Occupied { file: String },
    #[error("there is a {kind} {name} in the namespace {namespace} already")]
    Exists { kind: &'static str, name: ClusterName, namespace: Namespace },
    #[error("there is no ClusterClass {class} in the namespace {namespace}{known}")]
    NoClass { class: String, namespace: String, known: String },
    #[error("{name} is not what its class {class} asks for: {misfit}")]
    Misfit { name: ClusterName, class: String, namespace: String, misfit: Box<Misfit> },
    #[error("no release for {name}: {why}")]
    Release { name: ClusterName, why: String },
    #[error("--tkr {release} says nothing here: neither the Cluster nor its class {class} has releases resolved")]
    NotResolved { release: VersionPrefix, class: String },
    #[error("{}: {}", check.subject, check.said)]
    Check { check: Check },
    #[error("{object} is there, and is not what the file says: it is not changed for a new cluster")]
    Different { object: String },
    #[error("{object}: the server does not know this kind of object")]
    UnknownKind { object: String },

    #[error("{name}: {stall}; what was begun goes on")]
    Stalled { name: ClusterName, namespace: Namespace, stall: Box<Stall> },
    #[error("{name} was created, and it cannot be seen how it goes on")]
    Unseen { name: ClusterName, source: Box<kube::Error> },
    #[error("stopped waiting for {name}; what was begun goes on")]
    Interrupted { name: ClusterName, namespace: Namespace },
    #[error("{name} was deleted")]
    Gone { name: ClusterName, namespace: Namespace },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::NoClasses
            | Self::NoStorageClasses
            | Self::Keep { .. }
            | Self::Stalled { .. }
            | Self::Unseen { .. }
            | Self::Check { .. } => Kind::Environment,
            _ => Kind::User,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::ControlPlane { count } => {
                let next = CONTROL_PLANE_COUNTS.iter().find(|next| *next > count).or(CONTROL_PLANE_COUNTS.last());
                format!("--control-plane {}", next.copied().unwrap_or(1))
            }
            Self::NoName | Self::Name(_) => "metadata.name in the document, or windlass create cluster NAME".to_owned(),
            Self::File { .. } => "-f with the path of a file".to_owned(),
            Self::Document { .. } => {
                "windlass create cluster NAME --dry-run=client -o yaml, which writes one".to_owned()
            }
            Self::OtherName { inside, file, .. } => format!("windlass create cluster {inside} -f {file}"),
            Self::OtherNamespace { namespace, .. } => format!("-n {namespace}"),
            Self::Fixed { option, .. } => format!("the same without {option}"),
            Self::NobodyWaits => "the same with --wait".to_owned(),
            Self::NoClasses => "kubectl get virtualmachineclasses".to_owned(),
            Self::NoStorageClasses => "kubectl get storageclasses".to_owned(),
            Self::NoDefaultStorageClass { .. } => "--storage-class NAME, with one of them".to_owned(),
            Self::Flat { file, source } => of_flat(file, source),
            Self::Manifest { file, source } => of_manifest(file, source),
            Self::Keep { .. } => "-f with a file in a folder that can be written to".to_owned(),
            Self::Occupied { file } => format!("windlass create cluster -f {file}, or the same when it is moved away"),
            Self::Exists { name, namespace, .. } => format!("kubectl get cluster {name} -n {namespace}"),
            Self::NoClass { .. } => "kubectl get clusterclasses -A".to_owned(),
            Self::Misfit { class, namespace, misfit, .. } => match **misfit {
                Misfit::Even { .. } => "an odd number: 1, 3 or 5".to_owned(),
                _ => format!("kubectl get clusterclass {class} -n {namespace} -o yaml"),
            },
            Self::Release { .. } => "windlass release list".to_owned(),
            Self::NotResolved { .. } => {
                "the same without --tkr, or with the annotation run.tanzu.vmware.com/resolve-tkr: \"\" on the Cluster"
                    .to_owned()
            }
            Self::Check { check } => check.way.clone().unwrap_or_else(|| "windlass release list".to_owned()),
            Self::Different { object } => format!("the same without {object}, if it may stay as it is"),
            Self::UnknownKind { .. } => "kubectl api-resources".to_owned(),
            Self::Stalled { name, namespace, stall } => stall.awaited.thing.way_on(namespace, name),
            Self::Unseen { .. } => "kubectl auth can-i --list, and kubectl version".to_owned(),
            Self::Interrupted { name, namespace } => {
                format!("kubectl wait cluster/{name} -n {namespace} --for=condition=Available --timeout=30m")
            }
            Self::Gone { namespace, .. } => format!("kubectl get clusters -n {namespace}"),
        })
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Stalled { .. } | Self::Unseen { .. } => Exit::TimedOut,
            Self::Interrupted { .. } => Exit::Interrupted,
            Self::Gone { .. } => Exit::OperationFailed,
            Self::Check { .. } | Self::Release { .. } => Exit::Refused,
            _ => Exit::Failed,
        }
    }
}

fn of_flat(file: &str, error: &LegacyError) -> String {
    match error {
        LegacyError::Syntax { .. } => {
            format!("{}: to a Cluster manifest, or to lines such as CLUSTER_NAME: my-cluster", corrected(file))
        }
        LegacyError::OtherName { inside, .. } => format!("windlass create cluster {inside} -f {file}"),
        LegacyError::OtherRelease { .. } => "the same without --tkr, or without KUBERNETES_VERSION".to_owned(),
        LegacyError::Missing { key: "--tkr" | "KUBERNETES_VERSION", .. } => {
            "--tkr RELEASE, of windlass release list".to_owned()
        }
        LegacyError::NotFlat { .. }
        | LegacyError::Unknown { .. }
        | LegacyError::Value { .. }
        | LegacyError::Missing { .. }
        | LegacyError::Name(_) => corrected(file),
    }
}

fn of_manifest(file: &str, error: &ManifestError) -> String {
    match error {
        ManifestError::OtherName { inside, .. } => format!("windlass create cluster {inside} -f {file}"),
        ManifestError::OtherNamespace { namespace, .. } => format!("-n {namespace}"),
        ManifestError::OtherRelease { field, .. } => format!("the same without --tkr, or without {field}"),
        ManifestError::NoTopology { .. } | ManifestError::Paused { .. } => format!("kubectl apply -f {file}"),
        ManifestError::None { .. }
        | ManifestError::Several { .. }
        | ManifestError::Version { .. }
        | ManifestError::NoClass { .. }
        | ManifestError::Name(_)
        | ManifestError::Field { .. }
        | ManifestError::Former { .. }
        | ManifestError::Nameless { .. }
        | ManifestError::Shape { .. } => corrected(file),
    }
}

fn corrected(file: &str) -> String {
    format!("the same when {} is corrected", if file == "-" { "it" } else { file })
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use windlass_plan::creation::{Awaited, Outcome, Subject, Thing};

    use super::*;

    #[track_caller]
    fn check(error: &Error, exit: Exit, hint: &str) {
        assert_eq!((error.exit(), error.hint().as_deref()), (exit, Some(hint)), "{error}");
    }

    #[test]
    fn an_error_says_what_to_type_next_and_scripts_get_a_code_of_their_own() {
        let (name, namespace): (ClusterName, Namespace) = ("wl".parse().unwrap(), "dev".parse().unwrap());
        let awaited = Awaited { thing: Thing::Package("antrea".to_owned()), came: false, how: "it failed".to_owned() };
        let stall = Box::new(Stall { awaited, after: SignedDuration::from_mins(31), restless: false });
        let stalled = Error::Stalled { name: name.clone(), namespace: namespace.clone(), stall };
        let said = "wl: nothing has changed for too long (31m so far); it waits for package antrea: it failed; what was begun goes on";
        assert_eq!(stalled.to_string(), said);
        check(&stalled, Exit::TimedOut, "kubectl describe clusterbootstrap wl -n dev");
        let interrupted = Error::Interrupted { name: name.clone(), namespace: namespace.clone() };
        let wait = "kubectl wait cluster/wl -n dev --for=condition=Available --timeout=30m";
        check(&interrupted, Exit::Interrupted, wait);
        let (outcome, said) = (Outcome::Failed, "none of 3 can be used".to_owned());
        let failed = Check { subject: Subject::Releases, outcome, said, way: Some("windlass release list".to_owned()) };
        check(&Error::Check { check: failed }, Exit::Refused, "windlass release list");
        let file = "a.yaml".to_owned();
        let source = ManifestError::OtherNamespace { object: "Cluster/wl".to_owned(), namespace: "dev".to_owned() };
        check(&Error::Manifest { file: file.clone(), source }, Exit::Failed, "-n dev");
        let source = ManifestError::NoTopology { name: "wl".to_owned() };
        check(&Error::Manifest { file: file.clone(), source }, Exit::Failed, "kubectl apply -f a.yaml");
        let source = LegacyError::NotFlat { key: "CNI".to_owned() };
        check(&Error::Flat { file, source }, Exit::Failed, "the same when a.yaml is corrected");
        let exists = Error::Exists { kind: "Cluster", name, namespace };
        check(&exists, Exit::Failed, "kubectl get cluster wl -n dev");
    }
}
