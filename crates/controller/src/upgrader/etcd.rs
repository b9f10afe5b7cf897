//! The members of etcd: one for each machine of the control plane, changed one at a time, and never from a state in which a
//! loss would be felt.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Error;
use super::attempt::Attempt;
use super::wait::{Patience, Seen, missing};
use crate::access::Member;

/// How often etcd is asked: it tells nobody when its members change.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// Waits until etcd is made of exactly these nodes, all of them healthy voters.
pub async fn whole(attempt: &Attempt<'_>, patience: &Patience, nodes: &BTreeSet<String>) -> Result<(), Error> {
    let etcd = &attempt.workload.etcd;
    patience
        .poll(POLL_INTERVAL, || async {
            Ok(match etcd.members().await {
                Ok(members) => is_whole(&members, nodes),
                Err(error) => missing(error.to_string()),
            })
        })
        .await
}

/// Takes a node's member out of etcd, once all others are healthy and the one that stays in its place is among them. If it
/// leads, another leads first. Nothing is done where it is gone already.
///
/// The members are read before every change: what became of an earlier change need not be known.
pub async fn part(attempt: &Attempt<'_>, patience: &Patience, leaving: &str, staying: &str) -> Result<(), Error> {
    let etcd = &attempt.workload.etcd;
    patience
        .poll(POLL_INTERVAL, || async {
            let members = match etcd.members().await {
                Ok(members) => members,
                Err(error) => return Ok(missing(error.to_string())),
            };
            let change = match next_change(&members, leaving, staying) {
                Ok(change) => change,
                Err(lacking) => return Ok(Err(lacking)),
            };
            let outcome = match change {
                Change::None => return Ok(Ok(())),
                Change::Lead(to) => match etcd.move_leader(to).await {
                    Ok(()) => remove(attempt, leaving).await,
                    Err(error) => Err(error.to_string()),
                },
                Change::Remove(id) => etcd.remove(id).await.map_err(|error| error.to_string()),
            };
            Ok(match outcome {
                Ok(()) => Ok(()),
                Err(why) => missing(why),
            })
        })
        .await
}

/// Removes a member that has just stopped to lead, if it really has.
async fn remove(attempt: &Attempt<'_>, leaving: &str) -> Result<(), String> {
    let etcd = &attempt.workload.etcd;
    let members = etcd.members().await.map_err(|error| error.to_string())?;
    match members.iter().find(|member| member.name == leaving) {
        Some(member) if member.leader => Err(format!("the member {leaving} still leads")),
        Some(member) => etcd.remove(member.id).await.map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

/// Removes members that were added and have never started. Only for when the one machine that was joining is gone for good:
/// nobody is left who could start them, and until they are removed they count in the quorum.
pub async fn sweep(attempt: &Attempt<'_>, patience: &Patience) -> Result<(), Error> {
    let etcd = &attempt.workload.etcd;
    patience
        .poll(POLL_INTERVAL, || async {
            let members = match etcd.members().await {
                Ok(members) => members,
                Err(error) => return Ok(missing(error.to_string())),
            };
            for member in members.iter().filter(|member| member.name.is_empty()) {
                if let Err(error) = etcd.remove(member.id).await {
                    return Ok(missing(error.to_string()));
                }
            }
            Ok(Ok(()))
        })
        .await
}

/// The members as they are now.
pub async fn members(attempt: &Attempt<'_>) -> Result<Vec<Member>, Error> {
    let doing = || format!("ask the etcd of {} for its members", attempt.cluster);
    attempt.workload.etcd.members().await.map_err(|source| Error::Etcd { attempt: doing(), source })
}

/// Whether a node is a healthy voter.
pub fn votes(members: &[Member], node: &str) -> bool {
    members.iter().any(|member| member.name == node && is_sound(member))
}

fn is_sound(member: &Member) -> bool {
    member.healthy && !member.learner
}

fn is_whole(members: &[Member], nodes: &BTreeSet<String>) -> Seen<()> {
    unsound(members.iter())?;
    if let Some(member) = members.iter().find(|member| !nodes.contains(&member.name)) {
        return missing(format!("the etcd member {} belongs to no machine", member.name));
    }
    match nodes.iter().find(|node| !members.iter().any(|member| member.name == **node)) {
        Some(node) => missing(format!("the node {node} is no etcd member")),
        None => Ok(()),
    }
}

fn unsound<'a>(mut members: impl Iterator<Item = &'a Member>) -> Seen<()> {
    match members.find(|member| member.name.is_empty() || !is_sound(member)) {
        Some(member) if member.name.is_empty() => missing(format!("the etcd member {} has not started", member.id)),
        Some(member) if member.learner => missing(format!("the etcd member {} is still a learner", member.name)),
        Some(member) => missing(format!("the etcd member {} is not healthy", member.name)),
        None => Ok(()),
    }
}

/// What to do next so that a member leaves.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    /// It is gone.
    None,
    /// Another has to lead first.
    Lead(u64),
    /// It can go.
    Remove(u64),
}

