//! The arithmetic of etcd: who counts, who answers, who leads.

use std::collections::{BTreeMap, BTreeSet};

use windlass_api::name::NodeName;
use windlass_api::version::KubernetesVersion;
use windlass_apiserver::store::Store;

use super::record::{self, Machine, Member, Stage};
use super::trouble;
use super::{EtcdError, Member as Shown};

/// The members, and what they run on.
pub(super) struct Etcd {
    members: Vec<Member>,
    machines: BTreeMap<NodeName, Machine>,
    /// Those that do not reach the others.
    cut_off: BTreeSet<NodeName>,
}

impl Etcd {
    pub(super) fn read(store: &Store) -> Self {
        let members: Vec<Member> = record::all(store);
        let machines = members.iter().filter_map(|member| record::of::<Machine>(store, &member.name));
        let machines = machines.map(|machine| (machine.name.clone(), machine)).collect();
        Self { members, machines, cut_off: trouble::cut_off(store) }
    }

    fn healthy(&self, member: &Member) -> bool {
        let on = self.machines.get(&member.name).is_some_and(|machine| machine.on);
        member.started && on && !self.cut_off.contains(&member.name)
    }

    /// More than half of the voters answer.
    pub(super) fn has_quorum(&self) -> bool {
        self.keeps_quorum(None)
    }

    fn keeps_quorum(&self, without: Option<u64>) -> bool {
        let voters = || self.members.iter().filter(|member| !member.learner && Some(member.id) != without);
        let healthy = voters().filter(|member| self.healthy(member)).count();
        healthy > voters().count() / 2
    }

    /// Whether requests to the API are answered: by any API server.
    pub(super) fn api_answers(&self) -> bool {
        self.has_quorum() && self.members.iter().any(|member| self.serves(member))
    }

    /// The nodes whose API servers answer.
    pub(super) fn serving(&self) -> BTreeSet<NodeName> {
        let serving = self.members.iter().filter(|member| self.has_quorum() && self.serves(member));
        serving.map(|member| member.name.clone()).collect()
    }

    /// The versions of the API servers that answer.
    pub(super) fn api_servers(&self) -> impl Iterator<Item = &KubernetesVersion> {
        let serving = self.members.iter().filter(|member| self.has_quorum() && self.serves(member));
        serving.filter_map(|member| self.machines.get(&member.name)).map(|machine| &machine.kubelet)
    }

    /// Whether the API server beside a member has somebody to ask: it asks this one, and no other.
    fn serves(&self, member: &Member) -> bool {
        let joined = self.machines.get(&member.name).is_some_and(|machine| machine.stage == Stage::Done);
        self.healthy(member) && !member.learner && joined
    }

    /// Whether a member may be added: one change at a time, and only while all who are there answer, as etcd demands unless it
    /// is told otherwise (`--strict-reconfig-check`).
    pub(super) fn may_add(&self) -> bool {
        self.members.iter().all(|member| self.healthy(member) && !member.learner)
    }

    /// As etcd's own API shows the members.
    pub(super) fn shown(&self) -> Result<Vec<Shown>, EtcdError> {
        self.check_quorum()?;
        let shown = |member: &Member| Shown {
            id: member.id,
            name: if member.started { member.name.to_string() } else { String::new() },
            learner: member.learner,
            healthy: self.healthy(member),
            leader: member.leader,
            version: member.version.clone(),
        };
        Ok(self.members.iter().map(shown).collect())
    }

    /// The member to be removed.
    pub(super) fn removal(&self, id: u64) -> Result<&Member, EtcdError> {
        self.check_quorum()?;
        let member = self.find(id)?;
        if !self.keeps_quorum(Some(id)) {
            return Err(EtcdError("re-configuration failed due to not enough started members".to_owned()));
        }
        Ok(member)
    }

    /// The members whose records change when another one leads.
    pub(super) fn led_by(&self, id: u64) -> Result<Vec<Member>, EtcdError> {
        self.check_quorum()?;
        let to = self.find(id)?;
        if to.learner || !self.healthy(to) {
            return Err(EtcdError(format!("member {id:x} cannot lead: it is a learner, or does not answer")));
        }
        Ok(self.leadership(Some(id)))
    }

    /// The members whose records change because the leader is gone, or came to be: the first healthy voter leads, if there
    /// is a quorum.
    pub(super) fn election(&self) -> Vec<Member> {
        let able = |member: &&Member| !member.learner && self.healthy(member);
        let leader = self.members.iter().filter(able).find(|member| member.leader);
        let first = self.members.iter().find(able);
        let leads = leader.or(first).filter(|_| self.has_quorum()).map(|member| member.id);
        self.leadership(leads)
    }

    fn leadership(&self, leader: Option<u64>) -> Vec<Member> {
        let changed = self.members.iter().filter(|member| member.leader != (Some(member.id) == leader));
        changed.map(|member| Member { leader: !member.leader, ..member.clone() }).collect()
    }

    fn check_quorum(&self) -> Result<(), EtcdError> {
        if self.has_quorum() { Ok(()) } else { Err(EtcdError("no leader: there is no quorum".to_owned())) }
    }

    fn find(&self, id: u64) -> Result<&Member, EtcdError> {
        let found = self.members.iter().find(|member| member.id == id);
        found.ok_or_else(|| EtcdError(format!("member {id:x} not found")))
    }
}
