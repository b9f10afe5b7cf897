//! Replicas and the lease that they agree by, on an embedded API server and in virtual time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, pending};
use http::{Request, Response};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams};
use kube::client::Body;
use kube::{Api, Client};
use tokio::time::{Instant, sleep, timeout};
use tower::Service;
use windlass_apiserver::{ApiServer, Options};
use windlass_controller::leadership::{Candidacy, Ended, Term, lead};
use windlass_runtime::chance::Seed;
use windlass_runtime::virtual_time::{Virtual, run_virtual};

const SEED: Seed = Seed(11);

/// The way to a server, which can be cut: then nothing is answered, and nobody is told.
#[derive(Clone)]
struct Way {
    server: ApiServer,
    is_cut: Arc<AtomicBool>,
}

impl Way {
    fn to(server: &ApiServer) -> Self {
        Self { server: server.clone(), is_cut: Arc::default() }
    }

    fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Relaxed);
    }

    fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }
}

impl Service<Request<Body>> for Way {
    type Response = Response<windlass_apiserver::Body>;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if self.is_cut.load(Ordering::Relaxed) { pending().boxed() } else { self.server.call(request).boxed() }
    }
}

/// Who led from when to when, in seconds since the start.
#[derive(Clone, Default)]
struct Reigns(Arc<Mutex<Vec<(String, f64, f64)>>>);

impl Reigns {
    /// Leads until it is dropped, and is on record with that.
    async fn reign(self, who: String, began: Instant, stop: impl Future<Output = ()>) {
        struct End(Reigns, String, Instant, f64);
        impl Drop for End {
            fn drop(&mut self) {
                let Self(reigns, who, began, from) = self;
                reigns.0.lock().unwrap().push((who.clone(), *from, began.elapsed().as_secs_f64()));
            }
        }
        let _end = End(self, who, began, began.elapsed().as_secs_f64());
        stop.await;
    }

    fn list(&self) -> Vec<(String, f64, f64)> {
        let mut all = self.0.lock().unwrap().clone();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        all
    }

    fn assert_one_at_a_time(&self) {
        for pair in self.list().windows(2) {
            assert!(pair[0].2 <= pair[1].1, "two led at once: {pair:?}");
        }
    }
}

fn server(time: &Virtual) -> ApiServer {
    ApiServer::new(Options { now: time.clock.now_fn(), seed: SEED.0, ..Options::default() })
}

fn candidacy(identity: &str) -> Candidacy {
    Candidacy::usual("default", "windlass-controllers", identity.to_owned())
}

async fn run(
    way: &Way,
    time: &Virtual,
    who: &str,
    (reigns, began): (&Reigns, Instant),
    stop: impl Future<Output = ()> + Clone,
) -> Ended {
    let (reigns, work_stops) = (reigns.clone(), stop.clone());
    let work = |_: Term| reigns.reign(who.to_owned(), began, work_stops);
    lead(&way.client(), candidacy(who), (&time.clock, SEED), work, stop).await
}

fn after(seconds: u64) -> futures::future::Shared<BoxFuture<'static, ()>> {
    sleep(Duration::from_secs(seconds)).boxed().shared()
}

fn never() -> futures::future::Shared<BoxFuture<'static, ()>> {
    pending().boxed().shared()
}

fn now() -> jiff::Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

