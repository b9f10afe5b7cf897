//! `windlass install`, `windlass controller` and `windlass uninstall` on an API server that is reached over HTTPS.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use windlass_apiserver::listen::kubeconfig::Kubeconfig;
use windlass_apiserver::listen::tls::Authority;
use windlass_apiserver::listen::{Limits, Listener, serve};
use windlass_apiserver::{ApiServer, Options};

/// A server that knows what every Kubernetes knows, and a kubeconfig for it.
struct Cluster {
    runtime: tokio::runtime::Runtime,
    server: ApiServer,
    folder: TempDir,
}

#[allow(clippy::disallowed_methods, reason = "a server that is reached over the network lives in real time")]
fn wall_now() -> Timestamp {
    Timestamp::now()
}

impl Cluster {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let folder = TempDir::new().unwrap();
        let server = runtime.block_on(async {
            let server = ApiServer::new(Options { now: Arc::new(wall_now), ..Options::default() });
            let authority = Authority::new(wall_now()).unwrap();
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let listener = Listener::bind(address, &authority, None, Limits::default()).await.unwrap();
            let kubeconfig = Kubeconfig {
                name: "test",
                server: &listener.url(),
                authority_pem: authority.certificate_pem(),
                credential: &authority.admin().unwrap(),
            };
            kubeconfig.write(&folder.path().join("kubeconfig")).unwrap();
            tokio::spawn(serve(server.clone(), listener, std::future::pending()));
            server
        });
        Self { runtime, server, folder }
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    fn api(&self, api_version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let client = self.runtime.block_on(async { Client::new(self.server.clone(), "default") });
        match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        }
    }

    fn get(&self, api: &Api<DynamicObject>, name: &str) -> Option<DynamicObject> {
        self.runtime.block_on(api.get_opt(name)).unwrap()
    }

    fn windlass(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(arguments).arg("--kubeconfig").arg(self.kubeconfig());
        command.env("XDG_STATE_HOME", self.folder.path()).env_remove("KUBECONFIG");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> (Output, String, String) {
        let output = self.windlass(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        (output, stdout, stderr)
    }

    fn install(&self) -> String {
        let (output, stdout, stderr) = self.run(&["install"]);
        assert!(output.status.success(), "{stdout}{stderr}");
        stdout
    }
}

#[test]
fn install_writes_everything_once_and_uninstall_leaves_the_clusters() {
    let cluster = Cluster::start();
    let definitions = cluster.api("apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
    let tkc = "tanzukubernetesclusters.run.tanzu.vmware.com";

    let (output, planned, stderr) = cluster.run(&["install", "--dry-run"]);
    assert!(output.status.success(), "{planned}{stderr}");
    assert!(planned.lines().all(|line| line.ends_with(" created (server dry run)")), "{planned}");
    assert!(cluster.get(&definitions, tkc).is_none(), "nothing was written");

    let first = cluster.install();
    assert!(first.lines().all(|line| line.ends_with(" created")), "{first}");
    assert_eq!(first.lines().count(), planned.lines().count());
    let second = cluster.install();
    assert!(second.lines().all(|line| line.ends_with(" unchanged")), "{second}");

    // What may change objects had another name once.
    let before = cluster.api("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", None);
    let apply = PatchParams::apply("windlass-install");
    let retired = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "windlass"},
    });
    cluster.runtime.block_on(before.patch("windlass", &apply, &Patch::Apply(&retired))).unwrap();
    let third = cluster.install();
    let gone = "mutatingwebhookconfiguration.admissionregistration.k8s.io/windlass deleted";
    assert_eq!(third.lines().filter(|line| !line.ends_with(" unchanged")).collect::<Vec<_>>(), [gone], "{third}");
    assert!(cluster.get(&before, "windlass").is_none() && cluster.get(&before, "admission.windlass.dev").is_some());

    let object = json!({
        "apiVersion": "run.tanzu.vmware.com/v1alpha3", "kind": "TanzuKubernetesRelease", "metadata": {"name": "kept"},
        "spec": {"version": "v1.24.9", "kubernetes": {"version": "v1.24.9"}},
    });
    let releases = cluster.api("run.tanzu.vmware.com/v1alpha3", "TanzuKubernetesRelease", None);
    let apply = PatchParams::apply("somebody");
    cluster.runtime.block_on(releases.patch("kept", &apply, &Patch::Apply(&object))).unwrap();

    let (output, gone, stderr) = cluster.run(&["uninstall"]);
    assert!(output.status.success(), "{gone}{stderr}");
    let gone: Vec<&str> = gone.lines().collect();
    assert!(gone[0].contains("webhookconfiguration") && gone[1].contains("webhookconfiguration"), "{gone:?}");
    assert!(cluster.get(&definitions, tkc).is_some() && cluster.get(&releases, "kept").is_some(), "clusters stay");
    let deployments = cluster.api("apps/v1", "Deployment", Some("windlass-system"));
    assert!(cluster.get(&deployments, "windlass-controllers").is_none());
    let (output, again, _) = cluster.run(&["uninstall"]);
    assert!(output.status.success());
    assert!(again.lines().all(|line| line.ends_with(" not found")), "{again}");
}

