//! `windlass up`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tempfile::TempDir;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

fn windlass(state: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command
        .args(arguments)
        .env("XDG_STATE_HOME", state)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub fn run(state: &Path, arguments: &[&str]) -> (Output, String) {
    let output = windlass(state, arguments).output().unwrap();
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    (output, stderr)
}

/// A running `windlass up`; killed when a test fails.
pub struct Up {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// What it printed.
    pub line: String,
    /// Where its metrics are, if it was told to serve them.
    pub metrics: Option<String>,
}

impl Up {
    pub fn start(state: &Path, arguments: &[&str]) -> Self {
        let mut child = windlass(state, &[&["up"], arguments].concat()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let metrics = arguments.contains(&"--metrics").then(|| {
            let mut second = String::new();
            stdout.read_line(&mut second).unwrap();
            second.trim_end().strip_prefix("export WINDLASS_METRICS=").unwrap().to_owned()
        });
        Self { child, stdout, line, metrics }
    }

    /// Kills it: it has no time for anything.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn send(&self, signal: &str) {
        // The shell's own: not every machine has a program of that name.
        let sent = Command::new("sh").args(["-c", &format!("kill {signal} {}", self.child.id())]).status().unwrap();
        assert!(sent.success());
    }

    /// Sends a signal and waits for the end: exit code, what was printed since, and what was said to people.
    pub fn end(mut self, signal: &str) -> (Option<i32>, String, String) {
        self.send(signal);
        let (mut printed, mut said) = (String::new(), String::new());
        self.stdout.read_to_string(&mut printed).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), printed, said)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // Fails when it has ended already, which is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub fn kubeconfig(path: &Path) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// A connection, and who is at its other end.
fn connect(kubeconfig: &Value, with_certificate: bool) -> (StreamOwned<ClientConnection, TcpStream>, SocketAddr) {
    try_connect(kubeconfig, with_certificate).unwrap()
}

/// The same, where nobody may be there.
fn try_connect(
    kubeconfig: &Value,
    with_certificate: bool,
) -> std::io::Result<(StreamOwned<ClientConnection, TcpStream>, SocketAddr)> {
    let decoded = |value: &Value| STANDARD.decode(value.as_str().unwrap()).unwrap();
    let cluster = &kubeconfig["clusters"][0]["cluster"];
    let user = &kubeconfig["users"][0]["user"];
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&decoded(&cluster["certificate-authority-data"])).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = if with_certificate {
        let certificate = CertificateDer::from_pem_slice(&decoded(&user["client-certificate-data"])).unwrap();
        let key = PrivateKeyDer::from_pem_slice(&decoded(&user["client-key-data"])).unwrap();
        builder.with_client_auth_cert(vec![certificate], key).unwrap()
    } else {
        builder.with_no_client_auth()
    };
    let address: SocketAddr = cluster["server"].as_str().unwrap().strip_prefix("https://").unwrap().parse().unwrap();
    let session = ClientConnection::new(Arc::new(config), ServerName::from(address.ip())).unwrap();
    Ok((StreamOwned::new(session, TcpStream::connect(address)?), address))
}