#[test]
fn whoever_is_told_to_stop_hands_over_at_once() {
    let reigns = Reigns::default();
    let seen = reigns.clone();
    run_virtual(SEED, now(), |time| async move {
        let (server, began) = (server(&time), Instant::now());
        let (a, b) = (Way::to(&server), Way::to(&server));
        let second = async {
            sleep(Duration::from_secs(1)).await;
            run(&b, &time, "b", (&reigns, began), after(59)).await
        };
        let both = tokio::join!(run(&a, &time, "a", (&reigns, began), after(30)), second);
        assert_eq!(both, (Ended::Stopped, Ended::Stopped));
        let lease: Api<Lease> = Api::default_namespaced(b.client());
        let lease = lease.get("windlass-controllers").await.unwrap().spec.unwrap();
        assert_eq!((lease.holder_identity.as_deref(), lease.lease_transitions), (Some(""), Some(1)));
    })
    .unwrap();
    let list = seen.list();
    assert_eq!(list.iter().map(|it| it.0.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(list[1].1 - list[0].2 < 3.0, "{list:?}");
    seen.assert_one_at_a_time();
}

#[test]
fn whoever_is_killed_is_followed_when_the_lease_is_over_and_not_before() {
    let reigns = Reigns::default();
    let seen = reigns.clone();
    run_virtual(SEED, now(), |time| async move {
        let (server, began) = (server(&time), Instant::now());
        let (a, b) = (Way::to(&server), Way::to(&server));
        let first = timeout(Duration::from_secs(30), run(&a, &time, "a", (&reigns, began), never()));
        let second = async {
            sleep(Duration::from_secs(1)).await;
            run(&b, &time, "b", (&reigns, began), after(120)).await
        };
        let (killed, stopped) = tokio::join!(first, second);
        assert!(killed.is_err());
        assert_eq!(stopped, Ended::Stopped);
    })
    .unwrap();
    let list = seen.list();
    let gap = list[1].1 - list[0].2;
    // It was renewed at most two seconds before, and looked at up to two and a half seconds late.
    assert!((12.5..18.0).contains(&gap), "{list:?}");
}

#[test]
fn whoever_cannot_renew_has_ended_before_another_begins() {
    let reigns = Reigns::default();
    let seen = reigns.clone();
    run_virtual(SEED, now(), |time| async move {
        let (server, began) = (server(&time), Instant::now());
        let (a, b) = (Way::to(&server), Way::to(&server));
        let cuts = async {
            sleep(Duration::from_secs(20)).await;
            a.cut(true);
        };
        let second = async {
            sleep(Duration::from_secs(1)).await;
            run(&b, &time, "b", (&reigns, began), after(120)).await
        };
        let (first, _, ()) = tokio::join!(run(&a, &time, "a", (&reigns, began), never()), second, cuts);
        let Ended::Lapsed { why } = first else { panic!("{first:?}") };
        assert_eq!(why, "the lease was not renewed within 10 s: no answer");
    })
    .unwrap();
    let list = seen.list();
    assert!((28.0..=31.0).contains(&list[0].2), "{list:?}");
    assert!(list[1].1 - list[0].2 >= 4.0, "{list:?}");
    seen.assert_one_at_a_time();
}

#[test]
fn a_lease_that_was_taken_away_is_noticed_and_one_that_was_only_touched_is_kept() {
    run_virtual(SEED, now(), |time| async move {
        let server = server(&time);
        let way = Way::to(&server);
        let (reigns, began) = (Reigns::default(), Instant::now());
        let api: Api<Lease> = Api::default_namespaced(way.client());
        let change = async |identity: Option<&str>| {
            let mut lease = api.get("windlass-controllers").await.unwrap();
            lease.metadata.labels = Some([("touched".to_owned(), "yes".to_owned())].into());
            if let Some(identity) = identity {
                lease.spec.get_or_insert_default().holder_identity = Some(identity.to_owned());
            }
            api.replace("windlass-controllers", &PostParams::default(), &lease).await.unwrap();
        };
        let others = async {
            sleep(Duration::from_secs(5)).await;
            change(None).await;
            sleep(Duration::from_secs(20)).await;
            assert!(reigns.list().is_empty(), "it leads on");
            change(Some("another")).await;
        };
        let (ended, ()) = tokio::join!(run(&way, &time, "a", (&reigns, began), never()), others);
        assert_eq!(ended, Ended::Lapsed { why: "the lease is held by another".to_owned() });
    })
    .unwrap();
}

#[test]
fn whoever_wakes_up_after_the_term_sends_nothing() {
    run_virtual(SEED, now(), |time| async move {
        let server = server(&time);
        let way = Way::to(&server);
        let work = async |term: Term| {
            let client = term.fence(way.client());
            let api: Api<ConfigMap> = Api::default_namespaced(client);
            let named = |name: &str| ConfigMap {
                metadata: kube::api::ObjectMeta { name: Some(name.to_owned()), ..kube::api::ObjectMeta::default() },
                ..ConfigMap::default()
            };
            api.create(&PostParams::default(), &named("while-it-leads")).await.unwrap();
            // The whole process stands still: nobody polls what renews the lease, and time goes on.
            tokio::time::advance(Duration::from_secs(11)).await;
            let refused = api.create(&PostParams::default(), &named("too-late")).await.unwrap_err();
            let kube::Error::Service(refused) = refused else { panic!("{refused:?}") };
            let words = refused.to_string();
            assert!(words.contains("default/windlass-controllers was not renewed in time"), "{words}");
            let there = api.list(&ListParams::default()).await.unwrap();
            assert_eq!(there.items.len(), 1, "reads go on");
        };
        // The lease itself is renewed with another client, and would be again.
        let ended = lead(&way.client(), candidacy("a"), (&time.clock, SEED), work, pending()).await;
        assert!(matches!(ended, Ended::Lapsed { .. } | Ended::Stopped));
    })
    .unwrap();
}

/// Three replicas whose way to the server is cut, or who are killed, at random: never do two lead at once, and somebody always
/// leads in the end.
#[test]
fn never_do_two_lead_at_once() {
    for seed in 0..40 {
        let reigns = Reigns::default();
        let seen = reigns.clone();
        run_virtual(Seed(seed), now(), |time| async move {
            let (server, began) = (server(&time), Instant::now());
            let replica = async |who: u64| {
                let mut chance = time.seed.stream(&format!("replica {who}"));
                for life in 0..8 {
                    let way = Way::to(&server);
                    let lives = Duration::from_millis(chance.range(1_000..60_000));
                    let cut_after = Duration::from_millis(chance.range(0..60_000));
                    let cuts = async {
                        sleep(cut_after).await;
                        way.cut(true);
                        sleep(Duration::from_millis(chance.range(0..30_000))).await;
                        way.cut(false);
                        pending::<()>().await;
                    };
                    let identity = format!("{who}-{life}");
                    tokio::select! {
                        _ = run(&way, &time, &identity, (&reigns, began), never()) => {}
                        () = cuts => {}
                        () = sleep(lives) => {}
                    }
                }
            };
            tokio::join!(replica(0), replica(1), replica(2));
            let way = Way::to(&server);
            run(&way, &time, "last", (&reigns, began), after(60)).await;
        })
        .unwrap();
        seen.assert_one_at_a_time();
        assert_eq!(seen.list().last().unwrap().0, "last", "seed {seed}");
    }
}
