//! What is decided by what a snapshot keeps of manifests, of who wrote what, of certificates and of addresses: there, not there,
//! and not known.

use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use windlass_plan::risk::{Risk, RiskId, Severity};
use windlass_rehearse::snapshot::{Gap, Snapshot};

use super::{WELL, first, risks, taken, upgrade, workload};
use crate::start::{self, cluster_name};

/// An authority that is good until 2026-01-12. There is no key to it any more.
pub const ENDS_SOON: &str = "-----BEGIN CERTIFICATE-----\n\
MIIBSjCB8aADAgECAgEBMAoGCCqGSM49BAMCMBUxEzARBgNVBAMMCmt1YmVybmV0\n\
ZXMwHhcNMjYwMTAxMDAwMDAwWhcNMjYwMTEyMDAwMDAwWjAVMRMwEQYDVQQDDApr\n\
dWJlcm5ldGVzMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEs2fXYIPGeDg3Sf3F\n\
64oYT1yOOBgs+4zzEQ65RyYrQIpdGJjdTz8B/8DGWLDcmLz6h3ZFye3OrLFUdhR0\n\
os6gNqMyMDAwDwYDVR0TAQH/BAUwAwEB/zAdBgNVHQ4EFgQUAl8AIGvKgVYPKLNp\n\
3o7HCEGs/KEwCgYIKoZIzj0EAwIDSAAwRQIgBvV/9Kj37uOhEv9fwnQqKX7VxsUh\n\
Mj8jTQMSWSwg3sACIQCSXDV1Ijq3Q1doafy/AbCSY/+3R0QfAofXJ9oMt0qaMw==\n\
-----END CERTIFICATE-----\n";

/// The same, until the end of 2035.
const ENDS_LATE: &str = "-----BEGIN CERTIFICATE-----\n\
MIIBSjCB8aADAgECAgEBMAoGCCqGSM49BAMCMBUxEzARBgNVBAMMCmt1YmVybmV0\n\
ZXMwHhcNMjYwMTAxMDAwMDAwWhcNMzUxMjMwMDAwMDAwWjAVMRMwEQYDVQQDDApr\n\
dWJlcm5ldGVzMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEs2fXYIPGeDg3Sf3F\n\
64oYT1yOOBgs+4zzEQ65RyYrQIpdGJjdTz8B/8DGWLDcmLz6h3ZFye3OrLFUdhR0\n\
os6gNqMyMDAwDwYDVR0TAQH/BAUwAwEB/zAdBgNVHQ4EFgQUAl8AIGvKgVYPKLNp\n\
3o7HCEGs/KEwCgYIKoZIzj0EAwIDSAAwRQIhAMmOT9MLtpFM9dz/EdJNH4x1m7El\n\
XV6+LFwsUml4Dh9/AiBcAgURS/MpyLxkaXJwwiqpnbAQnHHCPrsFiHL8KMujfw==\n\
-----END CERTIFICATE-----\n";

/// What is said of one check.
fn said(snapshot: &Snapshot, id: RiskId) -> Vec<(Severity, String)> {
    let found = risks(snapshot, &upgrade());
    let of_it = found.into_iter().filter(|risk| risk.id == id);
    of_it.map(|risk| (risk.severity, format!("{}: {}", risk.object, risk.message))).collect()
}

/// What is said of one check once a snapshot is changed.
fn changed(id: RiskId, change: impl FnOnce(&mut Snapshot)) -> Vec<(Severity, String)> {
    let mut snapshot = WELL.clone();
    change(&mut snapshot);
    said(&snapshot, id)
}

fn forbidden(snapshot: &mut Snapshot, what: &str) {
    let (why, way_out) = ("forbidden".to_owned(), "a role".to_owned());
    snapshot.gaps.push(Gap { what: what.to_owned(), why, way_out });
}

#[track_caller]
fn is_unknown(found: &[(Severity, String)], words: &str) {
    assert!(matches!(found, [(Severity::Unknown, said)] if said.contains(words)), "{found:#?}");
}

/// A snapshot of a cluster with a Deployment whose manifest was applied in a version.
fn applied(api_version: &'static str) -> Snapshot {
    let world = start::changed(start::one_and_one(), |world| async move {
        let workload = world.workload(&cluster_name()).unwrap();
        let deployments: Api<Deployment> = Api::default_namespaced(Client::new(workload.server().clone(), "default"));
        let manifest = json!({"apiVersion": api_version, "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"template": {"spec": {"containers": [{"env": [{"name": "A", "value": "hunter2"}]}]}}}});
        let last_applied = "kubectl.kubernetes.io/last-applied-configuration";
        let template =
            json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}});
        let object = json!({"metadata": {"name": "web", "annotations": {last_applied: manifest.to_string()}},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template}});
        let params =
            PostParams { field_manager: Some("kubectl-client-side-apply".to_owned()), ..PostParams::default() };
        deployments.create(&params, &serde_json::from_value(object).unwrap()).await.unwrap();
    });
    taken(&world)
}

#[test]
fn a_manifest_in_a_version_that_goes_is_known_by_that_and_nothing_else_of_it_is_kept() {
    let old = applied("extensions/v1beta1");
    let [(Severity::Risky, message)] = &said(&old, RiskId::ApiRemoved)[..] else { panic!("{old:?}") };
    assert!(
        message.contains("Deployment default/web: its manifest was last applied as extensions/v1beta1"),
        "{message}"
    );
    assert!(!format!("{old:?}").contains("hunter2"));
    let new = applied("apps/v1");
    assert_eq!(said(&new, RiskId::ApiRemoved), []);
    // Who wrote it is known, too: the programs of this World write in versions that stay.
    assert!(format!("{new:?}").contains("kubectl-client-side-apply"));
    assert_eq!(said(&new, RiskId::ApiClientOld), []);
    let unread = changed(RiskId::ApiRemoved, |snapshot| {
        forbidden(snapshot, "networkpolicies.networking.k8s.io of default/my-tkc");
    });
    is_unknown(&unread, "networkpolicies");
    // Of a kind that loses no version on this way nothing has to be known.
    assert_eq!(changed(RiskId::ApiRemoved, |snapshot| forbidden(snapshot, "cronjobs.batch of default/my-tkc")), []);
}

