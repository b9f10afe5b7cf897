//! A proxy in front of a management cluster, which writes down what is asked of it.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// What was asked for, as rights are given: a group, a resource, a verb.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    pub group: String,
    pub resource: String,
    pub verb: String,
}

/// It listens on a port of its own, without TLS and for everybody.
pub struct Proxy {
    /// What it runs in; it ends with it.
    _runtime: Runtime,
    asked: Arc<Mutex<BTreeSet<Asked>>>,
    kubeconfig: PathBuf,
}

impl Asked {
    pub fn new(group: &str, resource: &str, verb: &str) -> Self {
        Self { group: group.to_owned(), resource: resource.to_owned(), verb: verb.to_owned() }
    }

    /// What a request asks for; `None` if it is about no object.
    fn of(method: &Method, path: &str, query: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let rest = match rest {
            ["namespaces", _, resource @ ..] if !resource.is_empty() => resource,
            rest => rest,
        };
        let (resource, name, sub) = match rest {
            [resource] => (*resource, None, None),
            [resource, name] => (*resource, Some(*name), None),
            [resource, name, sub, ..] => (*resource, Some(*name), Some(*sub)),
            [] => return None,
        };
        let is_watch = query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1");
        let verb = match (method.as_str(), name) {
            ("GET", Some(_)) => "get",
            ("GET", None) if is_watch => "watch",
            ("GET", None) => "list",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", Some(_)) => "delete",
            ("DELETE", None) => "deletecollection",
            (other, _) => panic!("{other} {path}"),
        };
        let resource = sub.map_or_else(|| resource.to_owned(), |sub| format!("{resource}/{sub}"));
        Some(Self { group: group.to_owned(), resource, verb: verb.to_owned() })
    }
}

impl Proxy {
    pub fn start(kubeconfig: &Path, folder: &Path) -> Self {
        let runtime = Runtime::new().unwrap();
        let asked = Arc::new(Mutex::new(BTreeSet::new()));
        let seen = Arc::clone(&asked);
        let address: SocketAddr = runtime.block_on(async {
            let config = Kubeconfig::read_from(kubeconfig).unwrap();
            let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
            let client = Client::try_from(config).unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            tokio::spawn(serve(listener, client, seen));
            address
        });
        let own = folder.join("through-the-proxy");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: it\nclusters: [{{name: it, cluster: {{server: \"http://{address}\"}}}}]\n\
             users: [{{name: it, user: {{}}}}]\ncontexts: [{{name: it, context: {{cluster: it, user: it}}}}]\n"
        );
        std::fs::write(&own, text).unwrap();
        Self { _runtime: runtime, asked, kubeconfig: own }
    }

    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// What was asked for since the last time.
    pub fn take(&self) -> BTreeSet<Asked> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

async fn serve(listener: TcpListener, client: Client, asked: Arc<Mutex<BTreeSet<Asked>>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (client, asked) = (client.clone(), Arc::clone(&asked));
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let (client, asked) = (client.clone(), Arc::clone(&asked));
                async move { Ok::<_, Infallible>(forward(request, client, &asked).await) }
            });
            // Whoever hangs up has heard enough.
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

async fn forward(request: Request<Incoming>, client: Client, asked: &Mutex<BTreeSet<Asked>>) -> Response<Body> {
    let (mut head, body) = request.into_parts();
    asked.lock().unwrap().extend(Asked::of(&head.method, head.uri.path(), head.uri.query().unwrap_or_default()));
    let body = body.collect().await.unwrap().to_bytes();
    head.headers.remove(http::header::HOST);
    client.send(Request::from_parts(head, Body::from(body))).await.unwrap()
}
