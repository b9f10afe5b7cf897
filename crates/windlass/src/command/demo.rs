//! `windlass demo`: a cluster is made and upgraded before your eyes, on simulated machines, in less than a minute.

use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser as _;
use jiff::SignedDuration;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use windlass_plan::render::Defaults;
use windlass_plan::resolve::hold::HoldBy;
use windlass_sim::fault::Scenario;
use windlass_sim::timeline::{Recorder, Timeline};

use super::up::embedded::{Embedded, Settings};
use super::up::{self, speed};
use crate::Cli;
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;

/// Its name, and that of its cluster.
const CLUSTER: &str = "demo";
/// Where it begins, and where it ends.
const FROM: &str = "v1.16.7";
const TO: &str = "v1.17";

/// In the folder of a scene.
const KUBECONFIG: &str = "kubeconfig";

/// How wide the picture of letters is.
const WIDTH: usize = 100;

/// See it work: a cluster is created and upgraded, on an embedded management cluster with simulated machines
///
/// Everything happens in this process, with time passing faster than here, and nothing is left behind but a picture. The
/// commands that are shown are the ones that are run: each can be typed the same way while `windlass up` runs.
#[derive(clap::Args)]
pub struct Demo {
    /// How many times as fast as real time the simulated machines live
    #[arg(long, value_name = "N", default_value = "60", value_parser = speed)]
    speed: NonZeroU32,
    /// How many machines the control plane has: 1, 3 or 5
    #[arg(long, value_name = "N", default_value_t = 3)]
    control_plane: u32,
    /// How many workers
    #[arg(long, value_name = "N", default_value_t = 3)]
    workers: u32,
    /// Where to draw what happened, as SVG
    #[arg(long, value_name = "FILE", default_value = "windlass-demo.svg")]
    picture: PathBuf,
}

impl Demo {
    /// Runs it to its end.
    pub fn run(self) -> Result<Exit, Failure> {
        let scene = Scene::set(self.speed)?;
        let played = self.play(&scene);
        scene.clear()?;
        Ok(played?.unwrap_or(Exit::Done))
    }

    /// The way it ended before its end, if it did.
    fn play(&self, scene: &Scene) -> Result<Option<Exit>, Failure> {
        let second = output::took(SignedDuration::from_secs(self.speed.get().into()));
        output::data(&format!(
            "# An embedded management cluster with simulated machines. {second} of their time passes in a second."
        ))?;
        let (control_plane, workers) = (self.control_plane.to_string(), self.workers.to_string());
        let create = ["create", "cluster", CLUSTER, "--release", FROM];
        let size = ["--control-plane", &control_plane, "--workers", &workers, "--wait"];
        let mut before = 0;
        let steps: [(&str, &[&str]); 4] = [
            ("A cluster is one object. Its release comes from a machine image.", &[create.as_slice(), &size].concat()),
            (
                "What an upgrade would change, in which order, and what would hold it. Nothing is touched.",
                &["plan", CLUSTER, "--to", TO],
            ),
            (
                "The upgrade: packages first, then the control plane, machine by machine, then the workers.",
                &["upgrade", CLUSTER, "--to", TO, "--yes", "--wait"],
            ),
            ("How it is now.", &["status", CLUSTER]),
        ];
        for (what, command) in steps {
            output::data(&format!("\n# {what}\n$ windlass {}", command.join(" ")))?;
            if command.first() == Some(&"upgrade") {
                before = scene.recorder.writes();
            }
            match scene.run(command)? {
                Exit::Done => {}
                other => return Ok(Some(other)),
            }
        }
        self.conclude(&scene.recorder.timeline_since(before))?;
        Ok(None)
    }

