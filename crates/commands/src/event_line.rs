//! An event of a session as a line of text.

use serde_json::Value;

/// The width of the column with the name of the event.
const NAME_CHARS: usize = 12;

/// The line of an event.
pub(crate) fn event_line(name: &str, payload: &Value) -> String {
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => plain(text),
        other => other.to_string(),
    };
    let field = |field: &str| text(&payload[field]);
    let who = |nickname: String, id: String| match id.is_empty() {
        true => nickname,
        false => format!("{nickname} ({id})"),
    };
    let rest = match name {
        "CHAT" => {
            let nickname = text(&payload["profile"]["nickname"]);
            format!("{}: {}", who(nickname, field("senderChannelId")), field("content"))
        }
        "DONATION" => {
            let donator = who(field("donatorNickname"), field("donatorChannelId"));
            format!("{donator}: {} won: {}", field("payAmount"), field("donationText"))
        }
        "SUBSCRIPTION" => {
            let subscriber = who(field("subscriberNickname"), field("subscriberChannelId"));
            format!(
                "{subscriber}: tier {} ({}), month {}",
                field("tierNo"),
                field("tierName"),
                field("month")
            )
        }
        "SYSTEM" => {
            let data = payload["data"].as_object().into_iter().flatten();
            let data = data.map(|(name, value)| format!("  {name} {}", text(value)));
            format!("{}{}", field("type"), data.collect::<String>())
        }
        _ => plain(&payload.to_string()),
    };
    format!("{name:<NAME_CHARS$}  {rest}")
}

/// A text that cannot move the cursor of a terminal.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_event_is_one_line() {
        for (name, payload, expected) in [
            (
                "CHAT",
                json!({ "senderChannelId": "viewer", "profile": { "nickname": "누리" }, "content": "a\nb\u{1b}[2J" }),
                "CHAT          누리 (viewer): a b [2J",
            ),
            (
                "DONATION",
                json!({ "donatorNickname": "익명의 후원자", "donatorChannelId": "", "payAmount": "1000",
                        "donationText": "hi" }),
                "DONATION      익명의 후원자: 1000 won: hi",
            ),
            (
                "SUBSCRIPTION",
                json!({ "subscriberNickname": "별", "subscriberChannelId": "b", "tierNo": 2, "tierName": "열혈팬",
                        "month": 3 }),
                "SUBSCRIPTION  별 (b): tier 2 (열혈팬), month 3",
            ),
            (
                "SYSTEM",
                json!({ "type": "subscribed", "data": { "channelId": "c", "eventType": "CHAT" } }),
                "SYSTEM        subscribed  channelId c  eventType CHAT",
            ),
            ("NEW", json!({ "a": 1 }), "NEW           {\"a\":1}"),
        ] {
            assert_eq!(event_line(name, &payload), expected);
        }
    }
}
