//! `windlass up`: an embedded management cluster with simulated machines, for as long as the command runs.

mod doors;
pub mod embedded;
mod keys;
mod metrics;
mod world;

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use windlass_apiserver::listen::{self, kubeconfig};
use windlass_controller::metrics::Metrics;
use windlass_plan::render::Defaults;
use windlass_plan::resolve::hold::HoldBy;
use windlass_sim::timeline::Recorder;
use windlass_sim::world as sim;

use crate::error::{Exit, Explained, Failure, Kind};
use crate::{output, scenario, state};
use embedded::Embedded;

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
/// ports are new at each start.
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
        output::note("In another terminal, try: windlass create cluster my-tkc --wait");
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
        output::note("Stopped.");
        Ok(exit)
    }
}

/// The wall clock: where the embedded cluster's time begins, and what certificates are valid by.
#[allow(clippy::disallowed_methods, reason = "the binary is where real time is injected")]
fn wall_now() -> Timestamp {
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

/// The cluster could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    #[error("cannot start the simulated world")]
    Thread(#[source] io::Error),
    #[error("cannot furnish the simulated world")]
    World(#[source] sim::Error),
    #[error("the simulated world has ended by itself")]
    WorldEnded,
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
    #[error(transparent)]
    Scenario(#[from] scenario::Error),
    #[error(transparent)]
    Output(#[from] output::Error),
    #[error("there is no directory for the kubeconfig: neither XDG_STATE_HOME nor HOME names one")]
    NoStateDirectory,
    #[error("{path:?} is not a usable path")]
    Path { path: PathBuf, source: io::Error },
    #[error("the kubeconfig was written to {path:?}, which is not UTF-8 and cannot be printed")]
    PathText { path: PathBuf },
    #[error(transparent)]
    Metrics(#[from] metrics::Error),
    #[error(transparent)]
    Listen(#[from] listen::Error),
    #[error(transparent)]
    Kubeconfig(#[from] kubeconfig::Error),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Path { .. }
            | Self::PathText { .. }
            | Self::Metrics(_)
            | Self::Listen(listen::Error::NotLoopback { .. }) => Kind::User,
            Self::Kubeconfig(error) => match error {
                kubeconfig::Error::NotAPath { .. }
                | kubeconfig::Error::NotAFile { .. }
                | kubeconfig::Error::NotOurs { .. } => Kind::User,
                _ => Kind::Environment,
            },
            Self::Runtime(_)
            | Self::Thread(_)
            | Self::Signals(_)
            | Self::NoStateDirectory
            | Self::Listen(listen::Error::Bind { .. } | listen::Error::Random | listen::Error::Clock { .. }) => {
                Kind::Environment
            }
            Self::Scenario(error) => error.kind(),
            Self::Output(error) => error.kind(),
            Self::World(_) | Self::WorldEnded | Self::Listen(_) => Kind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        let elsewhere = "windlass up --kubeconfig PATH, with a path of its own";
        match self {
            Self::NoStateDirectory | Self::Path { .. } | Self::PathText { .. } | Self::Kubeconfig(_) => {
                Some(elsewhere.to_owned())
            }
            Self::Listen(listen::Error::Bind { .. }) => {
                Some("windlass up without --port, which takes a free one".to_owned())
            }
            Self::Listen(listen::Error::Clock { .. }) => Some("setting this machine's clock".to_owned()),
            Self::Metrics(_) => Some("windlass up --metrics without an address, which takes a free port".to_owned()),
            Self::Scenario(error) => error.hint(),
            Self::Output(error) => error.hint(),
            Self::WorldEnded => Some("windlass up".to_owned()),
            Self::Runtime(_) | Self::Thread(_) | Self::World(_) | Self::Signals(_) | Self::Listen(_) => None,
        }
    }
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
