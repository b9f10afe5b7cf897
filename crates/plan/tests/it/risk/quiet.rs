//! For each check what is almost such a risk, and is none.

use windlass_plan::risk::Known::{self, Read};
use windlass_plan::risk::RiskId::{self, *};
use windlass_plan::risk::evidence::{
    ApiService, CertificateOf, Evidence, Gap, HoldOn, ImageState, Keeper, Rolls, Selection, UnreadKind, UpdateState,
    Versions, Webhook,
};

use super::Quiet;
use super::raised::{
    addresses, ahead, api_use, certificate, client, hold, in_secret, package, package_of, selection, update, volume,
    waits_for_image,
};
use super::sample::{budget, definition, goes, of, quota, secret, webhook};

fn row(id: RiskId, change: fn(&mut Evidence)) -> Quiet {
    Quiet { id, change }
}

pub fn rows() -> Vec<Quiet> {
    [apis(), versions(), drains(), extensions(), certificates(), room(), packages(), health(), progress()]
        .into_iter()
        .flatten()
        .collect()
}

fn apis() -> Vec<Quiet> {
    vec![
        // Of a version that is there, and of one that was gone before.
        row(ApiRemoved, |it| {
            let there = api_use("batch/v1", "CronJob");
            it.manifests = Read(vec![there, api_use("networking.k8s.io/v1beta1", "Ingress")]);
        }),
        row(ApiRemoved, |it| {
            it.manifests = Read(vec![api_use("batch/v1beta1", "CronJob")]);
            goes(it, "v1.24.9", "v1.24.10");
        }),
        // Its kind goes on in another version, and the API server reads it in that.
        row(ApiRemoved, |it| it.objects = Read(vec![api_use("batch/v1beta1", "CronJob")])),
        row(ApiClientOld, |it| it.clients = Read(vec![client("batch/v1")])),
        // Nothing is lost between these two, whoever writes what.
        row(ApiRemoved, loses_nothing),
        row(ApiClientOld, loses_nothing),
        // A kind that was not read, and that loses no version now.
        row(ApiRemoved, |it| it.unread_kinds = vec![unread("Ingress")]),
        row(ApiClientOld, |it| it.unread_kinds = vec![unread("Ingress")]),
        row(CrdStoredOld, |it| it.definitions = Read(vec![definition(&["v1"], &["v1beta1", "v1"])])),
        row(LabelRemoved, |it| {
            it.selections = Read(vec![selection(false)]);
        }),
        row(LabelRemoved, |it| {
            goes(it, "v1.23.17", "v1.24.9");
            let key = "node-role.kubernetes.io/control-plane".to_owned();
            it.selections = Read(vec![Selection { key, ..selection(false) }, selection(true)]);
        }),
    ]
}

/// From 1.16 to 1.17 no version of any kind is lost: nobody has to know who writes in which.
fn loses_nothing(evidence: &mut Evidence) {
    goes(evidence, "v1.16.8", "v1.17.4");
    let unread = Known::unread("all of it", "nobody may");
    (evidence.manifests, evidence.clients) = (unread.clone(), Known::unread("all of it", "nobody may"));
    evidence.objects = unread;
}

/// A kind whose objects were not read.
pub fn unread(kind: &str) -> UnreadKind {
    UnreadKind { kind: kind.to_owned(), gap: Gap::new(&format!("{kind} objects"), "nobody may") }
}

fn versions() -> Vec<Quiet> {
    vec![
        row(SkewKubelet, |it| of(&mut it.nodes)[4].kubelet = Some("v1.23.17".parse().unwrap())),
        row(SkewKubelet, |it| of(&mut it.nodes)[4].kubelet = None),
        row(SkewEtcd, |it| of(&mut it.members)[0].version = Some("3.4.13".parse().unwrap())),
        row(SkewEtcd, |it| {
            of(&mut it.members)[0].version = Some("3.3.10".parse().unwrap());
            let to: &mut Versions = of(&mut it.to);
            to.etcd = None;
        }),
    ]
}

fn drains() -> Vec<Quiet> {
    vec![
        row(PdbNever, |it| it.budgets = Read(vec![budget("web/web", 1)])),
        // Its pods are on nodes that stay.
        row(PdbNever, |it| {
            it.budgets = Read(vec![budget("web/web", 2)]);
            it.rolls.workers = false;
        }),
        row(PdbNever, |it| {
            it.budgets = Read(vec![budget("web/web", 2)]);
            for pod in of(&mut it.pods) {
                pod.stays = true;
            }
        }),
        // It has no pods.
        row(PdbNever, |it| {
            let mut budget = budget("web/web", 2);
            budget.pods.clear();
            it.budgets = Read(vec![budget]);
        }),
        // What is not ready may go.
        row(PdbNever, |it| {
            let mut budget = budget("web/web", 2);
            budget.lets_unready_go = true;
            it.budgets = Read(vec![budget]);
            for pod in of(&mut it.pods) {
                pod.not_ready = Some("it crashes".to_owned());
            }
        }),
        row(PdbAtLimit, |it| it.budgets = Read(vec![budget("web/web", 1)])),
        row(DrainLocalData, |it| {
            let pod = &mut of(&mut it.pods)[0];
            (pod.scratch, pod.stays) = (vec!["cache".to_owned()], true);
        }),
        row(DrainLocalData, |it| {
            of(&mut it.pods)[0].claims = vec!["web/data".to_owned()];
            it.volumes = Read(vec![volume(None)]);
        }),
        row(DrainBarePod, |it| {
            let pod = &mut of(&mut it.pods)[0];
            (pod.owner, pod.ended) = (None, true);
        }),
    ]
}

