//! Transcripts: what a person types at a real `kubectl`, or at `windlass`, and what is answered. One file of `tests/kubectl` is one topic, and has a server of its own.
//!
//! - `WINDLASS_UPDATE=1 cargo test -p windlass --test it kubectl` writes what is answered now into the files. Read the difference.
//! - `WINDLASS_TRANSCRIPTS_ON=<kubeconfig>` runs them on another server, which should be a fresh one for each topic
//!   (`cargo test -p windlass --test it kubectl::apply`). What differs from a real kube-apiserver is ours to explain.

pub mod mask;
mod script;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use similar::TextDiff;
use tempfile::TempDir;

use super::up::Up;
use mask::Mask;
use script::{Part, Script};

/// The oldest client whose words are the ones in the files.
const MINOR_MIN: u32 = 32;
/// The topic in which only Windlass is used.
const WITHOUT_KUBECTL: &str = "cli";
/// No command of a transcript should need a tenth of it, on a busy machine.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// The topic whose commands are for `bash`: they use what `sh` does not have, and variables.
const WITH_BASH: &str = "seed_002";
/// What is kept from one command to the next where there is a `bash`.
const VARIABLES: &str = "PATCH UPDATE MACHINE";
/// Attempts of an upgrade that fail.
const LATE_ROLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/examples/late-role.yaml");

/// A member of etcd that dies.
const DEAD_MEMBER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/examples/dead-member.yaml");

/// One test for each topic, so that one can be asked for; and one that no file is forgotten. In brackets: how the server of
/// the topic is started.
macro_rules! topics {
    ($($topic:ident $([$($argument:expr),*])?),* $(,)?) => {
        $(
            #[test]
            fn $topic() {
                check(stringify!($topic), &[$($($argument),*)?]);
            }
        )*

        #[test]
        fn every_file_is_a_topic() {
            let mut files: Vec<String> = fs::read_dir(folder())
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
                .map(|path| path.file_stem().unwrap().to_str().unwrap().replace('-', "_"))
                .collect();
            files.sort();
            assert_eq!(files, [$(stringify!($topic)),*]);
        }
    };
}

topics![
    abort["--speed", "600"],
    apply,
    approve["--speed", "600"],
    approve_class["--speed", "600"],
    auth,
    by_label["--speed", "600"],
    classes["--speed", "600"],
    cli["--speed", "600"],
    cluster_api["--speed", "600"],
    create,
    definitions,
    delete,
    describe,
    diff,
    discovery,
    dry_run,
    edit,
    events,
    explain,
    get,
    gitops["--speed", "600"],
    gitops_check["--speed", "600"],
    hops["--speed", "600"],
    label,
    logs["--speed", "600"],
    nodes,
    packages["--speed", "600"],
    packages_first["--speed", "600"],
    packages_first_abort["--speed", "600"],
    packages_first_hooks["--speed", "600", "--hold", "hooks"],
    packages_first_pause["--speed", "600"],
    patch,
    plugin["--speed", "600"],
    refusals,
    rehearse["--speed", "600", "--scenario", DEAD_MEMBER],
    retry["--speed", "600"],
    rollout,
    secrets["--speed", "600"],
    seed_002["--speed", "600", "--scenario", LATE_ROLE],
    seed_003["--speed", "600"],
    seed_004["--speed", "600"],
    server_side_apply,
    snapshot["--speed", "600"],
    update["--speed", "600", "--node-registration", "imagePullPolicy=Always"],
    upgrade["--speed", "600", "--metrics"],
    wait,
    watch
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl")
}

/// Runs the transcript of a topic: what is answered is what is written.
fn check(topic: &str, up: &[&str]) {
    if let Some(why) = unusable().filter(|_| topic != WITHOUT_KUBECTL) {
        // Not by `eprintln`, which is shown for failed tests only.
        writeln!(io::stderr(), "skipped: the transcript {topic:?} needs a kubectl: {why}").unwrap();
        return;
    }
    let path = folder().join(format!("{}.txt", topic.replace('_', "-")));
    let written = fs::read_to_string(&path).unwrap();
    let shell = if topic == WITH_BASH { Shell::Bash } else { Shell::Posix };
    let answered = Session::start(up, shell).answers(Script::parse(&written)).to_string();
    if std::env::var_os("WINDLASS_UPDATE").is_some() {
        fs::write(&path, &answered).unwrap();
        return;
    }
    let diff = TextDiff::from_lines(&written, &answered);
    let shown = diff.unified_diff().context_radius(4).header("written", "answered").to_string();
    assert!(written == answered, "{}:\n{shown}", path.display());
}

