//! Which kinds a snapshot has: those that Windlass, a World or a risk is decided by, and no others.

use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;
use windlass_api::label;
use windlass_plan::profile::Profile;
use windlass_plan::resolve::compatibility::METADATA;

use crate::evidence::profiles;

/// What a snapshot without a kind is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing.
    Always,
    /// Less: it is a gap.
    Usually,
    /// As much: many clusters do not have the kind. That it may not be read is a gap.
    Sometimes,
}

/// Which objects of a kind are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chosen {
    All,
    /// Those with this label.
    Labelled(&'static str),
    /// Those of this name.
    Named(&'static str),
}

const CONFIG_MAPS: [Chosen; 5] = [
    // First: what they say decides which other kinds there are.
    Chosen::Labelled(label::INFRASTRUCTURE_PROFILE.name),
    Chosen::Labelled(label::KEPT_RELEASE.name),
    Chosen::Labelled(label::RELEASE_VERSION.name),
    Chosen::Labelled(label::ADDITIONAL_COMPATIBLE_RELEASES.name),
    Chosen::Named(METADATA),
];

/// What becomes of the objects of a kind in a World.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// They are there.
    Restored,
    /// They are not: whom they name is never called, and what they describe is not served.
    Data,
}

/// A kind, and what it is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'n> {
    group: &'n str,
    version: &'n str,
    kind: &'n str,
    plural: &'n str,
    pub(super) need: Need,
    use_: Use,
}

const fn row(need: Need, [group, version, kind, plural]: [&str; 4]) -> Row<'_> {
    Row { group, version, kind, plural, need, use_: Use::Restored }
}

const fn always(names: [&str; 4]) -> Row<'_> {
    row(Need::Always, names)
}

const fn usually(names: [&str; 4]) -> Row<'_> {
    row(Need::Usually, names)
}

const fn sometimes(names: [&str; 4]) -> Row<'_> {
    row(Need::Sometimes, names)
}

const fn data(need: Need, names: [&str; 4]) -> Row<'_> {
    Row { use_: Use::Data, ..row(need, names) }
}

const CLUSTER_API: &str = "cluster.x-k8s.io";
const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io";
const WCP: &str = "infrastructure.cluster.vmware.com";
const TANZU: &str = "run.tanzu.vmware.com";
const MACHINES: &str = "vmoperator.vmware.com";
const ADDRESSES: &str = "ipam.cluster.x-k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const PACKAGING: &str = "packaging.carvel.dev";
const RBAC: &str = "rbac.authorization.k8s.io";

