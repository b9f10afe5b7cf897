//! What the program is told: the same flags in a pod, on a command line and in the World.

use std::str::FromStr;
use std::time::Duration;

use clap::Parser;
use jiff::SignedDuration;
use json_patch::Patch;
use windlass_api::name::{ClusterName, Namespace, UpdateId};
use windlass_api::version::KubernetesVersion;

/// What can be done to a control plane.
#[derive(Debug, Clone, PartialEq, clap::Subcommand)]
pub enum Command {
    /// Replace the machines of a control plane, one at a time
    ///
    /// Runs in the pods of the Job that updates a cluster. A run that failed or was killed is carried on by running it again
    /// with the same id.
    Upgrade(Arguments),
    /// Give an update up, while no machine has been replaced
    ///
    /// Deletes the machine that has come, and makes the cluster what it was: the version is the one that it had. Runs in the
    /// pods of a Job of its own, when the Job that updates the cluster is gone.
    Abort(Arguments),
}

impl Command {
    /// Reads a whole command, program and verbs included: what a container is told to run.
    pub fn parse(command: &[String]) -> Result<Self, clap::Error> {
        let Program::ControlPlane(command) = Program::try_parse_from(command)?;
        Ok(command)
    }

    /// What it is told.
    pub fn arguments(&self) -> &Arguments {
        match self {
            Self::Upgrade(arguments) | Self::Abort(arguments) => arguments,
        }
    }
}

/// What the program is told.
#[derive(Debug, Clone, PartialEq, clap::Args)]
pub struct Arguments {
    /// The version that all machines will have
    #[arg(long, value_name = "VERSION")]
    pub kubernetes_version: KubernetesVersion,
    /// What tells this update from all others
    #[arg(long, value_name = "ID")]
    pub upgrade_id: UpdateId,
    /// The cluster
    #[arg(long, value_name = "NAME")]
    pub cluster_name: ClusterName,
    /// Its namespace
    #[arg(long, value_name = "NAMESPACE")]
    pub cluster_namespace: Namespace,
    /// How the infrastructure of a new machine differs from that of the old one: a JSON patch
    #[arg(long, value_name = "JSON", default_value = "[]", hide_default_value = true, value_parser = patch)]
    pub infrastructure_patches: Patch,
    /// How the bootstrap configuration of a new machine differs from that of the old one: a JSON patch
    #[arg(long, value_name = "JSON", default_value = "[]", hide_default_value = true, value_parser = patch)]
    pub bootstrap_patches: Patch,
    /// How kubeadm's configuration of the cluster is to be changed: a JSON patch that can be applied twice
    #[arg(long, value_name = "JSON", default_value = "[]", hide_default_value = true, value_parser = patch)]
    pub kubeadm_configmap_patches: Patch,
    /// How long a machine may take to become healthy, or to be deleted
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = timeout)]
    pub machine_timeout: Duration,
}

impl Arguments {
    /// What a whole command says, whichever its verb is.
    pub fn parse(command: &[String]) -> Result<Self, clap::Error> {
        Command::parse(command).map(|command| command.arguments().clone())
    }
}

/// As much of the binary's command line as leads here.
#[derive(clap::Parser)]
#[command(name = "windlass")]
enum Program {
    #[command(subcommand)]
    ControlPlane(Command),
}

fn patch(text: &str) -> Result<Patch, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON patch (RFC 6902): {error}"))
}

fn timeout(text: &str) -> Result<Duration, String> {
    let duration = SignedDuration::from_str(text).map_err(|error| error.to_string())?;
    Duration::try_from(duration)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "it must be more than nothing".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: [&str; 7] = [
        "windlass",
        "control-plane",
        "upgrade",
        "--kubernetes-version=v1.16.7+vmware.1",
        "--upgrade-id=1280807",
        "--cluster-name=my-tkc",
        "--cluster-namespace=default",
    ];

    fn parse(more: &[&str]) -> Result<Arguments, String> {
        let command: Vec<String> = COMMAND.iter().chain(more).map(ToString::to_string).collect();
        Arguments::parse(&command).map_err(|error| error.to_string())
    }

    #[test]
    fn the_arguments_of_the_job_are_read() {
        let arguments = parse(&[
            r#"--infrastructure-patches=[{"op":"replace","path":"/spec/imageName","value":"photon-k8sd-v1.16.7-vmware.1-guest.1"}]"#,
            r#"--kubeadm-configmap-patches=[{"op":"replace","path":"/dns/imageTag","value":"v1.6.2_vmware.6"}]"#,
            r#"--bootstrap-patches=[{"op":"replace","path":"/spec/joinConfiguration/nodeRegistration/kubeletExtraArgs","value":[{"name":"node-labels","value":"a=b"}]}]"#,
        ])
        .unwrap();
        assert_eq!(arguments.kubernetes_version.as_str(), "v1.16.7+vmware.1");
        assert_eq!(arguments.upgrade_id.to_string(), "1280807");
        assert_eq!(arguments.cluster_name.as_str(), "my-tkc");
        assert_eq!(arguments.cluster_namespace.as_str(), "default");
        assert_eq!(arguments.infrastructure_patches.0[0].path().to_string(), "/spec/imageName");
        assert_eq!(arguments.kubeadm_configmap_patches.0.len(), 1);
        assert_eq!(arguments.bootstrap_patches.0.len(), 1);
        assert_eq!(arguments.machine_timeout, Duration::from_secs(15 * 60));
    }

    #[test]
    fn without_patches_nothing_is_patched() {
        let arguments = parse(&["--machine-timeout=90s"]).unwrap();
        assert_eq!(arguments.infrastructure_patches, Patch::default());
        assert_eq!(arguments.machine_timeout, Duration::from_secs(90));
    }

    fn check_refused(argument: &str, complaint: &str) {
        let refusal = parse(&[argument]).unwrap_err();
        assert!(refusal.contains(complaint), "{argument}: {refusal}");
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        check_refused("--infrastructure-patches={}", "not a JSON patch");
        check_refused(r#"--bootstrap-patches=[{"op":"exchange","path":"/spec"}]"#, "not a JSON patch");
        check_refused(r#"--bootstrap-patches=[{"op":"remove","path":"spec"}]"#, "not a JSON patch");
        check_refused("--machine-timeout=0s", "more than nothing");
        check_refused("--machine-timeout=-5m", "more than nothing");
        check_refused("--machine-timeout=soon", "--machine-timeout");
        assert!(Arguments::parse(&["windlass".to_owned(), "up".to_owned()]).is_err());
        let without_id: Vec<String> =
            COMMAND.iter().filter(|part| !part.contains("upgrade-id")).map(ToString::to_string).collect();
        assert!(Arguments::parse(&without_id).unwrap_err().to_string().contains("--upgrade-id"));
    }
}
