//! What it costs to create and to roll many clusters of plain Cluster API objects in one World: 3+10 machines each, by
//! `KubeadmControlPlane` and `MachineDeployment`.
//!
//! `cargo bench -p windlass-sim --bench fleet` for 10 and 100 clusters; `-- 100 1000` for other numbers. Each number is run in a
//! process of its own, so that its memory is its own. Growth is processor time for each cluster, against the smallest number.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench prints its figures, reads the clock on the wall, and ends where there are none"
)]

#[path = "../tests/it/plain.rs"]
mod plain;

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use kube::Client;
use serde_json::{Value, json};
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::door::Inside;
use windlass_sim::durations::Durations;
use windlass_sim::fault::Scenario;
use windlass_sim::program::{Container, Exit, Programs};
use windlass_sim::world::{Settings, World};

use plain::Size;

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Of `/proc/self/stat`: Linux has counted in hundredths of a second since 2.4, whatever the kernel's own tick is.
const TICKS_A_SECOND: u64 = 100;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [flag, clusters] = arguments.as_slice()
        && flag == "--run"
    {
        println!("{}", run(clusters.parse().unwrap()));
        return;
    }
    let mut counts: Vec<u32> = arguments.iter().map(|argument| argument.parse().unwrap()).collect();
    if counts.is_empty() {
        counts = vec![10, 100];
    }
    println!(
        "{:>8} {:<7} {:>8} {:>8} {:>12} {:>8} {:>10} {:>14} {:>12} {:>8}",
        "clusters", "", "wall, s", "CPU, s", "CPU/cluster", "growth", "virtual, s", "virtual/wall", "writes", "MB"
    );
    let mut smallest: Option<[f64; 2]> = None;
    for count in counts {
        let output =
            Command::new(std::env::current_exe().unwrap()).args(["--run", &count.to_string()]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
        let each = ["create", "roll"].map(|phase| figures[phase]["cpu"].as_f64().unwrap() / f64::from(count));
        let base = *smallest.get_or_insert(each);
        for (at, phase) in ["create", "roll"].into_iter().enumerate() {
            let figure = |name: &str| figures[phase][name].as_f64().unwrap();
            println!(
                "{count:>8} {phase:<7} {:>8.1} {:>8.1} {:>12.3} {:>8.2} {:>10.0} {:>14.0} {:>12} {:>8.0}",
                figure("wall"),
                figure("cpu"),
                each[at],
                each[at] / base[at],
                figure("virtual"),
                figure("virtual") / figure("wall"),
                figures[phase]["writes"],
                figures[phase]["memory"].as_f64().unwrap() / 1e6,
            );
        }
    }
}

/// Nothing is run in pods here.
struct NoPrograms;

impl Programs for NoPrograms {
    fn run(&self, container: Container) -> BoxFuture<'static, Exit> {
        Box::pin(std::future::ready(Exit { code: 127, message: format!("{:?}: not found", container.command) }))
    }
}

/// Creates and rolls so many clusters, and tells what that took.
fn run(clusters: u32) -> Value {
    let base = "2026-01-01T00:00:00Z".parse().unwrap();
    run_virtual(Seed(1), base, |time| async move {
        let settings = Settings {
            clock: time.clock,
            seed: time.seed,
            durations: Durations::default(),
            faults: Scenario::default(),
        };
        let world = World::new(settings).await.unwrap();
        let doors = Arc::new(Inside { seed: Seed(1) });
        let body = async {
            let created = measured(&world, create(&world.client(), clusters)).await;
            let rolled = measured(&world, roll(&world.client(), clusters)).await;
            json!({"create": created, "roll": rolled})
        };
        tokio::select! {
            biased;
            figures = body => {
                let violations = world.recorder().violations();
                assert!(violations.is_empty(), "{violations:#?}");
                figures
            }
            () = world.run(Arc::new(NoPrograms), doors, std::future::pending()) => panic!("the World came to an end"),
        }
    })
    .unwrap()
}

/// What something takes.
async fn measured(world: &World, body: impl Future<Output = ()>) -> Value {
    let clock = &world.settings().clock;
    let (wall, cpu_before, virtual_before) = (Instant::now(), cpu(), clock.now());
    let writes_before = world.recorder().writes();
    body.await;
    json!({
        "wall": wall.elapsed().as_secs_f64(),
        "cpu": cpu().saturating_sub(cpu_before).as_secs_f64(),
        "virtual": clock.now().duration_since(virtual_before).as_secs_f64(),
        "writes": world.recorder().writes() - writes_before,
        "memory": resident(),
    })
}

const SIZE: Size = Size { control_plane: 3, workers: 10 };

fn name(number: u32) -> String {
    format!("c{number:04}")
}

async fn create(client: &Client, clusters: u32) {
    for number in 0..clusters {
        plain::create(client, &name(number), SIZE).await;
    }
    plain::settled(client, clusters as usize, SIZE, plain::FROM).await;
}

async fn roll(client: &Client, clusters: u32) {
    for number in 0..clusters {
        plain::raise_control_plane(client, &name(number)).await;
    }
    plain::control_planes_settled(client, clusters as usize, SIZE, plain::TO).await;
    for number in 0..clusters {
        plain::raise_workers(client, &name(number)).await;
    }
    plain::settled(client, clusters as usize, SIZE, plain::TO).await;
}

/// The processor time of this process so far, in user and kernel mode.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name in the second field may contain spaces; the fields after its parenthesis begin with the third.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11..=12].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 1000 / TICKS_A_SECOND)
}

/// The most memory that this process has had, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