#[test]
fn a_client_is_old_by_the_version_in_which_it_wrote_last() {
    let wrote = |entries: Value| {
        changed(RiskId::ApiClientOld, |snapshot| {
            first(workload(snapshot), "ServiceAccount")["kind"] = json!("Deployment");
            let object = first(workload(snapshot), "Deployment");
            object["metadata"]["labels"] = json!({});
            object["metadata"]["managedFields"] = entries;
        })
    };
    let entry = |manager: &str, api_version: &str, time: &str| json!({"manager": manager, "operation": "Update", "apiVersion": api_version, "time": time});
    let old = entry("helm", "extensions/v1beta1", "2026-01-01T00:00:00Z");
    let [(Severity::Risky, message)] = &wrote(json!([old]))[..] else { panic!("it is not old") };
    assert!(message.contains("helm last wrote it at 2026-01-01T00:00:00Z as extensions/v1beta1"), "{message}");
    assert_eq!(wrote(json!([old, entry("helm", "apps/v1", "2026-01-01T00:00:01Z")])), [], "it writes otherwise since");
    let own = entry("kube-controller-manager", "extensions/v1beta1", "2026-01-01T00:00:00Z");
    assert_eq!(wrote(json!([own])), [], "it is replaced with the rest of Kubernetes");
    let nobody = changed(RiskId::ApiClientOld, |snapshot| {
        for object in workload(snapshot) {
            object["metadata"].as_object_mut().unwrap().remove("managedFields");
        }
    });
    is_unknown(&nobody, "managedFields");
}

/// A snapshot of a cluster whose authorities have these certificates.
fn certified(authority: &'static str, others: &'static str) -> Snapshot {
    let world = start::changed(start::one_and_one(), |world| async move {
        let secrets: Api<Secret> = Api::default_namespaced(world.client());
        for (name, certificate) in [("my-tkc-ca", authority), ("my-tkc-etcd", others), ("my-tkc-proxy", others)] {
            let data = json!({"data": {"tls.crt": ByteString(certificate.as_bytes().to_vec())}});
            secrets.patch(name, &PatchParams::default(), &Patch::Merge(data)).await.unwrap();
        }
    });
    taken(&world)
}

#[test]
fn when_an_authority_ends_is_read_before_its_data_goes() {
    let soon = certified(ENDS_SOON, ENDS_LATE);
    let text = "Secret default/my-tkc-ca: the authority CN=kubernetes expires in 10 days";
    assert_eq!(said(&soon, RiskId::CertExpiring), [(Severity::Risky, text.to_owned())]);
    let body = ENDS_SOON.lines().nth(1).unwrap();
    assert!(!format!("{soon:?}").contains(body), "the certificate itself is not kept");
    let late = certified(ENDS_LATE, ENDS_LATE);
    assert_eq!(said(&late, RiskId::CertExpiring), []);
    // A rehearsal's own Secrets have texts in the place of certificates.
    is_unknown(&said(&WELL, RiskId::CertExpiring), "my-tkc-ca, my-tkc-etcd, my-tkc-proxy");
    let mut unread = late;
    forbidden(&mut unread, "secrets of the management cluster");
    is_unknown(&said(&unread, RiskId::CertExpiring), "secrets");
}

/// The machines have their addresses from a pool, and there are pools beside it.
fn pool(snapshot: &mut Snapshot, kind: &str, total: u64) {
    let metadata = |name: &str| json!({"namespace": "default", "name": name});
    let claim = json!({"kind": "IPAddressClaim", "metadata": metadata("my-tkc-0"),
        "spec": {"clusterName": "my-tkc", "poolRef": {"kind": kind, "name": "machines"}}});
    let pool = |name: &str, total: u64| json!({"kind": kind, "metadata": metadata(name), "status": {"ipAddresses": {"total": total, "used": 2}}});
    snapshot.management.extend([claim, pool("machines", total), pool("of-others", 2)]);
}

#[test]
fn addresses_are_those_of_the_pools_that_machines_claim_them_from() {
    let in_pool = |kind: &'static str, total: u64| changed(RiskId::IpPool, |snapshot| pool(snapshot, kind, total));
    for kind in ["InClusterIPPool", "GlobalInClusterIPPool"] {
        let text = format!(
            "{kind} default/machines: 2 of 2 addresses of machines are taken, and the control plane needs 1 more"
        );
        assert_eq!(in_pool(kind, 2), [(Severity::Blocks, text)]);
        assert_eq!(in_pool(kind, 3), []);
    }
    is_unknown(&in_pool("NutanixIPPool", 3), "how many addresses NutanixIPPool machines has");
    is_unknown(&said(&WELL, RiskId::IpPool), "how many addresses there are for machines");
}

/// The four are not what stays unknown of a cluster that has all of it.
#[test]
fn a_cluster_of_which_all_is_kept_leaves_nothing_undecided() {
    let mut snapshot = certified(ENDS_LATE, ENDS_LATE);
    pool(&mut snapshot, "InClusterIPPool", 3);
    let found = risks(&snapshot, &upgrade());
    let unknown: Vec<&Risk> = found.iter().filter(|risk| risk.severity == Severity::Unknown).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}
