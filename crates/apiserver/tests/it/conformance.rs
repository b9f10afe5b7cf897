//! The conformance table: request sequences and their answers, recorded from a real API server and reviewed.
//!
//! Each file in `tests/conformance` is a topic. The same cases run in-process, over HTTPS, and on a real `kube-apiserver` when
//! `KUBEBUILDER_ASSETS` names a folder with it and with `etcd`; `UPDATE_CONFORMANCE=1` then records its answers anew.
//! `CONFORMANCE=word` picks the cases whose file or title has that word.

mod differences;
pub mod embedded;
pub mod hooks;
mod mask;
mod path;
pub mod run;
pub mod script;
mod show;
pub mod transport;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use futures::StreamExt as _;
use similar::TextDiff;

use differences::Difference;
use run::Seen;
use script::{Case, Expect, Mark, Script};
use transport::{Transport, WithHooks};
use windlass_reference::server::RealServer;

/// A real server answers most of a case by waiting for etcd.
const AT_ONCE: usize = 8;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

fn scripts() -> Vec<Script> {
    let mut names: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| {
        path.extension().is_some_and(|x| x == "txt") && path.file_stem().is_some_and(|x| x != "differences")
    });
    names.sort();
    let read = |path: &PathBuf| {
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap();
        Script::parse(name, &std::fs::read_to_string(path).unwrap()).unwrap_or_else(|why| panic!("{why}"))
    };
    names.iter().map(read).collect()
}

fn known_differences() -> Vec<Difference> {
    let text = std::fs::read_to_string(folder().join("differences.txt")).unwrap();
    differences::parse(&text).unwrap_or_else(|why| panic!("{why}"))
}

fn picked(script: &Script, case: &Case) -> bool {
    std::env::var("CONFORMANCE").map_or(true, |word| script.name.contains(&word) || case.title.contains(&word))
}

/// The cases to run, numbered: the number stays the same whichever are picked.
fn picked_cases(scripts: &[Script]) -> Vec<Numbered<'_>> {
    let all = scripts.iter().flat_map(|script| script.cases.iter().map(move |case| (script, case)));
    all.enumerate().map(|(n, (script, case))| (n, script, case)).filter(|(_, s, c)| picked(s, c)).collect()
}

/// What a case did otherwise than expected, in words; empty when nothing.
fn complaints(script: &Script, case: &Case, seen: &Outcome, known: &[Difference]) -> String {
    let mut out = String::new();
    let seen = match seen {
        Ok(seen) => seen,
        Err(why) => return format!("{}: {}\n  {why}\n", script.name, case.title),
    };
    for answer in seen {
        let step = &case.steps[answer.step];
        let Some(real) = &step.expect else { continue };
        let is_this = |d: &&Difference| d.script == script.name && d.title == case.title && d.step == answer.step + 1;
        let difference = known.iter().find(is_this);
        let expect = difference.map_or(real, |difference| &difference.expect);
        let (want, got) = (expected(expect), format!("{}\n{}", head(answer.code), answer.text));
        if want != got {
            let diff = TextDiff::from_lines(&want, &got).unified_diff().context_radius(100).to_string();
            writeln!(out, "{}.txt:{}: {}\n{diff}", script.name, step.line + 1, case.title).unwrap();
        } else if difference.is_some() && want == expected(real) {
            writeln!(
                out,
                "{}.txt:{}: {}\n  no longer differs: strike it from differences.txt",
                script.name,
                step.line + 1,
                case.title
            )
            .unwrap();
        }
    }
    out
}

fn head(code: Option<u16>) -> String {
    code.map_or_else(|| "frames".to_owned(), |code| code.to_string())
}

fn expected(expect: &Expect) -> String {
    format!("{}\n{}", head(expect.code), expect.text)
}

fn report(complaints: &[String], cases: usize) {
    let failed = complaints.iter().filter(|text| !text.is_empty()).count();
    assert!(failed == 0, "{}\n{failed} of {cases} cases differ", complaints.concat());
}

#[test]
fn every_known_difference_is_about_a_step_that_exists() {
    let scripts = scripts();
    for known in known_differences() {
        let script = scripts.iter().find(|script| script.name == known.script);
        let case = script.and_then(|script| script.cases.iter().find(|case| case.title == known.title));
        let step = case.and_then(|case| case.steps.get(known.step - 1)).and_then(|step| step.expect.as_ref());
        assert!(step.is_some(), "differences.txt: {}: {}: step {}", known.script, known.title, known.step);
    }
}

