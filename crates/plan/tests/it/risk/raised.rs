//! For each check, and each severity of it, a cluster that has that risk and no other.

use windlass_plan::inventory::Alarm;
use windlass_plan::risk::Known::Read;
use windlass_plan::risk::RiskId::{self, *};
use windlass_plan::risk::Severity::{self, *};
use windlass_plan::risk::evidence::{
    AddressPool, Addresses, Ahead, ApiService, ApiUse, Certificate, CertificateOf, Client, Evidence, HealthCheck, Hold,
    HoldOn, Image, ImageState, Keeper, Package, PackageKind, PullFailure, Selection, Update, UpdateState, Volume,
    Webhook,
};

use super::Raised;
use super::sample::{budget, definition, goes, of, quota, secret, webhook};

fn row(
    id: RiskId,
    severity: Severity,
    object: &'static str,
    says: &'static [&'static str],
    change: fn(&mut Evidence),
) -> Raised {
    Raised { id, severity, object, says, change }
}

pub fn rows() -> Vec<Raised> {
    [apis(), versions(), drains(), extensions(), certificates(), room(), packages(), health(), etcd(), progress()]
        .into_iter()
        .flatten()
        .collect()
}

/// An object of this version of a kind.
pub fn api_use(api_version: &str, kind: &str) -> ApiUse {
    let object = format!("{kind} web/old");
    ApiUse { object, api_version: api_version.to_owned(), kind: kind.to_owned() }
}

pub fn client(api_version: &str) -> Client {
    Client {
        name: "argocd".to_owned(),
        api_version: api_version.to_owned(),
        kind: "CronJob".to_owned(),
        object: "CronJob web/nightly".to_owned(),
        last: Some("2026-01-01T22:00:00Z".parse().unwrap()),
    }
}

pub fn selection(tolerates: bool) -> Selection {
    let key = "node-role.kubernetes.io/master".to_owned();
    Selection { object: "DaemonSet web/agent".to_owned(), key, tolerates }
}

fn apis() -> Vec<Raised> {
    vec![
        row(ApiRemoved, Blocks, "PodSecurityPolicy web/old", &["v1.25.4 does not know"], |it| {
            it.objects = Read(vec![api_use("policy/v1beta1", "PodSecurityPolicy")]);
        }),
        row(ApiRemoved, Risky, "CronJob web/old", &["last applied as batch/v1beta1"], |it| {
            it.manifests = Read(vec![api_use("batch/v1beta1", "CronJob")]);
        }),
        row(ApiClientOld, Risky, "CronJob web/nightly", &["argocd", "2026-01-01T22:00:00Z", "batch/v1beta1"], |it| {
            it.clients = Read(vec![client("batch/v1beta1")]);
        }),
        row(
            CrdStoredOld,
            Info,
            "CustomResourceDefinition widgets.example.dev",
            &["stored as v1beta1", "as v1"],
            |it| {
                it.definitions = Read(vec![definition(&["v1beta1", "v1"], &["v1beta1", "v1"])]);
            },
        ),
        row(CrdStoredOld, Risky, "CustomResourceDefinition widgets.example.dev", &["stored as v1beta1"], |it| {
            it.definitions = Read(vec![definition(&["v1beta1", "v1"], &["v1"])]);
        }),
        row(LabelRemoved, Risky, "DaemonSet web/agent", &["selects nodes by the label", "/master"], |it| {
            goes(it, "v1.23.17", "v1.24.9");
            it.selections = Read(vec![selection(false)]);
        }),
        row(LabelRemoved, Risky, "DaemonSet web/agent", &["tolerates the taint", "v1.25.4"], |it| {
            it.selections = Read(vec![selection(true)]);
        }),
    ]
}

