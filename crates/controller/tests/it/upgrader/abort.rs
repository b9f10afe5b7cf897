//! An update that is given up, from wherever it was, leaves what there was before; or it is too late, and nothing is touched.

use super::cluster::OLD;
use super::seam::Process;
use super::{cluster, end, in_world};

fn check_every_moment(count: u32) {
    in_world(count, |site| async move {
        let before = end(&site).await;
        let crashes = site.live(site.upgrade_with_crashes()).await;
        let mut late = 0;
        for crash in &crashes {
            let after = &crash.after;
            let site = crash.site();
            let process = Process::new();
            match site.live(site.abort(&process)).await {
                Ok(()) => {
                    assert_eq!(late, 0, "after {after} there is only forward");
                    assert_eq!(end(&site).await, before, "after {after}");
                    assert_eq!(site.version_of_kubeadm().await, OLD, "after {after}");
                    assert_eq!(site.parts().await.len(), 2 * count as usize, "after {after}");
                    assert_eq!(site.member_names().len(), count as usize, "after {after}");
                    let again = Process::new();
                    site.live(site.abort(&again)).await.unwrap();
                    assert_eq!(again.writes(), Vec::<String>::new(), "what is given up stays so");
                }
                Err(error) => {
                    assert!(
                        error.report().contains("cannot be given up any more"),
                        "after {after}: {}",
                        error.report()
                    );
                    assert_eq!(process.writes(), Vec::<String>::new(), "after {after}");
                    late += 1;
                }
            }
            assert_eq!(site.violations(), Vec::<String>::new(), "after {after}");
        }
        assert!(late > 0 && late < crashes.len(), "{late} of {}", crashes.len());
        let (name, _) = cluster::original(0);
        assert!(before.contains_key(name.as_str()));
    });
}

#[test]
fn an_update_of_one_machine_is_given_up_after_any_write() {
    check_every_moment(1);
}

#[test]
fn an_update_of_three_machines_is_given_up_after_any_write() {
    check_every_moment(3);
}
