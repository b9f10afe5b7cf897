//! `windlass secrets`: whether the certificates and keys of a cluster are there, and getting them back.
//!
//! What is shown of them is public: names, subjects, digests of certificates and public keys, and when they expire.

use std::io;

use windlass_api::name::{ClusterName, MachineName};
use windlass_controller::recovery::{
    self, Action, Assessment, Options, SecretReport, SecretState, SecretsReport, check, recover,
};
use windlass_runtime::clock::Clock;

use crate::ask::{Answer, ask};
use crate::changed::Changed;
use crate::client::{Connection, Management};
use crate::error::{Exit, Explained, Failure, Kind};
use crate::output;

/// Check the certificates and keys that machines need to join a cluster, and recover them
#[derive(clap::Subcommand)]
pub enum Secrets {
    Check(Check),
    Recover(Recover),
}

/// Show whether the certificates and keys of a cluster are there, belong together, and stay
///
/// Nothing is written, and no key is shown. Ends with code 2 if something can be recovered, and with 3 if something cannot.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  windlass secrets check my-tkc")]
pub struct Check {
    /// The cluster
    cluster: ClusterName,
    /// Write it as a document instead, for scripts, or the name of the cluster
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    connection: Connection,
}

/// Restore the certificates and keys that a cluster has lost, from what its machines were given when they booted
///
/// What is missing is made anew if all machines of the control plane were given the same, key and certificate belong together,
/// and the kubeconfig of the cluster trusts its authority. What others own is owned by the Cluster, too. What is there is never
/// overwritten, and no key is shown. Without --apply it is shown what would be done, and a person is asked.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  windlass secrets recover my-tkc            show what would be done, and ask\n  windlass secrets recover my-tkc --apply    do it"
)]
pub struct Recover {
    /// The cluster
    cluster: ClusterName,
    /// Do it, without asking
    #[arg(long)]
    apply: bool,
    /// Take what is missing from this machine only
    #[arg(long, value_name = "MACHINE")]
    from: Option<MachineName>,
    /// Write it as a document instead, for scripts, or the name of the cluster
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Changed>,
    #[command(flatten)]
    connection: Connection,
}

impl Secrets {
    /// Looks, and writes if that is wanted.
    pub async fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Check(check) => check.run().await,
            Self::Recover(recover) => recover.run().await,
        }
    }
}

impl Check {
    async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let report = check(&management.client, &management.namespace, &self.cluster).await.map_err(Error::Recovery)?;
        show(&self.cluster, &report, self.output)?;
        Ok(exit(&report))
    }
}

impl Recover {
    async fn run(self) -> Result<Exit, Failure> {
        let management = self.connection.open().await?;
        let mut options = Options { apply: self.apply, from: self.from.clone() };
        let mut report = self.recover(&management, &options).await?;
        show(&self.cluster, &report, self.output)?;
        let count = report.secrets.iter().filter(|secret| is_open(secret)).count();
        if count == 0 || self.output.is_some() {
            return Ok(exit(&report));
        }
        let secrets = if count == 1 { "1 Secret".to_owned() } else { format!("{count} Secrets") };
        match ask(&format!("Write {secrets} of {}?", self.cluster)).map_err(Error::Terminal)? {
            Answer::Yes => {}
            Answer::No => return Ok(exit(&report)),
            Answer::NobodyThere => {
                output::say("Nothing is written.");
                return Ok(exit(&report));
            }
        }
        options.apply = true;
        report = self.recover(&management, &options).await?;
        show(&self.cluster, &report, self.output)?;
        Ok(exit(&report))
    }

    async fn recover(&self, management: &Management, options: &Options) -> Result<SecretsReport, Error> {
        let Management { client, namespace, .. } = management;
        recover(client, &Clock::wall(), namespace, &self.cluster, options).await.map_err(Error::Recovery)
    }
}

/// Whether something can be done about a Secret, and was not.
fn is_open(secret: &SecretReport) -> bool {
    !secret.done && matches!(secret.action, Action::Own | Action::Restore)
}

