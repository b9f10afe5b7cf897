//! The reference: a real `kube-apiserver` and a real `etcd`, on loopback ports and in a folder of their own, for as long as
//! somebody compares us with them; and the way to any API server over HTTPS, which is the same for ours and for theirs.
//!
//! It is for tests and for measurements. It knows nothing of our server.

pub mod etcd;
pub mod https;
mod process;
pub mod server;

use std::path::{Path, PathBuf};

/// Why something could not be started or reached, in words.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// The folder with the programs, when there is one.
pub fn assets() -> Option<PathBuf> {
    std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from)
}

/// A program that is installed, or is in the folder with the programs, which goes before.
pub fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = assets().into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Whether a folder also has the controllers.
pub fn has_controllers(assets: &Path) -> bool {
    assets.join(server::CONTROLLERS).exists()
}
