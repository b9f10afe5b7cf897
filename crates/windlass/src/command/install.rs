//! `windlass install` and `windlass uninstall`: what runs on a management cluster is put there, and taken away.

mod profile;
mod write;

use serde_json::{Value, json};
use windlass_controller::rights::SYSTEM;
use windlass_controller::webhooks;
use windlass_plan::profile::ProfileError;
use windlass_plan::resolve::hold::HoldBy;

use crate::client::{self, Connection};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::manifests::{Choices, IMAGE, definitions, infrastructure, manifests, yaml};
use crate::output::{self, Format};

use write::{Writer, Written};

/// Put Windlass on a management cluster: definitions, accounts, rights, controllers, webhooks
///
/// The same again changes what is there to what this version needs, and nothing else. A definition of one of our kinds that
/// somebody else has installed is never written: then nothing is. With -o, nothing is asked of any cluster, and what would be
/// written is printed, for those who keep it in git.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  windlass install --dry-run\n  windlass install -o yaml > windlass.yaml")]
pub struct Install {
    /// Let the server check everything, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the objects instead, and ask no cluster
    #[arg(short, long, value_name = "FORMAT", conflicts_with = "dry_run")]
    output: Option<Format>,
    /// The image to run
    #[arg(long, value_name = "IMAGE", default_value = IMAGE)]
    image: String,
    /// How the machines of clusters of a class are kept back until the packages of a new release are in: pause, or hooks
    #[arg(long, value_name = "HOW", default_value = "pause")]
    hold: HoldBy,
    /// An infrastructure beside the built-in one: a file with its profile, or cluster-api-dev or cluster-api-docker, which come
    /// with Windlass. May be given several times; those that are there stay
    #[arg(long = "profile", value_name = "FILE")]
    profiles: Vec<String>,
    #[command(flatten)]
    connection: Connection,
}

/// Take Windlass off a management cluster, and leave all clusters as they are
///
/// What runs goes, and who is asked about writes, first of all, so that nobody waits for an answer. The definitions stay, and with
/// them every cluster; namespaces stay, too. Clusters that carry a finalizer of Windlass can be deleted when it is installed again.
#[derive(clap::Args)]
pub struct Uninstall {
    /// Let the server check everything, and delete nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Install {
    /// Writes everything, or prints it.
    pub async fn run(self) -> Result<Exit, Failure> {
        let infrastructure = self.profiles.iter().map(|name| profile::given(name)).collect::<Result<Vec<_>, _>>()?;
        let choices = Choices { image: self.image, hold: self.hold, infrastructure };
        let definitions = definitions().map_err(Error::Definitions)?;
        let others: Vec<Value> = manifests(&choices).into_iter().flat_map(|manifest| manifest.objects).collect();
        if let Some(format) = self.output {
            let all: Vec<Value> = definitions.into_iter().chain(others).collect();
            match format {
                Format::Yaml => output::data(&yaml(&all).map_err(Error::Yaml)?)?,
                Format::Json => {
                    output::document(format, &json!({ "apiVersion": "v1", "kind": "List", "items": all }))?;
                }
            }
            return Ok(Exit::Done);
        }
        let management = self.connection.open().await?;
        let mut writer = Writer::new(management.client.clone(), self.dry_run);
        // All of them before the first write: half of an installation is none.
        for definition in &definitions {
            writer.refuse_if_foreign(definition).await?;
        }
        for object in definitions.iter().chain(&others) {
            let written = writer.apply(object).await?;
            output::data(&line(object, written, self.dry_run))?;
        }
        remove_retired(&mut writer, self.dry_run).await?;
        for warning in management.warnings() {
            output::warning(&warning);
        }
        Ok(Exit::Done)
    }
}

/// What earlier versions installed under another name goes when its successor is there.
async fn remove_retired(writer: &mut Writer, dry_run: bool) -> Result<(), Failure> {
    for object in webhooks::retired() {
        let written = writer.delete(&object).await?;
        if written == Written::Deleted {
            output::data(&line(&object, written, dry_run))?;
        }
    }
    Ok(())
}

