//! `windlass up`: an embedded management cluster with simulated machines, for as long as the command runs.

pub mod doors;
pub mod embedded;
mod error;
mod kept;
pub mod keys;
mod metrics;
mod world;

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use windlass_controller::metrics::Metrics;
use windlass_plan::render::Defaults;
use windlass_plan::resolve::hold::HoldBy;
use windlass_sim::fault::{Fault, Injection, Scenario};
use windlass_sim::timeline::Recorder;

use crate::error::{Exit, Failure};
use crate::{output, scenario, state};
use embedded::Embedded;
pub use error::Error;
use kept::{Kept, Past};

/// The cluster, and its context, in the kubeconfig.
pub const CLUSTER_NAME: &str = "windlass";

/// An hour in a second: faster, and the machine's own speed decides.
const SPEED_MAX: i64 = 3_600;

/// How much of its story a World remembers that may run for days: the latest few hundred updates.
const EVENTS_MAX: usize = 10_000;

/// Start an embedded management cluster and keep it running.
///
/// Prints one line for a shell, `export KUBECONFIG=…` (with --metrics another, `export WINDLASS_METRICS=…`), and serves until it
/// is interrupted. It has releases, machine classes
/// and simulated machines, so that clusters can be created and upgraded on it. Everything is kept in memory: objects, keys and
/// ports are new at each start. With --data-dir everything is kept there: clusters and updates go on where they were, however it
/// ended, and kubeconfigs go on working.
#[derive(clap::Args)]
pub struct Up {
    /// The port on 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    // In `help`, because markup that clippy wants in a doc comment would show.
    #[arg(
        long,
        value_name = "PATH",
        help = "Where to write the kubeconfig [default: windlass/kubeconfig in $XDG_STATE_HOME or ~/.local/state]"
    )]
    kubeconfig: Option<PathBuf>,
    /// Where to keep everything: a directory of its own, which is made if it is not there
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    // In `help`, because markup that clippy wants in a doc comment would show.
    #[arg(
        long,
        value_name = "FILE",
        requires = "data_dir",
        help = "The key that the data directory is encrypted with, made if there is neither \
                [default: windlass/data-key in $XDG_STATE_HOME or ~/.local/state]"
    )]
    key_file: Option<PathBuf>,
    /// How many times as fast as real time the simulated machines live
    #[arg(long, value_name = "N", default_value = "1", value_parser = speed)]
    speed: NonZeroU32,
    /// What goes wrong: a file of faults, of what people do, and of how much there is to make machines of
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Serve metrics for Prometheus, on an address of this machine only; a free port without one
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:0")]
    metrics: Option<SocketAddr>,
    /// How the machines of clusters of a class are kept back until the packages of a new release are in: pause, or hooks
    #[arg(long, value_name = "HOW", default_value = "pause")]
    hold: HoldBy,
    /// Have nodes register with this, as another version of Windlass may decide: imagePullPolicy=Always. May be given several
    /// times. Machines that were made without it are replaced when somebody agrees
    #[arg(long, value_name = "FIELD=VALUE", value_parser = registration)]
    node_registration: Vec<(String, String)>,
}

/// A field of kubeadm's `nodeRegistration`, and what it is to be.
pub fn registration(text: &str) -> Result<(String, String), String> {
    let both = text.split_once('=').filter(|(field, value)| !field.is_empty() && !value.is_empty());
    let (field, value) = both.ok_or_else(|| "accepted is FIELD=VALUE, such as imagePullPolicy=Always".to_owned())?;
    Ok((field.to_owned(), value.to_owned()))
}

pub fn speed(text: &str) -> Result<NonZeroU32, String> {
    let speed = text.parse().ok().and_then(NonZeroU32::new).filter(|speed| i64::from(speed.get()) <= SPEED_MAX);
    speed.ok_or_else(|| format!("accepted are whole numbers from 1 to {SPEED_MAX}"))
}

