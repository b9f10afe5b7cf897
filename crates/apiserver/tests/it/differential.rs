//! Random request sequences on a real server and on ours: the answers must be the same.
//!
//! They run only when `KUBEBUILDER_ASSETS` names a folder with `kube-apiserver` and `etcd`. `DIFFERENTIAL_SEED` is the first seed
//! and `DIFFERENTIAL_CASES` the number of sequences. A sequence that is answered otherwise is cut down to the steps it needs, and
//! printed with the real server's answers in the language of the conformance table: paste it there under a title that says
//! what it shows.

mod fields;
mod generate;

use std::fmt::Write as _;
use std::sync::LazyLock;

use futures::StreamExt as _;
use regex::Regex;
use similar::TextDiff;

use crate::conformance::embedded::InProcess;
use crate::conformance::run::{self, Runner, Seen};
use crate::conformance::script::Script;
use crate::conformance::transport::{Https, Transport};
use generate::Generator;
use windlass_reference::server::RealServer;

const SEED: u64 = 1;
const CASES: u64 = 40;
const AT_ONCE: usize = 6;
const GROUP: &str = "differential.example.com";
/// A sequence is cut down by trying; each try is a run on both servers.
const TRIES_MAX: usize = 60;

/// A sequence: its steps as text, and what was seen.
struct Sequence {
    seed: u64,
    blocks: Vec<String>,
}

impl Sequence {
    fn script(&self) -> Script {
        let text = format!("### Sequence {}\n\n{}\n", self.seed, self.blocks.join("\n\n"));
        Script::parse("differential", &text).unwrap_or_else(|why| panic!("{why}\n{text}"))
    }
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn our_server_answers_random_sequences_as_a_real_one() {
    let Some(assets) = windlass_reference::assets() else {
        eprintln!("skipped: KUBEBUILDER_ASSETS names no folder with kube-apiserver and etcd");
        return;
    };
    let (first, cases) = (number("DIFFERENTIAL_SEED", SEED), number("DIFFERENTIAL_CASES", CASES));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_server, https) = runtime.block_on(RealServer::start(&assets, false)).unwrap_or_else(|why| panic!("{why}"));
    let https = &https;
    let running =
        futures::stream::iter(first..first + cases).map(|seed| generated(seed, https)).buffer_unordered(AT_ONCE);
    let sequences: Vec<(Sequence, Vec<Seen>)> = runtime.block_on(running.collect());
    let mut failures = Vec::new();
    let mut namespaces = usize::try_from(cases).unwrap();
    for (sequence, real) in &sequences {
        let Some(_) = difference(sequence, real, &ours(sequence)) else { continue };
        // A second that ends in between changes the order of managed fields.
        let mut again = |sequence: &Sequence| {
            namespaces += 1;
            let real = runtime.block_on(on(sequence, https, namespaces)).ok()?;
            difference(sequence, &real, &ours(sequence)).map(|text| (text, real))
        };
        if let Some((small, text)) = reduced(sequence, &mut again) {
            failures.push(format!("{text}\n{small}"));
        }
    }
    assert!(failures.is_empty(), "{}\n{} of {cases} sequences differ", failures.join("\n"), failures.len());
}

/// Makes up a sequence while a real server answers it.
async fn generated(seed: u64, https: &Https) -> (Sequence, Vec<Seen>) {
    let mut generator = Generator::new(seed);
    let namespace = usize::try_from(seed).unwrap() + 100_000;
    let mut runner = Runner::sharing_group(https, namespace, GROUP);
    runner.make_namespace().await.unwrap_or_else(|why| panic!("{why}"));
    let mut sequence = Sequence { seed, blocks: Vec::new() };
    let mut answers = Vec::new();
    let mut next = generator.setup().map(str::to_owned).or_else(|| generator.next());
    let mut steps = 0;
    while let Some(block) = next.take() {
        let alone = Sequence { seed, blocks: vec![block.clone()] }.script();
        let mut answered = false;
        for step in &alone.cases[0].steps {
            let outcome = runner.step(&step.action, step.expect.as_ref()).await;
            let outcome = outcome.unwrap_or_else(|why| panic!("sequence {seed}: {why}\n{block}"));
            answered |= outcome.is_some();
            answers.extend(outcome.map(|(code, text)| Seen { step: steps, code, text }));
            steps += 1;
        }
        sequence.blocks.push(block);
        next = answered.then(|| generator.learn(&runner.last)).flatten().or_else(|| generator.next());
    }
    (sequence, answers)
}

async fn on(sequence: &Sequence, transport: &dyn Transport, namespace: usize) -> Result<Vec<Seen>, String> {
    run::steps(&sequence.script().cases[0], Runner::sharing_group(transport, namespace, GROUP)).await
}

fn ours(sequence: &Sequence) -> Result<Vec<Seen>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(on(sequence, &InProcess::new(false), 0))
}

/// What the conformance table does not show: the names and versions of objects that were refused, and a Go struct that a
/// refused change of a pod prints.
static OWN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"web-[bcdfghjklmnpqrstvwxz2456789]{5}|resourceVersion(\\*":\\*"|:)[0-9]+|previously negative\)\\.*|Invalid value: \\*"\{\\.*\}\\*": "#)
        .unwrap()
});

fn show(seen: &Seen) -> String {
    let text = format!("{}\n{}\n", seen.code.unwrap_or_default(), seen.text);
    OWN.replace_all(&text, "<own>").into_owned()
}

/// The first step that was answered otherwise, in words.
fn difference(sequence: &Sequence, real: &[Seen], ours: &Result<Vec<Seen>, String>) -> Option<String> {
    let ours = match ours {
        Ok(ours) => ours,
        Err(why) => return Some(format!("sequence {}: our server: {why}", sequence.seed)),
    };
    let (real, ours) = real.iter().zip(ours).find(|(real, ours)| show(real) != show(ours))?;
    let (real_text, our_text) = (show(real), show(ours));
    let diff = TextDiff::from_lines(&real_text, &our_text).unified_diff().context_radius(4).to_string();
    Some(format!("sequence {}, step {}: - real, + ours\n{diff}", sequence.seed, real.step + 1))
}

/// The same difference with as few steps as can be found, with the real server's answers.
fn reduced(
    sequence: &Sequence,
    again: &mut impl FnMut(&Sequence) -> Option<(String, Vec<Seen>)>,
) -> Option<(String, String)> {
    let mut best = again(sequence)?;
    let mut blocks = sequence.blocks.clone();
    let mut tries = 0;
    let mut at = blocks.len();
    while at > 0 && tries < TRIES_MAX {
        at -= 1;
        if blocks[at].starts_with("> CRD") {
            continue;
        }
        let mut fewer = Sequence { seed: sequence.seed, blocks: blocks.clone() };
        fewer.blocks.remove(at);
        tries += 1;
        if let Some(found) = again(&fewer) {
            best = found;
            blocks = fewer.blocks;
        }
    }
    let script = Sequence { seed: sequence.seed, blocks }.script();
    let answers = best.1.iter().filter_map(|seen| {
        let expect = script.cases[0].steps[seen.step].expect.as_ref()?;
        Some((expect, seen.code, seen.text.clone()))
    });
    let mut text = String::new();
    writeln!(text, "{}", script.rewritten(answers.collect())).unwrap();
    Some((text, best.0))
}