fn exit(report: &SecretsReport) -> Exit {
    match report.assessment {
        Assessment::Intact | Assessment::Recovered => Exit::Done,
        Assessment::Recoverable => Exit::Changes,
        Assessment::Damaged => Exit::Refused,
    }
}

fn show(cluster: &ClusterName, report: &SecretsReport, format: Option<Changed>) -> Result<(), output::Error> {
    match format {
        Some(format) => format.tell_cluster(cluster, "SecretsReport", report),
        None => output::data(&text(report)),
    }
}

/// The word first, then each Secret, then what is to be done.
fn text(report: &SecretsReport) -> String {
    let word = match report.assessment {
        Assessment::Intact => "INTACT",
        Assessment::Recoverable => "RECOVERABLE",
        Assessment::Damaged => "DAMAGED",
        Assessment::Recovered => "RECOVERED",
    };
    let rows = report.secrets.iter().map(|secret| {
        let (subject, expires, fingerprint) = match &secret.identity {
            Some(identity) => match &identity.certificate {
                Some(found) => (found.subject.clone(), found.expires.to_string(), found.sha256.to_string()),
                None => ("(public key)".to_owned(), "-".to_owned(), identity.public_key.to_string()),
            },
            None => ("-".to_owned(), "-".to_owned(), "-".to_owned()),
        };
        vec![secret.name.to_string(), state(secret).to_owned(), subject, expires, fingerprint]
    });
    let mut lines = vec![format!("{}   {word}\n", report.cluster)];
    lines.push(output::table(&["SECRET", "STATE", "SUBJECT", "EXPIRES", "FINGERPRINT"], rows));
    let told: Vec<String> = report.secrets.iter().filter_map(|secret| sentence(secret, report)).collect();
    if !told.is_empty() {
        lines.push(String::new());
    }
    lines.extend(told);
    if report.secrets.iter().any(is_open) {
        lines.push(format!("  way out: windlass secrets recover {} --apply", report.cluster));
    }
    lines.join("\n")
}

fn state(secret: &SecretReport) -> &'static str {
    match (secret.state, secret.done) {
        (SecretState::Missing, true) => "restored",
        (SecretState::AtRisk, true) => "owned",
        (SecretState::Intact, _) => "intact",
        (SecretState::AtRisk, false) => "at risk",
        (SecretState::Missing, false) => "missing",
        (SecretState::Leaving, _) => "leaving",
        (SecretState::Unusable, _) => "unusable",
    }
}

/// What is to be said of a Secret that needs something, or needed it.
fn sentence(secret: &SecretReport, report: &SecretsReport) -> Option<String> {
    let name = &secret.name;
    let from = || secret.from.as_ref().map(|machine| format!("Machine/{machine}")).unwrap_or_default();
    match (secret.action, secret.done) {
        (Action::None, _) => None,
        (Action::Own, true) => Some(format!("{name} belongs to Cluster/{} now", report.cluster)),
        (Action::Own, false) => {
            Some(format!("{name} does not belong to Cluster/{}, and goes with others", report.cluster))
        }
        (Action::Restore, true) => Some(format!("{name} is restored from {}", from())),
        (Action::Restore, false) => Some(format!("{name} can be restored from {}", from())),
        (Action::Person, _) => Some(format!("{name}: {}", secret.why.as_deref().unwrap_or_default())),
    }
}

/// The Secrets could not be looked at, or not be written.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Recovery(recovery::Error),
    #[error("cannot ask on this terminal")]
    Terminal(#[source] io::Error),
}

impl Explained for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Recovery(recovery::Error::NoCluster { .. } | recovery::Error::NoSource { .. }) => Kind::User,
            Self::Recovery(_) | Self::Terminal(_) => Kind::Environment,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Recovery(recovery::Error::NoCluster { namespace, .. }) => {
                format!("windlass get clusters -n {namespace}")
            }
            Self::Recovery(recovery::Error::NoSource { .. }) => "--from with one of them".to_owned(),
            Self::Recovery(_) => "the same again: what is written already stays as it is".to_owned(),
            Self::Terminal(_) => "--apply".to_owned(),
        })
    }
}