/// Asks as the administrator: the code and the body of the answer, if one came as a whole.
pub fn ask(kubeconfig: &Value, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
    let (mut stream, address) = try_connect(kubeconfig, true).ok()?;
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let head = format!("{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: {media}\r\n");
    write!(stream, "{head}Content-Length: {}\r\n\r\n{text}", text.len()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let code = head.split(' ').nth(1)?.parse().ok()?;
    Some((code, serde_json::from_str(body).unwrap_or_else(|_| body.into())))
}

/// The status line of an answer, and its body.
fn get(kubeconfig: &Value, path: &str, with_certificate: bool) -> (String, String) {
    let (mut stream, address) = connect(kubeconfig, with_certificate);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

#[test]
fn up_prints_one_line_and_serves_until_it_is_told_to_stop() {
    for signal in ["-TERM", "-INT"] {
        let state = TempDir::new().unwrap();
        let up = Up::start(state.path(), &[]);
        let path = state.path().join("windlass/kubeconfig");
        assert_eq!(up.line, format!("export KUBECONFIG={}\n", path.display()));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        let kubeconfig = kubeconfig(&path);
        assert_eq!(kubeconfig["current-context"], "windlass");
        let (status, _) = get(&kubeconfig, "/version", false);
        assert_eq!(status, "HTTP/1.1 401 Unauthorized");
        let (status, body) = get(&kubeconfig, "/version", true);
        assert_eq!(status, "HTTP/1.1 200 OK", "{body}");

        let (code, printed, said) = up.end(signal);
        assert_eq!((code, printed.as_str(), said.as_str()), (Some(0), "", ""), "{signal}");
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let state = TempDir::new().unwrap();
    let up = Up::start(state.path(), &[]);
    let (mut stream, address) = connect(&kubeconfig(&state.path().join("windlass/kubeconfig")), true);
    write!(
        stream,
        "POST /api/v1/namespaces HTTP/1.1\r\nHost: {address}\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"
    )
    .unwrap();
    // It reads the body that does not come: a request that it would wait for.
    let mut begun = [0; 21];
    stream.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"HTTP/1.1 100 Continue");
    up.send("-TERM");
    assert_eq!(up.end("-INT").0, Some(130));
}

#[test]
fn the_kubeconfig_of_a_past_run_is_replaced() {
    let state = TempDir::new().unwrap();
    let path = state.path().join("of my own");
    let chosen = path.to_str().unwrap();
    let mut servers = Vec::new();
    for _ in 0..2 {
        let up = Up::start(state.path(), &["--kubeconfig", chosen]);
        assert_eq!(up.line, format!("export KUBECONFIG='{chosen}'\n"));
        servers.push(kubeconfig(&path)["users"][0].clone());
        assert_eq!(up.end("-TERM").0, Some(0));
    }
    assert_ne!(servers[0], servers[1], "keys are new at each start");
}

#[test]
fn a_kubeconfig_with_other_clusters_is_left_alone() {
    let state = TempDir::new().unwrap();
    let path = state.path().join("config");
    let before = "clusters:\n- name: production\n  cluster: {server: https://example.com}\n";
    fs::write(&path, before).unwrap();
    let (output, stderr) = run(state.path(), &["up", "--kubeconfig", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(stderr.starts_with("error (user): "), "{stderr}");
    assert!(stderr.contains("\n  try: windlass up --kubeconfig"), "{stderr}");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

#[test]
fn a_taken_port_is_explained() {
    let state = TempDir::new().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (output, stderr) = run(state.path(), &["up", "--port", &address.port().to_string()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(stderr.starts_with(&format!("error (environment): cannot listen on {address}\n  because: ")), "{stderr}");
    assert!(stderr.contains("\n  try: windlass up without --port"), "{stderr}");
    assert!(!state.path().join("windlass").exists(), "nothing is left behind");
}

#[test]
fn every_command_is_in_the_readme_or_in_what_to_do_when_something_goes_wrong() {
    let state = TempDir::new().unwrap();
    let (output, _) = run(state.path(), &["--help"]);
    let help = String::from_utf8(output.stdout).unwrap();
    let (_, listed) = help.split_once("Commands:\n").unwrap();
    let commands: Vec<&str> =
        listed.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next()).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages: String =
        ["README.md", "docs/recovery.md"].map(|page| fs::read_to_string(root.join(page)).unwrap()).concat();
    // What pods run, and what people type before they read anything.
    let others = ["control-plane", "help"];
    let is_named = |command: &&str| [' ', '`'].iter().any(|end| pages.contains(&format!("windlass {command}{end}")));
    let unnamed = commands.iter().filter(|command| !others.contains(command) && !is_named(command));
    assert!(commands.contains(&"upgrade"), "{help}");
    assert_eq!(unnamed.collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn wrong_usage_and_help_differ_in_their_exit_codes() {
    let state = TempDir::new().unwrap();
    for (arguments, code) in [
        (&["--help"][..], 0),
        (&["up", "--help"], 0),
        (&["--version"], 0),
        (&[], 1),
        (&["down"], 1),
        (&["up", "--port", "x"], 1),
    ] {
        let (output, stderr) = run(state.path(), arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert_eq!(output.stdout.is_empty(), code != 0, "{arguments:?}");
        assert_eq!(stderr.is_empty(), code == 0, "{arguments:?}: {stderr}");
    }
}
