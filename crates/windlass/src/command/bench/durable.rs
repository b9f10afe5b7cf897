//! Q1 and Q2: what a write costs that is kept, with few and with many clients.

use std::cell::Cell;

use futures::future::try_join_all;
use tokio::time::Instant;
use windlass_reference::Error;

use super::Scale;
use super::measure::process_cpu;
use super::report::{Aim, Figure, Section, Server, Unit};
use super::side::{self, Client, DURABILITY, Side};
use super::up::Keeps;

/// How many clients, each with a connection of its own, and how many writes of all together in a round.
const CLIENTS: [(usize, usize); 3] = [(1, 200), (8, 1_600), (64, 6_400)];

pub async fn measure(scale: Scale) -> Result<Section, Error> {
    let mut sides = Side::all(Keeps::OnDisk).await?;
    side::pin(&sides);
    let mut figures = Vec::new();
    let mut next = 0;
    for (clients, writes) in CLIENTS {
        let each = (scale.of(writes) / clients).max(1);
        figures.extend(of(&mut sides, clients, each, scale, &mut next).await?);
    }
    let title = "Durable creates of objects of 1 KiB, over loopback";
    Ok(Section::new(title, figures, &[Server::Etcd, Server::KubeApiserver]).note(DURABILITY).note(
        "Each client sends its next write when the one before is acknowledged. CPU is that of the server's processes, all \
         of which share one core. ConfigMaps as JSON; etcd gets the same bytes as a value.",
    ))
}

async fn of(
    sides: &mut [Side],
    clients: usize,
    each: usize,
    scale: Scale,
    next: &mut usize,
) -> Result<Vec<Figure>, Error> {
    let who = if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") };
    let figure = |number, measure: &str, unit| Figure::new(number, format!("{measure}, {who}"), unit);
    let mut cpu = figure(Some("Q1"), "CPU of the server per create", Unit::Seconds);
    let mut rate = figure(Some("Q2"), "creates", Unit::PerSecond);
    if CLIENTS.last().is_some_and(|(most, _)| *most == clients) {
        cpu = cpu.aim(Aim::TimesBetter { than: Server::Etcd, times: 3.0 });
        cpu = cpu.aim(Aim::TimesBetter { than: Server::KubeApiserver, times: 10.0 });
        rate = rate.aim(Aim::TimesBetter { than: Server::Etcd, times: 2.0 });
        rate = rate.aim(Aim::TimesBetter { than: Server::KubeApiserver, times: 8.0 });
    }
    let mut p50 = figure(None, "a create takes, p50", Unit::Seconds);
    let mut p99 = figure(None, "a create takes, p99", Unit::Seconds);
    let mut connected = Vec::new();
    for side in sides.iter_mut() {
        connected.push(side.clients(clients).await?);
    }
    for counts in scale.rounds() {
        for (side, clients) in sides.iter().zip(&connected) {
            let round = round(side, clients, each, *next).await?;
            if counts {
                let (server, writes) = (side.server(), round.took.len() as f64);
                cpu.push(server, round.cpu / writes);
                rate.push(server, writes / round.wall);
                p50.push(server, quantile(&round.took, 50));
                p99.push(server, quantile(&round.took, 99));
            }
        }
        *next += clients * each;
    }
    Ok(vec![cpu, rate, p50, p99])
}

struct Round {
    cpu: f64,
    wall: f64,
    /// How long each write took, the shortest first.
    took: Vec<f64>,
}

/// All clients create objects, whose numbers begin at `first`.
async fn round(side: &Side, clients: &[Client], each: usize, first: usize) -> Result<Round, Error> {
    let next = Cell::new(first);
    let pids = side.pids();
    let (began, before) = (Instant::now(), process_cpu(&pids)?);
    let writing = clients.iter().map(async |client| {
        let mut took = Vec::with_capacity(each);
        for _ in 0..each {
            let began = Instant::now();
            client.create(next.replace(next.get() + 1)).await?;
            took.push(began.elapsed().as_secs_f64());
        }
        Ok::<_, Error>(took)
    });
    let mut took = try_join_all(writing).await?.concat();
    let (wall, cpu) = (began.elapsed().as_secs_f64(), process_cpu(&pids)? - before);
    took.sort_by(f64::total_cmp);
    Ok(Round { cpu, wall, took })
}

/// That many hundredths of all are no longer than this. They are sorted.
pub fn quantile(sorted: &[f64], hundredths: usize) -> f64 {
    let at = (sorted.len() * hundredths).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}
