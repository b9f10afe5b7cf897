//! Certificates: how long they last, and whose they are.

use jiff::{SignedDuration, Timestamp};

use super::evidence::{Certificate, CertificateOf, CertificateSecret, Evidence};
use super::{Found, Risk, RiskId, Severity, count, parts, shown};

/// How long before its end a certificate is worth a word: as long as one month of updates.
const SOON: SignedDuration = SignedDuration::from_hours(30 * 24);

pub(super) fn check(evidence: &Evidence, found: &mut Found) {
    if !evidence.rolls.any() {
        return;
    }
    for certificate in found.read(&[RiskId::CertExpiring], &evidence.certificates) {
        if let Some(expires) = found.read_one(&[RiskId::CertExpiring], &certificate.expires) {
            found.risks.extend(expiring(certificate, *expires, evidence));
        }
    }
    for secret in found.read(&[RiskId::SecretOwner], &evidence.certificate_secrets) {
        found.risks.extend(owner(secret, evidence));
    }
}

fn expiring(certificate: &Certificate, end: Timestamp, evidence: &Evidence) -> Option<Risk> {
    let left = evidence.at.duration_until(end);
    if left > SOON {
        return None;
    }
    let days = count(usize::try_from(left.abs().as_hours() / 24).unwrap_or(usize::MAX), "day");
    let expired = left <= SignedDuration::ZERO;
    let Certificate { name, of, .. } = certificate;
    let (what, expire) = match of {
        CertificateOf::Machine => (format!("the certificates of the machine {name}"), "expire"),
        CertificateOf::Authority => (format!("the authority {name}"), "expires"),
        CertificateOf::Kubeconfig => (format!("the certificate of {name}"), "expires"),
    };
    let (severity, message) = match (expired, certificate.renewed) {
        (true, _) => (Severity::Blocks, format!("{what} expired {days} ago")),
        (false, true) => (Severity::Info, format!("{what} {expire} in {days}; the update makes them anew")),
        (false, false) => (Severity::Risky, format!("{what} {expire} in {days}")),
    };
    Some(Risk {
        severity,
        id: RiskId::CertExpiring,
        object: certificate.object.clone(),
        message,
        because: vec![ends(*of, end)],
        way_out: renewal(certificate, expired),
    })
}

fn ends(of: CertificateOf, expires: Timestamp) -> String {
    match of {
        CertificateOf::Machine => format!("they last until {expires}"),
        CertificateOf::Authority => format!("it lasts until {expires}, and then no machine trusts another"),
        CertificateOf::Kubeconfig => format!("it lasts until {expires}, and then nobody here reaches the cluster"),
    }
}

/// What makes a certificate anew.
fn renewal(certificate: &Certificate, expired: bool) -> String {
    let (_, secret) = certificate.object.split_once(' ').unwrap_or_default();
    let way_out = match certificate.of {
        CertificateOf::Machine => "kubeadm certs renew all, on each machine of the control plane".to_owned(),
        CertificateOf::Authority => format!(
            "another authority in Secret {secret}, beside the old one until all machines know both: no update makes one"
        ),
        CertificateOf::Kubeconfig => {
            let (namespace, name) = parts(secret);
            format!("kubectl -n {namespace} delete secret {name}: Cluster API makes another")
        }
    };
    if expired || certificate.of == CertificateOf::Authority {
        way_out
    } else {
        format!("nothing, if the update is done before; else {way_out}")
    }
}

fn owner(secret: &CertificateSecret, evidence: &Evidence) -> Option<Risk> {
    let cluster = &evidence.cluster.name;
    let object = format!("Secret {}", secret.name);
    let Some(owners) = &secret.owners else {
        return Some(Risk {
            severity: Severity::Blocks,
            id: RiskId::SecretOwner,
            object,
            message: "it is not there, and no machine can join without it".to_owned(),
            because: vec!["a new one would not fit what the machines have".to_owned()],
            way_out: format!("windlass secrets recover {cluster}"),
        });
    };
    if secret.lasts || !evidence.rolls.control_plane {
        return None;
    }
    let message = if owners.is_empty() {
        "nobody owns it: it is left behind, or cleaned up by whoever finds it".to_owned()
    } else {
        format!("it belongs to {} and not to the Cluster: it is deleted with them", shown(owners))
    };
    let (namespace, name) = parts(&secret.name);
    Some(Risk {
        severity: Severity::Risky,
        id: RiskId::SecretOwner,
        object,
        message,
        because: vec![
            "Windlass hands it over to the Cluster before it deletes a machine; others may delete one first".into(),
        ],
        way_out: format!("kubectl -n {namespace} edit secret {name}: metadata.ownerReferences, the Cluster {cluster}"),
    })
}
