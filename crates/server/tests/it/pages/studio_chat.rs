//! The chat in the studio (`/studio/chat`): reading along, notice, hiding, restricting.

use std::time::Duration;

use domain::secret::SecretHash;
use serde_json::json;
use testkit::{Form, Page, Request, Setup, both};

use super::studio::{assert_at_field, assert_shows, form_to, with};
use super::{assert_guarded, signed_in};
use crate::fixture::Fixture;

const CHAT: &str = "/studio/chat";
const HOSTILE: &str = "\u{202E}<script>alert(1)</script>\"'<img src=x onerror=alert(2)>";

/// The form beside the message with this text.
fn beside(page: &Page, text: &str) -> Form {
    let html = page.response.text();
    let (_, after) = html.split_once(&format!("<bdi>{text}</bdi>")).expect("the message");
    let id = after.split("name=\"messageId\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let found = page.forms.iter().find(|form| form.field("messageId") == id);
    found.expect("a form").clone()
}

/// Where an act at this message leads back to.
fn at(form: &Form) -> String {
    format!("{CHAT}#m-{}", form.field("messageId").expect("an id"))
}

/// The parts of the page that each stand for a message.
fn messages(page: &Page) -> Vec<&str> {
    page.response.text().split("<li id=\"m-").skip(1).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streamer_reads_along_and_acts() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, tokens, .. } = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;
        let mut browser = signed_in(&world, &streamer).await;
        assert_shows(&browser.open(CHAT).await, "아직 채팅이 없습니다.");
        world.say("haneul", "byeol", "첫 메시지").await.content();
        world.send_chat(&tokens.access, "제 메시지").await.content();
        world.say("byeol", "byeol", "다른 채팅").await.content();
        let page = browser.open(CHAT).await;
        assert_guarded(&page);
        let shown = messages(&page);
        assert!(
            shown.len() == 2 && shown[0].contains("제 메시지") && shown[1].contains("별이"),
            "newest first"
        );
        let own = beside(&page, "제 메시지");
        assert_eq!(own.buttons.len(), 2, "streamers cannot restrict themselves");

        let form = beside(&page, "첫 메시지");
        assert_eq!(browser.submit(&form.clone().press("do", "pin")).await.location(), at(&form));
        let pinned = browser.open(CHAT).await;
        assert_shows(&pinned, "<p class=\"strong\"><bdi>첫 메시지</bdi></p>");
        assert_eq!(browser.submit(&form.clone().press("do", "hide")).await.location(), at(&form));
        let hidden = browser.open(CHAT).await;
        assert!(messages(&hidden)[1].contains("숨김") && !messages(&hidden)[1].contains("value=\"hide\""));
        assert_eq!(browser.submit(&form.clone().press("do", "pin")).await.response.status, 404);

        let notice = hidden.form("message");
        assert_eq!(notice.field("do"), Some("notice"));
        let long = browser.submit(&notice.clone().fill("message", &"가".repeat(101))).await;
        assert_at_field(&long, "message", "1자 이상 100자 이하");
        browser.submit(&notice.fill("message", "<b>공지</b>")).await.location();
        assert_shows(&browser.open(CHAT).await, "<bdi>&#60;b&#62;공지&#60;/b&#62;</bdi>");

        browser.submit(&form.clone().press("do", "restrict-temporarily")).await.location();
        world
            .say("haneul", "byeol", "잠깐")
            .await
            .assert_refused(403, "임시제한된 사용자입니다. (60초 남음)");
        browser.submit(&form.clone().press("do", "restrict")).await.location();
        let again = browser.submit(&form.press("do", "restrict")).await;
        assert_eq!(again.response.status, 422);
        assert!(again.response.text().contains("이미 활동제한된 사용자입니다."));
        assert_eq!(socket.event("CHAT").await["content"], "첫 메시지");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_gets_new_messages_until_the_sign_in_ends() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, viewer, .. } = Fixture::set_up(&world).await;
        world.say("haneul", "byeol", "früher").await.content();
        world.advance(Duration::from_secs(30));
        let mut browser = signed_in(&world, &streamer).await;
        let page = browser.open(CHAT).await;
        assert_shows(&page, "data-messages=\"/studio/chat/messages\"");
        let policy = page.response.header("content-security-policy").expect("a policy");
        assert!(policy.contains("connect-src 'self';"), "{policy}");
        let since = world.now_ms();
        let target = format!("/studio/chat/messages?since={since}");
        assert!(messages(&browser.open(&target).await).is_empty());
        world.say("haneul", "byeol", "지금").await.content();
        let new = browser.open(&target).await;
        assert_guarded(&new);
        let html = new.response.text();
        assert!(messages(&new).len() == 1 && html.contains("지금") && !html.contains("<html"), "{html}");
        // The buttons of a message that the script adds work like those of the page.
        let hide = beside(&new, "지금").press("do", "hide");
        assert_eq!(browser.submit(&hide).await.location(), at(&hide));
        for since in ["0", "-9", "x", "99999999999999999999", "253402300799999"] {
            let odd = browser.open(&format!("/studio/chat/messages?since={since}")).await;
            assert_eq!(odd.response.status, 200, "{since}");
        }
        let mut stranger = signed_in(&world, &viewer).await;
        assert!(messages(&stranger.open("/studio/chat/messages?since=0").await).is_empty());

        let sign_out = form_to(&page, "/sign-out");
        browser.submit(&sign_out).await.location();
        assert!(browser.open(&target).await.location().starts_with("/sign-in"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_another_chat_do_not_exist() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, viewer, .. } = Fixture::set_up(&world).await;
        world.say("haneul", "haneul", "im Chat von haneul").await.content();
        let mut owner = signed_in(&world, &streamer).await;
        let form = beside(&owner.open(CHAT).await, "im Chat von haneul");
        let mut stranger = signed_in(&world, &viewer).await;
        let token = SecretHash::of(stranger.cookie("stagedoor_browser").expect("a cookie"));
        let proof = SecretHash::of(&format!("{}\nform\n{CHAT}", token.as_str()));
        let form = form.fill("csrf", proof.as_str());
        for act in ["pin", "hide"] {
            assert_eq!(stranger.submit(&with(form.clone(), "do", act)).await.response.status, 404, "{act}");
        }
        for (field, value) in [("messageId", HOSTILE), ("messageId", ""), ("do", "unknown"), ("do", "")] {
            let odd = with(with(form.clone(), "do", "pin"), field, value);
            assert_eq!(stranger.submit(&odd).await.response.status, 404, "{field} {value}");
        }
        for (field, value) in [("time", "x"), ("time", "99999999999999999999"), ("sender", HOSTILE)] {
            let odd = with(with(form.clone(), "do", "hide"), field, value);
            assert_eq!(stranger.submit(&odd).await.response.status, 404, "{field} {value}");
        }
        assert!(!messages(&owner.open(CHAT).await)[0].contains("숨김"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_and_messages_are_text() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let name = json!({ "channelName": HOSTILE });
        for channel in ["haneul", "byeol"] {
            world
                .operator(Request::put(format!("/platform/v1/channels/{channel}")).json(&name))
                .await
                .content();
        }
        world.say("haneul", "byeol", HOSTILE).await.content();
        let live = json!({ "concurrentUserCount": 1, "liveTitle": HOSTILE });
        world.put_live("haneul", &live).await.content();
        let category = json!({ "categoryType": "GAME", "categoryValue": HOSTILE });
        world.put_category("evil", &category).await.content();
        let mut browser = signed_in(&world, &streamer).await;
        let page = browser.open(CHAT).await;
        let pin = page.forms.iter().find(|form| form.field("messageId").is_some()).expect("a form");
        browser.submit(&pin.clone().press("do", "pin")).await.location();
        for path in ["/studio", CHAT, "/studio/chat/messages?since=0", "/studio/broadcast?q=script"] {
            let page = browser.open(path).await;
            let html = page.response.text();
            assert!(!html.contains("<script>") && !html.contains("<img src=x"), "{path}");
            assert!(html.contains("&#60;script&#62;"), "{path}");
            // A field holds what was saved, character by character.
            assert!(path.contains("broadcast") || !html.contains('\u{202E}'), "{path}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acts_are_marked_where_they_were_made_and_taken_back_there() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let mut browser = signed_in(&world, &streamer).await;
        world.say("haneul", "byeol", "eins").await.content();
        world.say("haneul", "byeol", "zwei").await.content();
        let form = beside(&browser.open(CHAT).await, "eins");
        browser.submit(&form.clone().press("do", "hide")).await.location();
        browser.submit(&form.clone().press("do", "restrict")).await.location();
        let page = browser.open(CHAT).await;
        assert!(
            messages(&page).iter().all(|row| row.contains("활동 제한됨") && row.contains("value=\"lift\""))
        );
        assert!(messages(&page)[1].contains("숨김") && !messages(&page)[0].contains("숨김"));
        browser.submit(&beside(&page, "eins").press("do", "show")).await.location();
        browser.submit(&beside(&page, "zwei").press("do", "lift")).await.location();
        let page = browser.open(CHAT).await;
        assert!(messages(&page).iter().all(|row| !row.contains("숨김") && !row.contains("제한됨")));
        world.say("haneul", "byeol", "drei").await.content();

        browser.submit(&beside(&page, "zwei").press("do", "restrict-temporarily")).await.location();
        let page = browser.open(CHAT).await;
        assert!(messages(&page).iter().all(|row| row.contains("1분 제한 중") && row.contains("숨김")));
        browser.submit(&beside(&page, "drei").press("do", "lift-temporary")).await.location();
        world.say("haneul", "byeol", "vier").await.content();
        // The minute ends by itself, and its mark with it.
        let form = beside(&browser.open(CHAT).await, "vier");
        browser.submit(&form.press("do", "restrict-temporarily")).await.location();
        world.advance(Duration::from_secs(60));
        let page = browser.open("/studio/chat/messages?since=0").await;
        assert!(!page.response.text().contains("1분 제한 중"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_is_taken_down() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let mut browser = signed_in(&world, &streamer).await;
        let notice = with(form_to(&browser.open(CHAT).await, CHAT), "message", "규칙");
        assert_eq!(browser.submit(&notice).await.location(), "/studio/chat#notice");
        let page = browser.open(CHAT).await;
        let down = form_with(&page, "take-down");
        assert_eq!(browser.submit(&down.press("do", "take-down")).await.location(), "/studio/chat#notice");
        let page = browser.open(CHAT).await;
        assert_shows(&page, "올린 공지가 없습니다.");
        assert!(!page.response.text().contains("take-down"));
    })
    .await;
}

fn form_with(page: &Page, act: &str) -> Form {
    let button = ("do".to_owned(), act.to_owned());
    page.forms.iter().find(|form| form.buttons.contains(&button)).expect("a form").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_gets_what_an_act_changed() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let mut browser = signed_in(&world, &streamer).await;
        for n in 0..60 {
            world.say("haneul", "byeol", &format!("n{n}")).await.content();
        }
        let page = browser.open(CHAT).await;
        let pin = with(beside(&page, "n59").press("do", "pin"), "part", "yes");
        let changed = browser.submit(&pin).await;
        assert_guarded(&changed);
        let html = changed.response.text();
        assert_eq!(messages(&changed).len(), 60, "also those that the page kept");
        assert!(!html.contains("<html") && html.contains("<p id=\"done\">공지를 올렸습니다.</p>"), "{html}");
        assert!(html.contains("<p class=\"strong\"><bdi>n59</bdi></p>"));
        // A refusal is the whole page, for the browser.
        let refused = with(beside(&page, "n59"), "do", "lift");
        assert_eq!(browser.submit(&with(refused, "part", "yes")).await.response.status, 422);
    })
    .await;
}
