//! Until when an attempt can be given up.

use super::*;

fn check_irrevocable(machines: &str, etcd: Result<&str, &str>, expected: Option<&str>) {
    let mut input = input(machines, etcd.unwrap_or_default());
    input.observed.etcd = etcd.map(members).map_err(ToOwned::to_owned);
    let why = irrevocable(&input).map(|why| why.to_string());
    assert_eq!(why.as_deref(), expected, "{machines} | {etcd:?}");
}

#[test]
fn an_attempt_can_be_given_up_until_the_first_member_leaves() {
    check_irrevocable("a. b.", Ok("a* b"), None);
    check_irrevocable("a b", Err("no answer"), None);
    check_irrevocable("a b a7?", Ok("a* b !"), None);
    check_irrevocable("a b a7", Ok("a* b a7"), None);
    check_irrevocable("a b a7", Ok("a7* b"), Some("the member of the machine a has left etcd"));
    check_irrevocable("a b a7", Err("no answer"), Some("it is not known whether a member has left etcd: no answer"));
    check_irrevocable("b a7", Ok("a7* b"), Some("the machine a-7 has taken another's place"));
    check_irrevocable("b a7", Err("no answer"), Some("the machine a-7 has taken another's place"));
}
