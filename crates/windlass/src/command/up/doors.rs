//! The APIs of workload clusters, each on a port of its own, for kubectl and everybody else on this machine.

mod etcd;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tower::Service;
use windlass_api::kind::wcp::Endpoint;
use windlass_api::name::{ClusterSecret, NamespacedName};
use windlass_apiserver::Body;
use windlass_apiserver::durable::Lasting;
use windlass_apiserver::listen::kubeconfig::Kubeconfig;
use windlass_apiserver::listen::{Limits, Listener, serve};
use windlass_controller::access::KeyMaker as _;
use windlass_sim::door::{DoorError, Doors};
use windlass_sim::workload::Workload;

use super::keys::Authorities;

/// The doors that are open. They listen on the runtime of `up`, which has real sockets and real time, whatever clock the
/// World runs on.
pub struct Listening {
    runtime: Handle,
    authorities: Authorities,
    open: Mutex<BTreeMap<NamespacedName, Door>>,
}

/// Dropping it closes the door.
struct Door {
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl Listening {
    /// None is open yet.
    pub fn new(runtime: Handle, authorities: Authorities) -> Self {
        Self { runtime, authorities, open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<NamespacedName, Door>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn listen(&self, cluster: &NamespacedName, workload: &Workload) -> Result<SocketAddr, DoorError> {
        if let Some(door) = self.open().get(cluster) {
            return Ok(door.address);
        }
        let failed = |why: String| DoorError { cluster: cluster.clone(), why };
        let authority = self.authorities.of(cluster).map_err(|error| failed(error.to_string()))?;
        // Kubeconfigs name the port that it had before.
        let name = cluster.to_string();
        let port = self.authorities.keeper().and_then(|kept| kept.port(&name)).unwrap_or_default();
        let bound = self.runtime.spawn(async move {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            Listener::bind(address, &authority, None, Limits::default()).await
        });
        let listener = bound.await.map_err(|error| failed(error.to_string()))?;
        let listener = listener.map_err(|error| failed(error.to_string()))?;
        let address = listener.address();
        if let Some(kept) = self.authorities.keeper() {
            kept.note_port(&name, address.port());
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let etcd = self.authorities.of_etcd(cluster).map_err(|error| failed(error.to_string()))?;
        let etcd = etcd.closed_server_config().map_err(|error| failed(error.to_string()))?;
        let reachable = Reachable { workload: workload.clone(), etcd: TlsAcceptor::from(Arc::new(etcd)) };
        let service = Lasting::new(reachable, workload.server().store().clone());
        self.runtime.spawn(serve(service, listener, async move {
            // Nobody ever sends: it ends when the door is dropped.
            drop(stopped.await);
        }));
        self.open().insert(cluster.clone(), Door { address, _stop: stop });
        Ok(address)
    }

    fn kubeconfig_of(&self, cluster: &NamespacedName, endpoint: &Endpoint) -> Result<String, DoorError> {
        let failed = |why: String| DoorError { cluster: cluster.clone(), why };
        let authority = self.authorities.of(cluster).map_err(|error| failed(error.to_string()))?;
        let credential = authority.admin().map_err(|error| failed(error.to_string()))?;
        let kubeconfig = Kubeconfig {
            name: cluster.name.as_str(),
            server: &format!("https://{}:{}", endpoint.host, endpoint.port),
            authority_pem: authority.certificate_pem(),
            credential: &credential,
        };
        Ok(kubeconfig.to_yaml())
    }
}

impl Doors for Listening {
    fn open<'a>(
        &'a self,
        cluster: &'a NamespacedName,
        workload: &'a Workload,
    ) -> BoxFuture<'a, Result<Endpoint, DoorError>> {
        Box::pin(async move {
            let address = self.listen(cluster, workload).await?;
            Ok(Endpoint { host: address.ip().to_string(), port: address.port() })
        })
    }

    fn kubeconfig<'a>(
        &'a self,
        cluster: &'a NamespacedName,
        endpoint: &'a Endpoint,
    ) -> BoxFuture<'a, Result<String, DoorError>> {
        Box::pin(std::future::ready(self.kubeconfig_of(cluster, endpoint)))
    }

    fn certificate(
        &self,
        cluster: &NamespacedName,
        secret: ClusterSecret,
    ) -> Result<BTreeMap<String, Vec<u8>>, DoorError> {
        let made = self.authorities.make(cluster, secret);
        made.map_err(|error| DoorError { cluster: cluster.clone(), why: error.to_string() })
    }

    fn close(&self, cluster: &NamespacedName) {
        self.open().remove(cluster);
        self.authorities.forget(cluster);
    }
}

/// The API of a workload cluster behind its load balancer, which has nobody to ask while no API server runs.
#[derive(Clone)]
struct Reachable {
    workload: Workload,
    /// How its etcd speaks, to which ports are forwarded.
    etcd: TlsAcceptor,
}

impl<B> Service<Request<B>> for Reachable
where
    windlass_apiserver::ApiServer: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
    <windlass_apiserver::ApiServer as Service<Request<B>>>::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if request.uri().path() == "/version"
            && let Some(answer) = self.workload.version_answer()
        {
            return Box::pin(std::future::ready(Ok(answer)));
        }
        if self.workload.answers() {
            if let Some(member) = etcd::member(&request) {
                let answer = etcd::forward(request, member, self.workload.clone(), self.etcd.clone());
                return Box::pin(std::future::ready(Ok(answer)));
            }
            return Box::pin(self.workload.server().clone().call(request));
        }
        let mut response = Response::new(Body::whole("no API server of this cluster runs"));
        *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
        Box::pin(std::future::ready(Ok(response)))
    }
}
