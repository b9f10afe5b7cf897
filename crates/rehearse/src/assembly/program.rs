//! What runs in the pods of a World: the upgrader, by the function that its image runs on a cluster.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tracing::instrument::WithSubscriber;
use windlass_controller::hooks::{self, Hooks};
use windlass_controller::upgrader::{self, Command, UpgraderAccess};
use windlass_sim::actor::{Actor, Caller, acting};
use windlass_sim::fault::Unasked;
use windlass_sim::program::{Container, Exit, Programs, Reply, Unheard};

use super::Assembly;
use super::voice::Voice;
use crate::crash::Process;

/// The words that a container begins with which replaces a control plane, or gives that up.
const UPGRADER: [&str; 2] = ["windlass", "control-plane"];

/// What a shell answers when there is no such program.
const NOT_FOUND: i32 = 127;
/// What a process ends with that was killed: 128 and SIGKILL.
const KILLED: i32 = 137;

pub(super) struct Upgraders {
    assembly: Assembly,
}

impl Upgraders {
    pub(super) fn new(assembly: Assembly) -> Self {
        Self { assembly }
    }

    fn access(&self, process: &Process) -> UpgraderAccess {
        let world = &self.assembly.world;
        UpgraderAccess {
            client: self.assembly.client(process),
            workloads: Arc::new(self.assembly.workloads(process)),
            clock: world.faults().clock(process.caller(), &world.settings().clock),
        }
    }
}

impl Programs for Upgraders {
    fn run(&self, container: Container) -> BoxFuture<'static, Exit> {
        if !container.command.starts_with(&UPGRADER.map(str::to_owned)) {
            let message = format!("there is no program {:?}", container.command);
            return async move { Exit { code: NOT_FOUND, message } }.boxed();
        }
        let command = match Command::parse(&container.command) {
            Ok(command) => command,
            Err(why) => return async move { Exit { code: 2, message: why.to_string() } }.boxed(),
        };
        let process = self.assembly.settings.crashes.process(Caller::Upgrader);
        let access = self.access(&process);
        let log = container.log.clone();
        let assembly = self.assembly.clone();
        let runs = async move {
            let exit = tokio::select! {
                biased;
                cause = process.died() => {
                    assembly.say_crash(Caller::Upgrader, &cause);
                    Exit { code: KILLED, message: "killed".into() }
                }
                ended = upgrader::obey(&access, &command) => match ended {
                    Ok(message) => Exit { code: 0, message },
                    Err(why) => Exit { code: 1, message: why.report() },
                },
            };
            // Who is killed has no last words.
            if exit.code != KILLED {
                log.write(&exit.message);
            }
            exit
        };
        acting(Actor::Upgrader, runs.with_subscriber(Voice::new(container.log))).boxed()
    }

    /// The one server that there is answers what Cluster API asks. It fails when the webhook does: both are the same process.
    fn post(&self, url: String, body: Vec<u8>) -> BoxFuture<'static, Result<Reply, Unheard>> {
        let faults = self.assembly.world.faults().clone();
        let hooks = Hooks::new(self.assembly.answering(), self.assembly.world.settings().clock.clone());
        let answered = async move {
            let Some(path) = url.strip_prefix(&hooks::address()) else {
                return Err(Unheard { url, why: "no such host".to_owned() });
            };
            if let Some(Unasked { after, why }) = faults.webhook() {
                tokio::time::sleep(after).await;
                if let Some(why) = why {
                    return Err(Unheard { url, why: why.to_owned() });
                }
            }
            let path = path.split_once('?').map_or(path, |(path, _)| path);
            let hooks::Reply { code, body } = hooks.reply(path, &body).await;
            Ok(Reply { code, body })
        };
        acting(Actor::Windlass, answered).boxed()
    }
}
