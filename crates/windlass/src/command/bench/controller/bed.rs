//! Where the clusters of a measurement are: a World whose simulators are clients of an API server on this machine.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Handle;
use windlass_apiserver::durable::Lasting;
use windlass_apiserver::listen::kubeconfig;
use windlass_apiserver::listen::tls::Authority;
use windlass_apiserver::listen::{Dated, Limits, Listener, serve};
use windlass_controller::webhooks::Sort;
use windlass_reference::Error;
use windlass_reference::server::RealServer;
use windlass_rehearse::assembly::{Assembly, Settings};
use windlass_rehearse::traffic::Traffic;
use windlass_runtime::chance::Seed;
use windlass_runtime::clock::Clock;
use windlass_sim::durations::{Durations, Spread};
use windlass_sim::fault::Scenario;
use windlass_sim::timeline::Recorder;
use windlass_sim::world::{self, World};

use super::super::super::up::doors::Listening;
use super::super::super::up::keys::Authorities;
use super::super::super::up::wall_now;
use super::super::report::Server;
use super::process::Answers;

/// Decides everything random in the World. Times are those of this machine, so that no two runs are the same all the same.
const SEED: Seed = Seed(1);
/// How long machines take for each thing that they do, in milliseconds.
const PACE: Spread = Spread { p50: 200, p90: 400 };
/// How much of its story the World remembers.
const EVENTS_MAX: usize = 10_000;
/// How often it is tried to put things into a server whose definitions are not established yet.
const FURNISHED_TRIES: usize = 100;
const POLL: Duration = Duration::from_millis(200);

/// The folder with everything that is needed of others; what is missing.
pub fn programs() -> Result<PathBuf, Error> {
    let assets = windlass_reference::assets().ok_or("KUBEBUILDER_ASSETS is not set")?;
    for program in ["kube-apiserver", "etcd", "kube-controller-manager"] {
        if !assets.join(program).is_file() {
            return Err(format!("{program} is not in {}, which is KUBEBUILDER_ASSETS", assets.display()).into());
        }
    }
    Ok(assets)
}

/// An API server, and the World that lives on it. All of it ends with this value.
pub struct Bed {
    server: Server,
    client: Client,
    kubeconfig: PathBuf,
    assembly: Assembly,
    /// Whoever is asked about writes, where it is a process of its own.
    _answers: Option<Answers>,
    _processes: Option<RealServer>,
    folder: TempDir,
}

impl Bed {
    /// On the World's own API server, by HTTPS. Reviews of admission are answered in this process.
    pub async fn embedded() -> Result<Self, Error> {
        let folder = TempDir::new()?;
        let assembly = assembly().await?;
        let management = assembly.world().management().clone();
        let authority = Authority::new(wall_now())?;
        let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), &authority, None, Limits::default()).await?;
        let kubeconfig = folder.path().join("kubeconfig");
        let content = kubeconfig::Kubeconfig {
            name: "bench",
            server: &listener.url(),
            authority_pem: authority.certificate_pem(),
            credential: &authority.admin()?,
        };
        content.write(&kubeconfig)?;
        let service = Lasting::new(Dated(management.clone()), management.store().clone());
        // For as long as the runtime is there, which goes with the command.
        tokio::spawn(serve(service, listener, std::future::pending::<()>()));
        let client = assembly.world().client();
        Ok(Self { server: Server::Windlass, client, kubeconfig, assembly, _answers: None, _processes: None, folder })
    }

    /// On kube-apiserver and etcd, with kube-controller-manager for its garbage.
    pub async fn kube(assets: &Path) -> Result<Self, Error> {
        let folder = TempDir::new()?;
        let (processes, _) = RealServer::start(assets, true).await?;
        let kubeconfig = processes.kubeconfig();
        install(&kubeconfig, folder.path())?;
        let config = Kubeconfig::read_from(&kubeconfig)?;
        let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        furnish(&client).await?;
        let answers = Answers::start(&kubeconfig, folder.path().join("answers.log")).await?;
        lead_to(&client, answers.port()).await?;
        let assembly = assembly().await?.on(client.clone());
        let (server, answers, processes) = (Server::KubeApiserver, Some(answers), Some(processes));
        Ok(Self { server, client, kubeconfig, assembly, _answers: answers, _processes: processes, folder })
    }

    /// Whose API server it is.
    pub fn server(&self) -> Server {
        self.server
    }

    /// A client of its administrator.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What the simulators ask.
    pub fn traffic(&self) -> &Traffic {
        self.assembly.traffic()
    }

    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A file that goes with it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Lets the World live. It ends only when something is wrong.
    pub async fn run(&self) -> Error {
        self.assembly.run_without_controllers(std::future::pending()).await;
        "the simulators have ended".into()
    }
}

/// A World that nothing happens in yet, in the time of this machine.
async fn assembly() -> Result<Assembly, Error> {
    let (clock, durations) = (Clock::wall(), Durations::all(PACE));
    let settings = world::Settings { clock, seed: SEED, durations, faults: Scenario::default() };
    let world = World::recorded_by(settings, Recorder::remembering(EVENTS_MAX)).await?;
    let authorities = Authorities::default();
    let settings = Settings {
        labels: true,
        doors: Arc::new(Listening::new(Handle::current(), authorities.clone())),
        keys: Arc::new(authorities),
        ..Settings::rehearsal(&world)
    };
    Ok(Assembly::new(world, settings))
}

/// Puts Windlass there as people do.
fn install(kubeconfig: &Path, state: &Path) -> Result<(), Error> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["install", "--kubeconfig"]).arg(kubeconfig).env("XDG_STATE_HOME", state).stdin(Stdio::null());
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("windlass install: {}", String::from_utf8_lossy(&output.stderr)).into())
}

/// Tried again for as long as definitions are not established yet.
async fn furnish(client: &Client) -> Result<(), Error> {
    for _ in 0..FURNISHED_TRIES {
        if World::furnish(client).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(World::furnish(client).await?)
}

/// Has the API server find whoever answers reviews on this machine: no pod is behind the Service, and nobody routes its address.
async fn lead_to(client: &Client, port: u16) -> Result<(), Error> {
    let services: Api<k8s_openapi::api::core::v1::Service> = Api::namespaced(client.clone(), "windlass-system");
    let here = json!({"type": "ExternalName", "externalName": "localhost", "clusterIP": null, "clusterIPs": null});
    services.patch("windlass-webhook", &PatchParams::default(), &Patch::Merge(json!({"spec": here}))).await?;
    for sort in [Sort::Mutating, Sort::Validating] {
        let kind = ApiResource {
            group: "admissionregistration.k8s.io".to_owned(),
            version: "v1".to_owned(),
            api_version: "admissionregistration.k8s.io/v1".to_owned(),
            kind: sort.kind().to_owned(),
            plural: sort.resource().to_owned(),
        };
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
        let mut webhooks = api.get(sort.configuration()).await?.data["webhooks"].take();
        for webhook in webhooks.as_array_mut().into_iter().flatten() {
            webhook["clientConfig"]["service"]["port"] = Value::from(port);
        }
        let patch = Patch::Merge(json!({"webhooks": webhooks}));
        api.patch(sort.configuration(), &PatchParams::default(), &patch).await?;
    }
    Ok(())
}
