//! A single etcd, which syncs each write as it does everywhere.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::Error;
use crate::process::{Process, free_port};

const POLL: Duration = Duration::from_millis(2);
/// How far a history is moved on that is not to begin at its beginning.
const HISTORY_START: u32 = 100;

/// The process with its data. Both end with this value.
pub struct Etcd {
    program: PathBuf,
    // Ends before its folder goes.
    process: Option<Process>,
    folder: TempDir,
    ports: [u16; 2],
}

impl Etcd {
    /// Starts it, and does not wait for it.
    pub fn start(program: &Path) -> Result<Self, Error> {
        let (folder, ports) = (tempfile::tempdir()?, [free_port()?, free_port()?]);
        let mut etcd = Self { program: program.to_owned(), process: None, folder, ports };
        etcd.start_again()?;
        Ok(etcd)
    }

    /// Starts it on the data that it left.
    pub fn start_again(&mut self) -> Result<(), Error> {
        let [client, peer] = self.ports.map(|port| format!("http://127.0.0.1:{port}"));
        let flags = [
            "--data-dir=data".to_owned(),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
        ];
        self.process = Some(Process::start(&self.program, &flags, self.folder.path())?);
        Ok(())
    }

    /// Kills it, as a loss of power would.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Where its clients find it, on loopback and without TLS.
    pub fn port(&self) -> u16 {
        self.ports[0]
    }

    /// The id of the process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    pub(crate) fn has_ended(&mut self) -> Result<bool, Error> {
        Ok(match &mut self.process {
            Some(process) => process.has_ended()?,
            None => true,
        })
    }

    /// A connection, as soon as it takes one.
    pub async fn connect(&mut self) -> Result<TcpStream, Error> {
        loop {
            if let Ok(tcp) = TcpStream::connect(("127.0.0.1", self.port())).await {
                tcp.set_nodelay(true)?;
                return Ok(tcp);
            }
            if self.has_ended()? {
                return Err(format!("{} has ended", self.program.display()).into());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Writes and forgets, so that the first version of whoever keeps objects here is not 1.
    pub(crate) async fn age(&mut self) -> Result<(), Error> {
        let tcp = self.connect().await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(tcp)).await?;
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
