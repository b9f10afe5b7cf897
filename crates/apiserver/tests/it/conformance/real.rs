//! The reference: a real `kube-apiserver` on a real `etcd`, and real controllers when asked for, on loopback ports and in a folder of their own, for the length of a test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::transport::{Error, Https, Transport as _};

const TOKEN: &str = "conformance";
/// A start takes a few seconds on two quiet cores.
const START: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);
/// The history begins here: version 1 has expired, as it has on every server that has run for a while.
const HISTORY_START: u32 = 100;

/// The program with the garbage collector and the namespace controller.
const CONTROLLERS: &str = "kube-controller-manager";

/// The folder with the programs, when there is one.
pub fn assets() -> Option<PathBuf> {
    std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from)
}

/// Whether the folder also has the controllers.
pub fn has_controllers(assets: &Path) -> bool {
    assets.join(CONTROLLERS).exists()
}

/// The processes. They end with this value.
pub struct RealServer {
    processes: Vec<Process>,
    folder: TempDir,
    port: u16,
    etcd_port: u16,
    certificate: CertificateDer<'static>,
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing they hold is worth keeping: no orderly end.
        if self.0.kill().is_ok() {
            drop(self.0.wait());
        }
    }
}

impl RealServer {
    /// Starts them, and waits until they answer.
    pub async fn start(assets: &Path, with_controllers: bool) -> Result<(Self, Https), Error> {
        let mut server = Self::etcd(assets).await?;
        let aged = tokio::time::timeout(START, server.age()).await;
        aged.map_err(|_| server.why("etcd did not answer in time"))??;
        let https = server.serve(assets).await?;
        if with_controllers {
            server.spawn(assets, CONTROLLERS, &server.controllers_flags()?)?;
        }
        Ok((server, https))
    }

    /// Starts a server alone, and one whose history begins at the beginning.
    #[allow(dead_code, reason = "for the benchmark, which shares this file")]
    pub async fn start_new(assets: &Path) -> Result<(Self, Https), Error> {
        let mut server = Self::etcd(assets).await?;
        let https = server.serve(assets).await?;
        Ok((server, https))
    }

    async fn etcd(assets: &Path) -> Result<Self, Error> {
        let folder = tempfile::tempdir()?;
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
        let accounts = KeyPair::generate()?;
        for (name, text) in [
            ("serving.crt", cert.pem()),
            ("serving.key", signing_key.serialize_pem()),
            ("accounts.key", accounts.serialize_pem()),
            ("accounts.pub", accounts.public_key_pem()),
            ("tokens.csv", format!("{TOKEN},admin,1,system:masters\n")),
        ] {
            std::fs::write(folder.path().join(name), text)?;
        }
        let (port, etcd_port) = (free_port().await?, free_port().await?);
        let certificate = cert.der().clone();
        let mut server = Self { processes: Vec::new(), folder, port, etcd_port, certificate };
        server.spawn(assets, "etcd", &server.etcd_flags(free_port().await?))?;
        Ok(server)
    }

    async fn serve(&mut self, assets: &Path) -> Result<Https, Error> {
        self.spawn(assets, "kube-apiserver", &self.apiserver_flags())?;
        tokio::time::timeout(START, self.ready()).await.map_err(|_| self.why("not ready in time"))?
    }

    /// The ids of the processes.
    #[allow(dead_code, reason = "for the benchmark, which shares this file")]
    pub fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(|process| process.0.id()).collect()
    }

    fn etcd_flags(&self, peer_port: u16) -> Vec<String> {
        let url = format!("http://127.0.0.1:{}", self.etcd_port);
        vec![
            "--data-dir=data".to_owned(),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            format!("--listen-peer-urls=http://127.0.0.1:{peer_port}"),
        ]
    }

    fn apiserver_flags(&self) -> Vec<String> {
        let mut flags =
            vec![format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_port), format!("--secure-port={}", self.port)];
        let fixed = [
            "--bind-address=127.0.0.1",
            "--cert-dir=.",
            "--tls-cert-file=serving.crt",
            "--tls-private-key-file=serving.key",
            "--token-auth-file=tokens.csv",
            "--service-account-issuer=https://conformance.example.com",
            "--service-account-key-file=accounts.pub",
            "--service-account-signing-key-file=accounts.key",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=AlwaysAllow",
            // No controller makes the service account that this would ask for.
            "--disable-admission-plugins=ServiceAccount",
            // Cases read from the history.
            "--etcd-compaction-interval=0",
        ];
        flags.extend(fixed.map(str::to_owned));
        flags
    }

    fn controllers_flags(&self) -> Result<Vec<String>, Error> {
        let kubeconfig = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {
                "server": format!("https://127.0.0.1:{}", self.port), "certificate-authority": "serving.crt"}}],
            "users": [{"name": "it", "user": {"token": TOKEN}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        });
        std::fs::write(self.folder.path().join("kubeconfig"), kubeconfig.to_string())?;
        let flags = [
            "--kubeconfig=kubeconfig",
            "--controllers=garbage-collector-controller,namespace-controller",
            "--leader-elect=false",
            "--secure-port=0",
        ];
        Ok(flags.map(str::to_owned).to_vec())
    }

    fn spawn(&mut self, assets: &Path, program: &str, flags: &[String]) -> Result<(), Error> {
        let log = File::create(self.folder.path().join(format!("{program}.log")))?;
        let child = Command::new(assets.join(program))
            .args(flags)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .map_err(|why| format!("{program} in KUBEBUILDER_ASSETS: {why}"))?;
        self.processes.push(Process(child));
        Ok(())
    }

    async fn ready(&mut self) -> Result<Https, Error> {
        loop {
            for process in &mut self.processes {
                if process.0.try_wait()?.is_some() {
                    return Err(self.why("a process has ended"));
                }
            }
            if let Ok(https) = Https::connect(self.port, vec![self.certificate.clone()], TOKEN).await {
                let request = http::Request::get("/readyz").body(Full::default())?;
                if https.send(request).await.is_ok_and(|answer| answer.status() == 200) {
                    return Ok(https);
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn why(&self, what: &str) -> Error {
        let log = std::fs::read_to_string(self.folder.path().join("kube-apiserver.log")).unwrap_or_default();
        let tail: Vec<&str> = log.lines().rev().take(5).collect();
        format!("the real server: {what}; the end of its log, latest first:\n{}", tail.join("\n")).into()
    }

    /// Writes and forgets, so that the server's first version is not 1.
    async fn age(&self) -> Result<(), Error> {
        let tcp = loop {
            match TcpStream::connect(("127.0.0.1", self.etcd_port)).await {
                Ok(tcp) => break tcp,
                Err(_) => tokio::time::sleep(POLL).await,
            }
        };
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(tcp)).await?;
        tokio::spawn(connection);
        let put = ("/v3/kv/put", r#"{"key":"YWdl","value":"YWdl"}"#.to_owned());
        let compact = ("/v3/kv/compaction", format!(r#"{{"revision":"{HISTORY_START}"}}"#));
        for (target, body) in std::iter::repeat_n(put, HISTORY_START as usize).chain([compact]) {
            let request = http::Request::post(target).header("host", "etcd").body(Full::new(Bytes::from(body)))?;
            let answer = sender.send_request(request).await?;
            let (status, body) = (answer.status(), answer.into_body().collect().await?.to_bytes());
            if status != 200 {
                return Err(format!("etcd refused {target}: {body:?}").into());
            }
        }
        Ok(())
    }
}

async fn free_port() -> Result<u16, Error> {
    Ok(TcpListener::bind(("127.0.0.1", 0)).await?.local_addr()?.port())
}
