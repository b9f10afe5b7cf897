//! Members of etcd as processes, and the authority that they and their clients are signed by.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use tempfile::TempDir;
use tokio_rustls::rustls::ClientConfig;

use crate::access::etcd::identity;
use crate::client::wall_now;

/// The etcd to run; says which tier that is, or that there is none.
pub fn program(test: &str) -> Option<PathBuf> {
    let given = std::env::var_os("KUBEBUILDER_ASSETS").map(|folder| PathBuf::from(folder).join("etcd"));
    let system = ["/usr/bin/etcd", "/usr/local/bin/etcd"].map(PathBuf::from);
    let found = given.into_iter().chain(system).find(|path| path.exists());
    let words = match &found {
        Some(path) => format!("{test}: run on {}", path.display()),
        None => format!("{test}: not run: there is neither KUBEBUILDER_ASSETS nor an etcd of the system"),
    };
    // Not by `eprintln`, which is shown for failed tests only.
    writeln!(std::io::stderr(), "{words}").unwrap();
    found
}

/// An authority as the Secret of a cluster has it.
pub struct Authority {
    certificate: String,
    key: String,
    issuer: Option<Issuer<'static, KeyPair>>,
    folder: TempDir,
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl Authority {
    pub fn new() -> Self {
        let mut params = params("etcd-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment, KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        let (pem, folder) = (key.serialize_pem(), TempDir::new().unwrap());
        Self { certificate, key: pem, issuer: Some(Issuer::new(params, key)), folder }
    }

    /// One with an RSA key, in the form that begins with `RSA PRIVATE KEY`. Nothing where there is no openssl to make it.
    pub fn rsa() -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let openssl = |arguments: &[&str]| {
            let mut command = Command::new("openssl");
            command.args(arguments).current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let made = openssl(&["genrsa", "-traditional", "-out", "ca.key", "2048"])
            && openssl(&[
                "req",
                "-x509",
                "-new",
                "-key",
                "ca.key",
                "-subj",
                "/CN=kubernetes",
                "-days",
                "2",
                "-out",
                "ca.crt",
            ]);
        if !made {
            writeln!(std::io::stderr(), "an RSA key: not run: there is no openssl to make it").unwrap();
            return None;
        }
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let (certificate, key) = (read("ca.crt"), read("ca.key"));
        assert!(key.starts_with("-----BEGIN RSA PRIVATE KEY-----"), "{}", key.lines().next().unwrap());
        Some(Self { certificate, key, issuer: None, folder })
    }

    /// The data of the Secret.
    pub fn data(&self) -> BTreeMap<String, Vec<u8>> {
        let pair = [("tls.crt", &self.certificate), ("tls.key", &self.key)];
        pair.into_iter().map(|(key, text)| (key.to_owned(), text.clone().into_bytes())).collect()
    }

    pub fn tls(&self) -> Arc<ClientConfig> {
        identity::signed(&self.data(), wall_now()).unwrap()
    }

    /// The files of a member: its certificate, its key, and the authority's certificate.
    fn files(&self) -> [String; 3] {
        let paths = ["server.crt", "server.key", "ca.crt"].map(|name| self.folder.path().join(name));
        let mut params = params("member");
        params.subject_alt_names =
            CertificateParams::new(["localhost".into(), "127.0.0.1".into()]).unwrap().subject_alt_names;
        let key = KeyPair::generate().unwrap();
        fs::write(&paths[1], key.serialize_pem()).unwrap();
        fs::write(&paths[2], &self.certificate).unwrap();
        if let Some(issuer) = &self.issuer {
            fs::write(&paths[0], params.signed_by(&key, issuer).unwrap().pem()).unwrap();
        } else {
            let request = params.serialize_request(&key).unwrap().pem().unwrap();
            fs::write(self.folder.path().join("server.csr"), request).unwrap();
            let sign = "openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -set_serial 7 -days 2 \
                        -copy_extensions copy -out server.crt";
            let mut command = Command::new("sh");
            command.args(["-c", sign]).current_dir(self.folder.path()).stderr(Stdio::null());
            assert!(command.status().unwrap().success());
        }
        paths.map(|path| path.display().to_string())
    }
}

/// Processes that end with this.
pub struct Servers {
    folder: TempDir,
    members: Vec<(String, [u16; 2], Option<Child>)>,
    next: [u16; 2],
}

/// A port that was free a moment ago.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn peer([_, peer]: [u16; 2]) -> String {
    format!("http://127.0.0.1:{peer}")
}

impl Servers {
    pub fn start(program: &PathBuf, authority: &Authority, count: usize) -> Self {
        let members = (0..count).map(|number| (format!("member-{number}"), [port(), port()], None)).collect();
        let mut servers = Self { folder: TempDir::new().unwrap(), members, next: [port(), port()] };
        for number in 0..count {
            servers.spawn(program, authority, number, "new");
        }
        servers
    }

    /// Where the one listens for the others that is to join next.
    pub fn next_peer(&self) -> String {
        peer(self.next)
    }

    /// It starts.
    pub fn join(&mut self, program: &PathBuf, authority: &Authority) {
        let number = self.members.len();
        self.members.push((format!("member-{number}"), self.next, None));
        self.spawn(program, authority, number, "existing");
    }

    fn spawn(&mut self, program: &PathBuf, authority: &Authority, number: usize, state: &str) {
        let all: Vec<String> = self.members.iter().map(|(name, ports, _)| format!("{name}={}", peer(*ports))).collect();
        let (name, ports) = (self.members[number].0.clone(), self.members[number].1);
        let [certificate, key, trusted] = authority.files();
        let client = format!("https://127.0.0.1:{}", ports[0]);
        let log = fs::File::create(self.folder.path().join(format!("{name}.log"))).unwrap();
        let mut command = Command::new(program);
        command
            .arg(format!("--name={name}"))
            .arg(format!("--data-dir={}", self.folder.path().join(&name).display()))
            .args([format!("--listen-client-urls={client}"), format!("--advertise-client-urls={client}")])
            .args([
                format!("--listen-peer-urls={}", peer(ports)),
                format!("--initial-advertise-peer-urls={}", peer(ports)),
            ])
            .args([format!("--initial-cluster={}", all.join(",")), format!("--initial-cluster-state={state}")])
            .args([format!("--cert-file={certificate}"), format!("--key-file={key}")])
            .args([format!("--trusted-ca-file={trusted}"), "--client-cert-auth".to_owned()])
            .args(["--heartbeat-interval=50", "--election-timeout=500"]);
        let child = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        self.members[number].2 = Some(child);
    }

    /// Where clients find them.
    pub fn ports(&self) -> Vec<u16> {
        self.members.iter().map(|(_, [client, _], _)| *client).collect()
    }

    /// As if its machine had lost power.
    pub fn kill(&mut self, name: &str) {
        let found = self.members.iter_mut().find(|(known, _, _)| known == name);
        end(&mut found.unwrap().2);
    }
}

fn end(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        // Fails when it has ended already, which is as good.
        drop(child.kill());
        drop(child.wait());
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for (_, _, child) in &mut self.members {
            end(child);
        }
    }
}