#[test]
fn a_definition_of_somebody_else_is_never_written() {
    let cluster = Cluster::start();
    cluster.install();
    let definitions = cluster.api("apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
    let theirs = "wcpmachines.infrastructure.cluster.vmware.com";
    let patch = Patch::Merge(json!({"metadata": {"labels": {"app.kubernetes.io/part-of": "theirs"}}}));
    cluster.runtime.block_on(definitions.patch(theirs, &PatchParams::default(), &patch)).unwrap();
    let (output, stdout, stderr) = cluster.run(&["install"]);
    assert_eq!(output.status.code(), Some(3), "{stdout}{stderr}");
    assert_eq!(stdout, "");
    assert!(stderr.contains(theirs) && stderr.contains("kubectl label crd"), "{stderr}");
}

#[test]
fn a_profile_is_installed_with_the_right_to_its_templates_and_no_other() {
    let cluster = Cluster::start();
    let bad = cluster.folder.path().join("bad.yaml");
    fs::write(&bad, "apiVersion: example.com/v1\ntemplate: BoxMachineTemplate\nclass: spec.size\n").unwrap();
    let (output, stdout, stderr) = cluster.run(&["install", "--profile", bad.to_str().unwrap()]);
    assert_eq!((output.status.code(), stdout.as_str()), (Some(3), ""), "{stderr}");
    assert!(stderr.contains("profile.class is spec.size") && stderr.contains("nothing was written"), "{stderr}");
    let (output, stdout, stderr) = cluster.run(&["install", "--profile", "missing.yaml"]);
    assert!(!output.status.success() && stdout.is_empty() && stderr.contains("cluster-api-dev"), "{stderr}");

    let profile = ["install", "--profile", "cluster-api-dev"];
    let (output, first, stderr) = cluster.run(&profile);
    assert!(output.status.success(), "{first}{stderr}");
    let (_, second, _) = cluster.run(&profile);
    assert!(second.lines().all(|line| line.ends_with(" unchanged")), "{second}");
    let maps = cluster.api("v1", "ConfigMap", Some("windlass-system"));
    let map = cluster.get(&maps, "infrastructure-devmachinetemplate").unwrap();
    assert!(map.data["data"]["profile"].as_str().unwrap().contains("template: DevMachineTemplate"), "{map:?}");
    let roles = cluster.api("rbac.authorization.k8s.io/v1", "ClusterRole", None);
    for (name, verbs) in [("windlass-controllers", json!(["get", "create"])), ("windlass-answers", json!(["get"]))] {
        let role = cluster.get(&roles, &format!("{name}-devmachinetemplate")).unwrap();
        let right = json!({
            "apiGroups": ["infrastructure.cluster.x-k8s.io"], "resources": ["devmachinetemplates"], "verbs": verbs,
        });
        assert_eq!(role.data["rules"], json!([right]));
    }
    // One that was installed stays when Windlass is installed again, and goes with it.
    cluster.install();
    assert!(cluster.get(&maps, "infrastructure-devmachinetemplate").is_some());
    let (output, gone, stderr) = cluster.run(&["uninstall"]);
    assert!(output.status.success(), "{gone}{stderr}");
    assert!(cluster.get(&maps, "infrastructure-devmachinetemplate").is_none());
    assert!(cluster.get(&roles, "windlass-controllers-devmachinetemplate").is_none());
}

#[test]
fn what_is_printed_is_what_would_be_written() {
    let cluster = Cluster::start();
    let (_, yaml, _) = cluster.run(&["install", "-o", "yaml", "--image", "registry.example/windlass:1"]);
    let documents = yaml.split("\n---\n").count();
    assert_eq!(documents, cluster.install().lines().count());
    assert!(yaml.contains("image: registry.example/windlass:1") && !yaml.contains("image: windlass:"));
}

/// A running `windlass controller`; killed when a test fails.
struct Controller {
    child: Child,
    log: BufReader<ChildStderr>,
}

impl Controller {
    fn start(cluster: &Cluster, arguments: &[&str]) -> Self {
        let listening = ["controller", "--listen", "127.0.0.1:0", "--probes", "127.0.0.1:0"];
        let mut child = cluster.windlass(&[&listening, arguments].concat()).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        Self { child, log }
    }

    /// Reads on until a line says this. Each line is an object that says when, how important it is, and what.
    fn until(&mut self, message: &str) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.log.read_line(&mut line).unwrap(), 0, "it never said {message:?}");
            let said: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
            for field in ["time", "level", "target", "message"] {
                assert!(said[field].is_string(), "{line}");
            }
            if said["message"] == message {
                return said;
            }
        }
    }

    fn address(&mut self, message: &str) -> SocketAddr {
        self.until(message)["address"].as_str().unwrap().parse().unwrap()
    }

    /// Ends it; its exit code.
    fn end(mut self) -> Option<i32> {
        let sent = Command::new("sh").args(["-c", &format!("kill -TERM {}", self.child.id())]).status().unwrap();
        assert!(sent.success());
        let mut rest = String::new();
        self.log.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // Fails when it has ended already, which is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn ask_plainly(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Posts as an API server does: it knows a Service by its name, and an authority by the configuration.
fn post(address: SocketAddr, name: &str, authority: &str, (path, body): (&str, &Value)) -> (String, Value) {
    let mut roots = RootCertStore::empty();
    let pem = STANDARD.decode(authority).unwrap();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let session = ClientConnection::new(Arc::new(config), ServerName::try_from(name.to_owned()).unwrap()).unwrap();
    let mut stream = StreamOwned::new(session, TcpStream::connect(address).unwrap());
    let body = body.to_string();
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {name}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), serde_json::from_str(body).unwrap_or(Value::Null))
}

