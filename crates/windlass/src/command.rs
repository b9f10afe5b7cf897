//! The verbs, one file each.

mod abort;
mod approve;
mod bench;
mod completion;
mod control_plane;
mod controller;
mod create;
mod demo;
mod describe;
mod diff;
mod get;
mod gitops;
mod install;
mod logs;
mod packages;
mod plan;
mod rehearse;
mod release;
mod replay;
mod retry;
mod schema;
mod secrets;
mod snapshot;
mod status;
mod sweep;
mod template;
mod up;
mod update;
mod upgrade;
mod verify;
mod why;

use std::io;

use crate::error::{Exit, Explained, Failure, Kind};

/// What Windlass can be told to do.
#[derive(clap::Subcommand)]
pub enum Command {
    Demo(demo::Demo),
    Up(up::Up),
    #[command(subcommand)]
    Create(create::Create),
    #[command(subcommand)]
    Template(template::Template),
    Get(get::Get),
    Describe(describe::Describe),
    Status(status::Status),
    Why(why::Why),
    Packages(packages::Packages),
    Verify(verify::Verify),
    Plan(plan::Plan),
    Diff(diff::Diff),
    Rehearse(Box<rehearse::Rehearse>),
    Replay(replay::Replay),
    Sweep(sweep::Sweep),
    Upgrade(upgrade::Args),
    Update(update::Update),
    #[command(subcommand)]
    Gitops(gitops::Gitops),
    Logs(logs::Logs),
    Retry(retry::Retry),
    Abort(abort::Abort),
    Approve(approve::Approve),
    Reject(approve::Reject),
    #[command(subcommand)]
    Release(release::Release),
    #[command(subcommand)]
    Secrets(secrets::Secrets),
    #[command(subcommand)]
    Snapshot(snapshot::Snapshot),
    #[command(subcommand)]
    Bench(bench::Bench),
    Schema(schema::Schema),
    Completion(completion::Completion),
    Install(install::Install),
    Uninstall(install::Uninstall),
    Controller(controller::Controller),
    ControlPlane(control_plane::ControlPlane),
}

impl Command {
    /// Runs the command to its end.
    pub fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Demo(demo) => demo.run(),
            Self::Up(up) => up.run(),
            Self::Create(create) => block_on(create.run()),
            Self::Template(template) => template.run(),
            Self::Get(get) => block_on(get.run()),
            Self::Describe(describe) => block_on(describe.run()),
            Self::Status(status) => block_on(status.run()),
            Self::Why(why) => block_on(why.run()),
            Self::Packages(packages) => block_on(packages.run()),
            Self::Verify(verify) => block_on(verify.run()),
            Self::Plan(plan) => plan.run(),
            Self::Diff(diff) => block_on(diff.run()),
            Self::Rehearse(rehearse) => rehearse.run(),
            Self::Replay(replay) => replay.run(),
            Self::Sweep(sweep) => sweep.run(),
            Self::Upgrade(upgrade) => upgrade.run(),
            Self::Update(update) => block_on(update.run()),
            Self::Gitops(gitops) => block_on(gitops.run()),
            Self::Logs(logs) => block_on(logs.run()),
            Self::Retry(retry) => retry.run(),
            Self::Abort(abort) => block_on(abort.run()),
            Self::Approve(approve) => block_on(approve.run()),
            Self::Reject(reject) => block_on(reject.run()),
            Self::Release(release) => block_on(release.run()),
            Self::Secrets(secrets) => block_on(secrets.run()),
            Self::Snapshot(snapshot) => snapshot.run(),
            Self::Bench(bench) => bench.run(),
            Self::Schema(schema) => schema.run(),
            Self::Completion(completion) => completion.run(),
            Self::Install(install) => block_on(install.run()),
            Self::Uninstall(uninstall) => block_on(uninstall.run()),
            Self::Controller(controller) => controller.run(),
            Self::ControlPlane(control_plane) => block_on(control_plane.run()),
        }
    }
}

/// The runtime could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the runtime")]
struct RuntimeError(#[source] io::Error);

impl Explained for RuntimeError {
    fn kind(&self) -> Kind {
        Kind::Environment
    }

    fn hint(&self) -> Option<String> {
        Some("the same again, when this machine has processes and open files to spare".to_owned())
    }
}

/// Runs a command that talks to a cluster: one thread is enough.
fn block_on<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(RuntimeError)?;
    runtime.block_on(command)
}
