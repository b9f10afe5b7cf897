//! An embedded management cluster that listens: the World on its thread, a server on a port of this machine, and a kubeconfig.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use kube::Client;
use tokio::runtime::Handle;
use windlass_apiserver::ApiServer;
use windlass_apiserver::carrier::https::Https;
use windlass_apiserver::listen::kubeconfig::Kubeconfig;
use windlass_apiserver::listen::tls::Authority;
use windlass_apiserver::listen::{Dated, Limits, Listener, serve};
use windlass_controller::metrics::Metrics;
use windlass_plan::render::Defaults;
use windlass_plan::resolve::hold::HoldBy;
use windlass_sim::fault::Scenario;
use windlass_sim::timeline::Recorder;

use super::doors::Listening;
use super::keys::Authorities;
use super::world::{Ours, Running};
use super::{CLUSTER_NAME, Error, wall_now};

/// A cluster that can be talked to as soon as it is [served](Self::serve).
pub struct Embedded {
    /// Where it listens.
    pub url: String,
    management: ApiServer,
    listener: Listener,
    world: Running,
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
}

impl Embedded {
    /// Starts it, in a runtime with real sockets and real time.
    pub async fn start(settings: Settings<'_>) -> Result<Self, Error> {
        let authorities = Authorities::default();
        let doors = Listening::new(Handle::current(), authorities.clone());
        let Settings { port, kubeconfig: path, speed, scenario, defaults, hold_by, recorder, metrics } = settings;
        // It furnishes itself while the keys are made.
        let ours = Ours { defaults, hold_by, metrics };
        let mut world = Running::start(speed, scenario, recorder, ours, (doors, authorities)).map_err(Error::Thread)?;
        let authority = Authority::new(wall_now())?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
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
        Ok(Self { url, management, listener, world })
    }

    /// A client of its own, that needs no socket.
    pub fn client(&self) -> Client {
        Client::new(self.management.clone(), "default")
    }

    /// Serves until `shutdown`; an error if the World ends before.
    pub async fn serve(mut self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let serving = serve(Dated(self.management), self.listener, shutdown);
        tokio::select! {
            biased;
            () = serving => Ok(()),
            () = self.world.ended() => Err(Error::WorldEnded),
        }
    }
}