/// Those without which there is nothing to rehearse come first: whoever may read nothing hears of it at once.
const MANAGEMENT: &[Row<'static>] = &[
    always([CLUSTER_API, "v1beta2", "Cluster", "clusters"]),
    always([CLUSTER_API, "v1beta2", "Machine", "machines"]),
    usually([CLUSTER_API, "v1beta2", "MachineSet", "machinesets"]),
    usually([CLUSTER_API, "v1beta2", "MachineDeployment", "machinedeployments"]),
    sometimes([CLUSTER_API, "v1beta2", "MachineHealthCheck", "machinehealthchecks"]),
    sometimes([CLUSTER_API, "v1beta2", "MachineDrainRule", "machinedrainrules"]),
    sometimes([CLUSTER_API, "v1beta2", "ClusterClass", "clusterclasses"]),
    sometimes([CONTROL_PLANE, "v1beta2", "KubeadmControlPlane", "kubeadmcontrolplanes"]),
    sometimes([CONTROL_PLANE, "v1beta2", "KubeadmControlPlaneTemplate", "kubeadmcontrolplanetemplates"]),
    usually([BOOTSTRAP, "v1beta2", "KubeadmConfig", "kubeadmconfigs"]),
    usually([BOOTSTRAP, "v1beta2", "KubeadmConfigTemplate", "kubeadmconfigtemplates"]),
    usually([WCP, "v1alpha2", "WCPCluster", "wcpclusters"]),
    sometimes([WCP, "v1alpha2", "WCPClusterTemplate", "wcpclustertemplates"]),
    usually([WCP, "v1alpha2", "WCPMachine", "wcpmachines"]),
    usually([WCP, "v1alpha2", "WCPMachineTemplate", "wcpmachinetemplates"]),
    usually([TANZU, "v1alpha1", "TanzuKubernetesCluster", "tanzukubernetesclusters"]),
    usually(["windlass.dev", "v1alpha1", "ClusterUpdate", "clusterupdates"]),
    usually([MACHINES, "v1alpha1", "VirtualMachineImage", "virtualmachineimages"]),
    usually([MACHINES, "v1alpha1", "VirtualMachineClass", "virtualmachineclasses"]),
    sometimes([TANZU, "v1alpha3", "TanzuKubernetesRelease", "tanzukubernetesreleases"]),
    sometimes([TANZU, "v1alpha3", "OSImage", "osimages"]),
    sometimes([TANZU, "v1alpha3", "ClusterBootstrap", "clusterbootstraps"]),
    sometimes([TANZU, "v1alpha3", "ClusterBootstrapTemplate", "clusterbootstraptemplates"]),
    sometimes([TANZU, "v1alpha3", "KappControllerConfig", "kappcontrollerconfigs"]),
    sometimes(["data.packaging.carvel.dev", "v1alpha1", "Package", "packages"]),
    sometimes(["data.packaging.carvel.dev", "v1alpha1", "PackageMetadata", "packagemetadatas"]),
    sometimes([PACKAGING, "v1alpha1", "PackageInstall", "packageinstalls"]),
    sometimes([PACKAGING, "v1alpha1", "PackageRepository", "packagerepositories"]),
    sometimes(["kappctrl.k14s.io", "v1alpha1", "App", "apps"]),
    sometimes(["cni.tanzu.vmware.com", "v1alpha1", "AntreaConfig", "antreaconfigs"]),
    sometimes(["cni.tanzu.vmware.com", "v1alpha1", "CalicoConfig", "calicoconfigs"]),
    sometimes(["cpi.tanzu.vmware.com", "v1alpha1", "VSphereCPIConfig", "vspherecpiconfigs"]),
    sometimes(["csi.tanzu.vmware.com", "v1alpha1", "VSphereCSIConfig", "vspherecsiconfigs"]),
    usually(["", "v1", "Namespace", "namespaces"]),
    usually(["", "v1", "Secret", "secrets"]),
    usually(["", "v1", "ConfigMap", "configmaps"]),
    usually(["", "v1", "ResourceQuota", "resourcequotas"]),
    usually(["", "v1", "Pod", "pods"]),
    usually(["batch", "v1", "Job", "jobs"]),
    usually(["storage.k8s.io", "v1", "StorageClass", "storageclasses"]),
    data(Need::Sometimes, [ADDRESSES, "v1beta2", "IPAddressClaim", "ipaddressclaims"]),
    data(Need::Sometimes, [ADDRESSES, "v1alpha2", "InClusterIPPool", "inclusterippools"]),
    data(Need::Sometimes, [ADDRESSES, "v1alpha2", "GlobalInClusterIPPool", "globalinclusterippools"]),
    data(Need::Sometimes, ["runtime.cluster.x-k8s.io", "v1beta2", "ExtensionConfig", "extensionconfigs"]),
    data(Need::Usually, VALIDATING_WEBHOOKS),
    data(Need::Usually, MUTATING_WEBHOOKS),
    data(Need::Usually, DEFINITIONS),
    data(Need::Sometimes, API_SERVICES),
];