    /// The picture and the summary.
    fn conclude(&self, timeline: &Timeline) -> Result<(), Failure> {
        output::data(&format!("\n# What happened in the upgrade.\n{}", timeline.chart(WIDTH)))?;
        let took = timeline.events.last().map_or(SignedDuration::ZERO, |event| event.at.duration_since(timeline.from));
        let machines = &timeline.machines;
        output::data(&format!(
            "\n{} machines of the control plane and {} workers were replaced in {} of their time, by {} writes.",
            machines.control_plane.created,
            machines.workers.created,
            output::took(took),
            timeline.writes
        ))?;
        std::fs::write(&self.picture, timeline.svg())
            .map_err(|source| Error::Picture { path: self.picture.clone(), source })?;
        output::data(&format!("The same as a picture: {}", self.picture.display()))?;
        if !timeline.violations.is_empty() {
            let count = timeline.violations.len();
            return Err(Error::Violations { count }.into());
        }
        output::data("No rule of safety was broken: they are watched at every write (docs/invariants.md).")?;
        output::data("Next: windlass up, which keeps such a cluster running, and windlass --help")?;
        Ok(())
    }
}

/// Where it plays: a management cluster that listens, for as long as it is there.
struct Scene {
    runtime: Runtime,
    /// Has the kubeconfig, which goes with it.
    folder: TempDir,
    recorder: Recorder,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), up::Error>>,
    interrupted: Arc<AtomicBool>,
}

impl Scene {
    fn set(speed: NonZeroU32) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::Runtime)?;
        let folder = tempfile::Builder::new().prefix("windlass-demo-").tempdir().map_err(Error::Folder)?;
        let recorder = Recorder::new();
        let kubeconfig = folder.path().join(KUBECONFIG);
        let settings = Settings {
            port: 0,
            kubeconfig: &kubeconfig,
            speed,
            scenario: Scenario::default(),
            defaults: Defaults::default(),
            hold_by: HoldBy::default(),
            recorder: recorder.clone(),
            metrics: Arc::default(),
            kept: None,
        };
        let embedded = runtime.block_on(Embedded::start(settings))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = runtime.spawn(embedded.serve(async move {
            // It never sends: it is dropped to stop.
            drop(stopped.await);
        }));
        let interrupted = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&interrupted);
        runtime.spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                heard.store(true, Ordering::Relaxed);
            }
        });
        Ok(Self { runtime, folder, recorder, stop, serving, interrupted })
    }

    /// Runs a command as if it had been typed, on the cluster of this scene.
    fn run(&self, command: &[&str]) -> Result<Exit, Failure> {
        let kubeconfig = self.folder.path().join(KUBECONFIG);
        let words = ["windlass"].into_iter().chain(command.iter().copied()).map(Into::into);
        let place = ["--kubeconfig".into(), kubeconfig.into_os_string()];
        let cli = Cli::try_parse_from(words.chain(place)).map_err(Error::Usage)?;
        let exit = cli.command.run()?;
        Ok(if self.interrupted.load(Ordering::Relaxed) { Exit::Interrupted } else { exit })
    }

    /// Nothing is left of it.
    fn clear(self) -> Result<(), Failure> {
        drop(self.stop);
        let served = self.runtime.block_on(self.serving);
        self.runtime.shutdown_background();
        served.map_err(|panicked| Error::Serving(panicked.into()))??;
        Ok(())
    }
}

/// The demo did not get to its end.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    #[error("cannot make a folder for the kubeconfig of the demo")]
    Folder(#[source] io::Error),
    #[error("the demo typed something that is not understood")]
    Usage(#[source] clap::Error),
    #[error("the server of the demo broke down")]
    Serving(#[source] io::Error),
    #[error("cannot write --picture {path:?}")]
    Picture { path: PathBuf, source: io::Error },
    #[error("{count} times a rule of safety did not hold; the picture shows where")]
    Violations { count: usize },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Runtime(_) | Self::Folder(_) => Kind::Environment,
            Self::Picture { .. } => Kind::User,
            Self::Usage(_) | Self::Serving(_) | Self::Violations { .. } => Kind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Runtime(_) => "the same again, when this machine has threads to spare".to_owned(),
            Self::Folder(_) => "TMPDIR=… with a folder that can be written to".to_owned(),
            Self::Picture { .. } => "--picture with the path of a file in a folder that can be written to".to_owned(),
            Self::Usage(_) => "--control-plane 3 --workers 3".to_owned(),
            Self::Serving(_) | Self::Violations { .. } => "the same again, and a report of this".to_owned(),
        })
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Violations { .. } => Exit::OperationFailed,
            _ => Exit::Failed,
        }
    }
}
