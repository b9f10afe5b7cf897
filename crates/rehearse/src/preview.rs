//! The first plan of an update: what the controllers would do, asked of them in a fork of a World, without letting them do it.

mod topology;

use windlass_controller::classic::preview as classic;
use windlass_controller::reconcile::preview::{Preview, PreviewError, preview as look};
use windlass_plan::gate::Gates;
use windlass_runtime::virtual_time::run_virtual;
use windlass_sim::world::{self, World};

use crate::assembly::{Assembly, Settings};
use crate::drive::Drive;
use crate::rehearsal::ask::{Answer, Ask, ask};
use crate::rehearsal::{self, Request, Wish};

pub use topology::{ClassPreview, PackageChange};

/// What the controllers would do, or why they would not begin.
#[derive(Debug, Clone, PartialEq)]
pub enum Foreseen {
    /// They would begin with this.
    Planned(Box<Preview>),
    /// They would take it all away: this is what there is.
    Deleted(Box<Preview>),
    /// They would do this to a cluster of a class.
    OfClass(Box<ClassPreview>),
    /// The API would not accept the wish.
    Refused {
        /// Why not.
        why: String,
    },
}

/// A preview that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The World could not be asked.
    #[error(transparent)]
    World(#[from] rehearsal::Error),
    /// The controllers could not tell.
    #[error("ask the controllers what they would do")]
    Preview(#[source] Box<PreviewError>),
    /// The same, of a classic cluster.
    #[error("ask the controllers what they would do")]
    ByLabel(#[source] Box<classic::PreviewError>),
}

/// A classic cluster. What becomes of one that is deleted is Cluster API's alone.
async fn by_label(assembly: &Assembly, request: &Request) -> Result<Foreseen, Error> {
    if request.ask == Wish::Delete {
        let why = "Cluster API alone deletes a cluster whose release is a label".to_owned();
        return Ok(Foreseen::Refused { why });
    }
    let asked = ask(assembly.world(), &request.cluster, Drive::Label, &Ask::Change(&request.ask)).await?;
    if let Answer::Refused { why } = asked {
        return Ok(Foreseen::Refused { why });
    }
    let seen = classic::preview(assembly.controllers(), &request.cluster).await;
    let seen = seen.map_err(|error| Error::ByLabel(Box::new(error)))?;
    Ok(Foreseen::Planned(Box::new(seen)))
}

/// Asks for something in a fork of a World, and the controllers what they would do then. Of the request, cluster, wish, seed,
/// time and gates are used. Not to be called from inside of a runtime.
pub fn preview(start: &World, request: &Request) -> Result<Foreseen, Error> {
    let foreseen = run_virtual(request.seed, request.at, |time| async move {
        let settings = world::Settings { clock: time.clock, seed: time.seed, ..start.settings().clone() };
        let world = start.fork(settings);
        let gates = Gates::without(&request.without_gates);
        let drive = Drive::of(&world, &request.cluster, request.hold_by);
        let (classes, labels) = (drive.classes(), drive.is_label());
        let settings = Settings { gates, classes, labels, ..Settings::rehearsal(&world) };
        let assembly = Assembly::new(world, settings);
        match drive {
            Drive::Machines => {}
            Drive::Topology(_) => return Box::pin(topology::preview(&assembly, request, drive)).await,
            Drive::Label => return by_label(&assembly, request).await,
        }
        // What is being deleted is not planned for any more: what there is to delete is seen before.
        let deletes = request.ask == Wish::Delete;
        let wish = if deletes { &Wish::Nothing } else { &request.ask };
        let asked = ask(assembly.world(), &request.cluster, drive, &Ask::Change(wish)).await?;
        if let Answer::Refused { why } = asked {
            return Ok(Foreseen::Refused { why });
        }
        let seen = look(assembly.controllers(), &request.cluster).await;
        let seen = Box::new(seen.map_err(|error| Error::Preview(Box::new(error)))?);
        Ok(if deletes { Foreseen::Deleted(seen) } else { Foreseen::Planned(seen) })
    });
    foreseen.map_err(rehearsal::Error::Begin)?
}