#[test]
fn a_replica_answers_over_https_with_a_certificate_that_is_believed() {
    let cluster = Cluster::start();
    cluster.install();
    let mut replica = Controller::start(&cluster, &["--webhooks", "--hooks"]);
    let probes = replica.address("probes and metrics");
    let address = replica.address("reviews and questions");
    replica.until("serving with another certificate");
    assert!(ask_plainly(probes, "/healthz").starts_with("HTTP/1.1 200"));
    let configurations = cluster.api("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", None);
    let configuration = cluster.get(&configurations, "windlass").unwrap();
    let webhook = &configuration.data["webhooks"][0];
    let authority = webhook["clientConfig"]["caBundle"].as_str().unwrap();

    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "u-1", "operation": "DELETE", "resource": {"resource": "clusterbootstraps"}},
    });
    let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap();
    let name = "windlass-webhook.windlass-system.svc";
    let (status, answer) = post(address, name, authority, (path, &review));
    assert_eq!((status.as_str(), &answer["response"]), ("HTTP/1.1 200 OK", &json!({"uid": "u-1", "allowed": true})));
    // The same by the name by which Cluster API asks.
    let discovery = windlass_api::hook::discovery_path();
    let question = json!({"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "kind": "DiscoveryRequest"});
    let (status, answer) = post(address, "windlass-ext.windlass-system.svc", authority, (&discovery, &question));
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert_eq!(answer["handlers"].as_array().unwrap().len(), 10);
    let (status, _) = post(address, name, authority, ("/admit/pods", &review));
    assert_eq!(status, "HTTP/1.1 404 Not Found");
    // A second replica serves with the same.
    let mut second = Controller::start(&cluster, &["--webhooks"]);
    let address = second.address("reviews and questions");
    second.until("serving with another certificate");
    let (status, _) = post(address, name, authority, (path, &review));
    assert_eq!(status, "HTTP/1.1 200 OK");
    let (status, _) = post(address, name, authority, (&discovery, &question));
    assert_eq!(status, "HTTP/1.1 404 Not Found", "it was told to answer reviews only");
    assert_eq!((second.end(), replica.end()), (Some(0), Some(0)));
}

#[test]
fn of_two_replicas_one_leads_and_hands_over_when_it_is_told_to_stop() {
    let cluster = Cluster::start();
    cluster.install();
    let leases = cluster.api("coordination.k8s.io/v1", "Lease", Some("windlass-system"));
    let holder = || {
        let lease = cluster.get(&leases, "windlass-controllers").unwrap();
        lease.data["spec"]["holderIdentity"].as_str().unwrap().to_owned()
    };
    let mut first = Controller::start(&cluster, &["--controllers", "--identity", "first"]);
    let probes = first.address("probes and metrics");
    let leads = first.until("this replica leads");
    assert!(leads["identity"].as_str().unwrap().starts_with("first_"), "{leads}");
    assert!(holder().starts_with("first_"));
    assert!(ask_plainly(probes, "/readyz").starts_with("HTTP/1.1 200"));
    assert!(ask_plainly(probes, "/anything").starts_with("HTTP/1.1 404"));

    let mut second = Controller::start(&cluster, &["--controllers", "--identity", "second"]);
    second.until("probes and metrics");
    assert_eq!(first.end(), Some(0));
    second.until("this replica leads");
    assert!(holder().starts_with("second_"));

    // Somebody takes the lease away: it ends at once, and says why.
    let patch = Patch::Merge(json!({"spec": {"holderIdentity": "another"}}));
    cluster.runtime.block_on(leases.patch("windlass-controllers", &PatchParams::default(), &patch)).unwrap();
    assert_eq!(second.until("this replica leads no more")["why"], "the lease is held by another");
    assert_eq!(second.child.wait().unwrap().code(), Some(1));
}

/// The same, with one way to write a number: `1` and `1.0` are the same in a schema.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
        other => other.clone(),
    }
}

#[test]
fn the_files_are_what_kubectl_makes_of_them() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let built = Command::new("kubectl").arg("kustomize").arg(&deploy).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let built = String::from_utf8(built.stdout).unwrap();
    let cluster = Cluster::start();
    let (_, printed, _) = cluster.run(&["install", "-o", "yaml"]);
    let objects = |text: &str| {
        let all = text.split("\n---\n").map(|one| serde_saphyr::from_str::<Value>(one).unwrap());
        let name = |object: &Value| ["namespace", "name"].map(|field| object["metadata"][field].to_string()).concat();
        all.map(|object| (object["kind"].to_string() + &name(&object), object)).collect::<BTreeMap<_, _>>()
    };
    let (built, printed) = (objects(&built), objects(&printed));
    assert_eq!(built.keys().collect::<Vec<_>>(), printed.keys().collect::<Vec<_>>());
    for (name, object) in &built {
        assert_eq!(plain(object), plain(&printed[name]), "{name}");
    }
    assert!(fs::read_to_string(deploy.join("install/rights.yaml")).unwrap().contains("ClusterRole"));
}
