//! The kubeconfig file: how clients on this machine find the server, and get in.
//!
//! It holds a key that opens everything, so no other user may read it, not even for the moment in which it is written; and
//! it is never written over a file that holds somebody else's keys.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use super::tls::{self, Credential};
use crate::private;

/// The file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path names no file in a directory.
    #[error("{} cannot be a kubeconfig: it is not the path of a file", path.display())]
    NotAPath {
        /// The path given.
        path: PathBuf,
    },
    /// Symbolic links are not followed, directories not replaced.
    #[error("{} exists and is not a regular file", path.display())]
    NotAFile {
        /// The path given.
        path: PathBuf,
    },
    /// The file holds something else that would be lost.
    #[error("{} exists and holds more than the cluster {cluster:?}", path.display())]
    NotOurs {
        /// The path given.
        path: PathBuf,
        /// The only cluster that may be replaced.
        cluster: String,
    },
    /// The operating system refused.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// No randomness for the name of the temporary file.
    #[error("cannot write {}: the operating system gave no random bytes", path.display())]
    Random {
        /// The path given.
        path: PathBuf,
    },
}

/// What a kubeconfig says: one cluster, one user, one context.
#[derive(Debug)]
pub struct Kubeconfig<'a> {
    /// The cluster's and the context's name; the user is `<name>-admin`.
    pub name: &'a str,
    /// `https://127.0.0.1:<port>`
    pub server: &'a str,
    /// The certificate of the server's authority.
    pub authority_pem: &'a str,
    /// What lets the client in.
    pub credential: &'a Credential,
}

impl Kubeconfig<'_> {
    /// The file's content. JSON strings are YAML strings, so nothing in them can break out.
    pub fn to_yaml(&self) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        let name = quoted(self.name);
        let user = quoted(&user_of(self.name));
        let server = quoted(self.server);
        let authority = STANDARD.encode(self.authority_pem);
        let credential = match self.credential {
            Credential::ClientCertificate { certificate_pem, key_pem } => format!(
                "client-certificate-data: {}\n    client-key-data: {}",
                STANDARD.encode(certificate_pem),
                STANDARD.encode(key_pem)
            ),
            Credential::Token(token) => format!("token: {}", quoted(token.secret())),
        };
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: {name}\n  cluster:\n    server: {server}\n    certificate-authority-data: {authority}\n\
             users:\n\
             - name: {user}\n  user:\n    {credential}\n\
             contexts:\n\
             - name: {name}\n  context:\n    cluster: {name}\n    user: {user}\n\
             current-context: {name}\n"
        )
    }

    /// Writes the file, readable by its owner only. One that holds nothing but this cluster is replaced; anything else at
    /// that path is left as it is and reported. Missing directories are made, for the owner only.
    ///
    /// Readers see the old file or the new one, never a part: it is written under another name beside it, then renamed.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let (Some(directory), Some(file_name)) = (path.parent(), path.file_name()) else {
            return Err(Error::NotAPath { path: path.to_owned() });
        };
        if !directory.as_os_str().is_empty() {
            private::make_folders(directory).map_err(|source| Error::Write { path: directory.to_owned(), source })?;
        }
        self.refuse_to_replace_others(path)?;
        let random = tls::random::<8>().map_err(|_| Error::Random { path: path.to_owned() })?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(file_name);
        hidden.push(format!(".{:016x}", u64::from_ne_bytes(random)));
        let temporary = directory.join(hidden);
        let written = private::write_file(&temporary, self.to_yaml().as_bytes())
            .and_then(|()| fs::rename(&temporary, path))
            .map_err(|source| Error::Write { path: path.to_owned(), source });
        if written.is_err() {
            // It may not exist; the error that matters is the first one.
            drop(fs::remove_file(&temporary));
        }
        written
    }

    fn refuse_to_replace_others(&self, path: &Path) -> Result<(), Error> {
        let failed = |source| Error::Write { path: path.to_owned(), source };
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed(error)),
            Ok(metadata) if !metadata.is_file() => Err(Error::NotAFile { path: path.to_owned() }),
            Ok(_) => {
                let mut text = String::new();
                let file = File::open(path).map_err(failed)?;
                // A kubeconfig of ours has a few KiB.
                match file.take(64 * 1024).read_to_string(&mut text) {
                    Ok(_) if holds_only(&text, self.name) => Ok(()),
                    Err(error) if error.kind() != io::ErrorKind::InvalidData => Err(failed(error)),
                    _ => Err(Error::NotOurs { path: path.to_owned(), cluster: self.name.to_owned() }),
                }
            }
        }
    }
}

fn user_of(cluster: &str) -> String {
    format!("{cluster}-admin")
}

