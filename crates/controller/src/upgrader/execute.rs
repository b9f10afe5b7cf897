//! One step, done.
//!
//! Whoever executes makes no choices. Where something is not as it was when the step was decided, nothing is done, and the
//! next look tells what is.

use windlass_plan::roll::{Preparation, RollStep};

use super::attempt::Attempt;
use super::observe::Sight;
use super::prepare::{self, certificates, kubeadm};
use super::replacement::Place;
use super::write::{self, Deleted};
use super::{Error, mark, replacement};
use crate::access::EtcdError;

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Done,
    /// Something had changed meanwhile: it has to be decided anew.
    Changed,
}

/// Does one step, and lets the sight know what it has changed.
pub async fn step(attempt: &Attempt<'_>, sight: &mut Sight<'_>, step: &RollStep) -> Result<Outcome, Error> {
    match step {
        RollStep::OwnCertificate { secret } => {
            certificates::own(attempt, *secret).await?;
            sight.owned(*secret);
        }
        RollStep::Prepare { preparation } => {
            prepare::prepare(attempt, *preparation).await?;
            sight.did_prepare(*preparation);
        }
        RollStep::ForgetEndpoint { node } => {
            kubeadm::forget(attempt, node).await?;
            sight.forgot(node);
        }
        RollStep::Mark { machine, base } => {
            let marked = mark::set(attempt, sight.machine(machine)?.clone(), base).await?;
            sight.wrote_machine(marked)?;
        }
        RollStep::Unmark { machine } => {
            let unmarked = mark::remove(attempt, sight.machine(machine)?.clone()).await?;
            sight.wrote_machine(unmarked)?;
        }
        RollStep::CreateInfrastructure { original, name } => {
            let place = Place::new(sight.machine(original)?, name)?;
            sight.parts(name).infrastructure = replacement::create_infrastructure(attempt, &place).await?;
        }
        RollStep::CreateConfiguration { original, name } => {
            let place = Place::new(sight.machine(original)?, name)?;
            sight.parts(name).configuration = replacement::create_configuration(attempt, &place).await?;
        }
        RollStep::CreateMachine { original, name } => {
            let place = Place::new(sight.machine(original)?, name)?;
            match replacement::create_machine(attempt, &place).await? {
                Some(machine) => sight.wrote_machine(machine)?,
                None => sight.machines_changed(),
            }
            sight.made(name);
        }
        RollStep::DeletePart { machine, part } => {
            let state = replacement::delete(attempt, machine, *part).await?;
            sight.deleted(machine, *part, state);
        }
        RollStep::RestoreKubeadmConfig => {
            prepare::prepare(attempt, Preparation::KubeadmConfig).await?;
            sight.did_prepare(Preparation::KubeadmConfig);
        }
        RollStep::MoveLeader { to } => {
            let moved = attempt.workload.etcd.move_leader(*to).await;
            moved.map_err(failed(attempt, &format!("make {} lead", sight.member(*to))))?;
            sight.leader_changed();
        }
        RollStep::RemoveMember { id } => {
            let removed = attempt.workload.etcd.remove(*id).await;
            removed.map_err(failed(attempt, &format!("remove the member {}", sight.member(*id))))?;
            sight.member_removed();
        }
        RollStep::DeleteMachine { machine, expect } => {
            match write::delete(&attempt.machines(), machine.as_str(), expect).await? {
                Deleted::Leaving(live) => sight.leaves(*live)?,
                Deleted::Gone => sight.gone(),
                Deleted::Changed => {
                    sight.machines_changed();
                    return Ok(Outcome::Changed);
                }
            }
        }
    }
    Ok(Outcome::Done)
}

/// What etcd answered to an attempt.
fn failed(attempt: &Attempt<'_>, doing: &str) -> impl FnOnce(EtcdError) -> Error {
    let attempt = format!("{doing} in the etcd of {}", attempt.cluster);
    |source| Error::Etcd { attempt, source }
}
