//! `windlass controller` as a process of its own, which ends with a value.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use windlass_reference::Error;

use super::super::measure::process_cpu;

const ANYWHERE: &str = "127.0.0.1:0";
/// A namespace that every management cluster has that clusters are made on.
const LEASE_NAMESPACE: &str = "vmware-system-tkg";
/// A start takes a second, and longer on a machine with much to do.
const START: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);
/// How often it is looked whether it still lives.
const WATCHED: Duration = Duration::from_secs(1);
/// As it is in a scrape.
const REQUESTS: &str = "windlass_requests_total{";

/// The process, and the file that it tells into.
struct Running {
    child: Mutex<Child>,
    log: PathBuf,
}

impl Running {
    fn start(kubeconfig: &Path, log: PathBuf, arguments: &[&str]) -> Result<Self, Error> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("controller").args(arguments).args(["--probes", ANYWHERE, "--kubeconfig"]).arg(kubeconfig);
        // In a pod it would not believe that a workload cluster is on the machine that asks. These are, wherever it is measured.
        command.env_remove("KUBERNETES_SERVICE_HOST");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&log)?);
        Ok(Self { child: Mutex::new(command.spawn()?), log })
    }

    /// The first line with this message, as soon as it is there.
    async fn said(&self, message: &str) -> Result<Value, Error> {
        let said = async {
            loop {
                let text = fs::read_to_string(&self.log)?;
                let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                if let Some(line) = lines.find(|line| line["message"] == message) {
                    return Ok(line);
                }
                tokio::time::sleep(POLL).await;
            }
        };
        tokio::select! {
            biased;
            said = said => said,
            ended = self.ended() => Err(ended),
            () = tokio::time::sleep(START) => Err(self.why(&format!("did not say {message:?} in time"))),
        }
    }

    /// The address in a line with this message.
    async fn address(&self, message: &str) -> Result<SocketAddr, Error> {
        Ok(self.said(message).await?["address"].as_str().unwrap_or_default().parse()?)
    }

    /// When it has ended by itself, which it should not.
    async fn ended(&self) -> Error {
        loop {
            let ended = self.child.lock().map_or(Ok(None), |mut child| child.try_wait());
            match ended {
                Ok(None) => tokio::time::sleep(WATCHED).await,
                Ok(Some(status)) => return self.why(&format!("has ended with {status}")),
                Err(error) => return error.into(),
            }
        }
    }

    fn why(&self, what: &str) -> Error {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let tail: Vec<&str> = log.lines().rev().take(5).collect();
        format!("windlass controller {what}; the end of its log, latest first:\n{}", tail.join("\n")).into()
    }

    fn id(&self) -> u32 {
        self.child.lock().map_or(0, |child| child.id())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(mut child) = self.child.lock()
            && child.kill().is_ok()
        {
            drop(child.wait());
        }
    }
}

/// The one that answers reviews of admission.
pub struct Answers {
    /// Ends with this value.
    _running: Running,
    port: u16,
}

impl Answers {
    /// Starts it, and waits until it answers.
    pub async fn start(kubeconfig: &Path, log: PathBuf) -> Result<Self, Error> {
        let running = Running::start(kubeconfig, log, &["--webhooks", "--listen", ANYWHERE])?;
        let port = running.address("reviews and questions").await?.port();
        running.said("serving with another certificate").await?;
        Ok(Self { _running: running, port })
    }

    /// Where it answers, on this machine.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// The one that is measured.
pub struct Controllers {
    running: Running,
    probes: SocketAddr,
}

impl Controllers {
    /// Starts it, and waits until it leads.
    pub async fn start(kubeconfig: &Path, log: PathBuf) -> Result<Self, Error> {
        let running = Running::start(kubeconfig, log, &["--controllers", "--lease-namespace", LEASE_NAMESPACE])?;
        let probes = running.address("probes and metrics").await?;
        running.said("this replica leads").await?;
        Ok(Self { running, probes })
    }

    /// Its id, as in `/proc`.
    pub fn pid(&self) -> String {
        self.running.id().to_string()
    }

    /// The seconds of CPU that it has taken.
    pub fn cpu(&self) -> Result<f64, Error> {
        process_cpu(&[self.running.id()])
    }

    /// When it has ended by itself, which it should not.
    pub async fn ended(&self) -> Error {
        self.running.ended().await
    }

    /// What it has sent so far.
    pub async fn sent(&self) -> Result<Sent, Error> {
        let tcp = TcpStream::connect(self.probes).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(tcp)).await?;
        let request = http::Request::get("/metrics").header("host", "probes").body(Empty::<Bytes>::new())?;
        let answer = async move {
            let answer = sender.send_request(request).await?;
            let (status, body) = (answer.status(), answer.into_body().collect().await?.to_bytes());
            if status.is_success() {
                return Ok(Sent::read(&String::from_utf8_lossy(&body)));
            }
            Err::<_, Error>(format!("the metrics of the controllers: {status}").into())
        };
        // The connection ends with the answer; what matters of its end is in the answer.
        let (sent, _) = tokio::join!(answer, connection);
        sent
    }
}

/// Requests, by whose API was asked and what for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sent(BTreeMap<(String, String), f64>);

impl Sent {
    /// Those in a page of metrics.
    fn read(page: &str) -> Self {
        let sample = |line: &str| {
            let (labels, value) = line.strip_prefix(REQUESTS)?.split_once("} ")?;
            let of = |name: &str| {
                let found = labels.split(',').find_map(|pair| pair.strip_prefix(name)?.strip_prefix("=\""));
                Some(found?.trim_end_matches('"').to_owned())
            };
            Some(((of("api")?, of("verb")?), value.parse().ok()?))
        };
        Self(page.lines().filter_map(sample).collect())
    }

    /// Those that were sent after `before`.
    pub fn since(&self, before: &Self) -> Self {
        let of = |key, now: f64| (Clone::clone(key), now - before.0.get(key).copied().unwrap_or_default());
        Self(self.0.iter().map(|(key, now)| of(key, *now)).collect())
    }

    fn sum(&self, counts: impl Fn(&str, &str) -> bool) -> f64 {
        self.0.iter().filter(|((api, verb), _)| counts(api, verb)).map(|(_, count)| count).sum()
    }

    pub fn all(&self) -> f64 {
        self.sum(|_, _| true)
    }

    /// Those that are to change something.
    pub fn writes(&self) -> f64 {
        self.sum(|_, verb| !matches!(verb, "get" | "watch"))
    }

    pub fn to_workloads(&self) -> f64 {
        self.sum(|api, _| api == "workload")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_from_a_page_and_counted_since_another() {
        let page = |get: u32, patch: u32| {
            Sent::read(&format!(
                "# HELP windlass_requests_total Requests.\nwindlass_queue_depth 3\n\
                 windlass_requests_total{{api=\"management\",verb=\"get\"}} {get}\n\
                 windlass_requests_total{{api=\"workload\",verb=\"patch\"}} {patch}\n"
            ))
        };
        let check = |sent: Sent, expected: [&str; 3]| {
            assert_eq!([sent.all(), sent.writes(), sent.to_workloads()].map(|count| count.to_string()), expected);
        };
        check(page(12, 5).since(&page(2, 1)), ["14", "4", "4"]);
        check(page(12, 5).since(&Sent::default()), ["17", "5", "5"]);
    }
}
