//! Webhooks that say what a case tells them: behind HTTPS on a port of this machine, or without a socket.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use windlass_apiserver::carrier::{Carrier, Errand};

use super::transport::Error;

/// What a webhook is to say, by the last words of its address, and what it was asked last.
#[derive(Clone, Default)]
pub struct Hooks {
    told: Arc<Mutex<BTreeMap<String, Told>>>,
    /// The port and the certificate, when there is a socket.
    listening: Option<(u16, String)>,
}

#[derive(Default)]
struct Told {
    says: Value,
    asked: Value,
}

impl Hooks {
    /// Listens on a port of this machine.
    pub async fn listen() -> Result<Self, Error> {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?;
        let key = PrivateKeyDer::try_from(signing_key.serialize_der())?;
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![cert.der().clone()], key)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let hooks = Self { listening: Some((tcp.local_addr()?.port(), cert.pem())), ..Self::default() };
        let answering = hooks.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = tcp.accept().await {
                let (acceptor, hooks) = (acceptor.clone(), answering.clone());
                tokio::spawn(async move {
                    let Ok(tls) = acceptor.accept(stream).await else { return };
                    let service = service_fn(|request| hooks.answer(request));
                    drop(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(tls), service).await);
                });
            }
        });
        Ok(hooks)
    }

    /// Where the webhooks of a case are.
    pub fn base(&self, number: usize) -> String {
        match &self.listening {
            Some((port, _)) => format!("https://127.0.0.1:{port}/{number:04}"),
            None => format!("https://127.0.0.1/{number:04}"),
        }
    }

    /// The `caBundle` of their configurations.
    pub fn authority(&self) -> String {
        let pem = self.listening.as_ref().map_or("no socket, no certificate", |(_, pem)| pem);
        STANDARD.encode(pem)
    }

    /// Puts a webhook at an address, or has it say something else.
    pub fn put(&self, url: &str, says: Value) {
        self.told.lock().unwrap().entry(key(url)).or_default().says = says;
    }

    /// The request or the objects that it was asked about last.
    pub fn asked(&self, url: &str) -> Value {
        self.told.lock().unwrap().get(&key(url)).map_or(Value::Null, |told| told.asked.clone())
    }

    /// What it says: the status code, the body, and how long it takes.
    fn says(&self, path: &str, body: &[u8]) -> (u16, String, Duration) {
        let review: Value = serde_json::from_slice(body).unwrap_or_default();
        let mut told = self.told.lock().unwrap();
        let Some(told) = told.get_mut(&key(path)) else { return (404, "nobody".to_owned(), Duration::ZERO) };
        told.asked = review["request"].clone();
        let mut says = told.says.clone();
        let delay = Duration::from_secs(says["seconds"].as_u64().unwrap_or_default());
        if let Some(code) = says["code"].as_u64() {
            let text = says["text"].as_str().unwrap_or_default().to_owned();
            return (u16::try_from(code).unwrap_or(500), text, delay);
        }
        let mut response = match says.get("moves") {
            Some(moves) => converted(moves, &says["metadata"], &told.asked),
            None => says["response"].take(),
        };
        if response.is_object() && response.get("uid").is_none() {
            response["uid"] = told.asked["uid"].clone();
        }
        if let Some(patch) = response.get("patch").filter(|patch| patch.is_array()) {
            response["patch"] = STANDARD.encode(patch.to_string()).into();
            response["patchType"] = "JSONPatch".into();
        }
        let text = |field: &str| says.get(field).filter(|said| said.is_string()).unwrap_or(&review[field]).clone();
        let answer = json!({"apiVersion": text("apiVersion"), "kind": text("kind"), "response": response});
        (200, answer.to_string(), delay)
    }

    async fn answer(&self, request: http::Request<Incoming>) -> Result<http::Response<Full<Bytes>>, Error> {
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect().await?.to_bytes();
        let (code, text, delay) = self.says(&path, &body);
        tokio::time::sleep(delay).await;
        let answer = http::Response::builder().status(code).header("content-type", "application/json");
        Ok(answer.body(Full::new(Bytes::from(text)))?)
    }
}

/// Without a socket the same words come back, for URLs too: which is what a case is about.
impl Carrier for Hooks {
    fn carry<'a>(&'a self, errand: Errand<'a>) -> BoxFuture<'a, Result<Bytes, String>> {
        Box::pin(async move {
            let url = errand.endpoint.url(errand.timeout);
            let (code, text, delay) = self.says(url.split('?').next().unwrap_or_default(), &errand.body);
            if tokio::time::timeout(errand.timeout, tokio::time::sleep(delay)).await.is_err() {
                return Err(format!("Post {url:?}: context deadline exceeded"));
            }
            if code == 200 { Ok(Bytes::from(text)) } else { Err(format!("an answer with the code {code}")) }
        })
    }
}

/// The number of the case and the name of the webhook.
fn key(url: &str) -> String {
    let words: Vec<&str> = url.rsplit('/').take(2).collect();
    words.join(" ")
}

/// The answer to a conversion: for the version that is wanted, which field goes where, and what the metadata gets.
fn converted(moves: &Value, metadata: &Value, request: &Value) -> Value {
    let desired = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let version = desired.rsplit('/').next().unwrap_or_default();
    let mut objects = request["objects"].as_array().cloned().unwrap_or_default();
    for object in &mut objects {
        object["apiVersion"] = desired.into();
        for (field, value) in metadata.as_object().into_iter().flatten() {
            object["metadata"][field] = value.clone();
        }
        for (from, to) in moves[version].as_object().into_iter().flatten() {
            let Some(to) = to.as_str() else { continue };
            if let Some(value) = object["spec"].as_object_mut().and_then(|spec| spec.remove(from)) {
                object["spec"][to] = value;
            }
        }
    }
    json!({"convertedObjects": objects, "result": {"status": "Success"}})
}
