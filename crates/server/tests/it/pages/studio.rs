//! The studio (`/studio`): broadcast, chat settings, restrictions, managers, lists of people, stream key.

use std::time::Duration;

use domain::secret::SecretHash;
use serde_json::{Value, json};
use testkit::{Browser, Form, Page, Request, Setup, World, both};

use super::{assert_guarded, assert_not_done, signed_in};
use crate::fixture::Fixture;

/// The pages, and what each is called.
const PAGES: [(&str, &str); 9] = [
    ("/studio", "한눈에 보기"),
    ("/studio/chat", "채팅"),
    ("/studio/broadcast", "방송 설정"),
    ("/studio/chat-settings", "채팅 설정"),
    ("/studio/restrictions", "활동 제한"),
    ("/studio/managers", "매니저"),
    ("/studio/followers", "팔로워"),
    ("/studio/subscribers", "구독자"),
    ("/studio/stream-key", "스트림 키"),
];
const HOSTILE: &str = "\u{202E}<script>alert(1)</script>\"'<img src=x onerror=alert(2)>";

/// The first form of this address.
pub(super) fn form_to(page: &Page, action: &str) -> Form {
    let found = page.forms.iter().find(|form| form.action == action);
    found.unwrap_or_else(|| panic!("no form to {action}: {}", page.response.text())).clone()
}

/// The form with one value of this name, as a browser sends a choice of several.
pub(super) fn with(mut form: Form, name: &str, value: &str) -> Form {
    form.fields.retain(|(key, _)| key != name);
    form.fields.push((name.to_owned(), value.to_owned()));
    form
}

#[track_caller]
pub(super) fn assert_at_field(page: &Page, field: &str, text: &str) {
    assert_eq!(page.response.status, 422, "{}", page.response.text());
    let html = page.response.text();
    let (_, error) = html.split_once(&format!("id=\"f-{field}-error\"")).expect("an error at the field");
    assert!(error.split("</p>").next().is_some_and(|error| error.contains(text)), "{error}");
}

#[track_caller]
pub(super) fn assert_shows(page: &Page, text: &str) {
    assert_eq!(page.response.status, 200, "{}", page.response.text());
    assert!(page.response.text().contains(text), "{text}: {}", page.response.text());
}

