//! Which certificates there are, and what has to be changed about them at a moment.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use x509_parser::pem::parse_x509_pem;

/// How long an authority is valid.
const AUTHORITY_VALID: SignedDuration = SignedDuration::from_hours(365 * 24);
/// How long what it signs is valid.
const SERVING_VALID: SignedDuration = SignedDuration::from_hours(60 * 24);
/// How long before they end the next ones are made: a fortnight in which nobody may have looked.
const AUTHORITY_LEFT: SignedDuration = SignedDuration::from_hours(90 * 24);
const SERVING_LEFT: SignedDuration = SignedDuration::from_hours(20 * 24);
/// How long an authority is trusted before it signs, and after: much longer than it takes until all have heard of it.
const OVERLAP: SignedDuration = SignedDuration::from_hours(24);
/// Certificates are valid from before now on: clocks differ a little.
const BEFORE_NOW: SignedDuration = SignedDuration::from_hours(1);

/// A key or certificate could not be made.
#[derive(Debug, thiserror::Error)]
#[error("make a certificate to serve with")]
pub struct MakeError(#[from] rcgen::Error);

/// A certificate and its key, both PEM.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pair {
    certificate: String,
    key: String,
}

/// What is known of a certificate.
struct Facts {
    from: Timestamp,
    to: Timestamp,
    name: String,
    issuer: String,
    names: Vec<String>,
}

/// The certificates that there are.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificates {
    /// Signs.
    authority: Pair,
    /// Is trusted, and will sign.
    next: Option<Pair>,
    /// Has signed, and is trusted still. Its key is gone.
    previous: Option<String>,
    /// What is served with.
    serving: Pair,
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Keys are nobody's business.
        f.debug_struct("Certificates").field("serving", &self.serving.certificate).finish_non_exhaustive()
    }
}

impl Certificates {
    /// What the Secret says; nothing where it does not say enough, or nothing that can be read.
    pub fn read(data: &BTreeMap<String, Vec<u8>>) -> Option<Self> {
        let text = |key: &str| String::from_utf8(data.get(key)?.clone()).ok();
        let pair = |name: &str| {
            let pair = Pair { certificate: text(&format!("{name}.crt"))?, key: text(&format!("{name}.key"))? };
            (facts(&pair.certificate).is_some() && KeyPair::from_pem(&pair.key).is_ok()).then_some(pair)
        };
        Some(Self {
            authority: pair("ca")?,
            next: pair("next-ca"),
            previous: text("previous-ca.crt").filter(|certificate| facts(certificate).is_some()),
            serving: pair("tls")?,
        })
    }

    /// What the Secret is to say.
    pub fn data(&self) -> BTreeMap<String, Vec<u8>> {
        let pair = |name: &str, pair: &Pair| {
            [(format!("{name}.crt"), pair.certificate.clone()), (format!("{name}.key"), pair.key.clone())]
        };
        let previous = self.previous.iter().map(|certificate| ("previous-ca.crt".to_owned(), certificate.clone()));
        let next = self.next.iter().flat_map(|next| pair("next-ca", next));
        let all = pair("ca", &self.authority).into_iter().chain(pair("tls", &self.serving)).chain(next).chain(previous);
        all.map(|(key, text)| (key, text.into_bytes())).collect()
    }

    /// Every authority that is trusted, as PEM.
    pub fn bundle(&self) -> String {
        let next = self.next.iter().map(|next| next.certificate.as_str());
        let all = std::iter::once(self.authority.certificate.as_str()).chain(next).chain(self.previous.as_deref());
        all.collect()
    }

    /// The certificate to serve with, as PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.serving.certificate
    }

    /// Its key, as PEM.
    pub fn key_pem(&self) -> &str {
        &self.serving.key
    }
}

/// What the certificates are to be next; nothing where they may stay.
pub(super) fn next(
    known: Option<&Certificates>,
    names: &[String],
    now: Timestamp,
) -> Result<Option<Certificates>, MakeError> {
    let Some(known) = known else { return begin(names, now).map(Some) };
    let (Some(authority), Some(serving)) = (facts(&known.authority.certificate), facts(&known.serving.certificate))
    else {
        return begin(names, now).map(Some);
    };
    // It was left alone for so long that nothing of it is believed.
    if authority.to <= now {
        return begin(names, now).map(Some);
    }
    let made = |facts: &Facts| facts.from + BEFORE_NOW;
    if let Some(next) = &known.next
        && facts(&next.certificate).is_some_and(|it| now >= made(&it) + OVERLAP)
    {
        let serving = sign(next, names, now)?;
        let previous = Some(known.authority.certificate.clone());
        return Ok(Some(Certificates { authority: next.clone(), next: None, previous, serving }));
    }
    if known.next.is_none() && now + AUTHORITY_LEFT >= authority.to {
        return Ok(Some(Certificates { next: Some(authority_from(now)?), ..known.clone() }));
    }
    let fits = serving.issuer == authority.name && serving.names == names;
    if !fits || now + SERVING_LEFT >= serving.to {
        let serving = sign(&known.authority, names, now)?;
        return Ok(Some(Certificates { serving, ..known.clone() }));
    }
    if known.previous.is_some() && now >= made(&serving) + OVERLAP {
        return Ok(Some(Certificates { previous: None, ..known.clone() }));
    }
    Ok(None)
}

