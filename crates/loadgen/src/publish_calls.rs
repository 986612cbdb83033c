//! The calls that publish messages to a server.

use std::fmt::Write;

use serde_json::json;

use crate::http::{Answer, Body, Call, Client};
use crate::ledger::Mark;
use crate::shared::Shared;

/// A call that publishes one message to one channel. It has no `Debug`, because it contains a credential.
pub(crate) struct PublishCall {
    /// The path of the call.
    pub(crate) path: String,
    /// `Bearer …`
    pub(crate) authorization: String,
    /// The sender, if the call needs one.
    pub(crate) sender: Option<String>,
}

/// How messages are published. It has no `Debug`, because it contains credentials.
pub(crate) enum PublishCalls {
    /// One message in each call, with the call of its channel.
    Single(Vec<PublishCall>),
    /// Several messages in each call: `POST /platform/v1/events`.
    Bulk {
        /// `Bearer …`
        authorization: String,
        /// The sender.
        sender: String,
    },
    /// Several messages in each call: `POST /publish`, which the peers of `bench/` have.
    Peer {
        /// The sender.
        sender: String,
    },
}

impl PublishCalls {
    /// Publishes the messages in one call.
    ///
    /// # Errors
    /// The kind of error. Any of the messages may have been published then.
    pub(crate) async fn publish(
        &self,
        client: &mut Client,
        shared: &Shared,
        marks: &[Mark],
    ) -> Result<(), String> {
        match self {
            Self::Single(publish_calls) => {
                for mark in marks {
                    publish_one(client, &publish_calls[mark.channel as usize], mark).await?;
                }
                Ok(())
            }
            Self::Bulk { authorization, sender } => {
                let headers = [("Authorization", authorization.as_str())];
                let lines = bulk(shared, sender, marks);
                let answer = post(client, "/platform/v1/events", &headers, Body::Lines(&lines)).await?;
                let content = answer.content()?;
                let accepted = content.get("accepted").and_then(serde_json::Value::as_u64);
                if accepted == Some(marks.len() as u64) {
                    Ok(())
                } else {
                    Err("lines were refused".to_owned())
                }
            }
            Self::Peer { sender } => {
                let lines = for_peer(shared, sender, marks);
                let status = post(client, "/publish", &[], Body::Lines(&lines)).await?.head.status;
                if matches!(status, 200..300) { Ok(()) } else { Err(format!("HTTP {status}")) }
            }
        }
    }
}

async fn publish_one(client: &mut Client, publish_call: &PublishCall, mark: &Mark) -> Result<(), String> {
    let mut body = json!({ "message": mark.text() });
    if let Some(sender) = &publish_call.sender {
        body["senderChannelId"] = sender.as_str().into();
    }
    let headers = [("Authorization", publish_call.authorization.as_str())];
    let content =
        post(client, &publish_call.path, &headers, Body::Json(&body.to_string())).await?.content()?;
    let has_id = content.get("messageId").is_some_and(serde_json::Value::is_string);
    if has_id { Ok(()) } else { Err("no messageId".to_owned()) }
}

async fn post(
    client: &mut Client,
    path: &str,
    headers: &[(&str, &str)],
    body: Body<'_>,
) -> Result<Answer, String> {
    let call = Call { method: "POST", path, headers, body };
    client.call(&call).await.map_err(|broken| broken.kind().to_owned())
}

fn bulk(shared: &Shared, sender: &str, marks: &[Mark]) -> String {
    let line = |mark: &Mark| {
        let channel = shared.channels[mark.channel as usize].as_str();
        let message = mark.text();
        json!({ "kind": "chat", "channelId": channel, "senderChannelId": sender, "message": message })
            .to_string()
            + "\n"
    };
    marks.iter().map(line).collect()
}

/// Lines with a room, a tab and a payload. The payload equals Stagedoor's, to the byte, so that peers deliver
/// the same amount.
fn for_peer(shared: &Shared, sender: &str, marks: &[Mark]) -> String {
    let mut lines = String::new();
    for mark in marks {
        let (room, message) = (mark.channel, mark.text());
        let channel = shared.channels[room as usize].as_str();
        let payload = format!(
            r#"{{"channelId":"{channel}","senderChannelId":"{sender}","chatChannelId":"chat-{channel}","#
        ) + &format!(
            r#""profile":{{"nickname":"{sender}","badges":[],"verifiedMark":false}},"userRoleCode":"common_user","#
        ) + &format!(r#""content":"{message}","emojis":{{}},"messageTime":1767225600000}}"#);
        // Writing into a String cannot fail.
        let _ = writeln!(lines, "{room}\t{}", ascii(&payload));
    }
    lines
}

/// JSON with all non-ASCII characters escaped, as Stagedoor sends it.
fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    for character in json.chars() {
        if character.is_ascii() {
            out.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::http::Origin;
    use crate::shared::Entry;

    fn shared() -> Shared {
        let origin = Origin { address: "127.0.0.1:1".parse().unwrap(), host: String::new() };
        let channels = vec!["c0".to_owned(), "c1".to_owned()];
        Shared::new((Clock::start(), origin), Vec::new(), channels, 1, Entry::Joins, 1)
    }

    fn marks() -> [Mark; 2] {
        [0, 1].map(|channel| Mark { channel, stream: 0, number: 7, called: 9 })
    }

    #[test]
    fn each_message_of_a_call_has_its_own_line() {
        let text = bulk(&shared(), "v", &marks());
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        for (line, mark) in lines.iter().zip(marks()) {
            assert_eq!((&line["kind"], &line["senderChannelId"]), (&"chat".into(), &"v".into()));
            assert_eq!(line["channelId"], format!("c{}", mark.channel));
            assert_eq!(line["message"], mark.text());
        }
    }

    #[test]
    fn peers_get_the_payload_that_sessions_expect_in_ascii() {
        let text = for_peer(&shared(), "v", &marks());
        assert!(text.is_ascii() && text.lines().count() == 2);
        for (line, mark) in text.lines().zip(marks()) {
            let (room, payload) = line.split_once('\t').unwrap();
            assert_eq!(room, mark.channel.to_string());
            let payload: serde_json::Value = serde_json::from_str(payload).unwrap();
            let channel = format!("c{}", mark.channel);
            assert!(crate::session::is_chat(&payload, &channel, &mark.text()), "{payload}");
        }
    }
}
