//! The numbers in the texts of the documentation. They come from the constants of the service, so that no
//! text can differ from them: a text has `{=name}` in place of a number.

use domain::limits::{
    ACCESS_TOKEN_LIFETIME_MS, APPLICATION_RESTORABLE_MS, BODY_BYTES_MAX, BROWSER_SESSION_LIFETIME_MS,
    CHANNEL_IDS_MAX, CHAT_MESSAGE_CHARS_MAX, CHAT_SEND_QUOTA, CLAIM_ID_FILTER_MAX, CLAIM_PAGE_SIZE_MAX,
    CLAIM_UPDATE_IDS_MAX, CLIENT_QUOTA, CLIENT_SESSIONS_MAX, CODE_LIFETIME_MS, DAY_MS,
    DISCONNECTED_SESSION_VISIBLE_MS, ENDED_TOKENS_KEPT_MS, FAILURE_QUOTA, HOUR_MS, LISTENER_ATTEMPTS_MAX,
    LIVE_WALK_MS, MINUTE_MS, RECONNECT_WAIT_MAX_MS, RECONNECT_WAIT_MS, REDIRECT_URIS_MAX,
    REFRESH_TOKEN_LIFETIME_MS, REUSE_GRACE_MS, SECOND_MS, SESSION_URL_LIFETIME_MS, SESSION_URL_QUOTA,
    SLOW_MODE_MAX_MS, SUBSCRIPTIONS_PER_SESSION_MAX, TAGS_MAX, TEMPORARY_RESTRICTION_HIDES_MS,
    TEMPORARY_RESTRICTION_MS, TOKEN_QUOTA, UNUSED_APPLICATION_MS, USER_QUOTA, USER_SESSIONS_MAX,
    WEBHOOK_DELIVERIES_KEPT_MS, WEBHOOK_FAILING_MAX_MS, WEBHOOK_LEASE_MS, WEBHOOK_RETRY_MS,
    WEBHOOK_SECRET_OVERLAP_MS, WEBHOOK_SIGNATURE_AGE_MS,
};
use domain::quota::Quota;

use crate::pages::Lang;