/// The names in a kubeconfig; kubectl rewrites the file when it sets a namespace, so its text may not be what we wrote.
#[derive(Deserialize)]
struct Names {
    #[serde(default)]
    clusters: Option<Vec<Named>>,
    #[serde(default)]
    users: Option<Vec<Named>>,
    #[serde(default)]
    contexts: Option<Vec<Named>>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Whether nothing is lost with this file but what `cluster` wrote: no other cluster, user or context is in it.
fn holds_only(text: &str, cluster: &str) -> bool {
    if text.trim().is_empty() {
        return true;
    }
    let Ok(names) = serde_saphyr::from_str::<Names>(text) else { return false };
    let all = |entries: Option<Vec<Named>>, name: &str| entries.into_iter().flatten().all(|entry| entry.name == name);
    all(names.clusters, cluster) && all(names.users, &user_of(cluster)) && all(names.contexts, cluster)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::auth::Token;
    use super::*;

    fn write(path: &Path, credential: &Credential) -> Result<(), Error> {
        let kubeconfig =
            Kubeconfig { name: "windlass", server: "https://127.0.0.1:6443", authority_pem: "PEM", credential };
        kubeconfig.write(path)
    }

    fn token() -> Credential {
        Credential::Token(Token::generate().unwrap())
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn parsed(path: &Path) -> Value {
        serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    }

    #[test]
    fn the_file_is_for_its_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state/windlass/kubeconfig");
        write(&path, &token()).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&directory.path().join("state")), 0o700);
        assert_eq!(mode(&directory.path().join("state/windlass")), 0o700);
    }

    #[test]
    fn it_says_where_and_who() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kubeconfig");
        let credential = token();
        write(&path, &credential).unwrap();
        let Credential::Token(token) = &credential else { unreachable!() };
        let mut expected = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "windlass",
            "clusters": [{"name": "windlass", "cluster": {
                "server": "https://127.0.0.1:6443", "certificate-authority-data": STANDARD.encode("PEM"),
            }}],
            "users": [{"name": "windlass-admin", "user": {"token": token.secret()}}],
            "contexts": [{"name": "windlass", "context": {"cluster": "windlass", "user": "windlass-admin"}}],
        });
        assert_eq!(parsed(&path), expected);

        let credential = Credential::ClientCertificate { certificate_pem: "CERT".into(), key_pem: "KEY".into() };
        write(&path, &credential).unwrap();
        expected["users"][0]["user"] = serde_json::json!({
            "client-certificate-data": STANDARD.encode("CERT"), "client-key-data": STANDARD.encode("KEY"),
        });
        assert_eq!(parsed(&path), expected);
    }

    #[test]
    fn replacing_tightens_the_mode_and_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kubeconfig");
        write(&path, &token()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let before = fs::read(&path).unwrap();
        write(&path, &token()).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_ne!(fs::read(&path).unwrap(), before);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn links_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target");
        fs::write(&target, "").unwrap();
        let path = directory.path().join("kubeconfig");
        std::os::unix::fs::symlink(&target, &path).unwrap();
        let error = write(&path, &token()).unwrap_err();
        assert!(matches!(error, Error::NotAFile { .. }), "{error}");
        assert_eq!(fs::read(&target).unwrap(), b"");
        let error = write(directory.path(), &token()).unwrap_err();
        assert!(matches!(error, Error::NotAFile { .. }), "{error}");
    }

    fn check(existing: &str, may_be_replaced: bool) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kubeconfig");
        fs::write(&path, existing).unwrap();
        let written = write(&path, &token());
        assert_eq!(written.is_ok(), may_be_replaced, "{existing:?}: {written:?}");
        if !may_be_replaced {
            assert!(matches!(written, Err(Error::NotOurs { .. })), "{existing:?}: {written:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), existing);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_keys_of_others_are_not_written_over() {
        check("", true);
        check("apiVersion: v1\nkind: Config\nclusters: null\nusers: []\n", true);
        // As kubectl rewrites it.
        check(
            "apiVersion: v1\nclusters:\n- cluster:\n    server: x\n  name: windlass\ncontexts:\n- context:\n    \
             cluster: windlass\n    namespace: other\n    user: windlass-admin\n  name: windlass\nusers:\n- name: \
             windlass-admin\n  user: {}\n",
            true,
        );
        check("clusters:\n- name: production\n  cluster: {}\n", false);
        check("clusters:\n- name: windlass\n- name: production\n", false);
        check("users:\n- name: me\n", false);
        check("contexts:\n- name: production\n", false);
        check("just a note", false);
        check("- a\n- list\n", false);
        check("\u{0}", false);
    }
}