#[test]
fn every_title_is_used_once() {
    let scripts = scripts();
    let mut titles: Vec<&str> =
        scripts.iter().flat_map(|script| &script.cases).map(|case| case.title.as_str()).collect();
    titles.sort_unstable();
    let twice: Vec<&[&str]> = titles.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn our_server_in_process_answers_as_recorded() {
    let scripts = scripts();
    let known = known_differences();
    let mut cases = picked_cases(&scripts);
    cases.retain(|(.., case)| !case.is(Mark::Listener));
    let run = |(n, _, case): &Numbered<'_>| {
        // Each case has a server and a clock of its own: nothing waits, and no case sees another.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async { run::case(case, *n, &embedded::InProcess::new(case.controlled())).await })
    };
    let seen: Vec<Outcome> = cases.iter().map(run).collect();
    compare(&cases, &seen, &known);
}

#[test]
fn our_server_answers_over_https_as_recorded() {
    let scripts = scripts();
    let known = known_differences();
    let mut cases = picked_cases(&scripts);
    cases.retain(|(.., case)| !case.is(Mark::Slow));
    cases.sort_by_key(|(.., case)| case.controlled());
    let (with, without): (Vec<_>, Vec<_>) = cases.iter().partition(|(.., case)| case.controlled());
    let seen = runtime().block_on(async {
        let mut seen = all(&without, &embedded::over_https(false).await.unwrap()).await;
        seen.extend(all(&with, &embedded::over_https(true).await.unwrap()).await);
        seen
    });
    compare(&cases, &seen, &known);
}

#[test]
fn a_real_server_answers_as_recorded() {
    let Some(assets) = windlass_reference::assets() else {
        eprintln!("skipped: KUBEBUILDER_ASSETS names no folder with kube-apiserver and etcd");
        return;
    };
    let scripts = scripts();
    let mut cases = picked_cases(&scripts);
    cases.retain(|(.., case)| case.only_embedded.is_none());
    // The controllers also act on what other cases make, so that these get a server of their own.
    cases.sort_by_key(|(.., case)| case.is(Mark::Controllers));
    let (with, without): (Vec<_>, Vec<_>) = cases.iter().partition(|(.., case)| case.is(Mark::Controllers));
    let mut seen = runtime().block_on(on_a_real_server(&assets, &without, false));
    if windlass_reference::has_controllers(&assets) {
        seen.extend(runtime().block_on(on_a_real_server(&assets, &with, true)));
    } else {
        eprintln!("skipped: {} cases need kube-controller-manager in KUBEBUILDER_ASSETS", with.len());
    }
    if std::env::var_os("UPDATE_CONFORMANCE").is_some_and(|update| update == "1") {
        return record(&scripts, &cases, &seen);
    }
    compare(&cases, &seen, &[]);
}

/// A case with its number and its file.
type Numbered<'a> = (usize, &'a Script, &'a Case);
type Outcome = Result<Vec<Seen>, String>;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn on_a_real_server(assets: &Path, cases: &[&Numbered<'_>], controllers: bool) -> Vec<Outcome> {
    if cases.is_empty() {
        return Vec::new();
    }
    let (_server, https) = RealServer::start(assets, controllers).await.unwrap_or_else(|why| panic!("{why}"));
    all(cases, &WithHooks::listen(https).await.unwrap()).await
}

/// Runs cases on one server, several at a time; a slow one holds up nobody.
async fn all(cases: &[&Numbered<'_>], transport: &dyn Transport) -> Vec<Outcome> {
    let running = futures::stream::iter(cases.iter().enumerate())
        .map(|(at, (n, _, case))| async move { (at, run::case(case, *n, transport).await) })
        .buffer_unordered(AT_ONCE);
    let mut ran: Vec<(usize, Outcome)> = running.collect().await;
    ran.sort_by_key(|(at, _)| *at);
    ran.into_iter().map(|(_, outcome)| outcome).collect()
}

fn compare(cases: &[Numbered<'_>], seen: &[Outcome], known: &[Difference]) {
    let complaints: Vec<String> =
        cases.iter().zip(seen).map(|((_, script, case), seen)| complaints(script, case, seen, known)).collect();
    report(&complaints, seen.len());
}

fn record(scripts: &[Script], cases: &[Numbered<'_>], seen: &[Outcome]) {
    let mut broken = Vec::new();
    for script in scripts {
        let mut answers = Vec::new();
        for ((_, owner, case), seen) in cases.iter().zip(seen) {
            if owner.name != script.name {
                continue;
            }
            match seen {
                Err(why) => broken.push(format!("{}: {}: {why}\n", script.name, case.title)),
                Ok(seen) => answers.extend(seen.iter().filter_map(|answer| {
                    let expect = case.steps[answer.step].expect.as_ref()?;
                    Some((expect, answer.code, answer.text.clone()))
                })),
            }
        }
        if !answers.is_empty() {
            std::fs::write(folder().join(format!("{}.txt", script.name)), script.rewritten(answers)).unwrap();
        }
    }
    report(&broken, cases.len());
}
