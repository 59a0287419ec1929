//! The failure that makes a database read-only, and its end, in every schedule.

use super::Health;
use crate::error::Error;
use crate::sync::{Arc, thread};
use testkit::explore::explore_all;

/// A failure beside a `resume` is either forgotten as a whole or kept as a
/// whole: never does writing go on with a failure that nobody has dealt with.
#[test]
fn a_failure_beside_a_resume_is_kept_or_forgotten_as_a_whole() {
    explore_all("health", || {
        let health = Arc::new(Health::default());
        health.fail(Error::invalid("the first"));
        let failing = Arc::clone(&health);
        let fails = thread::spawn("fails", move || failing.fail(Error::invalid("the second")));
        health.clear();
        fails.join().unwrap();
        assert_eq!(health.check().is_err(), health.cause.lock().is_some());
    });
}
