//! A member that has not started is removed only when no machine is left that could start it.
//!
//! Such a member has no name, so nobody can tell whose it is. Were it removed while its machine boots, the machine would come up
//! as a stranger; were the machine passed over, the member would count for ever.

use super::Blocked;
use crate::inventory::{EtcdMember, Machine, MachineState};

/// Refuses to remove a member that has not started while a machine is there whose membership is not known.
pub fn membership_known(machines: &[Machine], members: &[EtcdMember], leaving: u64) -> Option<Blocked> {
    members.iter().find(|member| member.id == leaving && member.name.is_empty())?;
    let is_unknown = |machine: &&Machine| {
        matches!(machine.state, MachineState::Joining { .. } | MachineState::Deleting { node: None })
    };
    let unknown = machines.iter().find(is_unknown)?;
    Some(Blocked::EtcdMembershipUnknown { machine: unknown.name.clone() })
}
