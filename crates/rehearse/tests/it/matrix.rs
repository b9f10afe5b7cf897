//! Every sort of update, for clusters of many sizes: it ends right, nothing is violated on the way, no machine is made that is not
//! needed, and planning again changes nothing.

pub mod ended;

use serde_json::{Value, json};
use windlass_rehearse::crash::Crashes;
use windlass_rehearse::rehearsal::{self, Request, Verdict, Wish};
use windlass_sim::fault::{Action, Scenario, Span};
use windlass_sim::world::World;

use crate::start::{self, FROM, SEED, TO, cluster_name, later};
use Sort::{Class, Combined, Delete, Rename, Retarget, Revert, Scale, StorageClass, Upgrade};

const LATER_RELEASE: &str = "v1.17.4+vmware.1-guest.1";

/// What is asked, and what people do in the middle of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sort {
    Upgrade,
    Class,
    StorageClass,
    /// The image of the release in use has another name.
    Rename,
    /// Release, class, storage class and number of workers in one write.
    Combined,
    /// Another release while an upgrade runs.
    Retarget,
    /// What was asked for is taken back seconds later.
    Revert,
    /// One worker more while an upgrade runs.
    Scale,
    /// The end of the cluster while an upgrade runs.
    Delete,
}

pub const ALL: [Sort; 9] = [Upgrade, Class, StorageClass, Rename, Combined, Retarget, Revert, Scale, Delete];

impl Sort {
    pub fn wish(self, workers: u32) -> Wish {
        let both = |field: &str, value: Value| {
            let mut patch = json!({"spec": {"topology": {"controlPlane": {}, "workers": {}}}});
            for role in ["controlPlane", "workers"] {
                patch["spec"]["topology"][role][field] = value.clone();
            }
            patch
        };
        match self {
            Upgrade | Retarget | Scale | Delete => Wish::release("v1.16.7"),
            Class | Revert => Wish::Patch(both("class", json!("best-effort-large"))),
            StorageClass => Wish::Patch(both("storageClass", json!("gc-storage-profile-fast"))),
            Rename => Wish::Nothing,
            Combined => {
                let mut patch = both("class", json!("guaranteed-small"));
                patch["spec"]["topology"]["workers"]["storageClass"] = json!("gc-storage-profile-fast");
                patch["spec"]["topology"]["workers"]["count"] = json!(workers + 1);
                patch["spec"]["distribution"] = json!({"fullVersion": null, "version": "v1.16.7"});
                Wish::Patch(patch)
            }
        }
    }

    /// What people do, and when: a few seconds or a few minutes after the beginning.
    pub fn action(self, workers: u32) -> Scenario {
        let kind = "TanzuKubernetesCluster".to_owned();
        let (api_version, name) = ("run.tanzu.vmware.com/v1alpha1".to_owned(), "default/my-tkc".into());
        let (at, patch) = match self {
            Upgrade | Class | StorageClass | Rename | Combined => return Scenario::default(),
            Delete => {
                let action = Action::Delete { cluster: None, api_version, kind, name };
                return Scenario::default().then(Span::minutes(3), action);
            }
            Retarget => (180, json!({"spec": {"distribution": {"fullVersion": null, "version": "v1.17.4"}}})),
            Scale => (180, json!({"spec": {"topology": {"workers": {"count": workers + 1}}}})),
            Revert => {
                let class = json!({"class": "best-effort-xlarge"});
                (20, json!({"spec": {"topology": {"controlPlane": class, "workers": class}}}))
            }
        };
        let action = Action::Patch { cluster: None, api_version, kind, name, patch };
        Scenario::default().then(Span::seconds(at), action)
    }

    fn verdict(self) -> Verdict {
        let reached = |release: &str| Verdict::Reached { distribution: release.to_owned() };
        match self {
            Upgrade | Combined | Scale => reached(TO),
            Class | StorageClass | Rename | Revert => reached(FROM),
            Retarget => reached(LATER_RELEASE),
            Delete => Verdict::Gone,
        }
    }

    /// How many machines it takes at most.
    fn machines_max(self, control_plane: u32, workers: u32) -> u32 {
        let all = control_plane + workers;
        match self {
            Upgrade | Class | StorageClass | Rename | Delete => all,
            Combined | Scale => all + 1,
            Retarget | Revert => 2 * all,
        }
    }
}

fn check(control_plane: u32, workers: u32, sorts: &[Sort]) {
    for &sort in sorts {
        let start = start::of(control_plane, workers);
        let renamed = (sort == Rename).then(|| ended::renamed(&start, "photon-by-another-name"));
        let world: &World = renamed.as_ref().unwrap_or(&start.world);
        let request = Request {
            faults: sort.action(workers),
            ..Request::asking(cluster_name(), sort.wish(workers), SEED, later())
        };
        let ended = rehearsal::hold(world, &request, Crashes::none()).unwrap();
        let (rehearsal, what) = (&ended.rehearsal, format!("{sort:?} of {control_plane}+{workers}"));
        assert_eq!(rehearsal.verdict, sort.verdict(), "{what}\n{rehearsal}");
        assert!(rehearsal.violations.is_empty(), "{what}\n{rehearsal}");
        let made = rehearsal.machines.iter().filter(|machine| machine.change == rehearsal::Change::Created);
        let made = made.fold(0, |made, _| made + 1);
        assert!(made <= sort.machines_max(control_plane, workers), "{what} made {made} machines\n{rehearsal}");
        match sort {
            Delete => assert_eq!(ended::left(&ended.world), Vec::<String>::new(), "{what}\n{rehearsal}"),
            _ => assert_eq!(ended::differs(&ended.world), Vec::<String>::new(), "{what}\n{rehearsal}"),
        }
        ended::planning_again_changes_nothing(&ended, &what);
    }
}

#[test]
fn one_and_one() {
    check(1, 1, &ALL);
}

#[test]
fn three_and_three_changed_by_their_owner() {
    check(3, 3, &[Upgrade, Class, StorageClass, Rename, Combined]);
}

#[test]
fn three_and_three_disturbed_in_the_middle() {
    check(3, 3, &[Retarget, Revert, Scale, Delete]);
}

#[test]
fn five_and_twenty() {
    check(5, 20, &[Upgrade, Combined]);
}

#[test]
fn one_and_many() {
    check(1, 7, &[StorageClass, Scale]);
    check(1, 12, &[Class]);
    check(1, 20, &[Upgrade]);
    check(3, 12, &[Retarget, Delete]);
}

#[test]
fn five_and_few() {
    check(5, 1, &[Retarget]);
    check(5, 3, &[Rename, Revert]);
    check(5, 5, &[Delete]);
}

#[test]
fn a_control_plane_without_workers() {
    check(1, 0, &[Upgrade, Scale, Delete]);
    check(3, 0, &[Class, Combined]);
}
