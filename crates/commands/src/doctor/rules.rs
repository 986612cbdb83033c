//! The rules of the doctor: records in, findings out. No rule waits or asks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::exchange::{Exchange, Frame, subscribed};
use super::finding::{Finding, Misdeed};

/// Maximum number of records in a finding.
const RECORDS_MAX: usize = 6;
/// The window in which refused calls are counted.
const WINDOW_MS: i64 = 10_000;
/// The clock of the record and the clock of the bot may differ by this.
const TOLERANCE_MS: i64 = 250;
/// Minimum pause before a failed call is repeated. The documentation asks for more.
const PAUSE_MS_MIN: i64 = 500;

fn finding(misdeed: Misdeed, saw: String, exchanges: &[&Exchange]) -> Finding {
    let records = exchanges.iter().take(RECORDS_MAX).map(|exchange| exchange.line()).collect();
    Finding { misdeed, saw, records }
}

/// Refused calls, although nothing was wrong.
pub fn refused(exchanges: &[Exchange]) -> Option<Finding> {
    let refused: Vec<_> =
        exchanges.iter().filter(|exchange| !exchange.is_success() && !exchange.is_transport()).collect();
    let saw = format!("{} calls were refused, although nothing was wrong with the service", refused.len());
    (!refused.is_empty()).then(|| finding(Misdeed::Refused, saw, &refused))
}

/// A session URL that was used again after it had opened a session.
pub fn reused_session_url(exchanges: &[Exchange]) -> Option<Finding> {
    let mut used: BTreeMap<&str, &Exchange> = BTreeMap::new();
    for exchange in exchanges.iter().filter(|exchange| exchange.is_handshake()) {
        let Some(auth) = exchange.query["auth"].as_str() else { continue };
        if let Some(first) = used.get(auth) {
            let saw = format!("it connected with the session URL {auth} again");
            return Some(finding(Misdeed::ReusedSessionUrl, saw, &[first, exchange]));
        }
        if exchange.is_success() {
            used.insert(auth, exchange);
        }
    }
    None
}

/// A refresh token that was sent more often than allowed.
pub fn reused_refresh_token(exchanges: &[Exchange], uses_max: usize) -> Option<Finding> {
    let mut uses: BTreeMap<&str, Vec<&Exchange>> = BTreeMap::new();
    for exchange in exchanges {
        if let Some(token) = exchange.refresh_token() {
            uses.entry(token).or_default().push(exchange);
        }
    }
    let (token, uses) = uses.into_iter().find(|(_, uses)| uses.len() > uses_max)?;
    let saw = format!("it sent the refresh token {token} {} times", uses.len());
    Some(finding(Misdeed::ReusedRefreshToken, saw, &uses))
}

/// After the first refusal with 401 the bot has to refresh, and to go on with the new token.
pub fn refreshed(exchanges: &[Exchange]) -> Option<Finding> {
    let refused_at = exchanges
        .iter()
        .position(|exchange| exchange.status == Some(401) && exchange.path.starts_with("/open/"))?;
    let after = &exchanges[refused_at..];
    let refresh =
        after.iter().position(|exchange| exchange.refresh_token().is_some() && exchange.is_success());
    let shown: Vec<&Exchange> = after.iter().collect();
    match refresh {
        None => {
            let saw = "its access token had expired, and it did not refresh it".to_owned();
            Some(finding(Misdeed::DidNotRefresh, saw, &shown))
        }
        Some(at) => {
            let went_on = |exchange: &Exchange| exchange.path.starts_with("/open/") && exchange.is_success();
            let old = after[at + 1..].iter().filter(|exchange| exchange.status == Some(401)).count();
            if after[at + 1..].iter().any(went_on) {
                return None;
            }
            let saw =
                format!("it refreshed its tokens, and then made {old} calls that were refused with 401");
            Some(finding(Misdeed::KeptOldToken, saw, &shown))
        }
    }
}