/// A healthy member leaves only if no other is unhealthy, and only in favour of one that counts: then the rest has a quorum,
/// however many they are.
fn next_change(members: &[Member], leaving: &str, staying: &str) -> Seen<Change> {
    unsound(members.iter().filter(|member| member.name != leaving))?;
    let Some(heir) = members.iter().find(|member| member.name == staying) else {
        return missing(format!("the node {staying} is no etcd member"));
    };
    Ok(match members.iter().find(|member| member.name == leaving) {
        None => Change::None,
        Some(member) if member.leader => Change::Lead(heir.id),
        Some(member) => Change::Remove(member.id),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One member for each word: a name, then `*` if it leads, `?` if it is a learner, `!` if it is not healthy.
    fn members(text: &str) -> Vec<Member> {
        let member = |(id, word): (u64, &str)| Member {
            id,
            name: word.trim_end_matches(['*', '?', '!']).to_owned(),
            learner: word.contains('?'),
            healthy: !word.contains('!'),
            leader: word.contains('*'),
        };
        (1..).zip(text.split_whitespace()).map(member).collect()
    }

    fn check_whole(text: &str, nodes: &str, lacking: Option<&str>) {
        let nodes = nodes.split_whitespace().map(ToOwned::to_owned).collect();
        let seen = is_whole(&members(text), &nodes);
        assert_eq!(seen.err().map(|lacking| lacking.0).as_deref(), lacking, "{text}");
    }

    #[test]
    fn etcd_is_whole_if_it_is_the_machines_and_nothing_else() {
        check_whole("a* b c", "a b c", None);
        check_whole("a* b!", "a b", Some("the etcd member b is not healthy"));
        check_whole("a* b?", "a b", Some("the etcd member b is still a learner"));
        check_whole("a* b", "a", Some("the etcd member b belongs to no machine"));
        check_whole("a*", "a b", Some("the node b is no etcd member"));
        check_whole("a* !", "a", Some("the etcd member 2 has not started"));
    }

    fn check_change(text: &str, change: Result<Change, &str>) {
        let seen = next_change(&members(text), "old", "new").map_err(|lacking| lacking.0);
        assert_eq!(seen, change.map_err(ToOwned::to_owned), "{text}");
    }

    #[test]
    fn a_member_leaves_when_the_others_can_do_without_it() {
        check_change("old new*", Ok(Change::Remove(1)));
        check_change("old* new", Ok(Change::Lead(2)));
        check_change("old! new* b", Ok(Change::Remove(1)));
        check_change("new* b", Ok(Change::None));
        check_change("old* b", Err("the node new is no etcd member"));
        check_change("old* new?", Err("the etcd member new is still a learner"));
        check_change("old new* b!", Err("the etcd member b is not healthy"));
        check_change("old* new !", Err("the etcd member 3 has not started"));
    }
}