async fn restricted(world: &World, token: &str) -> Vec<Value> {
    let found = world.restricted(token, "").await.content();
    found["data"].as_array().expect("a list").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_for_the_person_who_is_signed_in() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let mut signed_out = world.browser();
        let mut browser = signed_in(&world, &streamer).await;
        for (path, name) in PAGES {
            assert!(signed_out.open(path).await.location().starts_with("/sign-in?next=%2Fstudio"), "{path}");
            let page = browser.open(path).await;
            assert_guarded(&page);
            let here = format!("<a href=\"{path}\" aria-current=\"page\">{name}</a>");
            assert_shows(&page, &here);
            let english = browser.open(&format!("{path}?lang=en")).await;
            assert_shows(&english, "<html lang=\"en\">");
            let (_, main) = english.response.text().split_once("<main").expect("a page");
            let main = main.replace("하늘", "").replace("별이", "");
            assert!(!main.chars().any(|c| ('가'..='힣').contains(&c)), "{path}: {main}");
            browser.open(&format!("{path}?lang=ko")).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_needs_the_proof_of_its_own_page_and_browser() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, viewer, tokens, .. } = Fixture::set_up(&world).await;
        world.say("haneul", "byeol", "안녕").await.content();
        world.restriction("POST", &tokens.access, "spare-person").await.content();
        let role = json!({ "userRole": "STREAMING_CHAT_MANAGER" });
        let manager = Request::put("/platform/v1/channels/haneul/managers/byeol").json(&role);
        world.operator(manager).await.content();
        let mut browser = signed_in(&world, &streamer).await;
        let stranger = signed_in(&world, &viewer).await;
        let mut seen = std::collections::BTreeSet::new();
        for (path, _) in PAGES {
            for form in browser.open(path).await.forms {
                if form.method != "post" || form.action == "/sign-out" {
                    continue;
                }
                for (mut browser, form) in [
                    (stranger.clone(), form.clone()),
                    (world.browser(), form.clone()),
                    (browser.clone(), form.clone().without("csrf")),
                    (browser.clone(), form.clone().fill("csrf", "x")),
                    (browser.clone(), Form { action: "/account/email".to_owned(), ..form.clone() }),
                ] {
                    assert_not_done(&browser.submit(&form).await, &form.action);
                }
                seen.insert(form.action);
            }
        }
        let seen: Vec<_> = seen.iter().map(String::as_str).collect();
        assert_eq!(
            seen,
            [
                "/studio/broadcast",
                "/studio/broadcast/category",
                "/studio/chat",
                "/studio/chat-settings",
                "/studio/managers",
                "/studio/managers/remove",
                "/studio/restrictions",
                "/studio/restrictions/lift",
                "/studio/stream-key",
                "/studio/stream-key/replace",
            ]
            .iter()
            .filter(|path| **path != "/studio/broadcast/category")
            .copied()
            .collect::<Vec<_>>()
        );
        assert_eq!(restricted(&world, &tokens.access).await.len(), 1, "nothing was lifted");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streamer_changes_title_tags_and_category() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, tokens, .. } = Fixture::set_up(&world).await;
        world.put_live("haneul", &json!({ "concurrentUserCount": 1234 })).await.content();
        let mut browser = signed_in(&world, &streamer).await;
        let page = browser.open("/studio/broadcast").await;
        assert_shows(&page, "value=\"하늘 🚀\"");
        let form = form_to(&page, "/studio/broadcast");
        let filled = form.clone().fill("defaultLiveTitle", "밤 <산책>").fill("tags", "#토크, 소통  게임");
        assert_eq!(browser.submit(&filled).await.location(), "/studio/broadcast");
        let setting = world.live_setting(&tokens.access).await.content();
        assert_eq!(
            (&setting["defaultLiveTitle"], &setting["tags"]),
            (&json!("밤 <산책>"), &json!(["토크", "소통", "게임"]))
        );
        let overview = browser.open("/studio").await;
        assert_shows(&overview, "밤 &#60;산책&#62;");
        assert_shows(&overview, "1234");

        let blank = browser.submit(&form.clone().fill("defaultLiveTitle", " ")).await;
        assert_at_field(&blank, "defaultLiveTitle", "1자 이상 100자 이하");
        let tags = browser.submit(&form.fill("tags", "no:colon")).await;
        assert_at_field(&tags, "tags", "특수문자");
        assert!(tags.response.text().contains("value=\"no:colon\""), "what was typed stays");

        // Without a script: a search, and a button for each category.
        assert_shows(&browser.open("/studio/broadcast?q=nothing").await, "찾은 카테고리가 없습니다.");
        let found = browser.open("/studio/broadcast?q=%EC%8A%A4%ED%83%80").await;
        assert_shows(&found, "스타 보이지");
        let choice = form_to(&found, "/studio/broadcast/category");
        assert_eq!(choice.field("categoryId"), Some("star-voyage"));
        let unknown = browser.submit(&choice.clone().fill("categoryId", "missing")).await;
        assert_eq!(unknown.response.status, 422);
        assert!(unknown.response.text().contains("존재하는 카테고리여야 합니다."));
        assert_eq!(browser.submit(&choice).await.location(), "/studio/broadcast");
        let category = || async { world.live_setting(&tokens.access).await.content()["category"].clone() };
        assert_eq!(category().await["categoryId"], "star-voyage");
        let remove = form_to(&browser.open("/studio/broadcast").await, "/studio/broadcast/category");
        browser.submit(&remove).await.location();
        assert_eq!(category().await, Value::Null);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streamer_changes_every_chat_setting() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, tokens, .. } = Fixture::set_up(&world).await;
        let mut browser = signed_in(&world, &streamer).await;
        let form = form_to(&browser.open("/studio/chat-settings").await, "/studio/chat-settings");
        let filled = form
            .clone()
            .fill("chatAvailableGroup", "FOLLOWER")
            .fill("minFollowerMinute", "10080")
            .fill("chatAvailableCondition", "REAL_NAME")
            .fill("chatSlowModeSec", "30");
        assert_eq!(browser.submit(&filled).await.location(), "/studio/chat-settings");
        let settings = || async { world.chat_settings(&tokens.access).await.content() };
        let all = json!({
            "chatAvailableCondition": "REAL_NAME", "chatAvailableGroup": "FOLLOWER", "minFollowerMinute": 10080,
            "allowSubscriberInFollowerMode": true, "chatSlowModeSec": 30, "chatEmojiMode": true,
        });
        assert_eq!(settings().await, all);
        let page = browser.open("/studio/chat-settings").await;
        for selected in ["FOLLOWER", "10080", "REAL_NAME", "30"] {
            assert_shows(&page, &format!("<option value=\"{selected}\" selected>"));
        }
        for (field, value) in [
            ("chatAvailableGroup", HOSTILE),
            ("minFollowerMinute", "7"),
            ("minFollowerMinute", "99999999999999999999"),
            ("chatAvailableCondition", ""),
            ("chatSlowModeSec", "x"),
        ] {
            let page = browser.submit(&filled.clone().fill(field, value)).await;
            assert_at_field(&page, field, "중 하나여야 합니다.");
            assert!(!page.response.text().contains("alert"));
        }
        assert_eq!(settings().await, all, "nothing changed");
        // Boxes that are not checked are not sent.
        let unchecked = filled.without("allowSubscriberInFollowerMode").without("chatEmojiMode");
        browser.submit(&unchecked).await.location();
        let settings = settings().await;
        assert_eq!(settings["allowSubscriberInFollowerMode"], false);
        assert_eq!(settings["chatEmojiMode"], false);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streamer_restricts_and_lifts() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, tokens, .. } = Fixture::set_up(&world).await;
        let mut browser = signed_in(&world, &streamer).await;
        let form = form_to(&browser.open("/studio/restrictions").await, "/studio/restrictions");
        let about =
            |id: &str, duration: &str| with(form.clone(), "duration", duration).fill("targetChannelId", id);
        for (id, text) in
            [("missing", "존재하는 채널"), ("haneul", "자신은"), ("한글", "존재하는 채널"), ("", "필수 값")]
        {
            for duration in ["minute", "until-lifted"] {
                let page = browser.submit(&about(id, duration)).await;
                assert_at_field(&page, "targetChannelId", text);
                assert!(!page.response.text().contains("targetChannelId:"));
            }
        }
        assert_eq!(
            browser.submit(&about(" byeol ", "until-lifted")).await.location(),
            "/studio/restrictions"
        );
        world.say("haneul", "byeol", "안녕").await.assert_refused(403, "활동제한된 사용자입니다.");
        assert_at_field(&browser.submit(&about("byeol", "until-lifted")).await, "targetChannelId", "이미");
        browser.submit(&about("spare-person", "minute")).await.location();
        let page = browser.open("/studio/restrictions").await;
        assert_shows(&page, "60초 남음");
        let lifts: Vec<_> = page.forms.iter().filter(|form| form.action.ends_with("/lift")).collect();
        assert_eq!(lifts.len(), 2);
        for lift in &lifts {
            assert_eq!(browser.submit(lift).await.location(), "/studio/restrictions");
        }
        world.say("haneul", "byeol", "돌아왔어요").await.content();
        world.say("haneul", "spare-person", "저도요").await.content();
        assert_at_field(&browser.submit(lifts[1]).await, "targetChannelId", "활동제한된 사용자가 아닙니다.");

        for n in 0..31 {
            let id = format!("person-{n}");
            let name = json!({ "channelName": HOSTILE });
            world.operator(Request::put(format!("/platform/v1/channels/{id}")).json(&name)).await.content();
            world.restriction("POST", &tokens.access, &id).await.content();
        }
        let first = browser.open("/studio/restrictions").await;
        let next = first.link("다음 →");
        let second = browser.open(&next).await;
        assert_shows(&second, "person-0");
        assert_eq!(second.forms.iter().filter(|form| form.action.ends_with("/lift")).count(), 1);
        let mut stranger = signed_in(&world, &world.person("other").create().await).await;
        assert_eq!(stranger.open(&next).await.response.status, 400, "a cursor belongs to its channel");
        assert!(!first.response.text().contains("<script>") && !first.response.text().contains("<img src=x"));
    })
    .await;
}

