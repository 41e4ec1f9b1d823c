//! A wait for something that whoever changes it tells of.

use tokio::sync::Notify;

/// Waits until it is so. Told is whoever waits by then, so it is looked at only after that: what
/// changes between the look and the wait is heard.
pub(super) async fn until(told: &Notify, is_so: impl Fn() -> bool) {
    loop {
        let told = told.notified();
        if is_so() {
            return;
        }
        told.await;
    }
}