fn extensions() -> Vec<Quiet> {
    vec![
        row(WebhookBlocksNodes, |it| {
            it.webhooks = Read(vec![Webhook { fails_closed: false, ..webhook(Some(0)) }]);
        }),
        row(WebhookBlocksNodes, |it| {
            it.webhooks = Read(vec![Webhook { node_resources: Vec::new(), ..webhook(Some(0)) }]);
        }),
        row(WebhookSlow, |it| {
            it.webhooks = Read(vec![webhook(None)]);
            it.api_services = Read(vec![ApiService { name: "v1.example.dev".to_owned(), unavailable: None }]);
        }),
        row(WebhookSlow, |it| {
            it.webhooks = Read(vec![Webhook { timeout_seconds: 30, node_resources: Vec::new(), ..webhook(None) }]);
        }),
    ]
}

fn certificates() -> Vec<Quiet> {
    vec![
        row(CertExpiring, |it| it.certificates = Read(vec![certificate("2026-03-01T00:00:00Z", false)])),
        row(CertExpiring, |it| {
            it.certificates = Read(vec![in_secret(CertificateOf::Authority, "2036-01-01T00:00:00Z")]);
        }),
        row(SecretOwner, |it| {
            it.certificate_secrets = Read(vec![secret(Some(&["KubeadmConfig/a", "Cluster/my-tkc"]), true)]);
        }),
    ]
}

fn room() -> Vec<Quiet> {
    vec![
        row(RiskId::Quota, |it| it.quotas = Read(vec![quota("count/machines.cluster.x-k8s.io", 6, 5)])),
        row(RiskId::Quota, |it| it.quotas = Read(vec![quota("services", 0, 5)])),
        // A pool that shrinks before it grows needs no room.
        row(RiskId::Quota, |it| {
            it.quotas = Read(vec![quota("count/machines.cluster.x-k8s.io", 5, 5)]);
            for surge in of(&mut it.surges) {
                surge.machines = 0;
            }
        }),
        row(IpPool, |it| it.address_pools = Read(vec![addresses(6, 5)])),
    ]
}

fn packages() -> Vec<Quiet> {
    vec![
        row(ImageMissing, |it| it.packages = Read(vec![package(ImageState::There)])),
        row(PkgIncompatible, |it| it.packages = Read(vec![package_of("policy/v1", "PodDisruptionBudget")])),
        row(PkgIncompatible, |it| waits_for_image(it, None)),
        row(PkgUnmanaged, |it| {
            it.unmanaged = Read(vec!["calico (cni)".to_owned()]);
            it.rolls = Rolls::NONE;
        }),
        // What is no network is in the way of nobody.
        row(PkgAhead, |it| it.ahead = Read(vec![ahead("vsphere-csi", false)])),
        row(PkgAhead, |it| {
            it.ahead = Read(vec![ahead("antrea", true)]);
            it.rolls = Rolls::NONE;
        }),
    ]
}

fn health() -> Vec<Quiet> {
    vec![
        // What is on the way out is waited for.
        row(NodeUnhealthy, |it| {
            let machine = &mut of(&mut it.machines)[1];
            (machine.node, machine.deleting) = (None, true);
        }),
        row(EtcdUnhealthy, |it| of(&mut it.members).truncate(1)),
    ]
}

fn progress() -> Vec<Quiet> {
    vec![
        row(UpdateInProgress, |it| it.updates = Read(vec![update("v1.25.4", UpdateState::Succeeded)])),
        // What failed and was done since.
        row(UpdateFailedBefore, |it| {
            let failed = update("v1.24.9", UpdateState::Failed);
            it.updates = Read(vec![failed, update("v1.24.9", UpdateState::Succeeded)]);
        }),
        row(RiskId::Hold, |it| {
            it.holds = Read(vec![hold(HoldOn::Cluster)]);
            it.rolls = Rolls::NONE;
        }),
        row(GitopsDrift, |it| {
            let object = "TanzuKubernetesCluster default/my-tkc".to_owned();
            it.keepers = Read(vec![Keeper { object, tool: "Flux".to_owned(), of: "the Kustomization a".to_owned() }]);
            it.rolls = Rolls::NONE;
        }),
    ]
}
