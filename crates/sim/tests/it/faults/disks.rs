//! The disk under the management API: full, broken, slow, or a liar.

use windlass_apiserver::store::Key;
use windlass_sim::actor::Caller;
use windlass_sim::fault::{DiskFault, Fault, Recovered, Scenario, Span, When};
use windlass_sim::world::World;

use super::{code, create, in_world_with, once, said};

fn has(recovered: &Recovered, name: &str) -> bool {
    recovered.objects.contains_key(&("configmaps".to_owned(), Key::new("default", name)))
}

/// Three creations, of which the second is bitten, then a power cut: the status of the second, what is left, and why.
fn check(how: DiskFault, answer: Option<u16>, left: [bool; 3], damage: Option<&str>) {
    let disk = Scenario::default().and(Fault::Disk { how }, When { after: Span::seconds(10), ..When::times(1) });
    in_world_with(7, disk, |world: World| async move {
        let client = world.client_of(Caller::User);
        create(&client, "a").await.unwrap();
        super::seconds(10).await;
        let second = create(&client, "b").await;
        assert_eq!(second.err().map(|error| code(Err::<(), _>(error))), answer, "{how:?}");
        // After a power failure this one fails, too.
        drop(create(&client, "c").await);
        let recovered = world.disk().unwrap().power_cut();
        assert_eq!(["a", "b", "c"].map(|name| has(&recovered, name)), left, "{how:?}: {:?}", recovered.damage);
        assert_eq!(recovered.damage, damage, "{how:?}");
        said(&world, "F17: ");
    });
}

#[test]
fn a_disk_that_fails_says_so_or_shows_it_after_a_power_cut() {
    check(DiskFault::NoSpace, Some(507), [true, false, true], None);
    check(DiskFault::WriteError, Some(500), [true, false, true], None);
    // What could not be flushed is flushed with the next.
    check(DiskFault::SyncError, Some(500), [true, true, true], None);
    check(DiskFault::SyncLies, None, [true, false, false], None);
    check(DiskFault::TornWrite, Some(500), [true, false, false], Some("a record is not whole"));
    check(DiskFault::ShortRead, None, [true, true, false], Some("a record is not whole"));
}

#[test]
fn a_bit_that_flips_is_noticed_and_ends_what_can_be_read() {
    in_world_with(7, once(Fault::Disk { how: DiskFault::BitFlip }), |world| async move {
        create(&world.client(), "a").await.unwrap();
        let disk = world.disk().unwrap();
        let damaged = disk.power_cut();
        assert_eq!((damaged.damage, has(&damaged, "a")), (Some("a record is not whole"), false));
        let whole = disk.power_cut();
        assert!(whole.damage.is_none() && has(&whole, "a") && whole.revision > damaged.revision, "it flipped once");
        said(&world, "F17: a bit on the disk is another than it was");
    });
}

#[test]
fn a_slow_disk_makes_every_write_wait() {
    let slow = Scenario::default().and(Fault::SlowDisk { by: Span::seconds(8) }, When::from(Span::seconds(10)));
    in_world_with(7, slow, |world| async move {
        let took = |name| {
            let client = world.client();
            async move {
                let before = tokio::time::Instant::now();
                create(&client, name).await.unwrap();
                before.elapsed().as_secs()
            }
        };
        assert_eq!(took("a").await, 0);
        super::seconds(10).await;
        assert_eq!(took("b").await, 8);
        said(&world, "F18: the disk of the management API takes 8s for a write");
    });
}
