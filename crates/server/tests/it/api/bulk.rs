//! Events in bulk (`POST /platform/v1/events`).

use serde_json::{Value, json};
use testkit::{Browser, Connection, Person, Request, Response, Setup, Socket, World, both};

use crate::fixture::{Fixture, wrong};

const TARGET: &str = "/platform/v1/events";
const JSON: &str = "UTF-8로 된 64 KiB 이하의 올바른 JSON이어야 합니다.";
const KNOWN: &str = "존재하는 채널이어야 합니다.";

async fn report(world: &World, body: impl Into<Vec<u8>>) -> Response {
    world.operator(Request::post(TARGET).body(body)).await
}

fn ndjson(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn chat(message: &str) -> Value {
    json!({ "kind": "chat", "channelId": "haneul", "senderChannelId": "byeol", "message": message })
}

/// A session of the streamer that receives these events.
async fn listen(world: &World, fixture: &Fixture, events: &[&str]) -> Socket {
    let mut socket = world.open_user_session(&fixture.tokens.access).await;
    for event in events {
        world.subscribe(&fixture.tokens.access, event, socket.session_key()).await.content();
        socket.system("subscribed").await;
    }
    socket
}

/// Line number, code and message of each refused line.
fn refused(answer: &Response) -> Vec<(u64, u64, String)> {
    let content = answer.content();
    let number = |value: &Value| value.as_u64().expect("a number");
    let line = |line: &Value| {
        let message = line["message"].as_str().expect("a text").to_owned();
        (number(&line["line"]), number(&line["code"]), message)
    };
    let lines: Vec<_> = content["refused"].as_array().expect("a list").iter().map(line).collect();
    assert_eq!(number(&content["refusedCount"]), lines.len() as u64);
    lines
}

/// An event without the parts that differ between two equal messages: the time, and the badge of a viewer who
/// has subscribed in between.
fn untimed(event: Option<(String, String)>) -> (String, Value) {
    let (name, payload) = event.expect("an event");
    let mut payload: Value = serde_json::from_str(&payload).expect("JSON");
    if name == "CHAT" {
        payload["messageTime"].take();
        payload["profile"]["badges"].take();
    }
    (name, payload)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_has_the_effect_of_its_single_call() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let mut socket = listen(&world, &fixture, &["chat", "donation", "subscription"]).await;
        let entries = [
            ("chat", "chats", json!({ "senderChannelId": "byeol", "message": "안녕", "emojis": { "a": "https://e.example/" } })),
            ("donation", "donations", json!({ "donatorChannelId": "byeol", "donationType": "VIDEO", "payAmount": "1000", "donationText": "힘" })),
            ("subscription", "subscriptions", json!({ "subscriberChannelId": "byeol", "tierNo": 2, "tierName": "팬", "month": 3 })),
        ];
        let mut lines = Vec::new();
        let mut expected = Vec::new();
        for (kind, path, body) in entries {
            world.happen("haneul", path, &body).await.content();
            expected.push(socket.next_event().await.expect("an event"));
            let mut line = body;
            line["kind"] = json!(kind);
            line["channelId"] = json!("haneul");
            lines.push(line);
        }
        let answer = report(&world, ndjson(&lines)).await;
        assert_eq!(
            answer.text(),
            r#"{"code":200,"message":null,"content":{"accepted":3,"refused":[],"refusedCount":0}}"#
        );
        for event in expected {
            assert_eq!(untimed(socket.next_event().await), untimed(Some(event)));
        }
        socket.ping().await;
    })
    .await;
}

