//! `windlass install` on a real API server, and a replica that answers its questions, as the built program does on a cluster.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kube::Client;
use serde_json::{Value, json};
use windlass_controller::webhooks::Sort;

use super::server::Server;

fn windlass(server: &Server, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(arguments).arg("--kubeconfig").arg(server.kubeconfig());
    command.env("XDG_STATE_HOME", server.path("state")).env_remove("KUBECONFIG").stdin(Stdio::null());
    command
}

/// Installs everything. No pod runs: there is no node.
pub fn install(server: &Server) {
    let output = windlass(server, &["install"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}{said}", String::from_utf8_lossy(&output.stdout));
}

/// A replica that answers reviews; killed when it is dropped.
pub struct Answers {
    child: Child,
    log: PathBuf,
}

impl Answers {
    /// Starts it, and has the API server find it where the Service is.
    pub async fn start(server: &Server, client: &Client, hold: &str) -> Self {
        let log = server.path("answers.log");
        let to_log = fs::File::create(&log).unwrap();
        let arguments =
            ["controller", "--webhooks", "--hold", hold, "--listen", "127.0.0.1:0", "--probes", "127.0.0.1:0"];
        let child = windlass(server, &arguments).stdout(Stdio::null()).stderr(to_log).spawn().unwrap();
        let answers = Self { child, log };
        let address = answers.said("reviews and questions").await["address"].as_str().unwrap().to_owned();
        answers.said("serving with another certificate").await;
        let port: u16 = address.rsplit_once(':').unwrap().1.parse().unwrap();
        // There are no pods behind it, and nobody routes its address.
        let spec = json!({"type": "ExternalName", "externalName": "localhost", "clusterIP": null, "clusterIPs": null});
        patch(client, "/api/v1/namespaces/windlass-system/services/windlass-webhook", &json!({"spec": spec})).await;
        for sort in [Sort::Mutating, Sort::Validating] {
            let (resource, name) = (sort.resource(), sort.configuration());
            let path = format!("/apis/admissionregistration.k8s.io/v1/{resource}/{name}");
            let mut webhooks = get(client, &path).await["webhooks"].clone();
            for webhook in webhooks.as_array_mut().unwrap() {
                assert!(webhook["clientConfig"]["caBundle"].is_string(), "{webhook}");
                webhook["clientConfig"]["service"]["port"] = json!(port);
            }
            patch(client, &path, &json!({"webhooks": webhooks})).await;
        }
        answers
    }

    async fn said(&self, message: &str) -> Value {
        for _ in 0..300 {
            let text = fs::read_to_string(&self.log).unwrap();
            let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            if let Some(line) = lines.find(|line| line["message"] == message) {
                return line;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("it never said {message:?}: {}", fs::read_to_string(&self.log).unwrap());
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        // Fails when it has ended already, which is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub async fn get(client: &Client, path: &str) -> Value {
    client.request(http::Request::get(path).body(Vec::new()).unwrap()).await.unwrap()
}

async fn patch(client: &Client, path: &str, change: &Value) {
    let request = http::Request::patch(path).header("content-type", "application/merge-patch+json");
    let request = request.body(change.to_string().into_bytes()).unwrap();
    let _: Value = client.request(request).await.unwrap_or_else(|error| panic!("change {path}: {error}"));
}
