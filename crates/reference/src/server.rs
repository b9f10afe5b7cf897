//! A `kube-apiserver` on an `etcd`, and real controllers when asked for.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::Full;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use tempfile::TempDir;
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::Error;
use crate::etcd::Etcd;
use crate::https::Https;
use crate::process::{Process, free_port};

const TOKEN: &str = "conformance";
/// A start takes a few seconds on two quiet cores.
const START: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);

/// The program with the garbage collector and the namespace controller.
pub(crate) const CONTROLLERS: &str = "kube-controller-manager";

/// The processes. They end with this value.
pub struct RealServer {
    // End before their folders go, the last one first.
    processes: Vec<Process>,
    etcd: Etcd,
    folder: TempDir,
    port: u16,
    certificate: CertificateDer<'static>,
}

impl RealServer {
    /// Starts them, and waits until they answer. The history does not begin at its beginning: version 1 has expired, as it has
    /// on every server that has run for a while.
    pub async fn start(assets: &Path, with_controllers: bool) -> Result<(Self, Https), Error> {
        let mut server = Self::etcd(assets)?;
        let aged = tokio::time::timeout(START, server.etcd.age()).await;
        aged.map_err(|_| server.why("etcd did not answer in time"))??;
        let https = server.serve(assets).await?;
        if with_controllers {
            let flags = Self::controllers_flags();
            server.spawn(assets, CONTROLLERS, &flags)?;
        }
        Ok((server, https))
    }

    /// Starts a server alone, and one whose history begins at the beginning.
    pub async fn start_new(assets: &Path) -> Result<(Self, Https), Error> {
        let mut server = Self::etcd(assets)?;
        let https = server.serve(assets).await?;
        Ok((server, https))
    }

    fn etcd(assets: &Path) -> Result<Self, Error> {
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
        let etcd = Etcd::start(&assets.join("etcd"))?;
        let (port, certificate) = (free_port()?, cert.der().clone());
        let server = Self { processes: Vec::new(), etcd, folder, port, certificate };
        server.write_kubeconfig()?;
        Ok(server)
    }

    async fn serve(&mut self, assets: &Path) -> Result<Https, Error> {
        let flags = self.apiserver_flags();
        self.spawn(assets, "kube-apiserver", &flags)?;
        tokio::time::timeout(START, self.ready()).await.map_err(|_| self.why("not ready in time"))?
    }

    /// The ids of the processes.
    pub fn pids(&self) -> Vec<u32> {
        self.etcd.pid().into_iter().chain(self.processes.iter().map(Process::id)).collect()
    }

    fn apiserver_flags(&self) -> Vec<String> {
        let etcd = format!("--etcd-servers=http://127.0.0.1:{}", self.etcd.port());
        let mut flags = vec![etcd, format!("--secure-port={}", self.port)];
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

    /// The kubeconfig of its administrator, in a folder that goes when the processes go.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    fn write_kubeconfig(&self) -> Result<(), Error> {
        let kubeconfig = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {
                "server": format!("https://127.0.0.1:{}", self.port),
                "certificate-authority": self.folder.path().join("serving.crt")}}],
            "users": [{"name": "it", "user": {"token": TOKEN}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        });
        Ok(std::fs::write(self.kubeconfig(), kubeconfig.to_string())?)
    }

    fn controllers_flags() -> Vec<String> {
        let flags = [
            "--kubeconfig=kubeconfig",
            "--controllers=garbage-collector-controller,namespace-controller",
            "--leader-elect=false",
            "--secure-port=0",
        ];
        flags.map(str::to_owned).to_vec()
    }

    fn spawn(&mut self, assets: &Path, program: &str, flags: &[String]) -> Result<(), Error> {
        let process = Process::start(&assets.join(program), flags, self.folder.path());
        self.processes.push(process.map_err(|why| format!("in KUBEBUILDER_ASSETS: {why}"))?);
        Ok(())
    }

    async fn ready(&mut self) -> Result<Https, Error> {
        loop {
            let mut has_ended = self.etcd.has_ended()?;
            for process in &mut self.processes {
                has_ended |= process.has_ended()?;
            }
            if has_ended {
                return Err(self.why("a process has ended"));
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
}
