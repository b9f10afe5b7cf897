//! Where `up` leaves the kubeconfig, and the other commands look for it; and where the key of data directories is.

use std::ffi::OsString;
use std::path::PathBuf;

/// The kubeconfig of the embedded cluster; `None` where the environment names no directory for it.
pub fn kubeconfig() -> Option<PathBuf> {
    file_in(std::env::var_os("XDG_STATE_HOME"), std::env::home_dir(), "kubeconfig")
}

/// The key that data directories are sealed with, unless another is named; `None` where the environment names no directory.
pub fn data_key() -> Option<PathBuf> {
    file_in(std::env::var_os("XDG_STATE_HOME"), std::env::home_dir(), "data-key")
}

/// The state directory of the XDG base directory specification, which wants relative paths in it to be ignored.
fn file_in(xdg_state_home: Option<OsString>, home: Option<PathBuf>, name: &str) -> Option<PathBuf> {
    let state = xdg_state_home.map(PathBuf::from).filter(|path| path.is_absolute());
    let fallback = || home.filter(|home| home.is_absolute()).map(|home| home.join(".local/state"));
    Some(state.or_else(fallback)?.join("windlass").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubeconfig_goes_into_the_state_directory() {
        let check = |xdg: Option<&str>, home: Option<&str>, expected: Option<&str>| {
            let found = file_in(xdg.map(OsString::from), home.map(PathBuf::from), "kubeconfig");
            assert_eq!(found, expected.map(PathBuf::from), "{xdg:?} {home:?}");
        };
        check(Some("/state"), Some("/houses/me"), Some("/state/windlass/kubeconfig"));
        check(None, Some("/houses/me"), Some("/houses/me/.local/state/windlass/kubeconfig"));
        check(Some(""), Some("/houses/me"), Some("/houses/me/.local/state/windlass/kubeconfig"));
        check(Some("relative"), Some("/houses/me"), Some("/houses/me/.local/state/windlass/kubeconfig"));
        check(Some("relative"), None, None);
        check(None, Some(""), None);
    }
}
