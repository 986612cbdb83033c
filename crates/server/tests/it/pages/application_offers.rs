//! An application is offered to another person (`/developers/…/manage`), who accepts or declines.

use std::time::Duration;

use domain::limits::DAY_MS;
use testkit::{Application, Browser, Person, Setup, World, both};

use super::developers::{address, content, form, pressed, register, status, with};
use super::{assert_guarded, proven, signed_in};

const HOSTILE: &str = "\u{202E}<script>alert(1)</script>\"'<img src=x onerror=alert(2)>";

/// Offers the application to a login.
async fn offer(browser: &mut Browser, app: &Application, login: &str) {
    let page = browser.open(&address(app, "/manage")).await;
    let offer = with(form(&page, &address(app, "/offer")), "login", login);
    assert_eq!(browser.submit(&offer).await.location(), address(app, "/manage"));
}

async fn owner_of(world: &World, app: &Application) -> [Option<String>; 2] {
    let found = content(world, &format!("/platform/v1/applications/{}", app.client_id)).await;
    ["ownerChannelId", "organizationId"].map(|key| found[key].as_str().map(str::to_owned))
}

/// A developer with an application, and another person: their browsers.
async fn two(world: &World) -> (Browser, Application, Person, Browser) {
    let (developer, other) = (world.person("dev").create().await, world.person("byeol").create().await);
    let mut browser = signed_in(world, &developer).await;
    let app = register(&mut browser, "새 봇", "").await;
    let others = signed_in(world, &other).await;
    (browser, app, other, others)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_person_accepts_an_application_and_owns_it_alone() {
    both(Setup::default(), |world| async move {
        let (mut owner, app, other, mut others) = two(&world).await;
        let answer = format!("/developers/offers/{}", app.client_id);
        assert!(others.open("/developers").await.forms.iter().all(|form| form.action != answer));
        let manage = owner.open(&address(&app, "/manage")).await;
        let nobody = owner.submit(&with(form(&manage, &address(&app, "/offer")), "login", " ")).await;
        assert_eq!(nobody.response.status, 422);
        assert!(nobody.response.text().contains("<span>필수 값입니다.<"), "{}", nobody.response.text());
        offer(&mut owner, &app, &other.login).await;
        let sent = owner.open(&address(&app, "/manage")).await;
        assert_guarded(&sent);
        assert!(sent.response.text().contains("수락을 기다리는 아이디"));
        assert_eq!(status(&mut others, &address(&app, "")).await, 404, "an offer gives no right");
        let page = others.open("/developers").await;
        assert_guarded(&page);
        assert!(page.response.text().contains("넘겨받을 수 있는 앱"));
        let accept = pressed(&page, &answer, "answer", "accept");
        assert_eq!(others.submit(&accept).await.location(), address(&app, ""));
        assert_eq!(owner_of(&world, &app).await, [Some("byeol".to_owned()), None]);
        assert_eq!(status(&mut owner, &address(&app, "")).await, 404);
        assert_eq!(status(&mut others, &address(&app, "/manage")).await, 200);
        assert_eq!(others.submit(&accept).await.response.status, 404, "an offer is used up");
        world.channels(&app, "channelIds=dev").await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_can_go_to_an_organization_of_the_person() {
    both(Setup::default(), |world| async move {
        let (mut owner, app, other, mut others) = two(&world).await;
        let make = form(&others.open("/developers/new-organization").await, "/developers/new-organization");
        let path = others.submit(&with(make, "organizationName", "게임즈")).await.location().to_owned();
        let id = path.rsplit('/').next().expect("an id").to_owned();
        offer(&mut owner, &app, &other.login).await;
        let answer = format!("/developers/offers/{}", app.client_id);
        let accept = pressed(&others.open("/developers").await, &answer, "answer", "accept");
        let wrong = others.submit(&with(accept.clone(), "organizationId", "not-mine")).await;
        assert_eq!(wrong.response.status, 422);
        assert_eq!(others.submit(&with(accept, "organizationId", &id)).await.location(), address(&app, ""));
        assert_eq!(owner_of(&world, &app).await, [None, Some(id)]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_is_declined_taken_back_replaced_and_expires() {
    both(Setup::default(), |world| async move {
        let (mut owner, app, other, mut others) = two(&world).await;
        let (manage, back) = (address(&app, "/manage"), address(&app, "/offer"));
        let answer = format!("/developers/offers/{}", app.client_id);
        let page = owner.open(&manage).await;
        for login in ["", &"x".repeat(1_025)] {
            let refused = owner.submit(&with(form(&page, &back), "login", login)).await;
            assert_eq!(refused.response.status, 422);
            assert!(refused.response.text().contains("id=\"f-login-error\""));
        }
        offer(&mut owner, &app, &other.login).await;
        let page = others.open("/developers").await;
        let accept = pressed(&page, &answer, "answer", "accept");
        let decline = pressed(&page, &answer, "answer", "decline");
        assert_eq!(others.submit(&decline).await.location(), "/developers");
        assert_eq!(others.submit(&accept).await.response.status, 404);
        offer(&mut owner, &app, &other.login).await;
        let take_back = pressed(&owner.open(&manage).await, &back, "takeBack", "yes");
        assert_eq!(owner.submit(&take_back).await.location(), manage);
        assert_eq!(others.submit(&accept).await.response.status, 404);
        // Only an account that was there before the offer can accept it.
        offer(&mut owner, &app, "later@login").await;
        world.advance(Duration::from_secs(1));
        let later = world.person("later").create().await;
        let mut late = signed_in(&world, &later).await;
        assert!(!late.open("/developers").await.response.text().contains("/developers/offers/"));
        let take_back = pressed(&owner.open(&manage).await, &back, "takeBack", "yes");
        owner.submit(&take_back).await.location();
        offer(&mut owner, &app, &other.login).await;
        world.advance(Duration::from_millis(7 * DAY_MS as u64));
        let mut others = signed_in(&world, &other).await;
        let page = others.open("/developers").await;
        assert!(!page.response.text().contains("/developers/offers/"));
        assert_eq!(owner_of(&world, &app).await, [Some("dev".to_owned()), None]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admins_offer_and_only_the_named_person_answers() {
    both(Setup::default(), |world| async move {
        let (mut owner, app, other, mut others) = two(&world).await;
        offer(&mut owner, &app, HOSTILE).await;
        let page = owner.open(&address(&app, "/manage")).await;
        assert!(!page.response.text().contains("<script>") && !page.response.text().contains("<img src=x"));
        let offered = pressed(&page, &address(&app, "/offer"), "takeBack", "yes");
        owner.submit(&offered).await.location();
        // Proofs of the stranger's own, for the addresses of others.
        let mut mine = form(&others.open("/developers/register").await, "/developers/register");
        let app_of_stranger = register(&mut others, "남의 봇", "").await;
        offer(&mut others, &app_of_stranger, "dev").await;
        for path in [address(&app, "/offer"), format!("/developers/offers/{}", app.client_id)] {
            mine.action = path;
            let with_proof = proven(&others, mine.clone());
            let with_proof = with(with(with_proof, "login", &other.login), "answer", "accept");
            assert_eq!(others.submit(&with_proof).await.response.status, 404, "{}", with_proof.action);
            let without = with(with_proof, "csrf", "x");
            assert_eq!(others.submit(&without).await.response.status, 400);
        }
        assert_eq!(owner_of(&world, &app).await, [Some("dev".to_owned()), None]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_answers_at_the_same_time_one_counts() {
    both(Setup::default(), |world| async move {
        let (mut owner, app, other, mut others) = two(&world).await;
        offer(&mut owner, &app, &other.login).await;
        let answer = format!("/developers/offers/{}", app.client_id);
        let accept = pressed(&others.open("/developers").await, &answer, "answer", "accept");
        let manage = owner.open(&address(&app, "/manage")).await;
        let take_back = pressed(&manage, &address(&app, "/offer"), "takeBack", "yes");
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..6 {
            let (mut others, accept) = (others.clone(), accept.clone());
            running.spawn(async move { (true, others.submit(&accept).await.response.status) });
            let (mut owner, take_back) = (owner.clone(), take_back.clone());
            running.spawn(async move { (false, owner.submit(&take_back).await.response.status) });
        }
        let answers = running.join_all().await;
        let accepted = answers.iter().filter(|answer| **answer == (true, 303)).count();
        assert!(answers.iter().all(|(_, status)| [303, 404].contains(status)), "{answers:?}");
        let owned_by = if accepted == 1 { "byeol" } else { "dev" };
        assert!(accepted <= 1, "{answers:?}");
        assert_eq!(owner_of(&world, &app).await, [Some(owned_by.to_owned()), None]);
    })
    .await;
}