fn begin(names: &[String], now: Timestamp) -> Result<Certificates, MakeError> {
    let authority = authority_from(now)?;
    let serving = sign(&authority, names, now)?;
    Ok(Certificates { authority, next: None, previous: None, serving })
}

/// A new authority. Its name tells it from the ones before and after.
fn authority_from(now: Timestamp) -> Result<Pair, MakeError> {
    let key = KeyPair::generate()?;
    let mut params = authority_params(&format!("windlass {now:.0}"));
    valid(&mut params, now, AUTHORITY_VALID);
    let certificate = params.self_signed(&key)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// A certificate for these names.
fn sign(authority: &Pair, names: &[String], now: Timestamp) -> Result<Pair, MakeError> {
    let issuer_name = facts(&authority.certificate).map(|facts| facts.name).unwrap_or_default();
    let issuer = Issuer::new(authority_params(&issuer_name), KeyPair::from_pem(&authority.key)?);
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "windlass");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    valid(&mut params, now, SERVING_VALID);
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

pub(super) fn valid(params: &mut CertificateParams, now: Timestamp, time: SignedDuration) {
    let at = |time: Timestamp| {
        let since = Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default());
        rcgen::date_time_ymd(1970, 1, 1) + since
    };
    params.not_before = at(now - BEFORE_NOW);
    params.not_after = at(now + time);
}

/// What a certificate says; nothing where it cannot be read.
fn facts(pem: &str) -> Option<Facts> {
    let (_, pem) = parse_x509_pem(pem.as_bytes()).ok()?;
    let certificate = pem.parse_x509().ok()?;
    let common_name = |name: &x509_parser::x509::X509Name<'_>| {
        let first = name.iter_common_name().next().and_then(|name| name.as_str().ok());
        first.unwrap_or_default().to_owned()
    };
    let time = |time: x509_parser::time::ASN1Time| Timestamp::from_second(time.timestamp()).ok();
    let alternative = certificate.subject_alternative_name().ok().flatten();
    let names = alternative.map(|names| {
        let text = |name: &x509_parser::extensions::GeneralName<'_>| match name {
            x509_parser::extensions::GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        };
        names.value.general_names.iter().filter_map(text).collect()
    });
    Some(Facts {
        from: time(certificate.validity().not_before)?,
        to: time(certificate.validity().not_after)?,
        name: common_name(certificate.subject()),
        issuer: common_name(certificate.issuer()),
        names: names.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        vec!["windlass-webhook.windlass-system.svc".to_owned()]
    }

    fn settle(known: Option<Certificates>, now: Timestamp) -> Certificates {
        let mut known = known;
        for _ in 0..5 {
            match next(known.as_ref(), &names(), now).unwrap() {
                // What is kept is read back.
                Some(changed) => known = Certificates::read(&changed.data()),
                None => return known.unwrap(),
            }
        }
        panic!("it does not come to rest");
    }

    /// Whether a server with this certificate is believed by somebody who trusts the bundle.
    fn believed(serving: &Certificates, bundle: &str, now: Timestamp) -> bool {
        use rustls::pki_types::pem::PemObject;
        use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
        let mut roots = rustls::RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
            roots.add(authority.unwrap()).unwrap();
        }
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            rustls::client::WebPkiServerVerifier::builder_with_provider(std::sync::Arc::new(roots), provider);
        let certificate = CertificateDer::from_pem_slice(serving.certificate_pem().as_bytes()).unwrap();
        let name = ServerName::try_from(names()[0].clone()).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now.as_second()).unwrap()));
        let verifier = verifier.build().unwrap();
        rustls::client::danger::ServerCertVerifier::verify_server_cert(&*verifier, &certificate, &[], &name, &[], now)
            .is_ok()
    }

    /// Three years, looked at every twelve hours. Whoever looked twelve hours ago, a server or somebody who asks, gets on with
    /// whoever looks now.
    #[test]
    fn at_no_moment_is_there_a_server_that_is_not_believed() {
        let mut now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut known = settle(None, now);
        let (mut authorities, mut servings) = (1, 1);
        for _ in 0..(3 * 365 * 2) {
            now += SignedDuration::from_hours(12);
            let before = known.clone();
            known = settle(Some(known), now);
            assert!(believed(&known, &known.bundle(), now), "{now}");
            assert!(believed(&before, &known.bundle(), now), "an old server at {now}");
            assert!(believed(&known, &before.bundle(), now), "an old bundle at {now}");
            authorities += usize::from(before.authority != known.authority);
            servings += usize::from(before.serving != known.serving);
        }
        assert_eq!((authorities, servings), (4, 28));
    }

    #[test]
    fn what_cannot_be_used_is_made_anew() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let known = settle(None, now);
        let late = now + SignedDuration::from_hours(2 * 365 * 24);
        let anew = settle(Some(known.clone()), late);
        assert!(anew != known && believed(&anew, &anew.bundle(), late));
        let mut broken = known.data();
        broken.insert("tls.key".to_owned(), b"no key".to_vec());
        assert!(Certificates::read(&broken).is_none());
        // For other names there is another certificate, by the same authority.
        let other = next(Some(&known), &["other.svc".to_owned()], now).unwrap().unwrap();
        assert!(other.serving != known.serving && other.authority == known.authority);
    }

    #[test]
    fn keys_are_not_shown() {
        let known = settle(None, "2026-01-01T00:00:00Z".parse().unwrap());
        assert!(!format!("{known:?}").contains("PRIVATE"));
    }
}
