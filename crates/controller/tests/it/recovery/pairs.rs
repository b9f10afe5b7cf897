//! Pairs as openssl writes them, in every form that a key comes in.

use windlass_api::name::ClusterSecret;
use windlass_controller::recovery::bootstrap::Pem;
use windlass_controller::recovery::pair::{PairError, verify};

use super::{EC, EC_CLIENT, EC_KEY_PKCS8, EC_KEY_SEC1, EC_PUBLIC, RSA, RSA_KEY_PKCS1, RSA_KEY_PKCS8, RSA_PUBLIC};

#[track_caller]
fn check(secret: ClusterSecret, public: &str, private: &str, expected: Result<Option<&str>, PairError>) {
    let found = verify(secret, &Pem::new(public), &Pem::new(private));
    let subject = found.map(|identity| identity.certificate.map(|certificate| certificate.subject));
    assert_eq!(subject, expected.map(|subject| subject.map(str::to_owned)));
}

#[test]
fn a_key_is_known_in_pkcs1_pkcs8_and_sec1() {
    let ca = ClusterSecret::CertificateAuthority;
    check(ca, RSA, RSA_KEY_PKCS1, Ok(Some("CN=kubernetes")));
    check(ca, RSA, RSA_KEY_PKCS8, Ok(Some("CN=kubernetes")));
    check(ca, EC, EC_KEY_SEC1, Ok(Some("CN=etcd-ca")));
    check(ca, EC, EC_KEY_PKCS8, Ok(Some("CN=etcd-ca")));
    let sa = ClusterSecret::ServiceAccount;
    check(sa, RSA_PUBLIC, RSA_KEY_PKCS1, Ok(None));
    check(sa, EC_PUBLIC, EC_KEY_SEC1, Ok(None));
    check(sa, RSA, RSA_KEY_PKCS1, Ok(Some("CN=kubernetes")));
}

#[test]
fn what_is_no_pair_is_refused() {
    let ca = ClusterSecret::CertificateAuthority;
    check(ca, RSA, EC_KEY_SEC1, Err(PairError::Mismatch));
    check(ca, EC, RSA_KEY_PKCS1, Err(PairError::Mismatch));
    check(ca, RSA, "", Err(PairError::PrivateKey));
    check(ca, RSA, RSA, Err(PairError::PrivateKey));
    check(ca, "", RSA_KEY_PKCS1, Err(PairError::Certificate));
    check(ca, RSA_PUBLIC, RSA_KEY_PKCS1, Err(PairError::Certificate));
    check(ca, EC_CLIENT, EC_KEY_SEC1, Err(PairError::NoAuthority));
    check(ClusterSecret::ServiceAccount, "", RSA_KEY_PKCS1, Err(PairError::PublicKey));
    let empty = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    check(ca, RSA, empty, Err(PairError::UnknownAlgorithm));
}

#[test]
fn a_certificate_is_shown_as_openssl_shows_it() {
    let found = verify(ClusterSecret::CertificateAuthority, &Pem::new(RSA), &Pem::new(RSA_KEY_PKCS1)).unwrap();
    let certificate = found.certificate.unwrap();
    let digest = "sha256:89af407ae3cc11093e11e62f0964c883eb4af5380da19011f2eb95bba99cdaaa";
    assert_eq!(certificate.sha256.to_string(), digest);
    assert_eq!(certificate.expires.to_string(), "2126-10-23T01:38:48Z");
}
