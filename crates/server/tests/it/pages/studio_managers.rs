//! The studio of another channel (`/studio/channels/{channelId}`): what each role opens, for whom, and how
//! often.

use serde_json::json;
use testkit::{Browser, Form, Request, Setup, World, both};

use super::studio::{assert_shows, form_to, with};
use super::{assert_guarded, proven, signed_in};
use crate::fixture::Fixture;

const BASE: &str = "/studio/channels/haneul";
/// Each page of a managed channel, and whether a channel manager and a chat manager see it.
const PAGES: [(&str, bool, bool); 10] = [
    ("", true, true),
    ("/chat", true, true),
    ("/chat/messages", true, true),
    ("/restrictions", true, true),
    ("/broadcast", true, false),
    ("/chat-settings", true, false),
    ("/followers", true, false),
    ("/subscribers", true, false),
    ("/managers", false, false),
    ("/stream-key", false, false),
];
/// Each form of a managed channel, and whether a channel manager and a chat manager may post it.
const FORMS: [(&str, bool, bool); 8] = [
    ("/chat", true, true),
    ("/restrictions", true, true),
    ("/restrictions/lift", true, true),
    ("/broadcast", true, false),
    ("/broadcast/category", true, false),
    ("/chat-settings", true, false),
    ("/managers", false, false),
    ("/stream-key", false, false),
];

/// Gives `byeol` this role in the channel `haneul`, or takes it back.
async fn give(world: &World, role: Option<&str>) {
    let path = "/platform/v1/channels/haneul/managers/byeol";
    let request = match role {
        Some(role) => Request::put(path).json(&json!({ "userRole": role })),
        None => Request::delete(path),
    };
    world.operator(request).await.content();
}

async fn status(browser: &mut Browser, path: &str) -> u16 {
    browser.send(Request::get(path).header("Accept", "text/html")).await.response.status
}