/// More refused calls within ten seconds than allowed.
pub fn hammered(exchanges: &[Exchange], refused_max: usize) -> Option<Finding> {
    let refused: Vec<&Exchange> =
        exchanges.iter().filter(|exchange| !exchange.is_success() && !exchange.is_transport()).collect();
    let flood = refused.windows(refused_max + 1).find(|window| {
        let (first, last) = (window[0], window[refused_max]);
        last.at_ms - first.at_ms <= WINDOW_MS
    })?;
    let since = refused.iter().filter(|exchange| exchange.at_ms >= flood[0].at_ms);
    let number = since.filter(|exchange| exchange.at_ms - flood[0].at_ms <= WINDOW_MS).count();
    let saw = format!("it made {number} refused calls within 10 seconds; {refused_max} are enough");
    Some(finding(Misdeed::Hammered, saw, flood))
}

/// A call that came before `Retry-After` had passed.
pub fn ignored_retry_after(exchanges: &[Exchange], status: u16, retry_after: Duration) -> Option<Finding> {
    let wait_ms = i64::try_from(retry_after.as_millis()).unwrap_or(i64::MAX);
    for (at, refused) in exchanges.iter().enumerate().filter(|(_, exchange)| exchange.status == Some(status))
    {
        let early = exchanges[at + 1..]
            .iter()
            .find(|next| next.call == refused.call && next.at_ms - refused.at_ms < wait_ms - TOLERANCE_MS);
        if let Some(early) = early {
            let saw = format!(
                "it repeated the call {} ms after an answer with Retry-After: {}",
                early.at_ms - refused.at_ms,
                retry_after.as_secs()
            );
            return Some(finding(Misdeed::IgnoredRetryAfter, saw, &[refused, early]));
        }
    }
    None
}

/// Failed calls that were repeated without a pause.
pub fn did_not_back_off(exchanges: &[Exchange]) -> Option<Finding> {
    let is_failure = |exchange: &Exchange| exchange.status.is_none_or(|status| status >= 500);
    for (at, failed) in exchanges.iter().enumerate().filter(|(_, exchange)| is_failure(exchange)) {
        let Some(next) = exchanges[at + 1..].iter().find(|next| next.call == failed.call) else { continue };
        let pause_ms = next.at_ms - failed.at_ms;
        if pause_ms < PAUSE_MS_MIN - TOLERANCE_MS {
            let saw = format!("it repeated a failed call after {pause_ms} ms");
            return Some(finding(Misdeed::DidNotBackOff, saw, &[failed, next]));
        }
    }
    None
}

/// A session that ended, and was asked for again without a pause.
pub fn came_back_at_once(exchanges: &[Exchange], frames: &[Frame]) -> Option<Finding> {
    let ended = frames.iter().find(|frame| frame.event == "ended")?;
    let back = exchanges.iter().find(|exchange| exchange.is_return() && exchange.mark > ended.mark)?;
    let pause_ms = back.at_ms - ended.at_ms;
    let saw = format!("it asked for a session {pause_ms} ms after its session had ended ({})", ended.reason);
    (pause_ms < PAUSE_MS_MIN - TOLERANCE_MS).then(|| finding(Misdeed::DidNotBackOff, saw, &[back]))
}

/// Events that were subscribed before, and are not any more.
pub fn did_not_resubscribe(before: &BTreeSet<String>, after: &[Exchange]) -> Option<Finding> {
    let again = subscribed(after);
    let missing: Vec<_> = before.difference(&again).cloned().collect();
    let saw = format!("on the new session it did not subscribe to {}", missing.join(", "));
    let shown: Vec<&Exchange> = after.iter().collect();
    (!missing.is_empty()).then(|| finding(Misdeed::DidNotResubscribe, saw, &shown))
}

