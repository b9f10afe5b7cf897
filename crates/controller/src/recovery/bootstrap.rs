//! What a machine of a control plane was given when it booted: a cloud-config, with certificates and keys among its files.
//!
//! Nothing in here may be shown. An error says where something is wrong, never what is there.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use windlass_api::kind::bootstrap::CloudConfig;
use windlass_api::name::ClusterSecret;

/// Certificates and keys as text. Its `Debug` shows a length.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem(Vec<u8>);

impl Pem {
    /// That text.
    pub fn new(text: impl Into<Vec<u8>>) -> Self {
        Self(text.into())
    }

    /// The text itself, for those who read or store it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pem({} bytes)", self.0.len())
    }
}

/// One half of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Half {
    /// The certificate; of the key of service accounts, the public key.
    Public,
    /// The private key.
    Private,
}

impl Half {
    /// Where it is in a Secret.
    pub fn key(self) -> &'static str {
        match self {
            Self::Public => "tls.crt",
            Self::Private => "tls.key",
        }
    }
}

/// A file that kubeadm looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertificateFile {
    /// The Secret that it is from.
    pub secret: ClusterSecret,
    /// Which half of it.
    pub half: Half,
}

impl CertificateFile {
    /// Where kubeadm looks for it; `None` for what is in no file.
    pub fn path(self) -> Option<&'static str> {
        match (self.secret, self.half) {
            (ClusterSecret::CertificateAuthority, Half::Public) => Some("/etc/kubernetes/pki/ca.crt"),
            (ClusterSecret::CertificateAuthority, Half::Private) => Some("/etc/kubernetes/pki/ca.key"),
            (ClusterSecret::Etcd, Half::Public) => Some("/etc/kubernetes/pki/etcd/ca.crt"),
            (ClusterSecret::Etcd, Half::Private) => Some("/etc/kubernetes/pki/etcd/ca.key"),
            (ClusterSecret::FrontProxy, Half::Public) => Some("/etc/kubernetes/pki/front-proxy-ca.crt"),
            (ClusterSecret::FrontProxy, Half::Private) => Some("/etc/kubernetes/pki/front-proxy-ca.key"),
            (ClusterSecret::ServiceAccount, Half::Public) => Some("/etc/kubernetes/pki/sa.pub"),
            (ClusterSecret::ServiceAccount, Half::Private) => Some("/etc/kubernetes/pki/sa.key"),
            (ClusterSecret::Kubeconfig, _) => None,
        }
    }

    fn at(path: &str) -> Option<Self> {
        let halves = |secret| [Half::Public, Half::Private].map(|half| Self { secret, half });
        ClusterSecret::CERTIFICATES.into_iter().flat_map(halves).find(|file| file.path() == Some(path))
    }
}

/// Why bootstrap data cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootstrapError {
    /// It is something else.
    #[error("it is no cloud-config{}", place(*line))]
    CloudConfig {
        /// The line that could not be read.
        line: Option<u64>,
    },
    /// A file is packed in a way that is not known here.
    #[error("its file {path} is written as {encoding:?}; only plain text and base64 are read")]
    Encoding {
        /// Which file.
        path: &'static str,
        /// How it is packed.
        encoding: String,
    },
    /// A file says that it is base64, and is not.
    #[error("its file {path} is not base64, as it says")]
    Base64 {
        /// Which file.
        path: &'static str,
    },
}

fn place(line: Option<u64>) -> String {
    line.map(|line| format!(": line {line} cannot be read")).unwrap_or_default()
}

/// The certificates and keys in bootstrap data. A first line that asks for templates is a comment to us: where there are any,
/// they are in the names of nodes, never in these files.
pub fn files(data: &str) -> Result<BTreeMap<CertificateFile, Pem>, BootstrapError> {
    // What the parser says shows the line that it is about, which may be one of a key.
    let config: CloudConfig = serde_saphyr::from_str(data)
        .map_err(|error| BootstrapError::CloudConfig { line: error.location().map(|place| place.line()) })?;
    let mut found = BTreeMap::new();
    for file in config.write_files {
        let Some(which) = CertificateFile::at(&file.path) else { continue };
        let path = which.path().unwrap_or_default();
        let content = match file.encoding.as_str() {
            "" | "text/plain" => file.content.into_bytes(),
            "b64" | "base64" => STANDARD.decode(file.content.trim()).map_err(|_| BootstrapError::Base64 { path })?,
            other => return Err(BootstrapError::Encoding { path, encoding: other.to_owned() }),
        };
        // cloud-init writes one file after the other: the last of several wins.
        found.insert(which, Pem::new(content));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(data: &str, expected: Result<&[(&str, &str)], &str>) {
        let found = files(data).map_err(|error| error.to_string());
        let found = found.map(|files| {
            let text = |pem: &Pem| String::from_utf8(pem.as_bytes().to_vec()).unwrap();
            files.iter().map(|(file, pem)| (file.path().unwrap().to_owned(), text(pem))).collect::<Vec<_>>()
        });
        let owned =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
        assert_eq!(found, expected.map(owned).map_err(str::to_owned), "{data}");
    }

    #[test]
    fn files_are_found_whatever_comes_first_in_them() {
        let ca = [("/etc/kubernetes/pki/ca.crt", "a\nb\n")];
        check("#cloud-config\nwrite_files:\n- path: /etc/kubernetes/pki/ca.crt\n  content: |\n    a\n    b\n", Ok(&ca));
        check(
            "## template: jinja\n#cloud-config\n\nwrite_files:\n-   content: |\n      a\n      b\n    owner: root:root\n    path: /etc/kubernetes/pki/ca.crt\n    permissions: '0640'\nruncmd:\n  - 'kubeadm init --name {{ ds.meta_data.hostname }}'\n",
            Ok(&ca),
        );
        check(
            "#cloud-config\nwrite_files:\n- path: /etc/kubernetes/pki/ca.crt\n  encoding: base64\n  content: YQpiCg==\n",
            Ok(&ca),
        );
        check(
            "#cloud-config\nwrite_files:\n- {path: /etc/kubernetes/pki/sa.key, content: k}\n- {path: /etc/motd, content: m}\n- {path: /etc/kubernetes/pki/etcd/ca.crt, content: e}\n",
            Ok(&[("/etc/kubernetes/pki/etcd/ca.crt", "e"), ("/etc/kubernetes/pki/sa.key", "k")]),
        );
        check("#cloud-config\nruncmd: []\n", Ok(&[]));
    }

    #[test]
    fn what_cannot_be_read_is_refused_without_showing_it() {
        check("#cloud-config\nwrite_files:\n- path: [CANARY\n", Err("it is no cloud-config: line 3 cannot be read"));
        check("CANARY", Err("it is no cloud-config: line 1 cannot be read"));
        check(
            "#cloud-config\nwrite_files:\n- {path: /etc/kubernetes/pki/ca.key, encoding: gz+b64, content: CANARY}\n",
            Err("its file /etc/kubernetes/pki/ca.key is written as \"gz+b64\"; only plain text and base64 are read"),
        );
        check(
            "#cloud-config\nwrite_files:\n- {path: /etc/kubernetes/pki/ca.key, encoding: b64, content: CANARY}\n",
            Err("its file /etc/kubernetes/pki/ca.key is not base64, as it says"),
        );
    }

    #[test]
    fn a_key_is_shown_as_its_length() {
        assert_eq!(format!("{:?}", Pem::new("CANARY")), "Pem(6 bytes)");
    }
}