/// An empty form of this address, with the proof that a page of it would give.
fn empty(browser: &Browser, path: &str) -> Form {
    proven(browser, Form { action: path.to_owned(), method: "post".to_owned(), ..Form::default() })
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_opens_its_pages_and_no_other() {
    both(Setup::default(), |world| async move {
        let Fixture { viewer, .. } = Fixture::set_up(&world).await;
        let mut browser = signed_in(&world, &viewer).await;
        assert_shows(&browser.open("/studio/channels").await, "맡은 채널이 없습니다.");
        let roles = [
            (None, [false, false]),
            (Some("STREAMING_CHANNEL_MANAGER"), [true, false]),
            (Some("STREAMING_CHAT_MANAGER"), [false, true]),
            (Some("STREAMING_SETTLEMENT_MANAGER"), [false, false]),
            (None, [false, false]),
        ];
        for (role, [channel, chat]) in roles {
            give(&world, role).await;
            for (end, of_channel, of_chat) in PAGES {
                let expected = if channel && of_channel || chat && of_chat { 200 } else { 404 };
                assert_eq!(status(&mut browser, &format!("{BASE}{end}")).await, expected, "{role:?} {end}");
            }
            for (end, of_channel, of_chat) in FORMS {
                let answer = browser.submit(&empty(&browser.clone(), &format!("{BASE}{end}"))).await;
                // An empty form is wrong, or it names no message, category or person.
                let may = channel && of_channel || chat && of_chat;
                let status = answer.response.status;
                assert!(
                    if may { [303, 404, 422].contains(&status) } else { status == 404 },
                    "{role:?} {end}"
                );
            }
            let list = browser.open("/studio/channels").await;
            assert_guarded(&list);
            assert_eq!(list.response.text().contains(">haneul<"), role.is_some());
            let opens = list.response.text().contains(&format!("href=\"{BASE}\""));
            assert_eq!(opens, channel || chat, "{role:?}");
        }
        let mut signed_out = world.browser();
        let first = signed_out.open(&format!("{BASE}/chat")).await;
        assert_eq!(first.location(), "/sign-in?next=%2Fstudio%2Fchannels%2Fhaneul%2Fchat");
        for missing in ["missing", "%ED%95%9C", "%3Cscript%3E"] {
            assert_eq!(status(&mut browser, &format!("/studio/channels/{missing}")).await, 404);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_manager_works_in_the_chat_of_the_channel() {
    both(Setup::default(), |world| async move {
        let Fixture { viewer, tokens, .. } = Fixture::set_up(&world).await;
        world.person("spammer").name("도배").create().await;
        world.say("haneul", "spammer", "도배 메시지").await.content();
        give(&world, Some("STREAMING_CHAT_MANAGER")).await;
        let mut browser = signed_in(&world, &viewer).await;
        let chat = format!("{BASE}/chat");
        let page = browser.open(&chat).await;
        assert_guarded(&page);
        assert_shows(&page, "도배 메시지");
        assert_shows(&page, "<span class=\"badge\">채팅 매니저</span> <a href=\"/studio\">내 스튜디오로</a>");
        assert_shows(&page, &format!("data-messages=\"{chat}/messages\""));
        for owners in ["/managers", "/stream-key", "/broadcast", "href=\"/studio/chat"] {
            assert!(!page.response.text().contains(owners), "{owners}");
        }
        let notice = with(form_to(&page, &chat), "message", "규칙을 지켜 주세요");
        assert_eq!(browser.submit(&notice).await.location(), format!("{chat}#notice"));
        assert_shows(&browser.open(&chat).await, "규칙을 지켜 주세요");
        let beside =
            page.forms.iter().find(|form| form.field("messageId").is_some()).expect("a form").clone();
        let message = format!("{chat}#m-{}", beside.field("messageId").expect("an id"));
        assert_eq!(browser.submit(&beside.clone().press("do", "hide")).await.location(), message);
        assert_eq!(browser.submit(&beside.press("do", "restrict")).await.location(), message);
        let restricted = world.restricted(&tokens.access, "").await.content();
        assert_eq!(restricted["data"][0]["restrictedChannelId"], "spammer");
        let list = browser.open(&format!("{BASE}/restrictions")).await;
        let lift = form_to(&list, &format!("{BASE}/restrictions/lift"));
        assert_eq!(browser.submit(&lift).await.location(), format!("{BASE}/restrictions"));
        // Neither the streamer nor a manager can be restricted.
        for target in ["haneul", "byeol"] {
            let add = form_to(&list, &format!("{BASE}/restrictions"));
            let refused = browser.submit(&with(add, "targetChannelId", target)).await;
            assert_eq!(refused.response.status, 422, "{target}");
        }
        // A role that is taken back ends at once, also for forms that are open.
        give(&world, None).await;
        assert_eq!(browser.submit(&notice).await.response.status, 404);
        // A proof for one studio is none for another.
        give(&world, Some("STREAMING_CHAT_MANAGER")).await;
        let own = Form { action: "/studio/chat".to_owned(), ..notice };
        assert_eq!(browser.submit(&own).await.response.status, 400);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_barred_streamer_takes_the_studio_along() {
    both(Setup::default(), |world| async move {
        let Fixture { viewer, .. } = Fixture::set_up(&world).await;
        give(&world, Some("STREAMING_CHANNEL_MANAGER")).await;
        let mut browser = signed_in(&world, &viewer).await;
        assert_eq!(status(&mut browser, BASE).await, 200);
        world.operator(Request::put("/platform/v1/channels/haneul/bar")).await.content();
        assert_eq!(status(&mut browser, BASE).await, 404);
        assert_shows(&browser.open("/studio/channels").await, "맡은 채널이 없습니다.");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn managers_and_managed_channels_go_on_page_by_page() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, viewer, .. } = Fixture::set_up(&world).await;
        for n in 0..31 {
            world.person(&format!("helper-{n:02}")).create().await;
            let role = json!({ "userRole": "STREAMING_CHAT_MANAGER" });
            let of = format!("/platform/v1/channels/haneul/managers/helper-{n:02}");
            world.operator(Request::put(of).json(&role)).await.content();
            let by = format!("/platform/v1/channels/helper-{n:02}/managers/byeol");
            world.operator(Request::put(by).json(&role)).await.content();
        }
        for (person, path) in [(&streamer, "/studio/managers"), (&viewer, "/studio/channels")] {
            let mut browser = signed_in(&world, person).await;
            let first = browser.open(path).await;
            let next = first.link("다음 →");
            assert!(next.starts_with(&format!("{path}?next=")), "{next}");
            let second = browser.open(&next).await;
            let shown = |page: &testkit::Page| page.response.text().matches(">helper-").count() / 2;
            assert_eq!((shown(&first), shown(&second)), (30, 1), "{path}");
            assert_eq!(second.link("첫 페이지"), path);
            // A cursor of another list begins again.
            assert_eq!(browser.open(&format!("{path}?next=x")).await.location(), path);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_forms_of_a_person_for_a_page_are_limited() {
    let setup = Setup { quotas: true, ..Setup::default() };
    both(setup, |world| async move {
        let Fixture { streamer, viewer, .. } = Fixture::set_up(&world).await;
        let mut browser = signed_in(&world, &streamer).await;
        let messages = "/studio/chat/messages";
        let mut refused = None;
        for _ in 0..121 {
            let answer = browser.send(Request::get(messages).header("Accept", "text/html")).await;
            refused = Some(answer).filter(|answer| answer.response.status == 429);
        }
        let refused = refused.expect("121 requests in a minute are too many");
        assert!(refused.response.text().contains("요청이 너무 많습니다"));
        assert_eq!(refused.response.header("retry-after"), Some("1"));
        let reason = refused.response.header("stagedoor-reason").unwrap_or_default().to_owned();
        assert!(reason.contains("studio"), "{reason}");
        // Another page, and another person, have their own.
        assert_eq!(status(&mut browser, "/studio/restrictions").await, 200);
        assert_eq!(status(&mut signed_in(&world, &viewer).await, messages).await, 200);
        let form = form_to(&browser.open("/studio/broadcast").await, "/studio/broadcast");
        let mut codes = Vec::new();
        for _ in 0..61 {
            let form = with(form.clone(), "defaultLiveTitle", "제목");
            codes.push(browser.submit(&form).await.response.status);
        }
        assert_eq!((codes.iter().filter(|code| **code == 303).count(), codes[60]), (60, 429));
    })
    .await;
}
