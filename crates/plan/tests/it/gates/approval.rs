//! Updates that have to be approved.

use windlass_plan::check;
use windlass_plan::gate;
use windlass_plan::inventory::Rejection;
use windlass_plan::planner::plan;

use super::well;
use crate::fake::Fake;
use crate::story::{assert_at_rest, live};

#[test]
fn where_updates_have_to_be_approved_nothing_is_written_before_they_are() {
    let mut fake = well();
    fake.inventory.orders.approval.is_required = true;
    let plans = |change: &dyn Fn(&mut Fake)| {
        let mut fake = fake.clone();
        change(&mut fake);
        let input = fake.input();
        let planned = plan(&input);
        assert_eq!(check::check(&input, &planned), [], "the second opinion");
        planned
    };
    assert_eq!(plans(&|_| {}).report.pending, None, "nothing is asked for");
    let large = |fake: &mut Fake| fake.target.pools[0].machines.class = "best-effort-large".parse().ok();
    let waits = plans(&large);
    assert_eq!((&waits.record, &waits.steps), (&None, &vec![]));
    let Some(gate::Blocked::ApprovalNeeded { digest, .. }) = &waits.report.pending else { panic!("{waits:#?}") };
    assert_eq!(*digest, waits.envelope.digest());
    let said = waits.report.stages.iter().flat_map(|stage| &stage.blocked);
    assert!(said.clone().count() > 0 && said.clone().all(|it| it.reason() == "ApprovalNeeded"), "{:#?}", waits.report);

    let approved = |digest: &str, change: &dyn Fn(&mut Fake)| {
        let planned = plans(&|fake| {
            large(fake);
            change(fake);
            fake.inventory.consent = Some(digest.to_owned());
        });
        planned.record.is_some()
    };
    assert!(approved(digest, &|_| {}));
    assert!(!approved("sha256:another", &|_| {}));
    // What was approved is one envelope: whatever else is asked for by then is another.
    assert!(!approved(digest, &|fake| fake.target.pools[0].machines.count = 2));
    assert!(!approved(digest, &|fake| fake.target.pools[0].machines.storage_class = "other".parse().ok()));

    let rejected = plans(&|fake| {
        large(fake);
        let (digest, by) = (digest.clone(), "ada".to_owned());
        fake.inventory.orders.approval.rejected = Some(Rejection { digest, by, because: "not now".to_owned() });
    });
    assert_eq!(rejected.report.pending.unwrap().to_string(), "ada has rejected the update: not now");
    assert!(rejected.record.is_none() && rejected.steps.is_empty());

    // One approval is for one update, to its end: it does not stop on the way.
    let mut agreed = fake.clone();
    large(&mut agreed);
    agreed.inventory.consent = Some(digest.clone());
    let story = live(&mut agreed);
    assert!(story.contains("apply MachineDeployment"), "{story}");
    assert_at_rest(&agreed);
}
