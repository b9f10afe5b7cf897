//! What is public about the certificates in a Secret: whose they are, and from when to when they are good. It is read before the
//! data goes, and kept in an annotation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};
use windlass_api::annotation;
use x509_parser::pem::Pem;

use crate::snapshot::CertificateDates;

/// What a block of PEM says that is a certificate.
const CERTIFICATE: &str = "CERTIFICATE";
/// Fields of a kubeconfig that are a certificate. The authority in it is in a Secret of its own.
const IN_KUBECONFIG: &str = "client-certificate-data:";

/// Notes the dates of the certificates in a Secret.
pub(super) fn note(secret: &mut Value) {
    let data = secret["data"].as_object().cloned().unwrap_or_default();
    let dates: Vec<CertificateDates> = data.iter().flat_map(|(key, value)| dates(key, value)).collect();
    if dates.is_empty() {
        return;
    }
    let Ok(text) = serde_json::to_string(&dates) else { return };
    let Some(metadata) = secret.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(annotation::CERTIFICATE_DATES.name.to_owned(), text.into());
    }
}

/// The certificates of an entry: PEM, or a kubeconfig with one in it.
fn dates(key: &str, value: &Value) -> Vec<CertificateDates> {
    let Ok(plain) = STANDARD.decode(value.as_str().unwrap_or_default()) else { return Vec::new() };
    let text = String::from_utf8_lossy(&plain);
    let embedded = text.lines().filter_map(|line| line.split_once(IN_KUBECONFIG));
    let embedded = embedded.filter_map(|(_, rest)| STANDARD.decode(rest.trim().trim_matches(['"', '\''])).ok());
    std::iter::once(plain.clone()).chain(embedded).flat_map(|pem| in_pem(key, &pem)).collect()
}

fn in_pem(key: &str, pem: &[u8]) -> Vec<CertificateDates> {
    let blocks = Pem::iter_from_buffer(pem).filter_map(Result::ok).filter(|block| block.label == CERTIFICATE);
    blocks.filter_map(|block| of(key, &block)).collect()
}

fn of(key: &str, block: &Pem) -> Option<CertificateDates> {
    let certificate = block.parse_x509().ok()?;
    let validity = certificate.validity();
    Some(CertificateDates {
        key: key.to_owned(),
        subject: certificate.subject().to_string(),
        not_before: Timestamp::from_second(validity.not_before.timestamp()).ok()?,
        not_after: Timestamp::from_second(validity.not_after.timestamp()).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::snapshot::redact::tests::AUTHORITY;

    #[track_caller]
    fn check(data: &Value, dates: Option<&str>) {
        let mut secret = json!({"kind": "Secret", "metadata": {"name": "a"}, "data": data});
        note(&mut secret);
        let found = &secret["metadata"]["annotations"][annotation::CERTIFICATE_DATES.name];
        assert_eq!(found.as_str(), dates);
    }

    #[test]
    fn whose_a_certificate_is_and_how_long_it_is_good_is_noted() {
        let dates = |key: &str| {
            format!(
                r#"{{"key":"{key}","subject":"CN=kubernetes","notBefore":"2026-01-01T00:00:00Z","notAfter":"2026-01-12T00:00:00Z"}}"#
            )
        };
        let encoded = STANDARD.encode(AUTHORITY);
        let key = STANDARD.encode("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
        check(&json!({"tls.crt": encoded, "tls.key": key}), Some(&format!("[{}]", dates("tls.crt"))));
        let twice = STANDARD.encode(format!("{AUTHORITY}{AUTHORITY}"));
        check(&json!({"ca.crt": twice}), Some(&format!("[{0},{0}]", dates("ca.crt"))));
        let kubeconfig = format!("kind: Config\nusers:\n- user:\n    client-certificate-data: {encoded}\n");
        check(&json!({"value": STANDARD.encode(kubeconfig)}), Some(&format!("[{}]", dates("value"))));
        check(
            &json!({"tls.crt": STANDARD.encode("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")}),
            None,
        );
        check(&json!({"password": STANDARD.encode("hunter2"), "odd": "%"}), None);
        check(&Value::Null, None);
    }
}