impl Uninstall {
    /// Deletes everything but definitions and namespaces.
    pub async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let mut writer = Writer::new(management.client.clone(), self.dry_run);
        // Those who are asked about writes were written last, and go first.
        remove_retired(&mut writer, self.dry_run).await?;
        let all = manifests(&Choices::default());
        let objects = all.iter().rev().flat_map(|manifest| manifest.objects.iter().rev());
        for object in objects.filter(|object| object["kind"] != "Namespace") {
            let written = writer.delete(object).await?;
            output::data(&line(object, written, self.dry_run))?;
        }
        for added in profile::installed(&management).await? {
            for object in infrastructure(&added).iter().rev() {
                let written = writer.delete(object).await?;
                output::data(&line(object, written, self.dry_run))?;
            }
        }
        for (kind, object) in leftovers() {
            if let Some(written) = writer.delete_if_known(&object).await? {
                output::data(&line(&object, written, self.dry_run))?;
            } else {
                output::note(&format!("There is no {kind} here."));
            }
        }
        output::say(&format!(
            "The definitions stay, and every cluster with them; so do the namespaces, and the releases in {SYSTEM}."
        ));
        Ok(Exit::Done)
    }
}

/// What Windlass made for itself while it ran.
fn leftovers() -> [(&'static str, Value); 2] {
    use windlass_controller::hooks;
    [
        (
            "Lease",
            json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": { "name": super::controller::LEASE, "namespace": webhooks::NAMESPACE },
            }),
        ),
        (
            "ExtensionConfig",
            json!({
                "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
                "metadata": { "name": hooks::CONFIG },
            }),
        ),
    ]
}

/// As kubectl says it.
fn line(object: &Value, written: Written, dry_run: bool) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
    let group = object["apiVersion"].as_str().and_then(|version| version.split_once('/')).map(|(group, _)| group);
    let kind =
        [Some(text(&object["kind"])), group.map(str::to_owned)].into_iter().flatten().collect::<Vec<_>>().join(".");
    let dry = if dry_run { " (server dry run)" } else { "" };
    format!("{kind}/{} {written}{dry}", text(&object["metadata"]["name"]))
}

/// It could not be installed, or not be taken away.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot write our definitions as objects")]
    Definitions(#[source] serde_json::Error),
    #[error("cannot write the objects as YAML")]
    Yaml(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("cannot read the infrastructure profile {path}")]
    NoProfile {
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error("not an infrastructure profile: {0}; nothing was written")]
    Profile(ProfileError),
    #[error("the definition {name} is there, and somebody else has installed it: nothing was written")]
    Foreign { name: String },
    #[error(transparent)]
    Request(#[from] client::Error),
    #[error("cannot write {object}: the server knows no kind {kind} of {api_version}")]
    NoSuchKind { object: String, kind: String, api_version: String },
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Definitions(_) | Self::Yaml(_) => Kind::Internal,
            Self::Foreign { .. } | Self::NoProfile { .. } | Self::Profile(_) => Kind::User,
            Self::NoSuchKind { .. } => Kind::Environment,
            Self::Request(error) => error.kind(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Definitions(_) | Self::Yaml(_) | Self::Profile(_) => None,
            Self::NoProfile { .. } => Some(profile::hint()),
            Self::Foreign { name } => {
                use windlass_controller::webhooks::PART_OF;
                Some(format!(
                    "kubectl get crd {name} --show-labels; if it is to be ours: kubectl label crd {name} {}={}",
                    PART_OF.0, PART_OF.1
                ))
            }
            Self::NoSuchKind { .. } => Some("kubectl api-resources, which shows what the server knows".to_owned()),
            Self::Request(error) => error.hint(),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Foreign { .. } | Self::Profile(_) => Exit::Refused,
            Self::Request(error) => error.exit(),
            _ => Exit::Failed,
        }
    }
}