/// A text with its numbers. An unknown name stays as it is, which a test forbids.
pub fn fill(text: &str, lang: Lang) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{=") {
        filled.push_str(before);
        match after.split_once('}').and_then(|(name, after)| Some((figure(name, lang)?, after))) {
            Some((figure, after)) => {
                filled.push_str(&figure);
                rest = after;
            }
            None => {
                filled.push_str("{=");
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// The number with a name, with its unit.
fn figure(name: &str, lang: Lang) -> Option<String> {
    duration_of(name)
        .map(|ms| duration(ms, lang))
        .or_else(|| count_of(name))
        .or_else(|| quota_of(name).map(|quota| calls(quota, lang)))
        .or_else(|| (name == "webhook_retries").then(|| retries(lang)))
}

fn duration_of(name: &str) -> Option<i64> {
    Some(match name {
        "access_token" => ACCESS_TOKEN_LIFETIME_MS,
        "refresh_token" => REFRESH_TOKEN_LIFETIME_MS,
        "code" => CODE_LIFETIME_MS,
        "reuse_grace" => REUSE_GRACE_MS,
        "ended_tokens_kept" => ENDED_TOKENS_KEPT_MS,
        "browser_session" => BROWSER_SESSION_LIFETIME_MS,
        "session_url" => SESSION_URL_LIFETIME_MS,
        "sessions_visible" => DISCONNECTED_SESSION_VISIBLE_MS,
        "unused_application" => UNUSED_APPLICATION_MS,
        "restorable" => APPLICATION_RESTORABLE_MS,
        "temporary_restriction" => TEMPORARY_RESTRICTION_MS,
        "temporary_hides" => TEMPORARY_RESTRICTION_HIDES_MS,
        "live_walk" => LIVE_WALK_MS,
        "slow_mode_max" => SLOW_MODE_MAX_MS,
        "webhook_failing" => WEBHOOK_FAILING_MAX_MS,
        "webhook_kept" => WEBHOOK_DELIVERIES_KEPT_MS,
        "webhook_overlap" => WEBHOOK_SECRET_OVERLAP_MS,
        "signature_age" => WEBHOOK_SIGNATURE_AGE_MS,
        "reconnect_min" => RECONNECT_WAIT_MS[0],
        "reconnect_from" => RECONNECT_WAIT_MS[1],
        "reconnect_max" => RECONNECT_WAIT_MAX_MS,
        // The lease is three times the deadline of an attempt.
        "webhook_timeout" => WEBHOOK_LEASE_MS / 3,
        _ => return None,
    })
}

fn count_of(name: &str) -> Option<String> {
    Some(match name {
        "access_token_s" => (ACCESS_TOKEN_LIFETIME_MS / SECOND_MS).to_string(),
        "client_sessions" => CLIENT_SESSIONS_MAX.to_string(),
        "user_sessions" => USER_SESSIONS_MAX.to_string(),
        "subscriptions" => SUBSCRIPTIONS_PER_SESSION_MAX.to_string(),
        "chat_chars" => CHAT_MESSAGE_CHARS_MAX.to_string(),
        "tags" => TAGS_MAX.to_string(),
        "channel_ids" => CHANNEL_IDS_MAX.to_string(),
        "claim_ids" => CLAIM_ID_FILTER_MAX.to_string(),
        "claim_update_ids" => CLAIM_UPDATE_IDS_MAX.to_string(),
        "claim_page" => thousands(CLAIM_PAGE_SIZE_MAX),
        "redirect_uris" => REDIRECT_URIS_MAX.to_string(),
        "webhook_attempts" => (WEBHOOK_RETRY_MS.len() + 1).to_string(),
        "listener_attempts" => LISTENER_ATTEMPTS_MAX.to_string(),
        "body_kib" => format!("{} KiB", BODY_BYTES_MAX / 1024),
        _ => return None,
    })
}

fn quota_of(name: &str) -> Option<Quota> {
    Some(match name {
        "client_quota" => CLIENT_QUOTA,
        "user_quota" => USER_QUOTA,
        "token_quota" => TOKEN_QUOTA,
        "failure_quota" => FAILURE_QUOTA,
        "session_url_quota" => SESSION_URL_QUOTA,
        "chat_quota" => CHAT_SEND_QUOTA,
        _ => return None,
    })
}

fn thousands(number: i64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", number / 1_000, number % 1_000),
    }
}

/// A duration in the largest unit that fits.
pub fn duration(ms: i64, lang: Lang) -> String {
    let units = [(DAY_MS, "일", "day"), (HOUR_MS, "시간", "hour"), (MINUTE_MS, "분", "minute")];
    let fits = units.into_iter().find(|(unit, ..)| ms >= *unit && ms % unit == 0);
    let (unit, korean, english) = fits.unwrap_or((SECOND_MS, "초", "second"));
    let number = ms / unit;
    match lang {
        Lang::Ko => format!("{number}{korean}"),
        Lang::En if number == 1 => format!("1 {english}"),
        Lang::En => format!("{number} {english}s"),
    }
}

/// A quota: `800 calls in 1 minute`.
pub fn calls(quota: Quota, lang: Lang) -> String {
    let Quota { limit, period_s } = quota;
    let period = duration(i64::from(period_s) * SECOND_MS, lang);
    match lang {
        Lang::Ko => format!("{period}에 {limit}회"),
        Lang::En => format!("{limit} in {period}"),
    }
}

fn retries(lang: Lang) -> String {
    WEBHOOK_RETRY_MS.map(|ms| duration(ms, lang)).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_gets_its_numbers_with_units() {
        let text = "{=access_token}, {=session_url}, {=code}; {=chat_quota}: {=unknown} {a} {=";
        assert_eq!(
            fill(text, Lang::En),
            "1 day, 30 seconds, 10 minutes; 20 in 30 seconds: {=unknown} {a} {="
        );
        assert_eq!(fill("{=chat_quota}", Lang::Ko), "30초에 20회");
        assert_eq!(fill("{=claim_page} {=webhook_attempts}", Lang::Ko), "1,000 8");
    }

    #[test]
    fn an_hour_and_a_half_is_in_minutes() {
        assert_eq!(duration(90 * MINUTE_MS, Lang::En), "90 minutes");
        assert_eq!(duration(1_500, Lang::Ko), "1초");
    }
}
