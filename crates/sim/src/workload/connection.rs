//! A connection to the API of a workload cluster: refused while nobody listens, and as the network has it.

use std::io;
use std::task::{Context, Poll};

use futures::StreamExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use tokio::time::Instant;
use tower::Service;
use windlass_apiserver::Body;

use super::Workload;
use crate::actor::Caller;
use crate::fault::{Asked, Faults, Faulty, Passage, Place};

/// Where an API server says which version it is.
const VERSION: &str = "/version";

/// The API server of a workload cluster, as it is seen through the network.
#[derive(Clone)]
pub(super) struct Connection(pub(super) Workload);

impl Workload {
    /// What goes wrong in it.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// A client of its API, without a socket. Requests fail as they would if nobody listened while no API server runs or etcd
    /// has no quorum.
    pub fn client(&self) -> Client {
        Client::new(Connection(self.clone()), "default")
    }

    /// A client of its API as this caller has it: what goes wrong for it goes wrong here.
    pub fn client_of(&self, caller: Caller) -> Client {
        if self.0.faults.is_empty() {
            return self.client();
        }
        let (connection, name) = (Connection(self.clone()), self.0.cluster.to_string());
        Client::new(Faulty::new(connection, self.0.faults.clone(), caller, Place::Workload, &name), "default")
    }
}

impl Service<Request<kube::client::Body>> for Connection {
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Response<Body>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        if !self.0.answers() {
            let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
            return Box::pin(std::future::ready(Err(refused)));
        }
        let passage = match self.0.faults() {
            faults if faults.is_empty() => Passage::Free(None),
            faults => faults.passage(&self.0, &Asked::of(Place::Workload, &request)),
        };
        let mut server = self.0.server().clone();
        let own = if request.uri().path() == VERSION { self.0.version_answer() } else { None };
        Box::pin(async move {
            let cut = match passage {
                Passage::Blocked { after, error } => {
                    tokio::time::sleep(after).await;
                    return Err(error);
                }
                Passage::Answered(answer) => return Ok(answer),
                Passage::Free(cut) => cut.map(|after| Instant::now() + after),
            };
            if let Some(answer) = own {
                return Ok(answer);
            }
            match server.call(request).await {
                Ok(response) => Ok(match cut {
                    Some(at) => response.map(|body| until(at, body)),
                    None => response,
                }),
                Err(never) => match never {},
            }
        })
    }
}

/// What is heard until the connection is cut.
fn until(at: Instant, body: Body) -> Body {
    let frames = body.into_data_stream().filter_map(|frame| std::future::ready(frame.ok()));
    Body::frames(frames.take_until(tokio::time::sleep_until(at)))
}
