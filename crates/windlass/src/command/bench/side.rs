//! The servers that are set side by side, and what all of them can be asked for.

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;
use windlass_reference::Error;
use windlass_reference::etcd::Etcd;
use windlass_reference::https::Https;
use windlass_reference::server::RealServer;

use super::embedded::request;
use super::etcd;
use super::measure;
use super::objects::{Sample as _, name};
use super::report::Server;
use super::up::{Keeps, Up};

const JSON: &str = "application/json";

/// What is said wherever something is written to a disk.
pub const DURABILITY: &str = "Each write is on the disk of a single server, synced, before it is acknowledged, and all that wait share a \
     sync: ours in an encrypted log, etcd in its own. No replication. etcd is asked by gRPC without TLS, the others over HTTPS.";

/// A server that runs.
pub enum Side {
    Ours(Up, Https),
    Etcd(Etcd),
    Kube(RealServer, Https),
}

impl Side {
    /// Ours, and those that can be found; all with their data on a disk if they can.
    pub async fn all(keeps: Keeps) -> Result<Vec<Self>, Error> {
        let mut sides = Self::that_can_be_killed(keeps).await?;
        sides.extend(Self::kube().await?);
        Ok(sides)
    }

    /// Ours and etcd.
    pub async fn that_can_be_killed(keeps: Keeps) -> Result<Vec<Self>, Error> {
        let (up, https) = Up::start(keeps).await?;
        let mut sides = vec![Self::Ours(up, https)];
        if let Some(program) = windlass_reference::installed("etcd") {
            let mut etcd = Etcd::start(&program)?;
            drop(etcd.connect().await?);
            sides.push(Self::Etcd(etcd));
        }
        Ok(sides)
    }

    /// kube-apiserver.
    pub async fn kube() -> Result<Option<Self>, Error> {
        let Some(assets) = windlass_reference::assets() else { return Ok(None) };
        let (server, https) = RealServer::start_new(&assets).await?;
        Ok(Some(Self::Kube(server, https)))
    }

    pub fn server(&self) -> Server {
        match self {
            Self::Ours(..) => Server::Windlass,
            Self::Etcd(_) => Server::Etcd,
            Self::Kube(..) => Server::KubeApiserver,
        }
    }

    /// The ids of its processes.
    pub fn pids(&self) -> Vec<u32> {
        match self {
            Self::Ours(up, _) => vec![up.pid()],
            Self::Etcd(etcd) => etcd.pid().into_iter().collect(),
            Self::Kube(server, _) => server.pids(),
        }
    }

    /// A connection of one's own.
    pub async fn client(&mut self) -> Result<Client, Error> {
        Ok(match self {
            Self::Ours(_, https) | Self::Kube(_, https) => Client::Https(https.another().await?),
            Self::Etcd(etcd) => Client::Etcd(etcd::Client::new(etcd.connect().await?).await?),
        })
    }

    pub async fn clients(&mut self, count: usize) -> Result<Vec<Client>, Error> {
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            clients.push(self.client().await?);
        }
        Ok(clients)
    }

    /// Kills it. Who keeps nothing in one process alone cannot be.
    pub fn kill(&mut self) {
        match self {
            Self::Ours(up, _) => up.kill(),
            Self::Etcd(etcd) => etcd.kill(),
            Self::Kube(..) => {}
        }
    }

    /// Starts it on what it left, and says when it answers.
    pub async fn start_again(&mut self) -> Result<(), Error> {
        match self {
            Self::Ours(up, https) => *https = up.start_again().await?,
            Self::Etcd(etcd) => etcd.start_again()?,
            Self::Kube(..) => {}
        }
        Ok(())
    }
}

/// Pins all of them to a core, and this process to another.
pub fn pin(sides: &[Side]) {
    measure::pin(&sides.iter().flat_map(Side::pids).collect::<Vec<_>>());
}

/// A connection, and what is written over it: small `ConfigMap`s, or their bytes where nobody knows what that is.
pub enum Client {
    Https(Https),
    Etcd(etcd::Client),
}

impl Client {
    /// Creates an object.
    pub async fn create(&self, number: usize) -> Result<(), Error> {
        let body = serde_json::to_vec(&ConfigMap::sample(number))?;
        match self {
            Self::Https(https) => answer(https, Method::POST, ConfigMap::PATH, JSON, body).await.map(drop),
            Self::Etcd(etcd) => etcd.put(&key(number), &body).await,
        }
    }

    /// Changes an object.
    pub async fn change(&self, number: usize, to: u8) -> Result<(), Error> {
        match self {
            Self::Https(https) => {
                let patch = ConfigMap::patch(to).to_string();
                answer(https, Method::PATCH, &path(number), "application/merge-patch+json", patch).await.map(drop)
            }
            Self::Etcd(etcd) => {
                let mut object = ConfigMap::sample(number);
                object.change(to);
                etcd.put(&key(number), &serde_json::to_vec(&object)?).await
            }
        }
    }

    /// Whether an object is there.
    pub async fn has(&self, number: usize) -> Result<bool, Error> {
        match self {
            Self::Https(https) => {
                let found = https.send(request(Method::GET, &path(number), JSON, Bytes::new())?).await?;
                let status = found.status();
                found.into_body().collect().await?;
                match status {
                    StatusCode::OK => Ok(true),
                    StatusCode::NOT_FOUND => Ok(false),
                    other => Err(format!("{}: {other}", path(number)).into()),
                }
            }
            Self::Etcd(etcd) => etcd.has(&key(number)).await,
        }
    }

    /// What happens to an object from now on.
    pub async fn watch(&self, number: usize) -> Result<Watching, Error> {
        match self {
            Self::Https(https) => {
                let now = json(https, ConfigMap::PATH).await?;
                let revision = now["metadata"]["resourceVersion"].as_str().unwrap_or_default();
                let target = format!("{}?watch=true&resourceVersion={revision}", ConfigMap::PATH);
                let stream = https.send(request(Method::GET, &target, JSON, Bytes::new())?).await?;
                Ok(Watching::Lines(stream.into_body().into_data_stream().boxed_local()))
            }
            Self::Etcd(etcd) => Ok(Watching::Messages(etcd.watch(&key(number)).await?)),
        }
    }
}

/// A watch that goes on.
pub enum Watching {
    Lines(futures::stream::LocalBoxStream<'static, Result<Bytes, Error>>),
    Messages(etcd::Messages),
}

impl Watching {
    /// How many events came, as soon as any did; nothing at the end.
    pub async fn next(&mut self) -> Option<usize> {
        match self {
            Self::Lines(lines) => {
                let bytes = lines.next().await?.ok()?;
                Some(bytes.split(|byte| *byte == b'\n').count() - 1)
            }
            Self::Messages(messages) => messages.next().await.ok().flatten().map(|_| 1),
        }
    }
}

fn path(number: usize) -> String {
    format!("{}/{}", ConfigMap::PATH, name(number))
}

fn key(number: usize) -> String {
    format!("/registry/configmaps/default/{}", name(number))
}

/// Sends a request that must succeed.
pub async fn answer(
    https: &Https,
    method: Method,
    target: &str,
    content_type: &str,
    body: impl Into<Bytes>,
) -> Result<Bytes, Error> {
    let answer = https.send(request(method, target, content_type, body)?).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    if status.is_success() { Ok(body) } else { Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into()) }
}

/// Reads something as JSON.
pub async fn json(https: &Https, target: &str) -> Result<Value, Error> {
    Ok(serde_json::from_slice(&answer(https, Method::GET, target, JSON, Bytes::new()).await?)?)
}
