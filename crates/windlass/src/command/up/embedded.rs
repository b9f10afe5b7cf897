//! An embedded management cluster that listens: the World on its thread, a server on a port of this machine, and a kubeconfig.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::runtime::Handle;
use windlass_apiserver::ApiServer;
use windlass_apiserver::carrier::https::Https;
use windlass_apiserver::durable::Lasting;
use windlass_apiserver::listen::kubeconfig::Kubeconfig;
use windlass_apiserver::listen::tls::Authority;
use windlass_apiserver::listen::{Dated, Limits, Listener, serve};
use windlass_controller::metrics::Metrics;
use windlass_plan::render::Defaults;
use windlass_plan::resolve::hold::HoldBy;
use windlass_runtime::chance::Seed;
use windlass_sim::fault::Scenario;
use windlass_sim::timeline::Recorder;

use super::doors::Listening;
use super::kept::{self, Kept, Past};
use super::keys::Authorities;
use super::world::{Ours, Running};
use super::{CLUSTER_NAME, Error, wall_now};

/// How often the time is noted.
const TIME_NOTED_EVERY: Duration = Duration::from_secs(60);

/// A cluster that can be talked to as soon as it is [served](Self::serve).
pub struct Embedded {
    /// Where it listens.
    pub url: String,
    management: ApiServer,
    listener: Listener,
    world: Running,
    kept: Option<Kept>,
}

/// What one is started with.
pub struct Settings<'a> {
    /// The port; 0 takes a free one.
    pub port: u16,
    /// Where the kubeconfig goes.
    pub kubeconfig: &'a Path,
    /// How many times as fast as ours its time goes.
    pub speed: NonZeroU32,
    /// What goes wrong in it.
    pub scenario: Scenario,
    /// What its Windlass decides by itself.
    pub defaults: Defaults,
    /// How its Windlass keeps machines back until packages are in.
    pub hold_by: HoldBy,
    /// Who remembers what happens in it.
    pub recorder: Recorder,
    /// Where its controllers count.
    pub metrics: Arc<Metrics>,
    /// Where all of it is kept, with the World that was kept there; nothing for one that lives in memory.
    pub kept: Option<(Kept, Option<Past>)>,
}

impl Embedded {
    /// Starts it, in a runtime with real sockets and real time.
    pub async fn start(settings: Settings<'_>) -> Result<Self, Error> {
        let Settings { port, kubeconfig: path, speed, scenario, defaults, hold_by, recorder, metrics, kept } = settings;
        let (kept, past) = kept.map_or((None, None), |(kept, past)| (Some(kept), past));
        let authorities = Authorities::kept(kept.clone());
        let doors = Listening::new(Handle::current(), authorities.clone());
        // It furnishes itself while the keys are made.
        let ours = Ours { defaults, hold_by, metrics };
        let mut world =
            Running::start(speed, scenario, recorder, ours, (doors, authorities), past).map_err(Error::Thread)?;
        let authority = match &kept {
            Some(kept) => kept.authority(kept::MANAGEMENT)?,
            None => Authority::new(wall_now())?,
        };
        let before = kept.as_ref().and_then(|kept| kept.port(kept::MANAGEMENT)).filter(|_| port == 0);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, before.unwrap_or(port)));
        let listener = Listener::bind(address, &authority, None, Limits::default()).await?;
        let url = listener.url();
        let kubeconfig = Kubeconfig {
            name: CLUSTER_NAME,
            server: &url,
            authority_pem: authority.certificate_pem(),
            credential: &authority.admin()?,
        };
        kubeconfig.write(path)?;
        let management = world.management().await.ok_or(Error::WorldEnded)?.map_err(Error::World)?;
        // Webhooks that people configure here are asked; forks of it, which rehearse, ask nobody.
        management.reach(Arc::new(Https::new(Handle::current())));
        if let Some(kept) = &kept {
            kept.note_port(kept::MANAGEMENT, listener.address().port());
            kept.note_world(world.seed, management.now());
            kept.durable().await.map_err(Error::Keep)?;
        }
        Ok(Self { url, management, listener, world, kept })
    }

    /// A client of its own, that needs no socket.
    pub fn client(&self) -> Client {
        Client::new(self.management.clone(), "default")
    }

    /// Serves until `shutdown`; an error if the World ends before.
    pub async fn serve(mut self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let service = Lasting::new(Dated(self.management.clone()), self.management.store().clone());
        let serving = serve(service, self.listener, shutdown);
        let seed = self.world.seed;
        tokio::select! {
            biased;
            () = serving => Ok(()),
            () = self.world.ended() => Err(Error::WorldEnded),
            never = note_time(self.kept.as_ref(), seed, &self.management) => match never {},
        }
    }
}

/// Takes note of the World's time, also where nothing is written: it should not go back far.
async fn note_time(kept: Option<&Kept>, seed: Seed, management: &ApiServer) -> Infallible {
    let Some(kept) = kept else { return std::future::pending().await };
    loop {
        tokio::time::sleep(TIME_NOTED_EVERY).await;
        kept.note_world(seed, management.now());
    }
}