impl Up {
    /// Serves until SIGINT or SIGTERM.
    pub fn run(self) -> Result<Exit, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::Runtime)?;
        let ended = runtime.block_on(self.serve());
        // Whoever wants it to end at once does not wait for connections.
        runtime.shutdown_background();
        Ok(ended?)
    }

    async fn serve(self) -> Result<Exit, Error> {
        let path = match self.kubeconfig {
            Some(path) => std::path::absolute(&path).map_err(|source| Error::Path { path, source })?,
            None => state::kubeconfig().ok_or(Error::NoStateDirectory)?,
        };
        let scenario = scenario::read(self.scenario.as_deref())?;
        let kept = open(self.data_dir.as_deref(), self.key_file.as_deref(), &scenario)?;
        let journal = kept.as_ref().map(|(kept, _)| kept.clone());
        let goes_on = kept.as_ref().is_some_and(|(_, past)| past.is_some());
        // Before anything is printed: whoever reads the line may send a signal at once.
        let interruption = Interruption::listen()?;
        let counters = Arc::new(Metrics::default());
        let embedded = Embedded::start(embedded::Settings {
            port: self.port,
            kubeconfig: &path,
            speed: self.speed,
            scenario,
            defaults: Defaults { node_registration: self.node_registration.into_iter().collect() },
            hold_by: self.hold,
            recorder: Recorder::remembering(EVENTS_MAX),
            metrics: Arc::clone(&counters),
            kept,
        })
        .await?;
        let text = path.to_str().ok_or_else(|| Error::PathText { path: path.clone() })?;
        let mut lines = vec![format!("export KUBECONFIG={}", shell_word(text))];
        if let Some(address) = self.metrics {
            let (listener, url) = metrics::listen(address).await?;
            lines.push(format!("export WINDLASS_METRICS={url}"));
            tokio::spawn(metrics::serve(listener, embedded.client(), counters));
        }
        output::data(&lines.join("\n"))?;
        output::note(&format!("A management cluster listens on {}. Ctrl-C ends it.", embedded.url));
        output::note(if goes_on {
            "Everything is as it was, and goes on. In another terminal, try: windlass get clusters"
        } else {
            "In another terminal, try: windlass create cluster my-tkc --wait"
        });
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = embedded.serve(async move {
            // It never sends: it is dropped to stop.
            drop(stopped.await);
        });
        let exit = tokio::select! {
            biased;
            served = serving => served.map(|()| Exit::Done)?,
            () = interruption.twice(stop) => Exit::Interrupted,
        };
        if let Some(journal) = journal {
            // It waits for a disk, and so for nobody else's turn.
            let closed = tokio::task::spawn_blocking(move || journal.close()).await;
            closed.map_err(io::Error::other).flatten().map_err(Error::Keep)?;
        }
        output::note("Stopped.");
        Ok(exit)
    }
}

/// Opens what is to be kept, and what was.
fn open(
    data_dir: Option<&Path>,
    key_file: Option<&Path>,
    scenario: &Scenario,
) -> Result<Option<(Kept, Option<Past>)>, Error> {
    let Some(path) = data_dir else { return Ok(None) };
    let is_of_disks = |injection: &Injection| matches!(injection.fault, Fault::Disk { .. } | Fault::SlowDisk { .. });
    if scenario.faults.iter().any(is_of_disks) {
        return Err(Error::SimulatedDisk);
    }
    let absolute =
        |path: &Path| std::path::absolute(path).map_err(|source| Error::Path { path: path.to_owned(), source });
    let key_file = match key_file {
        Some(key_file) => absolute(key_file)?,
        None => state::data_key().ok_or(Error::NoStateDirectory)?,
    };
    Ok(Some(Kept::open(&absolute(path)?, &key_file)?))
}

/// The wall clock: where the embedded cluster's time begins, and what certificates are valid by.
#[allow(clippy::disallowed_methods, reason = "the binary is where real time is injected")]
pub fn wall_now() -> Timestamp {
    Timestamp::now()
}

/// The two signals by which people and service managers end a command.
pub struct Interruption {
    interrupt: Signal,
    terminate: Signal,
}

impl Interruption {
    /// From now on they are ours to deal with.
    pub fn listen() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(Error::Signals);
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Either of them.
    pub async fn once(&mut self) {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// The first one drops `stop`; the second one is of somebody who does not want to wait.
    async fn twice(mut self, stop: oneshot::Sender<()>) {
        self.once().await;
        output::note("Stopping: requests may finish, watches end. Again to stop at once.");
        drop(stop);
        self.once().await;
    }
}

/// The text as one word of a POSIX shell, quoted only where it must be.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_survive_a_shell() {
        let check = |text: &str, expected: &str| assert_eq!(shell_word(text), expected);
        check("/houses/me/kube-config_1.yaml", "/houses/me/kube-config_1.yaml");
        check("/houses/my files/k", "'/houses/my files/k'");
        check("/it's/$HOME", r"'/it'\''s/$HOME'");
    }
}
