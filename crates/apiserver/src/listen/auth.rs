//! Who is let in: the holder of a client certificate of our own authority, or of the bearer token.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Method, Request, header};
use subtle::ConstantTimeEq;
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::{Error, subject, tls};
use crate::auth::{GROUP_MASTERS, User};

/// Whom both kinds of credentials stand for.
pub(super) const ADMIN_NAME: &str = "kubernetes-admin";

/// What anybody may ask, as on a kube-apiserver with its default roles, but for `/version`: no version for strangers.
const PROBES: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// A bearer token: 256 bits from the operating system. Is not printed by `Debug`.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A new token.
    pub fn generate() -> Result<Self, Error> {
        Ok(Self(URL_SAFE_NO_PAD.encode(tls::random::<32>()?)))
    }

    /// The secret itself, for a kubeconfig or an `Authorization` header.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Compares without telling by its duration how much is right.
    fn is(&self, presented: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(presented).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The decision about one request.
#[derive(Debug, PartialEq)]
pub(super) enum Admission {
    /// Valid credentials.
    Known(User),
    /// No credentials, and none needed.
    Probe,
    /// No credentials where they are needed, or wrong ones.
    Refused,
}

/// Decides who is let in.
pub(super) struct Gatekeeper {
    token: Option<Token>,
}

impl Gatekeeper {
    pub(super) fn new(token: Option<Token>) -> Self {
        Self { token }
    }

    /// A certificate counts first; then a token that is presented must be right, even where none is needed.
    pub(super) fn admit<B>(&self, request: &Request<B>, certified: Option<&User>) -> Admission {
        if let Some(user) = certified {
            return Admission::Known(user.clone());
        }
        match bearer(request) {
            Some(presented) if self.token.as_ref().is_some_and(|token| token.is(presented)) => {
                Admission::Known(User::authenticated(ADMIN_NAME, [GROUP_MASTERS.to_owned()]))
            }
            None if request.method() == Method::GET && PROBES.contains(&request.uri().path()) => Admission::Probe,
            _ => Admission::Refused,
        }
    }
}

/// The token that a request presents. A header that is none (another scheme, no token) presents nothing.
fn bearer<B>(request: &Request<B>) -> Option<&[u8]> {
    let value = request.headers().get(header::AUTHORIZATION)?.as_bytes().trim_ascii();
    let mut parts = value.splitn(3, |byte| *byte == b' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case(b"bearer") && !token.is_empty()).then_some(token)
}

/// The user that a verified client certificate names: the common name is the user's, organizations are groups.
pub(super) fn user_of_certificate(certificate: &CertificateDer<'_>) -> Option<User> {
    let subject = subject::parse(certificate)?;
    let mut user = User::authenticated(subject.common_name?, subject.organizations);
    let fingerprint = format!("X509SHA256={}", tls::sha256_hex(certificate));
    user.extra.insert("authentication.kubernetes.io/credential-id".to_owned(), vec![fingerprint]);
    Some(user)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(token: &Token, method: &Method, path: &str, authorization: Option<&str>, expected: &str) {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(value) = authorization {
            request = request.header(header::AUTHORIZATION, value);
        }
        let admission = Gatekeeper::new(Some(token.clone())).admit(&request.body(()).unwrap(), None);
        let found = match admission {
            Admission::Known(user) => user.name,
            Admission::Probe => "probe".to_owned(),
            Admission::Refused => "refused".to_owned(),
        };
        assert_eq!(found, expected, "{method} {path} {authorization:?}");
    }

    #[test]
    fn only_the_right_token_and_probes_are_let_in() {
        let token = Token::generate().unwrap();
        let right = format!("Bearer {}", token.secret());
        let cut = &right[..right.len() - 1];
        let get = &Method::GET;
        check(&token, get, "/api", Some(&right), ADMIN_NAME);
        check(&token, get, "/api", Some(&format!("bearer {}", token.secret())), ADMIN_NAME);
        check(&token, get, "/api", Some(&format!("  {right} trailing")), ADMIN_NAME);
        check(&token, get, "/api", Some(cut), "refused");
        check(&token, get, "/api", Some(&format!("{right}x")), "refused");
        check(&token, get, "/api", Some(token.secret()), "refused");
        check(&token, get, "/api", Some("Bearer"), "refused");
        check(&token, get, "/api", Some("Bearer "), "refused");
        check(&token, get, "/api", Some(&format!("Basic {}", token.secret())), "refused");
        check(&token, get, "/api", None, "refused");
        check(&token, get, "/version", None, "refused");
        check(&token, get, "/healthz", None, "probe");
        check(&token, get, "/livez?verbose", None, "probe");
        check(&token, get, "/readyz/ping", None, "refused");
        check(&token, &Method::POST, "/healthz", None, "refused");
        check(&token, get, "/healthz", Some("Bearer wrong"), "refused");
    }

    #[test]
    fn without_a_token_no_token_is_right() {
        let request = Request::get("/api").header(header::AUTHORIZATION, "Bearer x").body(()).unwrap();
        assert_eq!(Gatekeeper::new(None).admit(&request, None), Admission::Refused);
    }

    #[test]
    fn a_token_has_256_bits_and_stays_out_of_debug_output() {
        let token = Token::generate().unwrap();
        assert_eq!(URL_SAFE_NO_PAD.decode(token.secret()).unwrap().len(), 32);
        assert!(!format!("{token:?}").contains(token.secret()));
        assert_ne!(token.secret(), Token::generate().unwrap().secret());
    }
}