async fn manage(browser: &mut Browser, id: &str, role: &str) -> Page {
    let form = form_to(&browser.open("/studio/managers").await, "/studio/managers");
    browser.submit(&form.fill("managerChannelId", id).fill("userRole", role)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streamer_gives_roles_and_takes_them_back() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, viewer, tokens, .. } = Fixture::set_up(&world).await;
        let mut browser = signed_in(&world, &streamer).await;
        let role = "STREAMING_CHAT_MANAGER";
        for (id, role, field) in [
            ("missing", role, "managerChannelId"),
            ("한글", role, "managerChannelId"),
            ("byeol", "STREAMING_CHANNEL_OWNER", "userRole"),
        ] {
            assert_at_field(&manage(&mut browser, id, role).await, field, "야 합니다.");
        }
        let oneself = manage(&mut browser, "haneul", role).await;
        assert_at_field(&oneself, "managerChannelId", "자기 자신은 지정할 수 없습니다.");
        assert_eq!(manage(&mut browser, "byeol", role).await.location(), "/studio/managers");
        let roles = || async {
            let path = "/open/v1/channels/streaming-roles";
            let found = world.send(Request::get(path).bearer(&tokens.access)).await.content();
            let roles = found["data"].as_array().expect("a list").iter().map(|role| role["userRole"].clone());
            roles.collect::<Vec<_>>()
        };
        assert_eq!(roles().await, ["STREAMING_CHANNEL_OWNER", role]);
        let page = browser.open("/studio/managers").await;
        assert_shows(&page, "채팅 매니저");
        let remove = form_to(&page, "/studio/managers/remove");
        // A manager's role gives no power over another channel.
        let mut stranger = signed_in(&world, &viewer).await;
        let token = SecretHash::of(stranger.cookie("stagedoor_browser").expect("a cookie"));
        let proof = SecretHash::of(&format!("{}\nform\n{}", token.as_str(), remove.action));
        stranger.submit(&remove.clone().fill("csrf", proof.as_str())).await.location();
        assert_eq!(roles().await.len(), 2, "it took back a role in the stranger's own channel");
        let missing = remove.clone().fill("managerChannelId", "missing");
        assert_eq!(browser.submit(&missing).await.response.status, 404);
        browser.submit(&remove).await.location();
        assert_eq!(roles().await.len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_and_subscribers_are_listed_on_pages() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, viewer, .. } = Fixture::set_up(&world).await;
        for n in 0..31 {
            let id = format!("fan-{n:02}");
            let name = json!({ "channelName": format!("팬 {n:02} {HOSTILE}") });
            world.operator(Request::put(format!("/platform/v1/channels/{id}")).json(&name)).await.content();
            let follow = Request::put(format!("/platform/v1/channels/haneul/followers/{id}"));
            let date = json!({ "createdDate": format!("2026-01-01T00:00:{n:02}.000Z") });
            world.operator(follow.json(&date)).await.content();
        }
        for (id, month, tier) in [("fan-00", 7, 2), ("fan-01", 30, 1), ("fan-02", 2, 1)] {
            let body =
                json!({ "subscriberChannelId": id, "tierNo": tier, "tierName": HOSTILE, "month": month });
            world.happen("haneul", "subscriptions", &body).await.content();
            world.advance(Duration::from_secs(1));
        }
        let role = json!({ "userRole": "STREAMING_CHAT_MANAGER" });
        let manager = Request::put("/platform/v1/channels/haneul/managers/fan-29").json(&role);
        world.operator(manager).await.content();
        let mut browser = signed_in(&world, &streamer).await;
        let first = browser.open("/studio/followers").await;
        assert_shows(&first, "모두: 31");
        let html = first.response.text();
        assert!(
            html.contains("?person=fan-30") && !html.contains("?person=fan-29"),
            "a manager is no target"
        );
        assert_shows(&first, "<span class=\"badge\">채팅 매니저</span>");
        assert_shows(&first, "fan-30");
        assert!(!first.response.text().contains("fan-00"));
        let second = browser.open(&first.link("다음 →")).await;
        assert_shows(&second, "fan-00");
        assert_eq!(second.link("← 이전"), "/studio/followers?page=0");
        for odd in ["x", "-1", "99999999999", ""] {
            assert_shows(&browser.open(&format!("/studio/followers?page={odd}")).await, "fan-30");
        }
        assert_shows(&browser.open("/studio/followers?page=2147483647").await, "첫 페이지로");

        let newest = browser.open("/studio/subscribers").await;
        let longest = browser.open("/studio/subscribers?sort=LONGER").await;
        let order = |page: &Page| {
            let html = page.response.text().to_owned();
            let place = |id: &str| html.find(&format!(">{id}<")).expect("a person");
            let mut ids = ["fan-00", "fan-01", "fan-02"];
            ids.sort_by_key(|id| place(id));
            ids.join(" ")
        };
        assert_eq!(order(&newest), "fan-02 fan-01 fan-00");
        assert_eq!(order(&longest), "fan-01 fan-00 fan-02");
        for page in [&first, &newest] {
            let html = page.response.text();
            assert!(!html.contains("<script>") && !html.contains("<img src=x") && !html.contains('\u{202E}'));
        }
        let mut stranger = signed_in(&world, &viewer).await;
        for path in ["/studio/followers", "/studio/subscribers"] {
            assert!(!stranger.open(path).await.response.text().contains("fan-"), "{path}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_key_is_shown_on_request_and_replaced_for_good() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, viewer, tokens, .. } = Fixture::set_up(&world).await;
        let key = || async {
            let found = world.stream_key(&tokens.access).await.content();
            found["streamKey"].as_str().expect("a key").to_owned()
        };
        let first = key().await;
        let mut browser = signed_in(&world, &streamer).await;
        let page = browser.open("/studio/stream-key").await;
        assert!(!page.response.text().contains(&first));
        let shown = browser.submit(&form_to(&page, "/studio/stream-key")).await;
        assert_guarded(&shown);
        assert_shows(&shown, &format!("value=\"{first}\""));
        let mut stranger = signed_in(&world, &viewer).await;
        let own = form_to(&stranger.open("/studio/stream-key").await, "/studio/stream-key");
        assert!(!stranger.submit(&own).await.response.text().contains(&first));

        let replaced = browser.submit(&form_to(&page, "/studio/stream-key/replace")).await;
        assert_eq!(replaced.location(), "/studio/stream-key");
        assert!(!replaced.response.text().contains(&first));
        let second = key().await;
        assert_ne!(first, second);
        let page = browser.open("/studio/stream-key").await;
        assert_shows(&page, "새 스트림 키를 만들었습니다.");
        assert!(!page.response.text().contains(&second));
        assert_shows(&browser.submit(&form_to(&page, "/studio/stream-key")).await, &second);
        let opened = Request::get("/studio/stream-key/replace").header("Accept", "text/html");
        assert_eq!(browser.send(opened).await.response.status, 405);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_are_named_by_the_name_or_the_id_of_their_channel() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, tokens, .. } = Fixture::set_up(&world).await;
        for (id, name) in [
            ("mina-1", "Mina"),
            ("mina-2", "Minari"),
            ("solo", "솔로"),
            ("twin-1", "쌍둥이"),
            ("twin-2", "쌍둥이"),
            ("fake", "solo"),
        ] {
            world.person(id).name(name).create().await;
        }
        let mut browser = signed_in(&world, &streamer).await;
        // The own id, to copy.
        for page in ["/studio", "/account"] {
            assert_shows(
                &browser.open(page).await,
                "<input id=\"channel-id\" class=\"mono\" type=\"text\" value=\"haneul\"",
            );
        }
        let role = "STREAMING_CHAT_MANAGER";
        assert_eq!(manage(&mut browser, "솔로", role).await.location(), "/studio/managers");
        assert_eq!(manage(&mut browser, " Mina ", role).await.location(), "/studio/managers");
        // Several: twins, the beginning of names, and an id that is the name of another.
        for (text, candidates) in [
            ("쌍둥이", vec!["twin-1", "twin-2"]),
            ("mina", vec!["mina-1", "mina-2"]),
            ("solo", vec!["solo", "fake"]),
        ] {
            let page = manage(&mut browser, text, role).await;
            assert_at_field(&page, "managerChannelId", "골라 주세요");
            let form = form_to(&page, "/studio/managers");
            for id in &candidates {
                assert!(form.buttons.contains(&("chosen".to_owned(), (*id).to_owned())), "{text}: {id}");
            }
        }
        let page = manage(&mut browser, "쌍둥이", role).await;
        let form = form_to(&page, "/studio/managers").fill("userRole", role);
        assert_eq!(browser.submit(&form.press("chosen", "twin-2")).await.location(), "/studio/managers");
        let list = browser.open("/studio/managers").await;
        assert!(list.response.text().contains("twin-2") && !list.response.text().contains("twin-1"));
        // Logins are private.
        assert_at_field(&manage(&mut browser, "solo@login", role).await, "managerChannelId", "존재하는 채널");

        let form = form_to(&browser.open("/studio/restrictions").await, "/studio/restrictions");
        let form = with(form, "duration", "until-lifted");
        let page = browser.submit(&form.clone().fill("targetChannelId", "쌍둥이")).await;
        assert_at_field(&page, "targetChannelId", "골라 주세요");
        let chosen = with(form_to(&page, "/studio/restrictions"), "duration", "until-lifted");
        browser.submit(&chosen.press("chosen", "twin-1")).await.location();
        browser.submit(&form.fill("targetChannelId", "Minari")).await.location();
        let restricted = world.restricted(&tokens.access, "").await.content();
        let ids: Vec<_> = restricted["data"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| one["restrictedChannelId"].as_str().expect("an id"))
            .collect();
        assert_eq!(ids, ["twin-1", "mina-2"]);

        let suggested = browser.open(&format!("/studio/people?q={}", testkit::encode("mIn"))).await;
        let html = suggested.response.text();
        assert!(html.contains("<option value=\"mina-1\">Mina") && html.contains("mina-2"), "{html}");
        let sky = Request::put("/platform/v1/channels/sky").json(&json!({ "channelName": "SkyHighBlue" }));
        world.operator(sky).await.content();
        for typed in ["skyh", "SKYHIGH", "skyHighB"] {
            let suggested = browser.open(&format!("/studio/people?q={}", testkit::encode(typed))).await;
            assert!(suggested.response.text().contains("SkyHighBlue"), "{typed}");
        }
        for odd in ["", "?q=", "?q=%00", "?q=%25", "?q=a&q=b"] {
            let page = browser.open(&format!("/studio/people{odd}")).await;
            assert!(page.response.status == 200 && !page.response.text().contains("<option"), "{odd}");
        }
        assert!(world.browser().open("/studio/people?q=m").await.location().starts_with("/sign-in"));
    })
    .await;
}
