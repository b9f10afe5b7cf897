//! A server of one's own with the same objects: what a rehearsal begins with.

use windlass_apiserver::Options;
use windlass_reference::Error;

use super::measure::thread_cpu;
use super::report::{Figure, Section, Server, Unit};
use super::{Scale, embedded};

const OBJECTS: usize = 10_000;

pub async fn measure(scale: Scale) -> Result<Section, Error> {
    let server = embedded::filled(scale.of(OBJECTS)).await?;
    let mut cpu = Figure::new(None, "CPU of a fork", Unit::Seconds);
    for counts in scale.rounds() {
        let before = thread_cpu()?;
        let fork = server.fork(Options::default());
        if counts {
            cpu.push(Server::Windlass, thread_cpu()? - before);
        }
        drop(fork);
    }
    Ok(Section::new("Fork of a server with 10,000 objects", vec![cpu], &[]))
}
