//! The browsers in which a person is signed in (`/account/sessions`).

use std::time::Duration;

use domain::secret::SecretHash;
use testkit::{Browser, Form, Page, Request, Setup, both};

use super::{assert_guarded, assert_not_done, signed_in};
use crate::fixture::Fixture;

const SESSIONS: &str = "/account/sessions";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
const PHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) Version/18.6 Mobile Safari/604.1";
const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>";

async fn open_as(browser: &mut Browser, user_agent: &str) -> Page {
    browser.send(Request::get(SESSIONS).header("User-Agent", user_agent).header("Accept", "text/html")).await
}

/// The forms that sign one browser out.
fn endings(page: &Page) -> Vec<Form> {
    let is_ending = |form: &&Form| form.action.starts_with("/account/sessions/");
    page.forms.iter().filter(is_ending).cloned().collect()
}

fn others(page: &Page) -> Form {
    page.forms.iter().find(|form| form.action == SESSIONS).expect("a form").clone()
}

async fn is_signed_in(browser: &mut Browser) -> bool {
    browser.open("/account").await.response.status == 200
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_the_browsers_and_signs_them_out() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let asked = world.browser().open(SESSIONS).await;
        assert_eq!(asked.location(), "/sign-in?next=%2Faccount%2Fsessions");
        world.advance(Duration::from_mins(1));
        let mut phone = signed_in(&world, &streamer).await;
        open_as(&mut phone, PHONE).await;
        world.advance(Duration::from_mins(5));
        let mut here = signed_in(&world, &streamer).await;
        let account = here.open("/account").await;
        assert!(account.response.text().contains("href=\"/account/sessions\""));
        let page = open_as(&mut here, FIREFOX).await;
        assert_guarded(&page);
        let html = page.response.text();
        let (first, rest) = html.split_once("Safari · iPhone").expect("the phone comes after this browser");
        assert!(first.contains("이 브라우저") && !rest.contains("badge"), "{html}");
        assert!(
            rest.contains("5분 전") && rest.contains("한 시간 이내") && rest.contains("127.0.0.1"),
            "{html}"
        );
        assert!(!html.contains(here.cookie("stagedoor_browser").expect("a cookie")));

        let forms = endings(&page);
        // The browser of the fixture's sign-in, and the phone.
        assert_eq!(forms.len(), 2, "{html}");
        assert_eq!(here.submit(&forms[0]).await.location(), SESSIONS);
        assert!(!is_signed_in(&mut phone).await);
        let after = here.open(SESSIONS).await;
        assert!(after.response.text().contains("그 브라우저에서 로그아웃했습니다."));
        assert_eq!(here.submit(&forms[0]).await.response.status, 404, "it is gone");

        let mut again = signed_in(&world, &streamer).await;
        assert_eq!(here.submit(&others(&after)).await.location(), SESSIONS);
        assert!(is_signed_in(&mut here).await && !is_signed_in(&mut again).await);
        let alone = here.open(SESSIONS).await;
        assert!(endings(&alone).is_empty() && alone.forms.iter().all(|form| form.action != SESSIONS));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_use_is_written_once_an_hour_and_its_words_are_text() {
    both(Setup::default(), |world| async move {
        let person = world.person("haneul").create().await;
        let mut watched = signed_in(&world, &person).await;
        open_as(&mut watched, FIREFOX).await;
        let mut here = signed_in(&world, &person).await;
        let mut shown = async |text: &str| here.open(SESSIONS).await.response.text().contains(text);
        world.advance(Duration::from_mins(59));
        open_as(&mut watched, PHONE).await;
        assert!(shown("Firefox · Linux").await && !shown("iPhone").await, "within the hour");
        world.advance(Duration::from_mins(2));
        open_as(&mut watched, PHONE).await;
        assert!(shown("Safari · iPhone").await);
        world.advance(Duration::from_hours(3));
        assert!(shown("3시간 전").await);
        open_as(&mut watched, HOSTILE).await;
        assert!(shown("알 수 없는 브라우저").await && !shown("alert").await);
        // The sign-in lasts twelve hours.
        world.advance(Duration::from_hours(9));
        assert!(!is_signed_in(&mut watched).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_of_others_cannot_be_signed_out() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, viewer, .. } = Fixture::set_up(&world).await;
        let mut owner = signed_in(&world, &streamer).await;
        let mut second = signed_in(&world, &streamer).await;
        let page = owner.open(SESSIONS).await;
        let form = endings(&page)[0].clone();
        let mut stranger = signed_in(&world, &viewer).await;
        signed_in(&world, &viewer).await;
        assert!(!stranger.open(SESSIONS).await.response.text().contains(&form.action));
        for (mut browser, form) in [
            (stranger.clone(), form.clone()),
            (world.browser(), form.clone()),
            (owner.clone(), form.clone().without("csrf")),
            (owner.clone(), Form { action: "/account/sessions/other".to_owned(), ..form.clone() }),
            (owner.clone(), others(&page).fill("csrf", "x")),
        ] {
            assert_not_done(&browser.submit(&form).await, &form.action);
        }
        // A proof of the stranger's own browser does not make the browser the stranger's.
        let token = SecretHash::of(stranger.cookie("stagedoor_browser").expect("a cookie"));
        let proof = SecretHash::of(&format!("{}\nform\n{}", token.as_str(), form.action));
        assert_eq!(stranger.submit(&form.fill("csrf", proof.as_str())).await.response.status, 404);
        assert!(is_signed_in(&mut second).await && is_signed_in(&mut owner).await);
    })
    .await;
}
