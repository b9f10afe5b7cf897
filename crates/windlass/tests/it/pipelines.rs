//! What scripts rely on: documents are as their schemas say, and each role may do just what its commands ask for.
//!
//! All commands of a session are run through a proxy, which writes down what they ask of the management cluster. The roles in
//! `deploy/roles` are what was asked for, and nothing else: `WINDLASS_UPDATE=1 cargo test -p windlass --test it pipelines` writes them.

mod proxy;
mod role;
mod schema;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::up::Up;
use proxy::{Asked, Proxy};

/// A cluster whose release is a label.
const BY_LABEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/examples/release-by-label.yaml");
/// A cluster of a class, with packages.
const OF_CLASS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/examples/packages-first.yaml");

/// A command that was run.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

struct Session {
    work: TempDir,
    proxy: Proxy,
    /// Past the proxy: what others do.
    direct: PathBuf,
}

impl Session {
    /// Runs a command; what it asked for is written down.
    fn run(&self, arguments: &str) -> Ran {
        let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(arguments.split_whitespace())
            .current_dir(self.work.path())
            .env("KUBECONFIG", self.proxy.kubeconfig())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Runs a command that writes a document; it is as its schema says.
    fn document(&self, arguments: &str, codes: &[i32]) -> Value {
        let ran = self.run(arguments);
        assert!(ran.code.is_some_and(|code| codes.contains(&code)), "{arguments}: {:?}\n{}", ran.code, ran.stderr);
        let document: Value =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{arguments}: {error}\n{}", ran.stdout));
        schema::check(arguments, &document);
        document
    }

    /// Runs a command that writes a line for each change.
    fn lines(&self, arguments: &str) -> Vec<Value> {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments}\n{}", ran.stderr);
        let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for line in &lines {
            schema::check(arguments, line);
        }
        lines
    }

    /// What somebody else does, with rights of their own.
    fn elsewhere(&self, arguments: &[&str]) {
        let mut command = Command::new("kubectl");
        let status = command.arg("--kubeconfig").arg(&self.direct).args(arguments).stdout(Stdio::null()).status();
        assert!(status.unwrap().success(), "{arguments:?}");
    }

    fn asked(&self) -> BTreeSet<Asked> {
        self.proxy.take()
    }
}

fn kinds(lines: &[Value]) -> BTreeSet<&str> {
    lines.iter().filter_map(|line| line["kind"].as_str()).collect()
}

#[test]
fn documents_are_as_their_schemas_say_and_roles_are_what_commands_ask_for() {
    let state = TempDir::new().unwrap();
    let _up = Up::start(state.path(), &["--speed", "600"]);
    let proxy = Proxy::start(&state.path().join("windlass/kubeconfig"), state.path());
    let direct = state.path().join("windlass/kubeconfig");
    let session = Session { work: TempDir::new().unwrap(), proxy, direct };

    session.elsewhere(&["apply", "-f", BY_LABEL]);
    session.elsewhere(&["apply", "-f", OF_CLASS]);
    operator_begins(&session);
    let mut operator = session.asked();
    let viewer = view(&session);
    plan(&session);
    let planner = session.asked();
    operate(&session);
    operator.extend(session.asked());
    approve(&session);
    let approver = session.asked();
    operate_at_last(&session);
    operator.extend(session.asked());

    let more = |asked: BTreeSet<Asked>| asked.difference(&viewer).cloned().collect::<BTreeSet<_>>();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/roles");
    role::check(&folder, "viewer", &viewer);
    role::check(&folder, "planner", &more(planner));
    let verbs = [("run.tanzu.vmware.com", "tanzukubernetesclusters"), ("cluster.x-k8s.io", "clusters")];
    let verbs = verbs.map(|(group, resource)| Asked::new(group, resource, "approve"));
    role::check(&folder, "approver", &more(approver).into_iter().chain(verbs).collect());
    role::check(&folder, "operator", &more(operator));
}

fn operator_begins(session: &Session) {
    let ran = session.run("create cluster my-tkc --release v1.16.7 --wait -o json");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // A question where nobody can answer is refused, and never a wait.
    let ran = session.run("upgrade my-tkc --to v1.17.4");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("nobody is there to ask, and --yes was not given"), "{}", ran.stderr);
}

/// Everything that only looks, and needs no look into a Secret.
fn view(session: &Session) -> BTreeSet<Asked> {
    for what in ["clusters", "updates", "machines", "jobs"] {
        let ran = session.run(&format!("get {what} -A -o json"));
        assert_eq!(ran.code, Some(0), "{what}: {}", ran.stderr);
    }
    session.document("get addons -o json", &[0]);
    session.document("get releases -o json", &[0]);
    session.document("status my-tkc -o json", &[0]);
    session.document("why my-tkc -o json", &[0]);
    session.document("status shop -o json", &[0]);
    session.document("why shop -o json", &[0]);
    session.document("status wl -o json", &[0]);
    session.document("why wl -o json", &[0]);
    session.document("release path shop --to 36.1.0 -o json", &[0]);
    session.document("release list -o json", &[0]);
    session.document("release show v1.17.4 -o json", &[0]);
    session.document("release diff v1.16.7 v1.17.4 --for my-tkc -o json", &[0]);
    session.document("release verify v1.17.4 -o json", &[0]);
    session.document("release path my-tkc --to v1.17.4 -o json", &[0]);
    session.run("logs my-tkc");
    std::fs::write(session.work.path().join("cluster.yaml"), CLUSTER).unwrap();
    let git =
        "git init -q -b main . && git add cluster.yaml && git -c user.name=Ada -c user.email=a@b.c commit -qm one";
    let made = Command::new("sh").args(["-c", git]).current_dir(session.work.path()).status().unwrap();
    assert!(made.success());
    session.document("gitops check . -o json", &[2]);
    session.asked()
}

