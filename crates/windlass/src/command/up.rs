//! `windlass up`: an embedded management cluster, for as long as the command runs.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use tokio::signal::unix::{Signal, SignalKind, signal};
use windlass_apiserver::listen::kubeconfig::Kubeconfig;
use windlass_apiserver::listen::tls::Authority;
use windlass_apiserver::listen::{Limits, Listener, serve};

use crate::error::Error;
use crate::{cluster, output};

/// The cluster, and its context, in the kubeconfig.
pub const CLUSTER_NAME: &str = "windlass";

/// Start an embedded management cluster and keep it running.
///
/// Prints one line for a shell, `export KUBECONFIG=…`, and serves until it is interrupted. Everything is kept in memory:
/// objects, keys and the port are new at each start.
#[derive(clap::Args)]
pub struct Up {
    /// The port on 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    // In `help`, because markup that clippy wants in a doc comment would show.
    #[arg(
        long,
        value_name = "PATH",
        help = "Where to write the kubeconfig [default: windlass/kubeconfig in $XDG_STATE_HOME or ~/.local/state]"
    )]
    kubeconfig: Option<PathBuf>,
}

impl Up {
    /// Serves until SIGINT or SIGTERM.
    pub async fn run(self) -> Result<(), Error> {
        let path = match self.kubeconfig {
            Some(path) => std::path::absolute(&path).map_err(|source| Error::Path { path, source })?,
            None => default_kubeconfig(std::env::var_os("XDG_STATE_HOME"), std::env::home_dir())?,
        };
        // Before anything is printed: whoever reads the line may send a signal at once.
        let interrupted = Interruption::listen()?;
        let now = cluster::now();
        let service = cluster::management(now);
        let authority = Authority::new(now)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let listener = Listener::bind(address, &authority, None, Limits::default()).await?;
        let kubeconfig = Kubeconfig {
            name: CLUSTER_NAME,
            server: &listener.url(),
            authority_pem: authority.certificate_pem(),
            credential: &authority.admin()?,
        };
        kubeconfig.write(&path)?;
        let text = path.to_str().ok_or_else(|| Error::PathText { path: path.clone() })?;
        output::data(&format!("export KUBECONFIG={}", shell_word(text))).map_err(Error::Output)?;
        output::note(&format!("A management cluster listens on {}. Ctrl-C ends it.", listener.url()));
        output::note("In another terminal, paste the line above, then try: kubectl get namespaces");
        serve(service, listener, interrupted.wait()).await;
        output::note("Stopped.");
        Ok(())
    }
}

/// The two signals by which people and service managers end a command.
struct Interruption {
    interrupt: Signal,
    terminate: Signal,
}

impl Interruption {
    fn listen() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(Error::Signals);
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    async fn wait(mut self) {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        output::note("Stopping: requests may finish, watches end.");
    }
}

/// The state directory of the XDG base directory specification, which wants relative paths in it to be ignored.
fn default_kubeconfig(xdg_state_home: Option<OsString>, home: Option<PathBuf>) -> Result<PathBuf, Error> {
    let state = xdg_state_home.map(PathBuf::from).filter(|path| path.is_absolute());
    let fallback = || home.filter(|home| home.is_absolute()).map(|home| home.join(".local/state"));
    Ok(state.or_else(fallback).ok_or(Error::NoStateDirectory)?.join("windlass/kubeconfig"))
}

/// The text as one word of a POSIX shell, quoted only where it must be.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubeconfig_goes_into_the_state_directory() {
        let check = |xdg: Option<&str>, home: Option<&str>, expected: Option<&str>| {
            let found = default_kubeconfig(xdg.map(OsString::from), home.map(PathBuf::from)).ok();
            assert_eq!(found, expected.map(PathBuf::from), "{xdg:?} {home:?}");
        };
        check(Some("/state"), Some("/houses/me"), Some("/state/windlass/kubeconfig"));
        check(None, Some("/houses/me"), Some("/houses/me/.local/state/windlass/kubeconfig"));
        check(Some(""), Some("/houses/me"), Some("/houses/me/.local/state/windlass/kubeconfig"));
        check(Some("relative"), Some("/houses/me"), Some("/houses/me/.local/state/windlass/kubeconfig"));
        check(Some("relative"), None, None);
        check(None, Some(""), None);
    }

    #[test]
    fn paths_survive_a_shell() {
        let check = |text: &str, expected: &str| assert_eq!(shell_word(text), expected);
        check("/houses/me/kube-config_1.yaml", "/houses/me/kube-config_1.yaml");
        check("/houses/my files/k", "'/houses/my files/k'");
        check("/it's/$HOME", r"'/it'\''s/$HOME'");
    }
}