/// Followers and managers of the streamer, and the ids of all claims.
async fn relations(world: &World, fixture: &Fixture) -> [Vec<String>; 3] {
    let ids = |answer: Response, field: &str| {
        let id = |item: &Value| item[field].as_str().expect("a text").to_owned();
        answer.content()["data"].as_array().expect("a list").iter().map(id).collect()
    };
    let list = |path: &str| world.send(Request::get(path).bearer(&fixture.tokens.access));
    let app = &fixture.publisher.app;
    let claims = Request::get("/open/v1/drops/reward-claims").client(&app.client_id, &app.client_secret);
    [
        ids(list("/open/v1/channels/followers").await, "channelId"),
        ids(list("/open/v1/channels/streaming-roles").await, "managerChannelId"),
        ids(world.send(claims).await, "claimId"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn repeating_a_body_of_relations_and_claims_undoes_nothing() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        world.person("dal").create().await;
        let keyed = |n: usize, kind: &str, more: Value| {
            let mut line = json!({ "kind": kind, "channelId": "haneul", "key": n.to_string() });
            line.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            line
        };
        let reward = fixture.publisher.next_reward();
        let role = json!({ "managerChannelId": "dal", "userRole": "STREAMING_CHAT_MANAGER" });
        let claim = json!({ "campaignId": "voyage", "rewardId": reward, "claimId": "claim" });
        let lines = [
            keyed(
                0,
                "follow",
                json!({ "followerChannelId": "byeol", "createdDate": "2026-07-01T00:00:00Z" }),
            ),
            keyed(1, "follow", json!({ "followerChannelId": "dal" })),
            keyed(2, "unfollow", json!({ "followerChannelId": "byeol" })),
            keyed(3, "manager", role),
            keyed(
                4,
                "manager",
                json!({ "managerChannelId": "byeol", "userRole": "STREAMING_CHANNEL_MANAGER" }),
            ),
            keyed(5, "unmanager", json!({ "managerChannelId": "byeol" })),
            keyed(6, "claim", claim.clone()),
        ];
        for body in [ndjson(&lines), ndjson(&lines[..2]), ndjson(&lines[3..5]), ndjson(&lines[6..])] {
            assert_eq!(refused(&report(&world, body).await), []);
            let [followers, managers, claims] = relations(&world, &fixture).await;
            assert_eq!(
                (followers.join(" "), managers.join(" "), claims.join(" ")),
                ("dal".to_owned(), "haneul dal".to_owned(), "claim".to_owned())
            );
        }
        let wrongs = [
            keyed(7, "follow", json!({ "followerChannelId": "missing" })),
            keyed(7, "follow", json!({ "followerChannelId": "haneul" })),
            keyed(7, "follow", json!({ "followerChannelId": "dal", "createdDate": "yesterday" })),
            keyed(7, "unfollow", json!({})),
            keyed(7, "manager", json!({ "managerChannelId": "dal", "userRole": "STREAMING_CHANNEL_OWNER" })),
            keyed(7, "unmanager", json!({ "managerChannelId": "missing" })),
            keyed(7, "claim", claim),
        ];
        let answer = report(&world, ndjson(&wrongs)).await;
        let codes: Vec<_> = refused(&answer).into_iter().map(|(_, code, _)| code).collect();
        assert_eq!(codes, [404, 400, 400, 400, 400, 404, 400]);
        // Puts the channel on air and off air again.
        let on_air = async || {
            let app = &fixture.app;
            let request = Request::get("/open/v1/lives").client(&app.client_id, &app.client_secret);
            world.send(request).await.content()["data"].as_array().expect("a list").len()
        };
        for (lines, lives) in [
            (vec![keyed(8, "live", json!({ "liveTitle": "첫 방송", "concurrentUserCount": 3 }))], 1),
            (vec![keyed(9, "liveEnd", json!({})), keyed(8, "live", json!({ "liveTitle": "another" }))], 0),
        ] {
            let codes = refused(&report(&world, ndjson(&lines)).await);
            assert_eq!((codes.len(), on_air().await), (lines.len() - 1, lives));
        }
        let wrong_live = keyed(7, "live", json!({ "concurrentUserCount": -1 }));
        assert_eq!(refused(&report(&world, ndjson(&[wrong_live])).await)[0].1, 400);
        // None of these lines used its key up.
        let good = keyed(7, "follow", json!({ "followerChannelId": "byeol" }));
        assert_eq!(report(&world, ndjson(&[good])).await.content()["accepted"], 1);
    })
    .await;
}

fn channel(id: &str, more: &Value) -> Value {
    line("channel", "channelId", id, json!({ "channelName": format!("{id}의 방송") }), more)
}

fn category(id: &str, more: &Value) -> Value {
    let body = json!({ "categoryType": "GAME", "categoryValue": format!("{id} 게임") });
    line("category", "categoryId", id, body, more)
}