fn versions() -> Vec<Raised> {
    vec![
        row(SkewKubelet, Blocks, "Node w-1", &["v1.22.3", "v1.25.4", "at most 2 minors behind"], |it| {
            of(&mut it.nodes)[4].kubelet = Some("v1.22.3".parse().unwrap());
        }),
        row(SkewKubelet, Blocks, "Node w-1", &["v1.26.0", "not be newer"], |it| {
            of(&mut it.nodes)[4].kubelet = Some("v1.26.0".parse().unwrap());
        }),
        row(SkewEtcd, Blocks, "Member cp-0", &["more than one minor ahead"], |it| {
            of(&mut it.members)[0].version = Some("3.3.10".parse().unwrap());
        }),
        row(SkewEtcd, Blocks, "Member cp-0", &["v3.5.9", "at least 3.5.32"], |it| {
            of(&mut it.members)[0].version = Some("3.5.9".parse().unwrap());
            for member in &mut of(&mut it.members)[1..] {
                member.version = Some("3.5.32".parse().unwrap());
            }
            of(&mut it.to).etcd = Some("3.6.1".to_owned());
        }),
    ]
}

fn drains() -> Vec<Raised> {
    vec![
        row(PdbNever, Blocks, "PodDisruptionBudget web/web", &["web/web-0", "w-0", "minAvailable 2", "2 pods"], |it| {
            it.budgets = Read(vec![budget("web/web", 2)]);
        }),
        row(PdbNever, Blocks, "PodDisruptionBudget web/web", &["maxUnavailable 0"], |it| {
            let mut budget = budget("web/web", 0);
            (budget.min_available, budget.max_unavailable) = (None, Some(0.into()));
            it.budgets = Read(vec![budget]);
        }),
        row(PdbNever, Blocks, "PodDisruptionBudget web/a", &["web/web-0", "web/b is for it too"], |it| {
            let alone = |name| {
                let mut budget = budget(name, 0);
                budget.pods.truncate(1);
                budget
            };
            it.budgets = Read(vec![alone("web/a"), alone("web/b")]);
        }),
        row(PdbNever, Risky, "PodDisruptionBudget web/web", &["web/web-0"], |it| {
            for node in of(&mut it.nodes) {
                node.drain_timeout_seconds = Some(300);
            }
            it.budgets = Read(vec![budget("web/web", 2)]);
        }),
        row(
            PdbAtLimit,
            Risky,
            "PodDisruptionBudget web/web",
            &["0 disruptions", "needs 1 of 2 pods healthy, and 1 is"],
            |it| {
                it.budgets = Read(vec![budget("web/web", 1)]);
                of(&mut it.pods)[1].not_ready = Some("0/6 nodes match".to_owned());
            },
        ),
        row(DrainLocalData, Info, "Pod web/web-0", &["emptyDir cache"], |it| {
            of(&mut it.pods)[0].scratch = vec!["cache".to_owned()];
        }),
        row(DrainLocalData, Risky, "Pod web/web-0", &["pv-1 is a part of w-0 (local)"], |it| {
            of(&mut it.pods)[0].claims = vec!["web/data".to_owned()];
            it.volumes = Read(vec![volume(Some("local"))]);
        }),
        row(DrainBarePod, Risky, "Pod web/web-0", &["nobody makes it again when w-0 is drained"], |it| {
            of(&mut it.pods)[0].owner = None;
        }),
    ]
}

pub fn volume(on_node: Option<&str>) -> Volume {
    Volume { name: "pv-1".into(), claim: Some("web/data".into()), on_node: on_node.map(str::to_owned) }
}

fn extensions() -> Vec<Raised> {
    let object = "ValidatingWebhookConfiguration policy";
    vec![
        row(WebhookBlocksNodes, Blocks, object, &["policy.example.dev", "nodes", "0 ready pods"], |it| {
            it.webhooks = Read(vec![webhook(Some(0))]);
        }),
        row(WebhookBlocksNodes, Risky, object, &["while the 2 ready pods of the service policy/webhook move"], |it| {
            it.webhooks = Read(vec![webhook(Some(2))]);
        }),
        row(WebhookBlocksNodes, Risky, object, &["out of reach"], |it| it.webhooks = Read(vec![webhook(None)])),
        row(WebhookSlow, Risky, object, &["30 s"], |it| {
            it.webhooks = Read(vec![Webhook { timeout_seconds: 30, fails_closed: false, ..webhook(None) }]);
        }),
        row(WebhookSlow, Risky, "APIService v1beta1.metrics.k8s.io", &["no endpoints"], |it| {
            let unavailable = Some("no endpoints".to_owned());
            it.api_services = Read(vec![ApiService { name: "v1beta1.metrics.k8s.io".to_owned(), unavailable }]);
        }),
    ]
}

