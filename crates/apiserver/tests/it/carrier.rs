//! Questions over HTTPS: who is believed, how long is waited, and how long an answer may be.

use std::net::Ipv4Addr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use windlass_apiserver::carrier::https::Https;
use windlass_apiserver::carrier::{Carrier as _, Endpoint, Errand};
use windlass_apiserver::{ApiServer, Options};

use crate::conformance::hooks::Hooks;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

/// Asks whoever is at a URL, and believes those who were signed by one of these.
async fn ask(url: &str, authority: &str, timeout: Duration) -> Result<String, String> {
    let server = ApiServer::new(Options::default());
    let endpoint = Endpoint::read(&json!({"url": url, "caBundle": authority}));
    let body = Bytes::from_static(br#"{"request": {"uid": "u-1"}}"#);
    let errand = Errand { endpoint: &endpoint, body, timeout, store: server.store() };
    let answer = Https::new(Handle::current()).carry(errand).await?;
    Ok(String::from_utf8(answer.to_vec()).unwrap())
}

async fn hook(says: Value) -> (Hooks, String) {
    let hooks = Hooks::listen().await.unwrap();
    let url = format!("{}/hook", hooks.base(1));
    hooks.put(&url, says);
    (hooks, url)
}

#[tokio::test]
async fn who_shows_a_certificate_of_the_authority_is_asked() {
    let (hooks, url) = hook(json!({"response": {"allowed": true}})).await;
    let answer: Value = serde_json::from_str(&ask(&url, &hooks.authority(), LONG).await.unwrap()).unwrap();
    assert_eq!(answer["response"], json!({"allowed": true, "uid": "u-1"}));
    assert_eq!(hooks.asked(&url)["uid"], "u-1");
}

#[tokio::test]
async fn who_shows_none_of_the_authority_is_told_nothing() {
    let (hooks, url) = hook(json!({"response": {"allowed": true}})).await;
    let unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    let others = Hooks::listen().await.unwrap().authority();
    for authority in [others.as_str(), ""] {
        let why = ask(&url, authority, LONG).await.unwrap_err();
        assert_eq!(why, format!("Post \"{url}?timeout=60s\": {unknown}"));
    }
    let why = ask(&url, &STANDARD.encode("-----BEGIN CERTIFICATE-----\nAAAA"), LONG).await.unwrap_err();
    assert!(why.contains("unable to parse bytes as PEM block"), "{why}");
    assert_eq!(hooks.asked(&url), Value::Null, "nobody was asked");
}

#[tokio::test]
async fn who_does_not_answer_in_time_has_not_answered() {
    let (hooks, url) = hook(json!({"seconds": 3_600, "response": {"allowed": true}})).await;
    let why = ask(&url, &hooks.authority(), SHORT).await.unwrap_err();
    assert_eq!(why, format!("Post \"{url}?timeout=0s\": context deadline exceeded"));
    // Nor has who takes a connection and says nothing at all.
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("https://127.0.0.1:{}/hook", silent.local_addr().unwrap().port());
    let why = ask(&url, &hooks.authority(), SHORT).await.unwrap_err();
    assert_eq!(why, format!("Post \"{url}?timeout=0s\": context deadline exceeded"));
    drop(silent);
    let why = ask(&url, &hooks.authority(), LONG).await.unwrap_err();
    assert!(why.contains("connect: connection refused"), "{why}");
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_none() {
    let megabytes = |count: usize| json!({"code": 200, "text": "x".repeat(count << 20)});
    let (hooks, url) = hook(megabytes(3)).await;
    assert_eq!(ask(&url, &hooks.authority(), LONG).await.unwrap().len(), 3 << 20);
    hooks.put(&url, megabytes(5));
    let why = ask(&url, &hooks.authority(), LONG).await.unwrap_err();
    assert_eq!(why, format!("Post \"{url}?timeout=60s\": length limit exceeded"));
}
