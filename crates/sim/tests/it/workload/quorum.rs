//! etcd: what it refuses, and what it cannot survive.

use super::{answers, grown, join_control_plane, member, power_off};
use crate::world::{in_world, minutes};

#[test]
fn etcd_gives_up_no_quorum_when_asked_and_loses_it_when_machines_die() {
    in_world(|world| async move {
        let workload = grown(&world, 3, 0).await;
        let client = workload.client();
        let leader = workload.members().unwrap().into_iter().find(|member| member.leader).unwrap().name;
        assert_eq!(leader, "cp-0");
        assert_eq!(workload.remove_member(42).unwrap_err().0, "member 2a not found");

        workload.move_leader(member(&workload, "cp-1")).unwrap();
        power_off(&workload, "cp-0");
        assert!(answers(&client).await, "two of three are a quorum");
        let dead = member(&workload, "cp-0");
        assert!(workload.move_leader(dead).is_err(), "the dead do not lead");
        let refusal = workload.remove_member(member(&workload, "cp-1")).unwrap_err();
        assert!(refusal.0.contains("not enough started members"), "{refusal}");
        workload.remove_member(dead).unwrap();
        power_off(&workload, "cp-1");
        assert!(workload.members().is_err());
        assert!(!answers(&client).await, "one of two is none");
    });
}

#[test]
fn the_api_server_beside_a_removed_member_answers_no_more() {
    in_world(|world| async move {
        let workload = grown(&world, 2, 0).await;
        workload.remove_member(member(&workload, "cp-0")).unwrap();
        assert!(answers(&workload.client()).await, "the other one does");
        let left = workload.members().unwrap();
        assert!(left.len() == 1 && left[0].leader && left[0].name == "cp-1", "{left:?}");
        assert!(workload.remove_member(left[0].id).is_err(), "the last one stays");
        power_off(&workload, "cp-1");
        assert!(!answers(&workload.client()).await, "cp-0 is on, and has nothing to read from");
    });
}

#[test]
fn nobody_joins_beside_a_member_that_does_not_answer() {
    in_world(|world| async move {
        let workload = grown(&world, 3, 0).await;
        power_off(&workload, "cp-2");
        join_control_plane(&workload, "cp-3");
        minutes(10).await;
        assert_eq!(workload.members().unwrap().len(), 3, "two of three are a quorum, and etcd refuses all the same");
        workload.remove_member(member(&workload, "cp-2")).unwrap();
        minutes(3).await;
        let members = workload.members().unwrap();
        assert!(members.iter().any(|member| member.name == "cp-3" && member.healthy), "{members:?}");
    });
}