/// After the session has ended the bot has to ask for a URL, to connect with it, and to subscribe again.
pub fn reconnected(before: &BTreeSet<String>, after: &[Exchange], why: &str) -> Option<Finding> {
    let connected = after.iter().any(|exchange| exchange.is_handshake() && exchange.is_success());
    if !connected {
        let saw = format!("{why}, and it did not connect again");
        let shown: Vec<&Exchange> = after.iter().collect();
        return Some(finding(Misdeed::DidNotReconnect, saw, &shown));
    }
    did_not_resubscribe(before, after)
}

/// A subscribe call that came before SYSTEM `connected` of its session.
pub fn subscribed_early(exchanges: &[Exchange], frames: &[Frame]) -> Option<Finding> {
    let connected = |exchange: &Exchange| {
        frames.iter().any(|frame| {
            Some(frame.session.as_str()) == exchange.session_key()
                && frame.event == "SYSTEM/connected"
                && frame.mark < exchange.mark
        })
    };
    let early = exchanges.iter().find(|exchange| exchange.subscribes().is_some() && !connected(exchange))?;
    let saw = "it subscribed before SYSTEM `connected` of the session".to_owned();
    Some(finding(Misdeed::SubscribedEarly, saw, &[early]))
}

/// An event to which a session was subscribed twice.
pub fn subscribed_twice(exchanges: &[Exchange]) -> Option<Finding> {
    let mut done: BTreeMap<_, &Exchange> = BTreeMap::new();
    for exchange in exchanges.iter().filter(|exchange| exchange.is_success()) {
        let (Some(event), Some(session)) = (exchange.subscribes(), exchange.session_key()) else { continue };
        if let Some(first) = done.insert((session, event), exchange) {
            let saw = format!("it subscribed to {event} twice on one session");
            return Some(finding(Misdeed::SubscribedTwice, saw, &[first, exchange]));
        }
    }
    None
}

/// More than one new session.
pub fn connected_twice(exchanges: &[Exchange]) -> Option<Finding> {
    let opened: Vec<_> =
        exchanges.iter().filter(|exchange| exchange.is_handshake() && exchange.is_success()).collect();
    let saw = format!("it opened {} sessions, and had lost one", opened.len());
    (opened.len() > 1).then(|| finding(Misdeed::ConnectedTwice, saw, &opened))
}

/// More of these calls after a message that came twice than after a message that came once.
pub fn handled_twice(
    exchanges: &[Exchange],
    what: &str,
    [once, twice]: [usize; 2],
    is_meant: impl Fn(&Exchange) -> bool,
) -> Option<Finding> {
    let calls: Vec<_> = exchanges.iter().filter(|call| is_meant(call)).collect();
    let saw = format!("it made {once} calls after {what}, and {twice} after one that came twice");
    (twice > once).then(|| finding(Misdeed::HandledTwice, saw, &calls))
}

