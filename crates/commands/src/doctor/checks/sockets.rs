//! The checks of sockets.

use std::time::Duration;

use crate::doctor::finding::{Judged, Judgement};
use crate::doctor::rules;
use crate::doctor::stage::Stage;

/// How long the service is away when it starts again.
const AWAY: Duration = Duration::from_secs(2);

/// The socket closes.
pub async fn closed(stage: &mut Stage) -> Judged {
    let (since, events) = (stage.now(), stage.events());
    stage.close_sessions().await?;
    comes_back(stage, since, events, "the socket closed").await
}

/// The service stops, and starts again.
pub async fn restart(stage: &mut Stage) -> Judged {
    stage.look().await?;
    let (since, events) = (stage.now(), stage.events());
    stage.restart(AWAY).await?;
    comes_back(stage, since, events, "the service was started again").await
}

/// Waits for the bot, and judges how it came back.
async fn comes_back(
    stage: &mut Stage,
    since: usize,
    events: std::collections::BTreeSet<String>,
    why: &str,
) -> Judged {
    let limit = stage.patience * 2;
    stage.until(limit, |stage| stage.is_back(since, &events)).await?;
    stage.watch(Duration::from_millis(500)).await?;
    let again = rules::reconnected(&events, &stage.exchanges[since..], why);
    let reused = rules::reused_session_url(&stage.exchanges);
    let found: Vec<_> = [reused, again, stage.ended()].into_iter().flatten().collect();
    Ok(Judgement::of(found, "it connected with a new session URL, and subscribed again"))
}