fn line(kind: &str, id_field: &str, id: &str, mut body: Value, more: &Value) -> Value {
    let line = body.as_object_mut().expect("an object");
    line.extend([("kind".to_owned(), json!(kind)), (id_field.to_owned(), json!(id))]);
    line.extend(more.as_object().expect("an object").clone());
    body
}

/// Whether these credentials open the consent page.
async fn signs_in(world: &World, fixture: &Fixture, channel_id: &str, login: &str, password: &str) -> bool {
    let [channel_id, login, password] = [channel_id, login, password].map(str::to_owned);
    let person = Person { name: channel_id.clone(), channel_id, login, password };
    let page = world.sign_in_page(&mut Browser::new(world.address()), &fixture.app, &person, "state").await;
    page.response.text().contains("value=\"allow\"")
}

#[tokio::test(flavor = "multi_thread")]
async fn later_lines_may_name_channels_and_categories_of_earlier_lines() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let picture = "https://images.example/p.png";
        let credentials = json!({ "login": "bom@example", "password": "correct horse" });
        let lines = [
            json!({ "kind": "live", "channelId": "bom" }),
            channel("bom", &credentials),
            channel("gaeul", &json!({ "channelImageUrl": picture, "verifiedMark": true, "realNameVerified": true })),
            json!({ "kind": "follow", "channelId": "haneul", "followerChannelId": "bom" }),
            json!({ "kind": "live", "channelId": "bom", "categoryId": "maze" }),
            category("maze", &json!({ "categoryType": "ETC", "posterImageUrl": picture })),
            json!({ "kind": "live", "channelId": "bom", "categoryId": "maze" }),
            channel("haneul", &json!({ "channelName": "새 하늘" })),
        ];
        let answer = report(&world, ndjson(&lines)).await;
        let unknown = wrong("categoryId", "존재하는 카테고리여야 합니다.");
        let early = [(1, 404, "NOT_FOUND".to_owned()), (5, 400, unknown)];
        assert_eq!(refused(&answer), early);
        assert_eq!(answer.content()["accepted"], 6);

        let channels = world.channels(&fixture.app, "channelIds=bom,gaeul").await.content();
        let mut by_line = channels["data"].as_array().expect("a list").clone();
        by_line.sort_by_key(|channel| channel["channelId"].to_string());
        assert_eq!(
            by_line,
            [
                json!({ "channelId": "bom", "channelName": "bom의 방송", "channelImageUrl": world.picture("channel"), "followerCount": 0, "verifiedMark": false }),
                json!({ "channelId": "gaeul", "channelName": "gaeul의 방송", "channelImageUrl": picture, "followerCount": 0, "verifiedMark": true }),
            ]
        );
        let found = world.categories(&fixture.app, "query=maze").await.content();
        let maze = json!({ "categoryType": "ETC", "categoryId": "maze", "categoryValue": "maze 게임", "posterImageUrl": picture });
        assert_eq!(found["data"], json!([maze]));
        let client = Request::get("/open/v1/lives").client(&fixture.app.client_id, &fixture.app.client_secret);
        let lives = world.send(client).await.content();
        assert_eq!((&lives["data"][0]["channelId"], &lives["data"][0]["liveCategory"]), (&json!("bom"), &json!("maze")));
        assert!(relations(&world, &fixture).await[0].contains(&"bom".to_owned()));
        assert!(signs_in(&world, &fixture, "bom", "bom@example", "correct horse").await);
        assert!(!signs_in(&world, &fixture, "bom", "bom@example", "wrong horse").await);
        // Cached data of the caller is dropped.
        let me = world.send(Request::get("/open/v1/users/me").bearer(&fixture.tokens.access)).await.content();
        assert_eq!(me["channelName"], "새 하늘");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_channel_or_category_is_refused_like_its_single_call() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let taken = json!({ "login": fixture.viewer.login, "password": "another" });
        let wrongs = [
            ("channels", channel("taken", &taken)),
            ("channels", channel("c", &json!({ "channelName": null }))),
            ("channels", channel("c", &json!({ "channelName": " " }))),
            ("channels", channel("c", &json!({ "channelImageUrl": "ftp://x" }))),
            ("channels", channel("c", &json!({ "verifiedMark": "yes" }))),
            ("channels", channel("c", &json!({ "login": "c" }))),
            ("channels", channel("c", &json!({ "password": "c" }))),
            ("channels", channel("c", &json!({ "login": "", "password": "c" }))),
            ("channels", channel("c", &json!({ "login": "c", "password": "한".repeat(1_000) }))),
            ("channels", channel("a b", &json!({}))),
            ("categories", category("c", &json!({ "categoryType": "MUSIC" }))),
            ("categories", category("c", &json!({ "categoryValue": "" }))),
            ("categories", category("c", &json!({ "posterImageUrl": "x" }))),
            ("categories", category("a b", &json!({}))),
        ];
        let (mut lines, mut expected) = (Vec::new(), Vec::new());
        for (noun, wrong) in wrongs {
            let id = wrong.get("categoryId").unwrap_or(&wrong["channelId"]).as_str().expect("a text");
            let path = format!("/platform/v1/{noun}/{}", testkit::encode(id));
            let message = world.operator(Request::put(&path).json(&wrong)).await.message();
            lines.extend([wrong, channel(&format!("good-{}", lines.len()), &json!({}))]);
            expected.push((lines.len() as u64 - 1, 400, message));
        }
        assert_eq!(expected[0].2, wrong("login", "이미 사용 중입니다."));
        let answer = report(&world, ndjson(&lines)).await;
        assert_eq!(refused(&answer), expected);
        assert_eq!(answer.content()["accepted"], expected.len());
        let nothing = world.channels(&fixture.app, "channelIds=taken,c").await.content();
        assert_eq!(nothing["data"], json!([]), "nothing of them happened");

        // Two channels with the same login: only the first one gets it.
        let twins = ["one", "two"].map(|id| channel(id, &json!({ "login": "twin", "password": id })));
        let answer = report(&world, ndjson(&twins)).await;
        assert_eq!(refused(&answer), [(2, 400, wrong("login", "이미 사용 중입니다."))]);
        assert!(signs_in(&world, &fixture, "one", "twin", "one").await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_channels_and_categories_hide_passwords_and_protect_newer_lines() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let keyed = |name: &str, password: &str| {
            channel("bom", &json!({ "channelName": name, "login": "bom", "password": password, "key": "k" }))
        };
        let place = |value: &str| category("maze", &json!({ "categoryValue": value, "key": "k" }));
        let first = [keyed("봄", "first"), place("미로")];
        let unkeyed = [channel("bom", &json!({})), category("maze", &json!({}))];
        for body in [ndjson(&first), ndjson(&unkeyed), ndjson(&first), ndjson(&[keyed("봄", "second")])] {
            assert_eq!(refused(&report(&world, body).await), []);
        }
        let taken = wrong("idempotencyKey", "이미 사용 중입니다.");
        let others = [keyed("가을", "first"), place("다른 미로")];
        let answer = report(&world, ndjson(&others)).await;
        assert_eq!(refused(&answer), [(1, 400, taken.clone()), (2, 400, taken)]);
        let channels = world.channels(&fixture.app, "channelIds=bom").await.content();
        assert_eq!(channels["data"][0]["channelName"], "bom의 방송");
        let found = world.categories(&fixture.app, "query=maze").await.content();
        assert_eq!(found["data"][0]["categoryValue"], "maze 게임");
        assert!(signs_in(&world, &fixture, "bom", "bom", "first").await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_lines_arrive_complete_and_in_order() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let mut socket = listen(&world, &fixture, &["chat"]).await;
        let lines: Vec<_> = (0..2_000).map(|n| chat(&format!("message {n}"))).collect();
        let sent = tokio::spawn({
            let world = world.clone();
            async move { report(&world, ndjson(&lines)).await }
        });
        for n in 0..2_000 {
            assert_eq!(socket.event("CHAT").await["content"], format!("message {n}"));
        }
        let answer = sent.await.expect("an answer").content();
        assert_eq!(answer, json!({ "accepted": 2_000, "refused": [], "refusedCount": 0 }));
    })
    .await;
}