pub fn certificate(expires: &str, renewed: bool) -> Certificate {
    Certificate {
        object: "Machine default/my-tkc-cp-0".to_owned(),
        name: "my-tkc-cp-0".to_owned(),
        of: CertificateOf::Machine,
        expires: Read(expires.parse().unwrap()),
        renewed,
    }
}

/// One that is in a Secret of the cluster.
pub fn in_secret(of: CertificateOf, expires: &str) -> Certificate {
    let object = "Secret default/my-tkc-x".to_owned();
    Certificate { object, name: "CN=kubernetes".to_owned(), of, ..certificate(expires, false) }
}

fn certificates() -> Vec<Raised> {
    let machine = "Machine default/my-tkc-cp-0";
    vec![
        row(CertExpiring, Blocks, machine, &["expired 2 days ago"], |it| {
            it.certificates = Read(vec![certificate("2025-12-31T00:00:00Z", true)]);
        }),
        row(CertExpiring, Risky, machine, &["expire in 10 days"], |it| {
            it.certificates = Read(vec![certificate("2026-01-12T00:00:00Z", false)]);
        }),
        row(CertExpiring, Info, machine, &["expire in 10 days", "makes them anew"], |it| {
            it.certificates = Read(vec![certificate("2026-01-12T00:00:00Z", true)]);
        }),
        row(
            CertExpiring,
            Risky,
            "Secret default/my-tkc-x",
            &["the authority CN=kubernetes expires in 10 days"],
            |it| {
                it.certificates = Read(vec![in_secret(CertificateOf::Authority, "2026-01-12T00:00:00Z")]);
            },
        ),
        row(
            CertExpiring,
            Blocks,
            "Secret default/my-tkc-x",
            &["the certificate of CN=kubernetes expired 1 day"],
            |it| {
                it.certificates = Read(vec![in_secret(CertificateOf::Kubeconfig, "2026-01-01T00:00:00Z")]);
            },
        ),
        row(SecretOwner, Blocks, "Secret default/my-tkc-ca", &["not there"], |it| {
            it.certificate_secrets = Read(vec![secret(None, false)]);
        }),
        row(SecretOwner, Risky, "Secret default/my-tkc-ca", &["KubeadmConfig/my-tkc-cp-0"], |it| {
            it.certificate_secrets = Read(vec![secret(Some(&["KubeadmConfig/my-tkc-cp-0"]), false)]);
        }),
    ]
}

pub fn addresses(total: u64, used: u64) -> AddressPool {
    AddressPool {
        name: "InClusterIPPool default/machines".to_owned(),
        what: "addresses of machines".to_owned(),
        addresses: Read(Addresses { total, used }),
        way_out: "spec.addresses of the pool".to_owned(),
    }
}

fn room() -> Vec<Raised> {
    vec![
        row(
            RiskId::Quota,
            Blocks,
            "ResourceQuota default/limits",
            &["the pool workers", "used 5 of 5", "1 more"],
            |it| {
                of(&mut it.surges).remove(0);
                it.quotas = Read(vec![quota("count/wcpmachines.infrastructure.cluster.vmware.com", 5, 5)]);
            },
        ),
        row(
            RiskId::Quota,
            Risky,
            "ResourceQuota default/limits",
            &["memory is used 72Gi of 80Gi", "16Gi more"],
            |it| {
                of(&mut it.surges).remove(0);
                it.quotas = Read(vec![quota("memory", 80 << 30, 72 << 30)]);
            },
        ),
        row(
            IpPool,
            Blocks,
            "InClusterIPPool default/machines",
            &["5 of 5 addresses of machines are taken", "the control plane needs 1"],
            |it| {
                it.address_pools = Read(vec![addresses(5, 5)]);
            },
        ),
    ]
}

