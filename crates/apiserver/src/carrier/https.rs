//! Questions over HTTPS, to whoever can show a certificate of the right authority.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error as TlsError, RootCertStore};

use super::{Address, Carrier, Endpoint, Errand, resolve};
use crate::field::quote;

/// A longer answer is none: it would have to be held in memory while a request waits for it.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Carries questions over HTTPS: each on a connection of its own.
#[derive(Debug, Clone)]
pub struct Https(Handle);

impl Https {
    /// One whose sockets live in this runtime: whoever asks may have none, or a clock that stands still.
    pub fn new(runtime: Handle) -> Self {
        Self(runtime)
    }
}

/// Where a question goes, and how long it may take.
struct Way {
    url: String,
    /// The name that the certificate must have.
    server_name: String,
    host: String,
    port: u16,
    authority: Vec<u8>,
}

impl Carrier for Https {
    fn carry<'a>(&'a self, errand: Errand<'a>) -> BoxFuture<'a, Result<Bytes, String>> {
        let Errand { endpoint, body, timeout, store } = errand;
        let url = endpoint.url(timeout);
        let way = way(endpoint, url.clone(), |namespace, name, port| resolve::service(store, namespace, name, port));
        Box::pin(async move {
            let in_words = |why: String| format!("Post {}: {why}", quote(&url));
            let way = way.map_err(in_words)?;
            let asking = self.0.spawn(ask(way, body, timeout));
            match asking.await {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(Unanswered::NotReached(why))) => Err(in_words(why)),
                Ok(Err(Unanswered::Refused(why))) => Err(why),
                Err(ended) => Err(in_words(ended.to_string())),
            }
        })
    }
}

fn way(
    endpoint: &Endpoint,
    url: String,
    resolve: impl Fn(&str, &str, u16) -> Result<(String, u16), String>,
) -> Result<Way, String> {
    let authority = endpoint.authority.clone();
    match &endpoint.address {
        Address::Service { namespace, name, port, .. } => {
            let (host, port) = resolve(namespace, name, *port)?;
            Ok(Way { url, server_name: format!("{name}.{namespace}.svc"), host, port, authority })
        }
        Address::Url(_) => {
            let uri: Uri = url.parse().map_err(|_| "the URL cannot be read".to_owned())?;
            let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
            let port = uri.port_u16().unwrap_or(443);
            Ok(Way { url, server_name: host.clone(), host, port, authority })
        }
    }
}

/// Why there is no answer.
enum Unanswered {
    /// Nobody there, or not in time, or not whom we trust.
    NotReached(String),
    /// Another answer than a success.
    Refused(String),
}

async fn ask(way: Way, body: Bytes, timeout: Duration) -> Result<Bytes, Unanswered> {
    let in_time = tokio::time::timeout(timeout, exchange(way, body)).await;
    in_time.unwrap_or_else(|_| Err(Unanswered::NotReached("context deadline exceeded".to_owned())))
}

async fn exchange(way: Way, body: Bytes) -> Result<Bytes, Unanswered> {
    let broken = |why: String| Unanswered::NotReached(why);
    let tcp = TcpStream::connect((way.host.as_str(), way.port)).await.map_err(|why| broken(not_dialled(&way, &why)))?;
    let config = config(&way.authority).map_err(broken)?;
    let name = ServerName::try_from(way.server_name.clone()).map_err(|why| broken(why.to_string()))?;
    let tls = TlsConnector::from(Arc::new(config)).connect(name, tcp).await.map_err(|why| broken(not_trusted(&why)))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(tls)).await.map_err(|why| broken(why.to_string()))?;
    let uri: Uri = way.url.parse().map_err(|_| broken("the URL cannot be read".to_owned()))?;
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let request = Request::post(target)
        .header(header::HOST, uri.authority().map_or(way.host.as_str(), |authority| authority.as_str()))
        .header(header::ACCEPT, "application/json, */*")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, "kube-apiserver-admission")
        .body(Full::new(body))
        .map_err(|why| broken(why.to_string()))?;
    let answering = async {
        let answer = sender.send_request(request).await.map_err(|_| broken("EOF".to_owned()))?;
        let status = answer.status();
        let is_text = is_text(answer.headers());
        let media = answer.headers().get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok());
        let media = media.unwrap_or_default().to_owned();
        let bytes = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        Ok((status, is_text, media, bytes.map_err(|why| broken(why.to_string()))?.to_bytes()))
    };
    // The connection does its work while the answer is waited for, and is dropped with it.
    let mut connection = std::pin::pin!(connection);
    let mut answering = std::pin::pin!(answering);
    let (status, is_text, media, bytes) = tokio::select! {
        biased;
        answered = &mut answering => answered?,
        _ = &mut connection => answering.await?,
    };
    let said: &[u8] = if is_text { &bytes } else { b"unknown" };
    if !status.is_success() {
        return Err(Unanswered::Refused(refused(status, said)));
    }
    if bytes.is_empty() {
        let why = format!("0-length response with status code: {} and content type: {media}", status.as_u16());
        return Err(Unanswered::Refused(why));
    }
    Ok(bytes)
}

/// Whether a refusal is in words that can be passed on.
fn is_text(headers: &header::HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_none_or(|media| media.as_bytes().starts_with(b"text/"))
}

fn config(authority: &[u8]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority) {
        let certificate =
            certificate.map_err(|_| "unable to load root certificates: unable to parse bytes as PEM block")?;
        roots.add(certificate).map_err(|why| why.to_string())?;
    }
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn not_dialled(way: &Way, why: &std::io::Error) -> String {
    use std::io::ErrorKind;
    let (host, port) = (&way.host, way.port);
    match why.kind() {
        ErrorKind::ConnectionRefused => format!("dial tcp {host}:{port}: connect: connection refused"),
        ErrorKind::NetworkUnreachable => format!("dial tcp {host}:{port}: connect: network is unreachable"),
        ErrorKind::HostUnreachable => format!("dial tcp {host}:{port}: connect: no route to host"),
        _ if why.raw_os_error().is_none() => format!("dial tcp: lookup {host}: no such host"),
        _ => format!("dial tcp {host}:{port}: {why}"),
    }
}

fn not_trusted(why: &std::io::Error) -> String {
    let tls = why.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
    match tls {
        Some(TlsError::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature)) => {
            "tls: failed to verify certificate: x509: certificate signed by unknown authority".to_owned()
        }
        Some(TlsError::InvalidCertificate(other)) => format!("tls: failed to verify certificate: x509: {other}"),
        Some(other) => format!("tls: {other}"),
        None => "EOF".to_owned(),
    }
}

/// An answer that is no success, as Kubernetes' client puts it.
fn refused(status: StatusCode, body: &[u8]) -> String {
    match status {
        StatusCode::NOT_FOUND => "the server could not find the requested resource".to_owned(),
        StatusCode::BAD_REQUEST => "the server rejected our request for an unknown reason".to_owned(),
        StatusCode::UNAUTHORIZED => "the server has asked for the client to provide credentials".to_owned(),
        StatusCode::FORBIDDEN => String::from_utf8_lossy(body).into_owned(),
        status if status.is_server_error() => {
            let said = String::from_utf8_lossy(body);
            let said = if said.trim().is_empty() { "unknown".into() } else { said };
            format!("an error on the server ({}) has prevented the request from succeeding", quote(said.trim_end()))
        }
        status => {
            format!("the server responded with the status code {} but did not return more information", status.as_u16())
        }
    }
}
