//! Opens the store of a node that starts. `serve` waits for its database, because after a power cut the
//! database may be the last to be back.

use std::time::Duration;

use service::Clock;
use store::{Options, Store, StoreError, Target};

/// The first pause between two attempts. Each further pause is twice as long, up to [`PAUSE_LONGEST`].
const PAUSE_FIRST: Duration = Duration::from_millis(250);
/// The longest pause.
const PAUSE_LONGEST: Duration = Duration::from_secs(5);

/// Opens the store, and waits while its database cannot be reached, is starting, or has no connection left.
/// The log says so once. Dropping the future ends the wait.
///
/// # Errors
/// Everything that does not end by itself.
pub(crate) async fn open_when_reached(
    target: Target,
    options: Options,
    clock: &Clock,
) -> Result<Store, StoreError> {
    let (mut pause, mut waits) = (PAUSE_FIRST, false);
    loop {
        match Store::open(target.clone(), options.clone()).await {
            Err(error) if error.may_pass() => {
                if !std::mem::replace(&mut waits, true) {
                    tracing::warn!(%error, "the database is not reached: waiting for it");
                }
                clock.sleep(pause).await;
                pause = (pause * 2).min(PAUSE_LONGEST);
            }
            opened => {
                if waits && opened.is_ok() {
                    tracing::info!("the database answers");
                }
                return opened;
            }
        }
    }
}
