//! An admission that goes away and a release that doubles in the middle of an upgrade.

use serde_json::{Value, json};
use windlass_apiserver::store::Key;
use windlass_sim::fault::{Action, Fault, Span, WebhookFault, When};

use super::{End, Row, Told, action, check, fault};
use crate::start;

const IMAGE: (&str, &str) = ("vmoperator.vmware.com/v1alpha1", "VirtualMachineImage");
const NAME: &str = "photon-k8sd-v1.16.7-vmware.1-guest.1";

/// The image of the release that is asked for, as somebody would create it under a name.
fn image(name: &str) -> Value {
    let start = start::of(3, 1);
    let entry = start.world.management().store().get("virtualmachineimages.vmoperator.vmware.com", &Key::new("", NAME));
    let mut object = entry.unwrap().to_value(IMAGE.0, IMAGE.1);
    let annotations = object["metadata"]["annotations"].take();
    object["metadata"] = json!({"name": name, "annotations": annotations});
    object
}

#[test]
fn an_upgrade_goes_on_while_its_admission_is_down() {
    let down = Fault::Webhook { how: WebhookFault::Down };
    let scenario = fault("the webhook is down", down, When::from(Span::seconds(1)));
    let told = Told::Nothing;
    check(&Row { ids: &["F14"], size: (3, 1), scenario, end: End::Reached, tolerated: &[], told });
}

#[test]
fn another_image_of_the_release_that_is_being_rolled_out_changes_nothing() {
    let second = Action::Create { cluster: None, object: image("photon-by-another-name") };
    let scenario = action("there is another image of the release", Span::seconds(100), second);
    let told = Told::Nothing;
    let ended = check(&Row { ids: &["F16"], size: (3, 1), scenario, end: End::Reached, tolerated: &[], told });
    assert_eq!(ended.rehearsal.machines.len(), 8, "four come and four go\n{}", ended.rehearsal);
}
