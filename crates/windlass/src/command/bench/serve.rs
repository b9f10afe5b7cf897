//! The server that is measured: alone behind HTTPS, without a World, in memory or with a data directory.

use std::future::pending;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use windlass_apiserver::durable::{self, Lasting};
use windlass_apiserver::listen::kubeconfig::Kubeconfig;
use windlass_apiserver::listen::tls::Authority;
use windlass_apiserver::listen::{Limits, Listener, serve};
use windlass_apiserver::store::{Keeper as _, Waits};
use windlass_apiserver::{ApiServer, Options};
use windlass_reference::Error;

use super::super::up::wall_now;
use crate::output;

/// The only store in its data directory.
const PLACE: &str = "server";

/// Serve an API server alone until it is killed: what is measured
#[derive(clap::Args)]
pub struct Serve {
    /// Where to write the kubeconfig, and the key of the data directory
    #[arg(long, value_name = "DIR")]
    state: PathBuf,
    /// Where to keep what is written
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl Serve {
    /// Prints where the kubeconfig is, and serves.
    pub async fn run(self) -> Result<(), Error> {
        let mut options = Options { now: Arc::new(wall_now), ..Options::default() };
        let mut past = None;
        // It keeps for as long as it lives.
        let mut journal = None;
        if let Some(data) = &self.data_dir {
            let (opened, mut stores) = durable::open(data, &self.state.join("key"), Waits::TheDoor)?;
            options.backend = Some(opened.backend(PLACE));
            past = stores.remove(PLACE);
            journal = Some(opened);
        }
        let server = match past {
            Some(past) => ApiServer::recovered(options, past),
            None => ApiServer::new(options),
        };
        let authority = Authority::new(wall_now())?;
        let anywhere = (Ipv4Addr::LOCALHOST, 0).into();
        let listener = Listener::bind(anywhere, &authority, None, Limits::default()).await?;
        let path = self.state.join("kubeconfig");
        let kubeconfig = Kubeconfig {
            name: "bench",
            server: &listener.url(),
            authority_pem: authority.certificate_pem(),
            credential: &authority.admin()?,
        };
        kubeconfig.write(&path)?;
        output::data(&path.display().to_string())?;
        serve(Lasting::new(server.clone(), server.store().clone()), listener, pending::<()>()).await;
        drop(journal);
        Ok(())
    }
}