/// Refused lines, with code and message.
fn wrong_lines() -> Vec<(Vec<u8>, u64, String)> {
    let body = || wrong("body", JSON);
    let object = wrong("body", "JSON 객체여야 합니다.");
    let required = |field| wrong(field, "필수 값입니다.");
    let kinds = "channel, category, chat, donation, subscription, follow, unfollow, manager, unmanager, live, liveEnd, claim, watching 중 하나여야 합니다.";
    let id = "영문자, 숫자, '-', '_', '.'로 된 1자 이상 64자 이하의 ID여야 합니다.";
    let key = "1자 이상 255자 이하여야 하며, 공백만 있거나 NUL 문자가 있으면 안 됩니다.";
    let with = |field: &str, value: Value| {
        let mut line = chat("refused");
        line[field] = value;
        line.to_string().into_bytes()
    };
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)).into_bytes();
    vec![
        (b"{".to_vec(), 400, body()),
        (b"\xff\xfe".to_vec(), 400, body()),
        (b"{\"kind\":\"chat\xff\"}".to_vec(), 400, body()),
        (b"\xef\xbb\xbf{}".to_vec(), 400, body()),
        (br#"{"kind":"\ud800"}"#.to_vec(), 400, body()),
        (vec![0], 400, body()),
        (vec![b'x'; 64 * 1024 + 1], 400, body()),
        (vec![b' '; 64 * 1024 + 1], 400, body()),
        (deep, 400, body()),
        (b"{} {}".to_vec(), 400, body()),
        (b"[]".to_vec(), 400, object.clone()),
        (b"null".to_vec(), 400, object),
        (b"{}".to_vec(), 400, required("kind")),
        (with("kind", Value::Null), 400, required("kind")),
        (with("kind", json!(1)), 400, wrong("kind", "문자열이어야 합니다.")),
        (with("kind", json!("Chat")), 400, wrong("kind", kinds)),
        (with("kind", json!("")), 400, wrong("kind", kinds)),
        (with("channelId", Value::Null), 400, required("channelId")),
        (with("channelId", json!("한글")), 400, wrong("channelId", id)),
        (with("channelId", json!("missing")), 404, "NOT_FOUND".to_owned()),
        (with("senderChannelId", json!("missing")), 400, wrong("senderChannelId", KNOWN)),
        (with("message", Value::Null), 400, required("message")),
        (with("idempotencyKey", json!("")), 400, wrong("idempotencyKey", key)),
        (with("key", json!("x".repeat(256))), 400, wrong("idempotencyKey", key)),
        (with("key", json!(7)), 400, wrong("key", "문자열이어야 합니다.")),
        (with("emojis", json!({ "a": "b" })), 400, wrong("emojis", "http 또는 https 주소여야 합니다.")),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_line_is_refused_by_number_and_affects_no_other_line() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let mut socket = listen(&world, &fixture, &["chat"]).await;
        for end in [&b"\n"[..], b"\r\n", b"\n\r\n \t\n"] {
            let per_line = end.iter().filter(|byte| **byte == b'\n').count() as u64;
            let mut body = Vec::new();
            let (mut expected, mut accepted) = (Vec::new(), Vec::new());
            for (n, (line, code, message)) in wrong_lines().into_iter().enumerate() {
                let good = format!("good {n}");
                body.extend(
                    [line, chat(&good).to_string().into_bytes()].map(|line| [&line, end].concat()).concat(),
                );
                expected.push((2 * n as u64 * per_line + 1, code, message));
                accepted.push(good);
            }
            // The last line needs no line feed.
            body.extend(chat("last").to_string().into_bytes());
            accepted.push("last".to_owned());
            let answer = report(&world, body).await;
            assert_eq!(refused(&answer), expected);
            assert_eq!(answer.content()["accepted"], accepted.len());
            for message in accepted {
                assert_eq!(socket.event("CHAT").await["content"], message);
            }
            socket.ping().await;
        }
        for nothing in ["", "\n", "\r\n\r\n", "  \n\t"] {
            let answer = report(&world, nothing).await.content();
            assert_eq!(answer, json!({ "accepted": 0, "refused": [], "refusedCount": 0 }));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_a_chat_hold_for_each_of_many_messages() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        world.person("dal").create().await;
        let mut socket = listen(&world, &fixture, &["chat"]).await;
        let set = async |settings: Value| {
            world.change_chat_settings(&fixture.tokens.access, &settings).await.content();
        };
        let by = |sender: &str, n: u64| {
            json!({ "kind": "chat", "channelId": "haneul", "senderChannelId": sender, "message": format!("{sender} {n}") })
        };
        // Twenty messages, in turn from the streamer, a viewer and a viewer whom a rule refuses.
        let lines: Vec<Value> = (0..20).map(|n| by(["haneul", "byeol", "dal"][n as usize % 3], n)).collect();
        let follow = json!({ "kind": "follow", "channelId": "haneul", "followerChannelId": "byeol" });
        assert_eq!(report(&world, follow.to_string()).await.content()["accepted"], 1);
        let follower = "팔로워만 채팅할 수 있습니다.";
        let slow = "저속 모드입니다. (3초 남음)";
        for (settings, refusal, keeps_out) in [
            (json!({}), "", &[][..]),
            (json!({ "chatAvailableGroup": "FOLLOWER" }), follower, &[3, 6, 9, 12, 15, 18]),
            // The first message of each viewer is accepted.
            (json!({ "chatAvailableGroup": "ALL", "chatSlowModeSec": 3 }), slow, &[5, 6, 8, 9, 11, 12, 14, 15, 17, 18, 20]),
        ] {
            set(settings).await;
            let answer = report(&world, ndjson(&lines)).await;
            let expected: Vec<_> = keeps_out.iter().map(|line| (*line, 403, refusal.to_owned())).collect();
            assert_eq!(refused(&answer), expected);
            for (line, accepted) in (1..).zip(&lines).filter(|(line, _)| !keeps_out.contains(line)) {
                let received = socket.event("CHAT").await;
                let [sender, content] = [&received["senderChannelId"], &received["content"]];
                assert_eq!([sender, content], [&accepted["senderChannelId"], &accepted["message"]], "line {line}");
                assert_eq!(received["userRoleCode"] == "streamer", sender == "haneul");
            }
            socket.ping().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_with_a_key_takes_effect_once_in_any_body() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let mut socket = listen(&world, &fixture, &["chat"]).await;
        let keyed = |message: &str, name: &str| {
            let mut line = chat(message);
            line[name] = json!("one");
            line
        };
        let once = keyed("once", "idempotencyKey");
        let taken = wrong("idempotencyKey", "이미 사용 중입니다.");
        let answer = report(&world, ndjson(&[once.clone(), once.clone()])).await;
        assert_eq!(answer.content()["accepted"], 2);
        let answer = report(&world, ndjson(&[keyed("other", "key"), once.clone(), chat("end")])).await;
        assert_eq!(refused(&answer), [(1, 400, taken)]);
        // The same key on another channel is another operation.
        let mut elsewhere = keyed("once", "key");
        elsewhere["channelId"] = json!("byeol");
        assert_eq!(report(&world, elsewhere.to_string()).await.content()["accepted"], 1);
        assert_eq!(socket.event("CHAT").await["content"], "once");
        assert_eq!(socket.event("CHAT").await["content"], "end");

        // A refused line does not use its key up.
        let mut early = keyed("early", "key");
        early["senderChannelId"] = json!("later");
        early["idempotencyKey"] = json!("two");
        let answer = report(&world, early.to_string()).await;
        assert_eq!(refused(&answer), [(1, 400, wrong("senderChannelId", KNOWN))]);
        world.person("later").create().await;
        assert_eq!(report(&world, early.to_string()).await.content()["accepted"], 1);
        assert_eq!(socket.event("CHAT").await["content"], "early");
        socket.ping().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_refused_lines_are_counted_and_the_first_thousand_listed() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        let (mut lines, mut expected) = (Vec::new(), Vec::new());
        for n in 0..1_100 {
            lines.push(json!({}));
            expected.push(json!(lines.len()));
            if n % 10 == 0 {
                let mut line = chat("x");
                line["senderChannelId"] = json!(format!("missing-{n}"));
                lines.extend([chat("x"), line]);
                expected.push(json!(lines.len()));
            }
        }
        let content = report(&world, ndjson(&lines)).await.content();
        assert_eq!((&content["accepted"], &content["refusedCount"]), (&json!(110), &json!(1_210)));
        let listed = content["refused"].as_array().expect("a list").iter().map(|line| line["line"].clone());
        assert_eq!(listed.collect::<Vec<_>>(), expected[..1_000]);
    })
    .await;
}

/// A request whose body is sent in chunks.
struct Pieces(Connection);

impl Pieces {
    async fn begin(world: &World) -> Self {
        let mut connection = Connection::open(world.address()).await;
        let key = World::OPERATOR_KEY;
        let head = format!(
            "POST {TARGET} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        connection.write(head.as_bytes()).await;
        Self(connection)
    }

    async fn send(&mut self, piece: &str) {
        self.0.write(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).await;
    }

    async fn end(mut self) -> Response {
        self.0.write(b"0\r\n\r\n").await;
        self.0.read_response(false).await.expect("an answer")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_take_effect_while_the_body_arrives() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let mut socket = listen(&world, &fixture, &["chat"]).await;
        let mut pieces = Pieces::begin(&world).await;
        let (one, two, three) = (chat("one").to_string(), chat("two").to_string(), chat("three").to_string());
        pieces.send(&format!("{one}\n{}", &two[..10])).await;
        assert_eq!(socket.event("CHAT").await["content"], "one");
        socket.ping().await;
        pieces.send(&format!("{}\n\n", &two[10..])).await;
        assert_eq!(socket.event("CHAT").await["content"], "two");
        pieces.send(&format!("{{}}\n{three}")).await;
        let answer = pieces.end().await;
        assert_eq!(refused(&answer), [(4, 400, wrong("kind", "필수 값입니다."))]);
        assert_eq!(answer.content()["accepted"], 3);
        assert_eq!(socket.event("CHAT").await["content"], "three");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_lines_of_a_cut_off_body_take_effect_and_the_incomplete_one_does_not() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let mut socket = listen(&world, &fixture, &["chat"]).await;
        let mut pieces = Pieces::begin(&world).await;
        // The incomplete line happens to be a valid entry, but the server cannot know that it is complete.
        pieces.send(&format!("{}\n{}", chat("whole"), chat("begun"))).await;
        assert_eq!(socket.event("CHAT").await["content"], "whole");
        drop(pieces);
        world.happen("haneul", "chats", &chat("after")).await.content();
        assert_eq!(socket.event("CHAT").await["content"], "after");
        socket.ping().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_without_the_operator_key_is_refused_before_the_body() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        for (authorization, message) in [
            (String::new(), "UNAUTHORIZED"),
            (format!("Authorization: Bearer {}\r\n", tokens.access), "INVALID_TOKEN"),
        ] {
            let mut connection = Connection::open(world.address()).await;
            let head = format!(
                "POST {TARGET} HTTP/1.1\r\nHost: x\r\n{authorization}Content-Length: 1000000\r\n\r\n"
            );
            connection.write(head.as_bytes()).await;
            connection.read_response(false).await.expect("an answer").assert_refused(401, message);
        }
    })
    .await;
}

/// Two concurrent callers, each with its own channel and some refused lines, do not affect each other.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_callers_keep_their_own_order() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let viewers_tokens = world.sign_in(&fixture.app, &fixture.viewer).await;
        let mut sockets = Vec::new();
        let mut calls = Vec::new();
        for (channel, token) in [("haneul", &fixture.tokens.access), ("byeol", &viewers_tokens.access)] {
            let mut socket = world.open_user_session(token).await;
            world.subscribe(token, "chat", socket.session_key()).await.content();
            socket.system("subscribed").await;
            sockets.push(socket);
            let lines = (0..600).map(|n| {
                let mut line = chat(&n.to_string());
                line["channelId"] = json!(channel);
                line["senderChannelId"] = json!(if n % 50 == 7 { "missing" } else { channel });
                line
            });
            let body = ndjson(&lines.collect::<Vec<_>>());
            let world = world.clone();
            calls.push(tokio::spawn(async move { report(&world, body).await }));
        }
        for call in calls {
            assert_eq!(call.await.expect("an answer").content()["accepted"], 588);
        }
        for mut socket in sockets {
            for n in (0..600).filter(|n| n % 50 != 7) {
                assert_eq!(socket.event("CHAT").await["content"], n.to_string());
            }
            socket.ping().await;
        }
    })
    .await;
}
