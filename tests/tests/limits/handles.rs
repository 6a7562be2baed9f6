//! Limits on handles that the host holds for a guest.

use palisade_tests::guest::LIMITS_HANDLES;
use palisade_tests::{Case, Observed};
use serde_json::json;

fn call(tool: &str, count: u64) -> Observed {
    let case = Case::new(LIMITS_HANDLES, tool).input(json!({"count": count}));
    case.arrange(|world| {
        world.file("file.txt", "");
    })
    .check()
}

#[test]
fn guest_may_hold_200_handles() {
    assert_eq!(call("hold", 200).output(), "200 held");
}

#[test]
fn handles_violated() {
    let seen = call("hold", 300);
    assert_eq!((seen.limit(), &seen.result["error"]["detail"]["value"]), ("handles", &json!(256)));
}

#[test]
fn open_listings_obeyed() {
    assert_eq!(call("hold_listings", 100).output(), "100 held");
}

#[test]
fn open_listings_violated() {
    let seen = call("hold_listings", 257);
    assert_eq!((seen.limit(), &seen.result["error"]["detail"]["value"]), ("handles", &json!(256)));
}

#[test]
fn dropped_handle_no_longer_counts() {
    assert_eq!(call("reuse", 5000).output(), "5000 opened");
}
