//! Certificates: when they end, as far as a snapshot says so, and whose the Secrets are that no machine can join without.

use jiff::Timestamp;
use serde_json::Value;
use windlass_api::annotation;
use windlass_api::name::{ClusterName, ClusterSecret};
use windlass_plan::risk::Known;
use windlass_plan::risk::evidence::{Certificate, CertificateOf, CertificateSecret, Evidence, Gap};

use super::lists::Lists;
use super::management::{CLUSTER, its_own};
use super::object::{self, list, name_of, namespace_of, shown, some_text, text};
use crate::snapshot::CertificateDates;

/// The Secrets that are an authority.
const AUTHORITIES: [ClusterSecret; 3] =
    [ClusterSecret::CertificateAuthority, ClusterSecret::Etcd, ClusterSecret::FrontProxy];

pub(super) fn fill(evidence: &mut Evidence, management: &Lists<'_>, workload: &Lists<'_>) {
    let machines = of_machines(management, workload, evidence);
    evidence.certificates =
        of_secrets(management, evidence).map(|secrets| secrets.into_iter().chain(machines).collect());
    evidence.certificate_secrets = certificate_secrets(management, evidence);
}

/// Those of machines, where Cluster API says when they end.
///
/// Where the API of the cluster has answered, its certificates were good. Machines that are replaced get new ones, so that
/// nothing more has to be known.
fn of_machines(management: &Lists<'_>, workload: &Lists<'_>, evidence: &Evidence) -> Vec<Certificate> {
    let renewed = evidence.rolls.control_plane;
    let found = its_own(management.of("Machine").chain(management.of("KubeadmConfig")).collect(), evidence);
    let dated = found.filter_map(|object| {
        let status = some_text(object, "/status/certificatesExpiryDate");
        let said = object::annotation(object, annotation::CERTIFICATES_EXPIRY.name).map(str::to_owned);
        let expires: Timestamp = status.or(said)?.parse().ok()?;
        let (object, name) = (shown(object), name_of(object).to_owned());
        Some(Certificate { object, name, of: CertificateOf::Machine, expires: Known::Read(expires), renewed })
    });
    let dated: Vec<Certificate> = dated.collect();
    if !dated.is_empty() || (renewed && workload.missing().is_none()) {
        return dated;
    }
    let gap = Gap {
        what: "the dates of the certificates of machines".to_owned(),
        why: "no Machine and no KubeadmConfig says them".to_owned(),
        way_out: "kubeadm certs check-expiration, on each machine of the control plane".to_owned(),
    };
    let (object, name) = (format!("Cluster {}", evidence.cluster), "of the control plane".to_owned());
    vec![Certificate { object, name, of: CertificateOf::Machine, expires: Known::Unread(gap), renewed }]
}

/// Those in the Secrets of the cluster: the authorities, and the one that its kubeconfig has.
fn of_secrets(management: &Lists<'_>, evidence: &Evidence) -> Known<Vec<Certificate>> {
    let Ok(name) = ClusterName::new(evidence.cluster.name.as_str()) else { return Known::Read(Vec::new()) };
    management.kind("Secret").map(|secrets| {
        let find = |secret: ClusterSecret| named(&secrets, evidence, secret.object_name(&name).as_str());
        let authorities: Vec<&Value> = AUTHORITIES.into_iter().filter_map(find).collect();
        let undated: Vec<&&Value> = authorities.iter().filter(|secret| dates(secret).is_empty()).collect();
        let mut found: Vec<Certificate> =
            authorities.iter().filter_map(|secret| earliest(secret, CertificateOf::Authority)).collect();
        found.extend(find(ClusterSecret::Kubeconfig).and_then(|secret| earliest(secret, CertificateOf::Kubeconfig)));
        found.extend(undated.first().map(|first| without_dates(first, &undated)));
        found
    })
}

/// What a snapshot says of the certificates in a Secret.
fn dates(secret: &Value) -> Vec<CertificateDates> {
    let said = object::annotation(secret, annotation::CERTIFICATE_DATES.name);
    said.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The one that ends first.
fn earliest(secret: &Value, of: CertificateOf) -> Option<Certificate> {
    let first = dates(secret).into_iter().min_by_key(|dates| dates.not_after)?;
    let (object, expires) = (shown(secret), Known::Read(first.not_after));
    Some(Certificate { object, name: first.subject, of, expires, renewed: false })
}

/// Secrets whose certificates nobody could read.
fn without_dates(first: &Value, undated: &[&&Value]) -> Certificate {
    let (namespace, name) = (namespace_of(first), name_of(first));
    let names: Vec<&str> = undated.iter().map(|secret| name_of(secret)).collect();
    let gap = Gap {
        what: format!("the dates of the certificates in {}", names.join(", ")),
        why: "there is no certificate in it that could be read".to_owned(),
        way_out: format!(
            "kubectl -n {namespace} get secret {name} -o jsonpath='{{.data.tls\\.crt}}' | base64 -d | openssl x509 -noout -enddate"
        ),
    };
    let (object, of) = (shown(first), CertificateOf::Authority);
    Certificate { object, name: "in it".to_owned(), of, expires: Known::Unread(gap), renewed: false }
}

fn named<'s>(secrets: &[&'s Value], evidence: &Evidence, name: &str) -> Option<&'s Value> {
    let namespace = evidence.cluster.namespace.as_str();
    secrets.iter().copied().find(|object| namespace_of(object) == namespace && name_of(object) == name)
}

fn certificate_secrets(lists: &Lists<'_>, evidence: &Evidence) -> Known<Vec<CertificateSecret>> {
    let cluster = &evidence.cluster;
    let Ok(name) = ClusterName::new(cluster.name.as_str()) else {
        return Known::unread("the Secrets of the cluster", "its name is too long for any");
    };
    let its_name = |object: &&Value| {
        namespace_of(object) == cluster.namespace.as_str() && name_of(object) == cluster.name.as_str()
    };
    // A control plane that Cluster API looks after lives as long as the cluster does.
    let control_planes = its_own(lists.of("KubeadmControlPlane").collect(), evidence);
    let lasting: Vec<(&str, &str)> = lists
        .of(CLUSTER)
        .filter(its_name)
        .chain(control_planes)
        .map(|object| (text(object, "/kind"), text(object, "/metadata/uid")))
        .collect();
    lists.kind("Secret").map(|secrets| {
        let secret = |secret: ClusterSecret| {
            let name = secret.object_name(&name);
            let found = named(&secrets, evidence, name.as_str());
            let owners = found.map(|object| list(object, "/metadata/ownerReferences").collect::<Vec<_>>());
            let is_lasting = |owner: &&Value| lasting.contains(&(text(owner, "/kind"), text(owner, "/uid")));
            CertificateSecret {
                name: format!("{}/{name}", cluster.namespace),
                lasts: owners.as_ref().is_some_and(|owners| owners.iter().any(is_lasting)),
                owners: owners.map(|owners| {
                    let shown = |owner: &Value| format!("{}/{}", text(owner, "/kind"), text(owner, "/name"));
                    owners.into_iter().map(shown).collect()
                }),
            }
        };
        ClusterSecret::CERTIFICATES.into_iter().map(secret).collect()
    })
}
