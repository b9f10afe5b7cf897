//! Several replicas of the controllers on one World, of which the one that holds a lease works, as on a cluster.

use std::pin::pin;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use windlass_controller::access::Access;
use windlass_controller::controllers;
use windlass_controller::leadership::{Candidacy, Ended, Term, lead};
use windlass_controller::reconcile::JOB_NAMESPACE;
use windlass_sim::actor::{Actor, Caller, acting};

use super::{Assembly, RESTART, Settings, program};
use crate::crash::Crashes;

/// The lease that they agree by.
const LEASE: &str = "windlass-controllers";

/// For how long a replica stands still, and when: nobody polls it, and then it goes on as if no time had passed.
#[derive(Debug, Clone, Copy)]
pub struct Stall {
    /// How long after the start.
    pub after: Duration,
    /// How long.
    pub lasts: Duration,
}

impl Assembly {
    /// Runs everything until `stop`, with as many replicas of the controllers as there are entries; a replica stands still
    /// where its entry says so. What crashes at a write is the replica that made it.
    pub async fn run_replicas(&self, stalls: &[Option<Stall>], stop: impl Future<Output = ()>) {
        let stop = stop.shared();
        let programs = program::Upgraders::new(self.clone());
        let client = self.client(&Crashes::none().process(Caller::Simulators));
        let world = self.run_world(client, std::sync::Arc::new(programs), stop.clone());
        let replicas =
            stalls.iter().enumerate().map(|(number, stall)| self.standing_still(number, *stall, stop.clone()));
        tokio::join!(world, acting(Actor::Windlass, join_all(replicas)));
    }

    async fn standing_still(&self, number: usize, stall: Option<Stall>, stop: impl Future<Output = ()> + Clone) {
        let mut replica = pin!(self.replica(number, stop));
        if let Some(Stall { after, lasts }) = stall {
            tokio::select! {
                biased;
                () = &mut replica => return,
                () = tokio::time::sleep(after) => {}
            }
            // From here on nobody polls it: its requests are under way, and it hears of nothing.
            tokio::time::sleep(lasts).await;
        }
        replica.await;
    }

    /// A replica that is started again when it has crashed or has lost the lease.
    async fn replica(&self, number: usize, stop: impl Future<Output = ()> + Clone) {
        for life in 0_u64.. {
            let process = self.settings.crashes.process(Caller::Controllers);
            let access = self.access(&process);
            let candidacy = Candidacy::usual(JOB_NAMESPACE, LEASE, format!("replica-{number}-{life}"));
            let (clock, seed) = (access.clock.clone(), access.seed);
            let Settings { classes, labels, .. } = self.settings;
            let kinds = controllers::Kinds { classes, labels };
            let work = |term: Term| {
                let access = Access { client: term.fence(access.client.clone()), ..access.clone() };
                Box::pin(controllers::run(access, kinds, stop.clone()))
            };
            // Its client is not the one that crashes are counted at: the lease is written every other second.
            let client = self.management.clone().unwrap_or_else(|| self.world.client());
            let leads = Box::pin(lead(&client, candidacy, (&clock, seed), work, stop.clone()));
            tokio::select! {
                biased;
                cause = process.died() => self.say_crash(Caller::Controllers, &cause),
                ended = leads => if ended == Ended::Stopped { return },
            }
            let mut stopped = pin!(stop.clone());
            tokio::select! {
                biased;
                () = &mut stopped => return,
                () = tokio::time::sleep(RESTART) => {}
            }
        }
    }
}
