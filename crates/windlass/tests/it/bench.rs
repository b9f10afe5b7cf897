//! `windlass bench`, as it is typed. No figure is judged: what is measured is for a quiet machine and a release build.

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// A hundredth of everything, where no server of others is to be found. The exit code, standard output and standard error.
fn bench(arguments: &[&str]) -> (Option<i32>, String, String) {
    run(&[&["apiserver"], arguments].concat())
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let nothing = TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.arg("bench").args(arguments);
    let output = command.env_remove("KUBEBUILDER_ASSETS").env("PATH", nothing.path()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn every_question_is_measured_and_what_is_not_there_is_not_compared() {
    let (code, stdout, stderr) = bench(&["--quick", "-o", "json"]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&report["kind"], &report["versions"]["etcd"]), (&"BenchReport".into(), &Value::Null));
    assert!(report["warning"].as_str().unwrap().contains("mean nothing"), "{stdout}");
    let sections = report["sections"].as_array().unwrap();
    assert_eq!(sections.len(), 8);
    let figures: Vec<&Value> = sections.iter().flat_map(|section| section["figures"].as_array().unwrap()).collect();
    for number in 1..=9 {
        let of = |figure: &&&Value| figure["number"] == format!("Q{number}");
        let found = figures.iter().find(of).unwrap_or_else(|| panic!("nothing is said of Q{number}"));
        let rounds = found["servers"]["windlass"]["rounds"].as_array().unwrap();
        assert!(!rounds.is_empty() && rounds.iter().all(|round| round.as_f64().unwrap() > 0.0), "{found}");
    }
    let named = |measure: &str| figures.iter().find(|figure| figure["measure"].as_str().unwrap().starts_with(measure));
    assert_eq!(
        named("CPU of the server per create, 64").unwrap()["notCompared"],
        serde_json::json!(["etcd", "kube-apiserver"])
    );
    let lost = named("acknowledged writes that were lost").unwrap();
    assert_eq!(lost["servers"]["windlass"]["worst"], 0.0, "{lost}");
    for section in sections.iter().filter(|section| section["title"].as_str().unwrap().contains("urable")) {
        assert!(section["notes"][0].as_str().unwrap().contains("synced, before it is acknowledged"), "{section}");
    }
}

#[test]
fn a_person_gets_a_table_of_what_was_asked_for() {
    let (code, stdout, stderr) = bench(&["fork", "--quick"]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let headings: Vec<&str> = stdout.lines().filter(|line| line.starts_with("### ")).collect();
    assert_eq!(headings, ["### Fork of a server with 10,000 objects"], "{stdout}");
    let (code, stdout, stderr) = bench(&["speed"]);
    assert_eq!((code, &*stdout), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("memory, operations, fork, durable, list, watch, start, recovery"), "{stderr}");
}

/// A World's clusters, reached by their kubeconfigs and their etcd through a forwarded port, by a process that runs nothing but the
/// controllers: it brings a cluster to its next release, and says how often it asked whom.
#[test]
fn controllers_in_a_process_of_their_own_upgrade_a_cluster_and_are_measured() {
    let (code, stdout, stderr) = run(&["controller", "--quick", "-o", "json"]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert!(report["warning"].as_str().unwrap().contains("mean nothing"), "{stdout}");
    let figures = report["sections"][0]["figures"].as_array().unwrap();
    for number in ["Q15", "Q16", "Q17"] {
        let of: Vec<&Value> = figures.iter().filter(|figure| figure["number"] == number).collect();
        assert!(!of.is_empty(), "nothing is said of {number}: {stdout}");
        for figure in of {
            let rounds = figure["servers"]["windlass"]["rounds"].as_array().unwrap();
            assert!(rounds.iter().all(|round| round.as_f64().unwrap() > 0.0), "{figure}");
        }
    }
    let notes = report["sections"][0]["notes"].as_array().unwrap();
    let said = "Not measured on kube-apiserver: KUBEBUILDER_ASSETS is not set.";
    assert!(notes.iter().any(|note| note == said), "{notes:?}");
    let (code, stdout, stderr) = run(&["controller", "--on", "kube", "--quick"]);
    assert_eq!((code, &*stdout), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("KUBEBUILDER_ASSETS is not set") && stderr.contains("--on embedded"), "{stderr}");
}