const CLUSTER: &str = "apiVersion: run.tanzu.vmware.com/v1alpha1
kind: TanzuKubernetesCluster
metadata: {name: my-tkc}
spec:
  distribution: {version: v1.15.5}
  topology: {workers: {count: 7}}
";

/// What reads whole clusters: workload clusters, too, by their kubeconfigs.
fn plan(session: &Session) {
    session.document("describe my-tkc -o json", &[0]);
    session.document("describe shop -o json", &[0]);
    session.document("describe wl -o json", &[0]);
    session.document("packages -o json", &[0]);
    session.document("verify --management -o json", &[0, 5]);
    session.document("plan my-tkc --to v1.17.4 -o json", &[0]);
    session.document("plan my-tkc --delete -o json", &[0]);
    session.document("rehearse my-tkc --to v1.17.4 --runs 2 -o json", &[0, 5]);
    let folder = session.work.path().join("snapshot");
    let ran = session.run(&format!("snapshot take -o {}", folder.display()));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    session.document(&format!("snapshot load {} -o json", folder.display()), &[0]);
    session.document(&format!("snapshot diff {0} {0} -o json", folder.display()), &[0]);
    session.document("secrets check my-tkc -o json", &[0]);
}

fn operate(session: &Session) {
    session.document("update my-tkc --set topology.workers.class=best-effort-large --dry-run -o json", &[0]);
    let lines = session.lines("upgrade my-tkc --to v1.17.4 --yes --wait -o json");
    assert!(lines.len() > 3, "{lines:?}");
    assert_eq!(kinds(&lines), BTreeSet::from(["StatusReport", "UpgradeReport"]));
    assert_eq!(lines.last().unwrap()["outcome"], "succeeded");
    session.document("secrets recover my-tkc -o json", &[0]);
    session.elsewhere(&["wait", "cluster/shop", "--for=condition=ReleaseApplied", "--timeout=60s"]);
    session.document("upgrade shop --to 36.1.0 --dry-run -o json", &[0]);
    session.elsewhere(&["wait", "clusterbootstrap/wl", "--for=condition=PackagesReady", "--timeout=60s"]);
    session.elsewhere(&["wait", "cluster/wl", "--for=condition=TopologyReconciled", "--timeout=60s"]);
    session.document("upgrade wl --to v1.25 --dry-run -o json", &[0]);
    let ran = session.run("retry my-tkc -o json");
    assert_ne!(ran.code, Some(0), "nothing has failed");
    session.run("release deactivate v1.24.9");
}

fn approve(session: &Session) {
    let label = |value: &str| {
        session.elsewhere(&["label", "--overwrite", "namespace", "default", &format!("windlass.dev/approval={value}")]);
    };
    label("required");
    session.document("update my-tkc --set topology.workers.class=best-effort-large --yes -o json", &[4]);
    until(session, "agree to it");
    session.document("upgrade shop --to 36.1.0 --yes -o json", &[4]);
    let told = "jsonpath={.status.conditions[?(@.type==\"ReleaseApplied\")].reason}=ApprovalNeeded";
    session.elsewhere(&["wait", "cluster/shop", "--for", told, "--timeout=60s"]);
    session.document("upgrade wl --to v1.25 --yes -o json", &[4]);
    let told = "jsonpath={.status.conditions[?(@.type==\"PackagesReady\")].reason}=ApprovalNeeded";
    session.elsewhere(&["wait", "clusterbootstrap/wl", "--for", told, "--timeout=60s"]);
    session.asked();
    session.document("reject my-tkc --yes --reason no -o json", &[0]);
    until(session, "has rejected");
    session.document("approve my-tkc-2 --yes -o json", &[0]);
    session.document("approve shop --yes -o json", &[0]);
    session.document("reject wl --yes --reason no -o json", &[0]);
    label("none");
}

/// Until the cluster says what it waits for.
fn until(session: &Session, said: &str) {
    let mut ran = String::new();
    for _ in 0..1000 {
        ran = session.run("update my-tkc").stdout;
        if ran.contains(said) {
            return;
        }
    }
    panic!("{said:?} is never said, but {ran:?}");
}

fn operate_at_last(session: &Session) {
    let lines = session.lines("update my-tkc --set topology.workers.class=best-effort-small --yes --wait -o json");
    assert_eq!(lines.last().unwrap()["kind"], "UpdateReport");
    // An update that somebody's hook on a machine keeps: whether it can still be given up depends on who is faster.
    let hook = "pre-drain.delete.hook.machine.cluster.x-k8s.io/backup";
    session.elsewhere(&["annotate", "machines", "--all", &format!("{hook}=us")]);
    session.document("update my-tkc --set topology.workers.class=best-effort-large --yes -o json", &[0]);
    let runs =
        || session.run("get updates -l cluster.x-k8s.io/cluster-name=my-tkc -o json").stdout.contains("\"Running\"");
    assert!((0..1000).any(|_| runs()), "no update of my-tkc runs");
    session.run("abort my-tkc --yes -o json --timeout 20s");
    session.elsewhere(&["annotate", "machines", "--all", &format!("{hook}-")]);
}