#[test]
fn every_exit_code_of_the_help_is_in_a_transcript() {
    let help = Command::new(env!("CARGO_BIN_EXE_windlass")).arg("--help").output().unwrap().stdout;
    let help = String::from_utf8(help).unwrap();
    let (_, listed) = help.split_once("Exit codes:\n").unwrap();
    let promised: BTreeSet<i32> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next()?.parse().ok())
        .filter(|code| *code != 0)
        .collect();
    let mut shown = BTreeSet::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let mut command = String::new();
        for line in fs::read_to_string(entry.unwrap().path()).unwrap().lines() {
            let code = line.strip_prefix("? ").or_else(|| line.strip_prefix("ended with "));
            match (line.strip_prefix("$ "), code.and_then(|code| code.parse::<i32>().ok())) {
                (Some(line), _) => line.clone_into(&mut command),
                (None, Some(code)) if command.contains("windlass ") => drop(shown.insert(code)),
                (None, _) => {}
            }
        }
    }
    assert!(promised.len() >= 8, "{listed}");
    assert_eq!(promised.difference(&shown).collect::<Vec<_>>(), Vec::<&i32>::new());
}

/// Why there is no kubectl to use.
fn unusable() -> Option<String> {
    let version = match Command::new("kubectl").args(["version", "--client", "-o", "json"]).output() {
        Ok(output) => output.stdout,
        Err(why) => return Some(format!("none on PATH ({why})")),
    };
    let version: Value = serde_json::from_slice(&version).unwrap();
    let minor: u32 = version["clientVersion"]["minor"].as_str().unwrap().trim_end_matches('+').parse().unwrap();
    (minor < MINOR_MIN).then(|| format!("the one on PATH is 1.{minor}, the files are of 1.{MINOR_MIN} or newer"))
}

/// Where commands are found: first of all the `windlass` that is tested.
fn path() -> OsString {
    let tested = Path::new(env!("CARGO_BIN_EXE_windlass")).parent().unwrap().to_owned();
    let others = std::env::var_os("PATH").unwrap();
    std::env::join_paths([tested].into_iter().chain(std::env::split_paths(&others))).unwrap()
}

/// A server and a folder to work in.
struct Session {
    /// Where commands run; `HOME` and temporary files are in it too, so that no cache outlives the server it is of.
    work: TempDir,
    kubeconfig: PathBuf,
    shell: Shell,
    server: Option<(Up, TempDir)>,
}

/// Who reads commands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shell {
    Posix,
    /// Its variables outlive a command.
    Bash,
}

impl Shell {
    fn program(self) -> &'static str {
        match self {
            Self::Posix => "sh",
            Self::Bash => "bash",
        }
    }

    fn script(self, line: &str) -> String {
        match self {
            Self::Posix => format!("exec 2>&1\n{line}"),
            Self::Bash => format!(
                "exec 2>&1\n[ -f ~/variables ] && . ~/variables\n{line}\n\
                 code=$?\ndeclare -p {VARIABLES} > ~/variables 2> /dev/null\nexit $code"
            ),
        }
    }
}

impl Session {
    fn start(up: &[&str], shell: Shell) -> Self {
        let work = TempDir::new().unwrap();
        if let Some(kubeconfig) = std::env::var_os("WINDLASS_TRANSCRIPTS_ON") {
            return Self { work, kubeconfig: kubeconfig.into(), shell, server: None };
        }
        let state = TempDir::new().unwrap();
        let up = Up::start(state.path(), up);
        Self { work, kubeconfig: state.path().join("windlass/kubeconfig"), shell, server: Some((up, state)) }
    }

    fn answers(&self, mut script: Script) -> Script {
        let mask = Mask::new(self.work.path());
        for part in &mut script.parts {
            if let Part::Command { line, output, code } = part {
                let (said, ended) = self.run(line);
                *output = mask.hide(&said);
                *code = ended;
            }
        }
        script
    }

    fn metrics(&self) -> &str {
        self.server.as_ref().and_then(|(up, _)| up.metrics.as_deref()).unwrap_or_default()
    }

    /// What a command prints and says, in the order in which it does, and its exit code.
    fn run(&self, line: &str) -> (String, i32) {
        let home = self.work.path().join(".home");
        fs::create_dir_all(&home).unwrap();
        let mut child = Command::new(self.shell.program())
            .args(["-c", &self.shell.script(line)])
            .current_dir(self.work.path())
            .env_clear()
            .env("PATH", path())
            .env("KUBECONFIG", &self.kubeconfig)
            .env("WINDLASS_METRICS", self.metrics())
            .env("EXAMPLES", Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/examples"))
            .env("HOME", &home)
            .env("TMPDIR", &home)
            .env("TZ", "UTC")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut said = Vec::new();
            stdout.read_to_end(&mut said).unwrap();
            // Nobody waits for it any more when the limit has passed.
            drop(sender.send(said));
        });
        let Ok(said) = receiver.recv_timeout(COMMAND_LIMIT) else {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("no end within {COMMAND_LIMIT:?}: {line}");
        };
        (String::from_utf8(said).unwrap(), child.wait().unwrap().code().unwrap_or(-1))
    }
}
