//! A real etcd of several members, with TLS as kubeadm sets it up: that of `KUBEBUILDER_ASSETS`, or else the one of the system.

mod forwarded;
mod server;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::net::TcpStream;
use tokio_rustls::rustls::ClientConfig;

use super::*;
use server::{Authority, Servers};

/// A route without an API server: the members listen on this machine.
pub struct Direct {
    ports: Vec<u16>,
    tls: Arc<ClientConfig>,
}

impl Route for Direct {
    fn pods(&self) -> BoxFuture<'_, Result<Vec<String>, String>> {
        Box::pin(async { Ok(self.ports.iter().map(u16::to_string).collect()) })
    }

    fn open<'a>(&'a self, pod: &'a str) -> BoxFuture<'a, Result<Box<dyn Wire>, String>> {
        Box::pin(async move {
            let address = format!("127.0.0.1:{pod}");
            let stream = TcpStream::connect(&address).await.map_err(|error| error.to_string())?;
            Ok(Box::new(stream) as Box<dyn Wire>)
        })
    }

    fn tls(&self) -> BoxFuture<'_, Result<Arc<ClientConfig>, String>> {
        Box::pin(async { Ok(Arc::clone(&self.tls)) })
    }
}

fn etcd(servers: &Servers, authority: &Authority) -> OverPods<Direct> {
    OverPods::new(Direct { ports: servers.ports(), tls: authority.tls() })
}

/// Looks until the members are as wanted.
async fn until<R: Route>(etcd: &OverPods<R>, what: &str, is_so: impl Fn(&[Member]) -> bool) -> Vec<Member> {
    let mut last = Ok(Vec::new());
    for _ in 0..300 {
        last = etcd.members().await;
        if let Ok(members) = &last
            && is_so(members)
        {
            return last.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never {what}: {last:#?}");
}

fn all_well(members: &[Member], count: usize) -> bool {
    members.len() == count
        && members.iter().all(|member| member.healthy)
        && members.iter().filter(|member| member.leader).count() == 1
}

#[tokio::test]
async fn members_are_seen_led_by_another_and_removed() {
    let Some(program) = server::program("three members") else { return };
    let authority = Authority::new();
    let mut servers = Servers::start(&program, &authority, 3);
    let etcd = etcd(&servers, &authority);
    let members = until(&etcd, "three members", |members| all_well(members, 3)).await;
    let mut names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["member-0", "member-1", "member-2"]);
    for member in &members {
        assert!(member.version.is_some() && !member.learner && member.alarms.is_empty(), "{member:?}");
    }

    // Somebody else leads, and asking for it again changes nothing.
    let other = members.iter().find(|member| !member.leader).unwrap();
    for _ in 0..2 {
        etcd.move_leader(other.id).await.unwrap();
        until(&etcd, "led by another", |members| members.iter().any(|it| it.leader && it.id == other.id)).await;
    }
    let refused = etcd.move_leader(0x4711).await.unwrap_err().to_string();
    assert!(refused.starts_with("etcd: cannot have the member 4711 lead: "), "{refused}");

    // One is killed: it is listed, and not well. Then it is removed, and the others go on.
    let gone = other.name.clone();
    servers.kill(&gone);
    let members = until(&etcd, "without one", |members| members.iter().filter(|it| it.healthy).count() == 2).await;
    let dead = members.iter().find(|member| member.name == gone).unwrap();
    assert!(!dead.healthy && !dead.leader && dead.version.is_none(), "{dead:?}");
    until(&etcd, "led again", |members| members.iter().any(|member| member.leader)).await;
    etcd.remove(dead.id).await.unwrap();
    let left = until(&etcd, "two members", |members| all_well(members, 2)).await;
    assert!(left.iter().all(|member| member.id != dead.id));
    let again = etcd.remove(dead.id).await.unwrap_err().to_string();
    assert!(again.contains("member not found"), "{again}");

    // Without a quorum nobody can say what is so: that is no list of members that are well.
    servers.kill(&left[0].name);
    let mut seen = etcd.members().await;
    for _ in 0..100 {
        if !matches!(&seen, Ok(members) if members.iter().any(|member| member.healthy)) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        seen = etcd.members().await;
    }
    assert!(seen.as_ref().map_or(true, |members| members.iter().all(|member| !member.healthy)), "{seen:?}");
}

#[tokio::test]
async fn a_member_that_has_not_started_has_no_name_and_a_learner_is_told() {
    let Some(program) = server::program("a learner") else { return };
    let authority = Authority::new();
    let mut servers = Servers::start(&program, &authority, 1);
    let etcd = etcd(&servers, &authority);
    until(&etcd, "one member", |members| all_well(members, 1)).await;
    // MemberAdd: a peer's URL, and that it is a learner.
    let url = servers.next_peer();
    let mut message = vec![0x0a, u8::try_from(url.len()).unwrap()];
    message.extend(url.bytes());
    message.extend([0x10, 1]);
    let mut asked = etcd.ask().await.unwrap();
    let added = asked.answering[0].connection.call("Cluster/MemberAdd", message).await;
    added.unwrap();
    let members = until(&etcd, "two", |members| members.len() == 2).await;
    let new = members.iter().find(|member| member.learner).unwrap();
    assert_eq!((new.name.as_str(), new.healthy, new.leader), ("", false, false));

    // It starts: it answers for itself, and nobody asks it for the others.
    servers.join(&program, &authority);
    let etcd = self::etcd(&servers, &authority);
    let members = until(&etcd, "a learner that answers", |members| members.iter().all(|member| member.healthy)).await;
    let new = members.iter().find(|member| member.learner).unwrap();
    assert_eq!((new.name.as_str(), new.leader), ("member-1", false));
    assert!(new.version.is_some());
}

#[tokio::test]
async fn somebody_whom_the_authority_has_not_signed_is_neither_asked_nor_answered() {
    let Some(program) = server::program("strangers") else { return };
    let authority = Authority::new();
    let servers = Servers::start(&program, &authority, 1);
    until(&etcd(&servers, &authority), "one member", |members| all_well(members, 1)).await;
    let stranger = etcd(&servers, &Authority::new()).members().await.unwrap_err().to_string();
    assert!(stranger.contains("cannot list the members") && stranger.contains("TLS with the member"), "{stranger}");
}

#[tokio::test]
async fn an_authority_with_a_key_as_cluster_api_writes_it_is_used() {
    let Some(program) = server::program("an RSA key") else { return };
    let Some(authority) = Authority::rsa() else { return };
    let servers = Servers::start(&program, &authority, 1);
    until(&etcd(&servers, &authority), "one member", |members| all_well(members, 1)).await;
}