/// A package with one image.
pub fn package(state: ImageState) -> Package {
    let images = vec![Image { name: "vmware/calico:v3.13".to_owned(), state }];
    Package { name: "calico".to_owned(), version: "v3.13".to_owned(), images, kinds: Vec::new() }
}

/// A package with one object.
pub fn package_of(api_version: &str, kind: &str) -> Package {
    let kinds =
        vec![PackageKind { api_version: api_version.to_owned(), kind: kind.to_owned(), object: "all".to_owned() }];
    Package { kinds, images: Vec::new(), ..package(ImageState::There) }
}

/// The first pod waits for an image.
pub fn waits_for_image(evidence: &mut Evidence, package: Option<&str>) {
    let pod = &mut of(&mut evidence.pods)[0];
    let (image, why) = ("registry.local/web:v9".to_owned(), "ErrImagePull: not found".to_owned());
    pod.pull_failures = vec![PullFailure { image, why }];
    pod.package = package.map(str::to_owned);
}

fn packages() -> Vec<Raised> {
    vec![
        row(ImageMissing, Blocks, "Package calico", &["vmware/calico:v3.13 is missing", "calico v3.13"], |it| {
            it.packages = Read(vec![package(ImageState::Missing("the disk".to_owned()))]);
        }),
        row(
            ImageMissing,
            Blocks,
            "Pod web/web-0",
            &["registry.local/web:v9", "the package calico is not well"],
            |it| {
                waits_for_image(it, Some("calico"));
            },
        ),
        row(ImageMissing, Risky, "Pod web/web-0", &["registry.local/web:v9 cannot be had"], |it| {
            waits_for_image(it, None);
        }),
        row(PkgIncompatible, Blocks, "Package calico", &["PodSecurityPolicy all", "v1.25.4 does not know"], |it| {
            it.packages = Read(vec![package_of("policy/v1beta1", "PodSecurityPolicy")]);
        }),
        row(PkgIncompatible, Blocks, "TanzuKubernetesCluster default/my-tkc", &["antrea is none of it"], |it| {
            it.not_offered = Read(vec!["antrea is none of it".to_owned()]);
        }),
        row(PkgUnmanaged, Risky, "Package calico (cni)", &["leaves it at its version"], |it| {
            it.unmanaged = Read(vec!["calico (cni)".to_owned()]);
        }),
        row(
            PkgAhead,
            Risky,
            "Package antrea",
            &["1.9.0 of v1.25.4 comes in place of 1.7.2", "API servers of v1.24.9"],
            |it| {
                it.ahead = Read(vec![ahead("vsphere-csi", false), ahead("antrea", true)]);
            },
        ),
        row(PkgAhead, Info, "Package antrea", &["until the last one is replaced it runs on nodes of v1.24.8"], |it| {
            it.ahead = Read(vec![ahead("antrea", true)]);
            goes(it, "v1.24.8", "v1.24.9");
        }),
    ]
}

/// A package that comes before any machine.
pub fn ahead(name: &str, is_network: bool) -> Ahead {
    Ahead { name: name.to_owned(), is_network, from: "1.7.2".to_owned(), to: "1.9.0".to_owned() }
}

fn health() -> Vec<Raised> {
    vec![
        row(NodeUnhealthy, Blocks, "Node cp-1", &["only while all of its nodes are well"], |it| {
            of(&mut it.nodes)[1].unwell = vec!["it is not ready".to_owned()];
        }),
        row(NodeUnhealthy, Blocks, "Machine default/my-tkc-cp-1", &["no node", "Provisioning"], |it| {
            let machine = &mut of(&mut it.machines)[1];
            (machine.node, machine.phase) = (None, "Provisioning".to_owned());
        }),
        row(NodeUnhealthy, Risky, "Node w-0", &["its pool may not come to an end"], |it| {
            of(&mut it.nodes)[3].unwell = vec!["it is not ready".to_owned()];
            let (name, machines) = ("default/workers".to_owned(), vec!["my-tkc-w-0".to_owned()]);
            it.health_checks = Read(vec![HealthCheck { name, machines }]);
        }),
        row(NodeUnhealthy, Risky, "Node w-0", &["takes no pods"], |it| of(&mut it.nodes)[3].cordoned = true),
    ]
}

