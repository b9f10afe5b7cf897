//! Q9, and the second half of Q8: killed under load, and started again on what was kept.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::{StreamExt as _, TryStreamExt as _};
use tokio::time::Instant;
use windlass_reference::Error;

use super::Scale;
use super::report::{Aim, Figure, Section, Server, Unit};
use super::side::{Client, DURABILITY, Side};
use super::up::Keeps;

const OBJECTS: usize = 100_000;
/// Writes that are under way at once while a server is filled.
const AT_ONCE: usize = 64;
/// Who writes when it is killed.
const CLIENTS: usize = 8;
/// It is killed when so many writes have been acknowledged, and a few more in each round: never at the same place.
const WRITES: usize = 400;
const MORE: usize = 37;

pub async fn measure(scale: Scale) -> Result<Section, Error> {
    let objects = scale.of(OBJECTS);
    let mut sides = Side::that_can_be_killed(Keeps::OnDisk).await?;
    for side in &mut sides {
        let clients = side.clients(CLIENTS).await?;
        let write = |number: usize| {
            let client = clients.get(number % CLIENTS);
            async move { client.ok_or("a connection for each")?.create(number).await }
        };
        let filling = futures::stream::iter((0..objects).map(write)).buffer_unordered(AT_ONCE);
        filling.try_for_each(|()| async { Ok(()) }).await?;
    }
    let mut again =
        Figure::new(Some("Q9"), format!("killed with {objects} objects, to the first answer"), Unit::Seconds)
            .aim(Aim::AtMost(0.5))
            .aim(Aim::TimesBetter { than: Server::Etcd, times: 1.0 });
    let mut lost = Figure::new(Some("Q9"), "acknowledged writes that were lost", Unit::Losses).aim(Aim::AtMost(0.0));
    let mut next = objects;
    for (round, counts) in scale.rounds().enumerate() {
        for side in &mut sides {
            let acknowledged = under_load(side, next, WRITES + MORE * round).await?;
            let began = Instant::now();
            side.start_again().await?;
            let client = side.client().await?;
            let mut losses = usize::from(!client.has(0).await?);
            let took = began.elapsed().as_secs_f64();
            for number in acknowledged {
                losses += usize::from(!client.has(number).await?);
            }
            if counts {
                again.push(side.server(), took);
            }
            lost.push(side.server(), losses as f64);
        }
        next += 10 * (WRITES + MORE * round);
    }
    Ok(Section::new("Killed under load, and started again", vec![again, lost], &[Server::Etcd])
        .note(DURABILITY)
        .note("kill -9 while 8 clients write. Tests kill it a thousand times, see docs/performance.md: this is for the time that it takes."))
}

/// Writes until so many have been acknowledged, and kills the server in the middle of the next ones. What was acknowledged.
async fn under_load(side: &mut Side, first: usize, enough: usize) -> Result<Vec<usize>, Error> {
    let next = Rc::new(Cell::new(first));
    let acknowledged: Rc<RefCell<Vec<usize>>> = Rc::default();
    let mut writing = Vec::with_capacity(CLIENTS);
    for client in side.clients(CLIENTS).await? {
        writing.push(tokio::task::spawn_local(write(client, Rc::clone(&next), Rc::clone(&acknowledged))));
    }
    while acknowledged.borrow().len() < enough {
        if writing.iter().all(tokio::task::JoinHandle::is_finished) {
            return Err("nobody can write any more".into());
        }
        tokio::task::yield_now().await;
    }
    side.kill();
    for client in writing {
        client.await?;
    }
    Ok(acknowledged.take())
}

/// One client, until nobody answers.
async fn write(client: Client, next: Rc<Cell<usize>>, acknowledged: Rc<RefCell<Vec<usize>>>) {
    loop {
        let number = next.replace(next.get() + 1);
        if client.create(number).await.is_err() {
            return;
        }
        acknowledged.borrow_mut().push(number);
    }
}
