//! Our server, alone in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tempfile::TempDir;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use windlass_reference::Error;
use windlass_reference::https::Https;

/// Whether it keeps what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    InMemory,
    OnDisk,
}

/// The process. It ends with this value.
pub struct Up {
    child: Child,
    keeps: Keeps,
    state: TempDir,
}

impl Drop for Up {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Up {
    /// Starts it, and connects as soon as it says where.
    pub async fn start(keeps: Keeps) -> Result<(Self, Https), Error> {
        let state = TempDir::new()?;
        let (child, https) = start(state.path(), keeps).await?;
        Ok((Self { child, keeps, state }, https))
    }

    /// Kills it, as a loss of power would.
    pub fn kill(&mut self) {
        // Nothing it holds is worth an orderly end.
        if self.child.kill().is_ok() {
            drop(self.child.wait());
        }
    }

    /// Starts it on what it left.
    pub async fn start_again(&mut self) -> Result<Https, Error> {
        let (child, https) = start(self.state.path(), self.keeps).await?;
        self.child = child;
        Ok(https)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

async fn start(state: &Path, keeps: Keeps) -> Result<(Child, Https), Error> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "serve", "--state"]).arg(state);
    if keeps == Keeps::OnDisk {
        command.arg("--data-dir").arg(state.join("data"));
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let stdout = child.stdout.take().ok_or("its output is piped")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let connected = connect(Path::new(line.trim_end())).await;
    if connected.is_err() {
        // Whoever cannot be reached is not left behind.
        drop(child.kill());
        drop(child.wait());
    }
    Ok((child, connected?))
}

async fn connect(kubeconfig: &Path) -> Result<Https, Error> {
    let kubeconfig: Value = serde_saphyr::from_str(&std::fs::read_to_string(kubeconfig)?)?;
    let (cluster, user) = (&kubeconfig["clusters"][0]["cluster"], &kubeconfig["users"][0]["user"]);
    let decoded = |value: &Value| STANDARD.decode(value.as_str().unwrap_or_default());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&decoded(&cluster["certificate-authority-data"])?)?)?;
    let certificate = CertificateDer::from_pem_slice(&decoded(&user["client-certificate-data"])?)?;
    let key = PrivateKeyDer::from_pem_slice(&decoded(&user["client-key-data"])?)?;
    let config = ClientConfig::builder().with_root_certificates(roots).with_client_auth_cert(vec![certificate], key)?;
    let server = cluster["server"].as_str().unwrap_or_default();
    let port = server.rsplit(':').next().unwrap_or_default().parse()?;
    Https::with_config(port, config, None).await
}
