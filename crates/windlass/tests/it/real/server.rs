//! A real API server with a real etcd, for as long as a test runs.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use kube::config::KubeConfigOptions;
use kube::{Client, Config};
use tempfile::TempDir;
use windlass_apiserver::listen::kubeconfig::Kubeconfig;
use windlass_apiserver::listen::tls::{Authority, Credential, SigningKey};

/// Where the programs are.
pub fn assets() -> Option<PathBuf> {
    std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from).filter(|folder| folder.join("kube-apiserver").exists())
}

/// One that may be killed and started while others use it.
type Process = Mutex<Option<Child>>;

/// They are killed when it is dropped.
pub struct Server {
    folder: TempDir,
    /// Who signs its clients, and itself where it is the client of a server behind it.
    authority: Authority,
    assets: PathBuf,
    ports: [u16; 3],
    etcd: Process,
    apiserver: Process,
    manager: Process,
}

#[allow(clippy::disallowed_methods, reason = "a real server lives in real time")]
fn wall_now() -> Timestamp {
    Timestamp::now()
}

/// A port that was free a moment ago: these programs cannot take one themselves and say which.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Server {
    pub async fn start(assets: PathBuf) -> Self {
        let folder = TempDir::new().unwrap();
        let authority = Authority::new(wall_now()).unwrap();
        fs::write(folder.path().join("clients.pem"), authority.certificate_pem()).unwrap();
        let key = SigningKey::new().unwrap();
        fs::write(folder.path().join("sa.key"), &key.private_pem).unwrap();
        fs::write(folder.path().join("sa.pub"), &key.public_pem).unwrap();
        let ports = [port(), port(), port()];
        let admin = authority.admin().unwrap();
        if let Credential::ClientCertificate { certificate_pem, key_pem } = &admin {
            fs::write(folder.path().join("proxy.crt"), certificate_pem).unwrap();
            fs::write(folder.path().join("proxy.key"), key_pem).unwrap();
        }
        let none = Process::default;
        let server = Self { folder, authority, assets, ports, etcd: none(), apiserver: none(), manager: none() };
        server.start_etcd();
        server.start_apiserver();
        server.written("certificates/apiserver.crt").await;
        let own = fs::read_to_string(server.path("certificates/apiserver.crt")).unwrap();
        let kubeconfig = Kubeconfig {
            name: "real",
            server: &format!("https://127.0.0.1:{}", server.ports[2]),
            authority_pem: &own,
            credential: &admin,
        };
        fs::write(server.path("kubeconfig"), kubeconfig.to_yaml()).unwrap();
        server.ready().await;
        server.start_manager();
        server
    }

    /// Who signs its clients.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// A file beside its own, which goes when they go.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.path("kubeconfig")
    }

    fn spawn(&self, program: &str, arguments: &[String]) -> Child {
        let log = fs::File::options().create(true).append(true).open(self.path(&format!("{program}.log"))).unwrap();
        let mut command = Command::new(self.assets.join(program));
        command.args(arguments).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command.spawn().unwrap()
    }

    pub fn start_etcd(&self) {
        let [client, peer, _] = self.ports;
        let arguments = [
            format!("--data-dir={}", self.path("etcd").display()),
            format!("--listen-client-urls=http://127.0.0.1:{client}"),
            format!("--advertise-client-urls=http://127.0.0.1:{client}"),
            format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
            format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer}"),
            format!("--initial-cluster=default=http://127.0.0.1:{peer}"),
            "--unsafe-no-fsync".to_owned(),
        ];
        *self.etcd.lock().unwrap() = Some(self.spawn("etcd", &arguments));
    }

    pub fn start_apiserver(&self) {
        let path = |name: &str| self.path(name).display().to_string();
        let arguments = [
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports[0]),
            format!("--secure-port={}", self.ports[2]),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={}", path("certificates")),
            format!("--client-ca-file={}", path("clients.pem")),
            format!("--service-account-key-file={}", path("sa.pub")),
            format!("--service-account-signing-key-file={}", path("sa.key")),
            "--service-account-issuer=https://real.example".to_owned(),
            format!("--proxy-client-cert-file={}", path("proxy.crt")),
            format!("--proxy-client-key-file={}", path("proxy.key")),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            // Nobody makes the accounts and the nodes that these ask for.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition".to_owned(),
        ];
        *self.apiserver.lock().unwrap() = Some(self.spawn("kube-apiserver", &arguments));
    }

    /// What removes whatever has lost its owner, and ends namespaces; nothing else of it is wanted.
    fn start_manager(&self) {
        if !self.assets.join("kube-controller-manager").exists() {
            return;
        }
        let arguments = [
            format!("--kubeconfig={}", self.kubeconfig().display()),
            "--controllers=garbage-collector-controller,namespace-controller".to_owned(),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        *self.manager.lock().unwrap() = Some(self.spawn("kube-controller-manager", &arguments));
    }

    /// As if the machine had lost power.
    pub fn kill_apiserver(&self) {
        end(&self.apiserver);
    }

    pub fn kill_etcd(&self) {
        end(&self.etcd);
    }

    /// A client of its administrator.
    pub async fn client(&self) -> Client {
        let text = fs::read_to_string(self.kubeconfig()).unwrap();
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        Client::try_from(config).unwrap()
    }

    async fn written(&self, name: &str) {
        let path = self.path(name);
        self.wait(name, || Path::new(&path).metadata().is_ok_and(|metadata| metadata.len() > 0)).await;
    }

    pub async fn ready(&self) {
        for _ in 0..600 {
            let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
            if self.client().await.request_text(request).await.is_ok_and(|text| text == "ok") {
                return;
            }
            self.assert_alive();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the API server is not ready: {}", self.log());
    }

    async fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        for _ in 0..600 {
            if is_so() {
                return;
            }
            self.assert_alive();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("never {what}: {}", self.log());
    }

    fn assert_alive(&self) {
        for process in [&self.etcd, &self.apiserver] {
            let Some(child) = &mut *process.lock().unwrap() else { continue };
            let ended = child.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "{ended:?}: {}",
                fs::read_to_string(self.folder.path().join("kube-apiserver.log")).unwrap()
            );
        }
    }

    fn log(&self) -> String {
        let text = fs::read_to_string(self.path("kube-apiserver.log")).unwrap_or_default();
        text.lines().rev().take(20).collect::<Vec<_>>().join("\n")
    }
}

fn end(process: &Process) {
    if let Some(mut child) = process.lock().unwrap().take() {
        // Fails when it has ended already, which is as good.
        drop(child.kill());
        drop(child.wait());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for process in [&self.manager, &self.apiserver, &self.etcd] {
            end(process);
        }
    }
}