const VALIDATING_WEBHOOKS: [&str; 4] =
    [ADMISSION, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"];
const MUTATING_WEBHOOKS: [&str; 4] = [ADMISSION, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"];
const DEFINITIONS: [&str; 4] = ["apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions"];
const API_SERVICES: [&str; 4] = ["apiregistration.k8s.io", "v1", "APIService", "apiservices"];

/// What nodes and add-ons are made of. An add-on of another kind would be applied once more in a rehearsal.
const WORKLOAD: &[Row<'static>] = &[
    usually(["", "v1", "Node", "nodes"]),
    usually(["", "v1", "Namespace", "namespaces"]),
    usually(["", "v1", "Pod", "pods"]),
    usually(["", "v1", "ConfigMap", "configmaps"]),
    usually(["", "v1", "Secret", "secrets"]),
    usually(["", "v1", "PersistentVolume", "persistentvolumes"]),
    usually(["", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"]),
    usually(["", "v1", "Service", "services"]),
    usually(["", "v1", "ServiceAccount", "serviceaccounts"]),
    usually(["apps", "v1", "DaemonSet", "daemonsets"]),
    usually(["apps", "v1", "Deployment", "deployments"]),
    usually(["apps", "v1", "ReplicaSet", "replicasets"]),
    usually(["apps", "v1", "StatefulSet", "statefulsets"]),
    usually(["apps", "v1", "ControllerRevision", "controllerrevisions"]),
    usually(["batch", "v1", "Job", "jobs"]),
    usually(["policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"]),
    usually([RBAC, "v1", "ClusterRole", "clusterroles"]),
    usually([RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings"]),
    usually([RBAC, "v1", "Role", "roles"]),
    usually([RBAC, "v1", "RoleBinding", "rolebindings"]),
    usually(["storage.k8s.io", "v1", "StorageClass", "storageclasses"]),
    usually(["storage.k8s.io", "v1", "CSIDriver", "csidrivers"]),
    usually(["storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments"]),
    // Clusters of a class have their packages from these.
    sometimes(["data.packaging.carvel.dev", "v1alpha1", "Package", "packages"]),
    sometimes(["data.packaging.carvel.dev", "v1alpha1", "PackageMetadata", "packagemetadatas"]),
    sometimes([PACKAGING, "v1alpha1", "PackageInstall", "packageinstalls"]),
    sometimes([PACKAGING, "v1alpha1", "PackageRepository", "packagerepositories"]),
    sometimes(["kappctrl.k14s.io", "v1alpha1", "App", "apps"]),
    // Clusters of other versions have none.
    sometimes(["policy", "v1beta1", "PodSecurityPolicy", "podsecuritypolicies"]),
    // What else loses a version some day, in a version that every cluster has before.
    data(Need::Sometimes, ["batch", "v1", "CronJob", "cronjobs"]),
    data(Need::Sometimes, ["networking.k8s.io", "v1", "Ingress", "ingresses"]),
    data(Need::Sometimes, ["networking.k8s.io", "v1", "IngressClass", "ingressclasses"]),
    data(Need::Sometimes, ["networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"]),
    data(Need::Sometimes, ["autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers"]),
    data(Need::Sometimes, ["scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses"]),
    data(Need::Sometimes, ["node.k8s.io", "v1", "RuntimeClass", "runtimeclasses"]),
    data(Need::Usually, VALIDATING_WEBHOOKS),
    data(Need::Usually, MUTATING_WEBHOOKS),
    data(Need::Usually, DEFINITIONS),
    data(Need::Sometimes, API_SERVICES),
];

impl Row<'_> {
    /// The kind, for a client.
    pub(super) fn resource(&self) -> ApiResource {
        let gvk = GroupVersionKind::gvk(self.group, self.version, self.kind);
        ApiResource::from_gvk_with_plural(&gvk, self.plural)
    }

    /// The kind as rules about rights name it: `machines.cluster.x-k8s.io`.
    pub(super) fn resource_name(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Which objects are read. Of `ConfigMaps` there are many on the management side that are nobody's here: those count that keep a
    /// release, or say which releases can be used.
    pub(super) fn chosen(&self) -> &'static [Chosen] {
        if self.kind == "ConfigMap" { &CONFIG_MAPS } else { &[Chosen::All] }
    }

    fn is_restored(&self, api_version: &str, kind: &str) -> bool {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.use_ == Use::Restored && (self.group, self.version, self.kind) == (group, version, kind)
    }
}

/// The kinds of the management side.
pub(super) fn management() -> &'static [Row<'static>] {
    MANAGEMENT
}

/// The kinds of the management side whose objects are in a World.
pub(super) fn restored_management() -> impl Iterator<Item = &'static Row<'static>> {
    MANAGEMENT.iter().filter(|row| row.use_ == Use::Restored)
}

/// The kinds of infrastructure beside the built-in one: those of which there are profiles.
#[derive(Debug, Clone, Default)]
pub(super) struct Infrastructure(Vec<ApiResource>);

impl Infrastructure {
    /// Those that objects of the management side say.
    pub(super) fn among(objects: &[Value]) -> Self {
        let kinds = |profile: &Profile| {
            let names = [Some(profile.template.as_str()), Some(profile.machine()), profile.cluster.as_deref()];
            let kind = |name: &str| GroupVersionKind::gvk(&profile.group, &profile.version, name);
            names.into_iter().flatten().map(|name| ApiResource::from_gvk(&kind(name))).collect::<Vec<_>>()
        };
        Self(profiles(objects).added().flat_map(kinds).collect())
    }

    /// Where nobody has installed the provider, there is nothing of it.
    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        self.0.iter().map(|kind| sometimes([&kind.group, &kind.version, &kind.kind, &kind.plural])).collect()
    }

    /// All kinds of the management side, with these.
    pub(super) fn with_management(&self) -> Vec<Row<'_>> {
        MANAGEMENT.iter().copied().chain(self.rows()).collect()
    }
}

/// The kinds of a workload cluster.
pub(super) fn workload() -> &'static [Row<'static>] {
    WORKLOAD
}

/// Whether an object is of those that packages are brought in by.
pub(super) fn is_of_packages(object: &Value) -> bool {
    let group = object["apiVersion"].as_str().and_then(|version| version.split_once('/')).map(|(group, _)| group);
    matches!(group, Some(PACKAGING | "data.packaging.carvel.dev" | "kappctrl.k14s.io"))
}

/// Whether an object is only kept: no World has its kind, or none may act on it.
pub(super) fn is_only_data(rows: &[Row<'_>], object: &Value) -> bool {
    let [api_version, kind] = ["apiVersion", "kind"].map(|field| object[field].as_str().unwrap_or_default());
    !rows.iter().any(|row| row.is_restored(api_version, kind))
}

/// The objects that are only kept.
pub(super) fn only_data<'a>(rows: &'a [Row<'a>], objects: &'a [Value]) -> impl Iterator<Item = &'a Value> {
    objects.iter().filter(|object| is_only_data(rows, object))
}