fn etcd() -> Vec<Raised> {
    vec![
        row(EtcdUnhealthy, Blocks, "Member cp-2", &["does not answer", "would lose the quorum"], |it| {
            of(&mut it.members)[2].healthy = false;
        }),
        row(EtcdUnhealthy, Blocks, "Member cp-2", &["does not answer", "no voter to spare"], |it| {
            goes(it, "v1.27.1", "v1.27.9");
            for node in of(&mut it.nodes) {
                node.kubelet = Some("v1.27.1".parse().unwrap());
            }
            of(&mut it.members)[2].healthy = false;
        }),
        row(EtcdUnhealthy, Blocks, "Member 3", &["never started"], |it| of(&mut it.members)[2].name.clear()),
        row(EtcdUnhealthy, Blocks, "Member cp-2", &["does not vote yet"], |it| of(&mut it.members)[2].learner = true),
        row(EtcdUnhealthy, Blocks, "Member cp-0", &["raises an alarm: it has no more space"], |it| {
            of(&mut it.members)[0].alarms = Read(vec![Alarm::NoSpace]);
        }),
        row(EtcdUnhealthy, Risky, "Member cp-2", &["does not answer"], |it| {
            it.rolls.control_plane = false;
            of(&mut it.members)[2].healthy = false;
        }),
    ]
}

pub fn update(to: &str, state: UpdateState) -> Update {
    Update { name: "my-tkc-1".to_owned(), to: to.to_owned(), state, because: vec!["a machine is slow".to_owned()] }
}

pub fn hold(on: HoldOn) -> Hold {
    let (object, how) = ("Cluster default/my-tkc".to_owned(), "spec.paused is true".to_owned());
    Hold { object, how, on, way_out: "kubectl patch cluster my-tkc".to_owned() }
}

fn progress() -> Vec<Raised> {
    let record = "ClusterUpdate default/my-tkc-1";
    vec![
        row(UpdateInProgress, Risky, record, &["leads to v1.24.9", "begins when it has"], |it| {
            it.updates = Read(vec![update("v1.24.9", UpdateState::Running)]);
        }),
        row(UpdateFailedBefore, Blocks, record, &["the last update, to v1.24.9, has failed"], |it| {
            it.updates = Read(vec![update("v1.24.9", UpdateState::Failed)]);
        }),
        row(UpdateFailedBefore, Risky, record, &["v1.25.4, was given up"], |it| {
            let aborted = update("v1.25.4", UpdateState::Aborted);
            it.updates = Read(vec![aborted, update("v1.24.9", UpdateState::Succeeded)]);
        }),
        row(RiskId::Hold, Blocks, "Cluster default/my-tkc", &["spec.paused is true", "nothing of the cluster"], |it| {
            it.holds = Read(vec![hold(HoldOn::Cluster)]);
        }),
        row(RiskId::Hold, Blocks, "Cluster default/my-tkc", &["its machines stay"], |it| {
            it.holds = Read(vec![hold(HoldOn::Pool)]);
        }),
        row(RiskId::Hold, Risky, "Cluster default/my-tkc", &["until whoever holds it lets go"], |it| {
            it.holds = Read(vec![hold(HoldOn::Machine)]);
        }),
        row(GitopsDrift, Risky, "TanzuKubernetesCluster default/my-tkc", &["the Application fleet of Argo CD"], |it| {
            let object = "TanzuKubernetesCluster default/my-tkc".to_owned();
            let (tool, of) = ("Argo CD".to_owned(), "the Application fleet".to_owned());
            it.keepers = Read(vec![Keeper { object, tool, of }]);
        }),
    ]
}