/// A session that ended while many events came.
pub fn fell_behind(frames: &[Frame]) -> Option<Finding> {
    let ended = frames.iter().find(|frame| frame.event == "ended")?;
    let saw = format!("its session ended during the storm: {}", ended.reason);
    Some(finding(Misdeed::FellBehind, saw, &[]))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A call at a time, with its status; 0 for no answer.
    fn call(at_ms: i64, call: &str, status: u16) -> Exchange {
        let (_, path) = call.split_once(' ').expect("a method and a path");
        Exchange {
            mark: 1,
            at_ms,
            call: call.to_owned(),
            path: path.to_owned(),
            status: Some(status).filter(|status| *status != 0),
            reason: String::new(),
            query: Value::Null,
            body: Value::Null,
        }
    }

    fn refresh(at_ms: i64, token: &str, status: u16) -> Exchange {
        let body = json!({ "grantType": "refresh_token", "refreshToken": token });
        Exchange { body, ..call(at_ms, "POST /auth/v1/token", status) }
    }

    fn handshake(auth: &str, status: u16) -> Exchange {
        Exchange { query: json!({ "auth": auth }), ..call(0, "GET /socket.io/", status) }
    }

    fn subscribe(event: &str, status: u16) -> Exchange {
        call(0, &format!("POST /open/v1/sessions/events/subscribe/{event}"), status)
    }

    fn misdeed(finding: Option<Finding>) -> Option<Misdeed> {
        finding.map(|finding| finding.misdeed)
    }

    const ME: &str = "GET /open/v1/users/me";

    #[test]
    fn a_session_url_works_once() {
        let check = |calls: &[Exchange]| misdeed(reused_session_url(calls));
        assert_eq!(check(&[handshake("***a", 101), handshake("***b", 101)]), None);
        // A handshake that failed may be repeated.
        assert_eq!(check(&[handshake("***a", 503), handshake("***a", 101)]), None);
        let again = [handshake("***a", 101), handshake("***b", 101), handshake("***a", 401)];
        assert_eq!(check(&again), Some(Misdeed::ReusedSessionUrl));
    }

    #[test]
    fn a_refresh_token_is_sent_as_often_as_allowed() {
        let calls = [refresh(0, "***a", 0), refresh(1, "***a", 401), refresh(2, "***b", 200)];
        assert_eq!(misdeed(reused_refresh_token(&calls, 1)), Some(Misdeed::ReusedRefreshToken));
        assert_eq!(misdeed(reused_refresh_token(&calls, 2)), None);
    }

    #[test]
    fn a_bot_refreshes_and_goes_on_with_the_new_token() {
        for (calls, expected) in [
            (vec![call(0, ME, 200)], None),
            (vec![call(0, ME, 401), refresh(1, "***a", 200), call(2, ME, 200)], None),
            (vec![call(0, ME, 401), call(1, ME, 401)], Some(Misdeed::DidNotRefresh)),
            (vec![call(0, ME, 401), refresh(1, "***a", 401)], Some(Misdeed::DidNotRefresh)),
            (vec![call(0, ME, 401), refresh(1, "***a", 200), call(2, ME, 401)], Some(Misdeed::KeptOldToken)),
        ] {
            assert_eq!(misdeed(refreshed(&calls)), expected, "{calls:?}");
        }
    }

    #[test]
    fn refused_calls_are_counted_within_ten_seconds() {
        let calls = |gap_ms: i64| (0..6).map(|turn| call(turn * gap_ms, ME, 401)).collect::<Vec<_>>();
        assert_eq!(misdeed(hammered(&calls(100), 5)), Some(Misdeed::Hammered));
        assert_eq!(misdeed(hammered(&calls(2_000), 5)), Some(Misdeed::Hammered));
        assert_eq!(misdeed(hammered(&calls(2_001), 5)), None);
        assert_eq!(misdeed(hammered(&calls(100), 6)), None);
        assert_eq!(misdeed(hammered(&(0..9).map(|turn| call(turn, ME, 200)).collect::<Vec<_>>(), 5)), None);
    }

    #[test]
    fn retry_after_is_waited_for() {
        let check = |at_ms: i64, next: &str| {
            let calls = [call(0, ME, 429), call(at_ms, next, 200)];
            misdeed(ignored_retry_after(&calls, 429, Duration::from_secs(3)))
        };
        assert_eq!(check(2_000, ME), Some(Misdeed::IgnoredRetryAfter));
        assert_eq!(check(2_900, ME), None);
        assert_eq!(check(100, "GET /open/v1/lives"), None);
    }

    #[test]
    fn a_failed_call_is_repeated_after_a_pause() {
        for (status, pause_ms, expected) in [
            (500, 100, Some(Misdeed::DidNotBackOff)),
            (0, 100, Some(Misdeed::DidNotBackOff)),
            (500, 1_000, None),
            (403, 100, None),
        ] {
            let calls = [call(0, ME, status), call(pause_ms, ME, 200)];
            assert_eq!(misdeed(did_not_back_off(&calls)), expected, "{status} {pause_ms}");
        }
    }

    #[test]
    fn a_new_session_is_subscribed_like_the_old_one() {
        let before = BTreeSet::from(["chat".to_owned(), "donation".to_owned()]);
        let after = |calls: &[Exchange]| misdeed(reconnected(&before, calls, "the socket closed"));
        let (chat, donation) = (subscribe("chat", 200), subscribe("donation", 200));
        assert_eq!(after(&[handshake("***b", 101), chat.clone(), donation]), None);
        assert_eq!(after(&[handshake("***b", 101), chat.clone()]), Some(Misdeed::DidNotResubscribe));
        let refused = [handshake("***b", 101), chat, subscribe("donation", 404)];
        assert_eq!(after(&refused), Some(Misdeed::DidNotResubscribe));
        assert_eq!(after(&[handshake("***b", 401)]), Some(Misdeed::DidNotReconnect));
        assert_eq!(after(&[]), Some(Misdeed::DidNotReconnect));
    }

    fn frame(mark: u64, session: &str, event: &str) -> Frame {
        Frame {
            mark,
            at_ms: 0,
            session: session.to_owned(),
            event: event.to_owned(),
            reason: "slow_consumer".to_owned(),
        }
    }

    #[test]
    fn a_session_is_subscribed_after_it_is_connected_and_once() {
        let on = |session: &str, mark: u64| {
            let query = json!({ "sessionKey": session });
            Exchange { mark, query, ..subscribe("chat", 200) }
        };
        let frames = [frame(5, "one", "SYSTEM/connected"), frame(9, "two", "SYSTEM/connected")];
        let early = |calls: &[Exchange]| misdeed(subscribed_early(calls, &frames));
        assert_eq!(early(&[on("one", 6), on("two", 10)]), None);
        assert_eq!(early(&[on("one", 4)]), Some(Misdeed::SubscribedEarly));
        assert_eq!(early(&[on("two", 6)]), Some(Misdeed::SubscribedEarly));
        assert_eq!(misdeed(subscribed_twice(&[on("one", 6), on("two", 10)])), None);
        assert_eq!(misdeed(subscribed_twice(&[on("one", 6), on("one", 7)])), Some(Misdeed::SubscribedTwice));
    }

    #[test]
    fn a_session_is_asked_for_again_after_a_pause() {
        let check = |mark: u64, at_ms: i64, path: &str| {
            let back = Exchange { mark, ..call(at_ms, path, 200) };
            misdeed(came_back_at_once(&[back], &[frame(5, "one", "ended")]))
        };
        assert_eq!(check(6, 100, "GET /open/v1/sessions/auth"), Some(Misdeed::DidNotBackOff));
        assert_eq!(check(6, 1_000, "GET /open/v1/sessions/auth"), None);
        // Another call, and a session before the end.
        assert_eq!(check(6, 100, ME), None);
        assert_eq!(check(4, 0, "GET /open/v1/sessions/auth"), None);
    }

    #[test]
    fn one_session_replaces_one_and_keeps_up() {
        assert_eq!(misdeed(connected_twice(&[handshake("***a", 101), handshake("***b", 401)])), None);
        let twice = [handshake("***a", 101), handshake("***b", 200)];
        assert_eq!(misdeed(connected_twice(&twice)), Some(Misdeed::ConnectedTwice));
        assert_eq!(misdeed(fell_behind(&[frame(1, "one", "CHAT")])), None);
        assert_eq!(misdeed(fell_behind(&[frame(1, "one", "ended")])), Some(Misdeed::FellBehind));
    }

    #[test]
    fn nothing_is_refused_in_a_clean_run() {
        assert_eq!(misdeed(refused(&[call(0, ME, 200)])), None);
        assert_eq!(misdeed(refused(&[call(0, ME, 404)])), Some(Misdeed::Refused));
    }
}
