//! `windlass bench`: what parts of Windlass cost on this machine, beside what they could be replaced by.
// Counts here are far below 2^52.
#![allow(clippy::cast_precision_loss)]

mod controller;
mod durable;
mod embedded;
mod etcd;
mod fork;
mod list;
mod measure;
mod memory;
mod objects;
mod operations;
mod recovery;
pub mod report;
mod serve;
mod side;
mod start;
mod up;
mod watch;

use std::io;

use windlass_reference::Error as Cause;

use super::up::Interruption;
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output::{self, Document, Format};
use report::{Report, Section};

/// Measure parts of Windlass on this machine, beside what they could be replaced by
#[derive(clap::Subcommand)]
pub enum Bench {
    Apiserver(Apiserver),
    Controller(controller::Controller),
    #[command(hide = true)]
    Serve(serve::Serve),
}

impl Bench {
    /// Measures, and prints the figures.
    pub fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Apiserver(apiserver) => apiserver.run(),
            Self::Controller(controller) => controller.run(),
            Self::Serve(serve) => {
                let runtime =
                    tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::Runtime)?;
                runtime.block_on(serve.run()).map_err(Error::Serve)?;
                Ok(Exit::Done)
            }
        }
    }
}

/// Measure the embedded API server: alone, and beside etcd and kube-apiserver
///
/// Both sides are measured in the same run, in turns. etcd is what is installed; with KUBEBUILDER_ASSETS naming a folder that has
/// kube-apiserver and etcd, these are compared with too. What is not there is "not compared". The rules are in docs/performance.md.
/// It starts servers of its own in temporary folders, and needs a quiet machine and some minutes.
#[allow(clippy::doc_markdown, reason = "markup would show in the help")]
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  KUBEBUILDER_ASSETS=bin windlass bench apiserver durable list -o json > figures.json"
)]
pub struct Apiserver {
    /// Only these sections; all of them otherwise
    #[arg(value_name = "SECTION")]
    sections: Vec<Chosen>,
    /// How many rounds are measured, after one that warms up
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// A hundredth of everything and one round: to see that it works. Its figures mean nothing
    #[arg(long, conflicts_with = "rounds")]
    quick: bool,
    /// Write the figures with all rounds as a document instead, for scripts
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
}

/// In this order: memory is measured on a heap that nothing has used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Chosen {
    /// Q6: what an object costs in memory
    Memory,
    /// Q3: what each operation costs in the process
    Operations,
    /// A server of one's own with the same objects
    Fork,
    /// Q1 and Q2: what a write costs that is kept, with several clients
    Durable,
    /// Q4: a list of 10,000 objects
    List,
    /// Q5: one writer, many watchers
    Watch,
    /// Q7 and Q8: start and memory of an empty server
    Start,
    /// Q9: killed under load, and started again on 100,000 objects
    Recovery,
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    rounds: usize,
    divisor: usize,
}

impl Scale {
    /// The first round warms up, and is thrown away.
    fn rounds(self) -> impl Iterator<Item = bool> {
        (0..=self.rounds).map(|round| round > 0)
    }

    /// That many, or fewer when it should be quick.
    fn of(self, count: usize) -> usize {
        (count / self.divisor).max(1)
    }
}

impl Apiserver {
    fn run(self) -> Result<Exit, Failure> {
        // One thread does everything, so that in the process its time is that of client and server.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
        let scale = if self.quick {
            Scale { rounds: 1, divisor: 100 }
        } else {
            Scale { rounds: usize::from(self.rounds), divisor: 1 }
        };
        let mut report = Report::new(self.quick);
        let all = <Chosen as clap::ValueEnum>::value_variants();
        let chosen = all.iter().filter(|section| self.sections.is_empty() || self.sections.contains(section));
        for section in chosen {
            let name = clap::ValueEnum::to_possible_value(section).map(|value| value.get_name().to_owned());
            let name = name.unwrap_or_default();
            output::note(&format!("{name} …"));
            let local = tokio::task::LocalSet::new();
            let measured = runtime.block_on(local.run_until(section.measure(scale)));
            report.add(measured.map_err(|source| Error::Section { name, source })?);
        }
        report.end();
        match self.output {
            Some(format) => output::document(format, &Document::new("BenchReport", &report))?,
            None => output::data(&report.text())?,
        }
        Ok(Exit::Done)
    }
}

impl Chosen {
    async fn measure(self, scale: Scale) -> Result<Section, Cause> {
        match self {
            Self::Memory => memory::measure(scale).await,
            Self::Operations => operations::measure(scale).await,
            Self::Fork => fork::measure(scale).await,
            Self::Durable => durable::measure(scale).await,
            Self::List => list::measure(scale).await,
            Self::Watch => watch::measure(scale).await,
            Self::Start => start::measure(scale).await,
            Self::Recovery => recovery::measure(scale).await,
        }
    }
}

/// Nothing could be measured.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    #[error("cannot serve")]
    Serve(#[source] Cause),
    #[error("cannot measure the section {name}")]
    Section {
        name: String,
        #[source]
        source: Cause,
    },
    #[error("cannot measure the controllers on the API server {name}")]
    Controllers {
        name: String,
        #[source]
        source: Cause,
    },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        Kind::Environment
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Serve(_) => "windlass bench apiserver, which starts it as it is meant to be".to_owned(),
            Self::Runtime(_) => "the same again, when this machine has processes and open files to spare".to_owned(),
            Self::Section { name, .. } => format!(
                "windlass bench apiserver {name}; without KUBEBUILDER_ASSETS, if it is about the programs in there"
            ),
            Self::Controllers { name, .. } if name == "kube" => {
                "KUBEBUILDER_ASSETS=DIR windlass bench controller, where DIR has kube-apiserver, etcd and \
                 kube-controller-manager; or --on embedded, which needs nothing"
                    .to_owned()
            }
            Self::Controllers { .. } => "windlass bench controller --quick, to see whether it works at all".to_owned(),
        })
    }
}
