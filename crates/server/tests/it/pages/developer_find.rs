//! The field of the developer center that takes any id.

use serde_json::json;
use testkit::{Browser, Request, Setup, both};

use super::developers::{HOSTILE, address, choose, form, register, with};
use super::{assert_guarded, signed_in};

const NOTHING: &str = "찾지 못했습니다.";

/// The page of an id: where it leads, or what it says.
async fn find(browser: &mut Browser, id: &str) -> String {
    let path = format!("/developers/find?id={id}");
    let page = browser.send(Request::get(&path).header("Accept", "text/html")).await;
    if page.response.status == 200 {
        assert_guarded(&page);
        return page.response.text().to_owned();
    }
    page.location().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_leads_to_what_it_names_for_its_people_only() {
    both(Setup::default(), |world| async move {
        let (developer, other) = (world.person("dev").create().await, world.person("byeol").create().await);
        let mut browser = signed_in(&world, &developer).await;
        let make = form(&browser.open("/developers/new-organization").await, "/developers/new-organization");
        let organization =
            browser.submit(&with(make, "organizationName", "게임즈")).await.location().to_owned();
        let organization_id = organization.rsplit('/').next().expect("an id").to_owned();
        let app = register(&mut browser, "봇", "").await;
        choose(&mut browser, &app, &["user-read"]).await;
        let socket = world.open_client_session(&app).await;
        let tokens = world.sign_in(&app, &developer).await;
        let refused = world.send(Request::get("/open/v1/restrict-channels").bearer(&tokens.access)).await;
        refused.assert_refused(403, "FORBIDDEN");
        let request_id = refused.header("x-request-id").expect("an id").to_owned();
        let message = json!({ "senderChannelId": "byeol", "message": HOSTILE });
        let said = world.operator(Request::post("/platform/v1/channels/dev/chats").json(&message)).await;
        let message_id = said.content()["messageId"].as_str().expect("an id").to_owned();

        let session = socket.session_key();
        for (id, leads_to) in [
            (app.client_id.as_str(), address(&app, "")),
            (organization_id.as_str(), organization.clone()),
            (session, address(&app, &format!("/sessions/{session}"))),
        ] {
            assert_eq!(find(&mut browser, id).await, leads_to);
        }
        let of_request = find(&mut browser, &request_id).await;
        for text in ["GET /open/v1/restrict-channels", "403", "scope-missing"] {
            assert!(of_request.contains(text), "{text}: {of_request}");
        }
        let of_message = find(&mut browser, &message_id).await;
        assert!(of_message.contains("내 채팅의 메시지") && !of_message.contains("<script>"), "{of_message}");

        // For anybody else the answer is that of an id that does not exist.
        let mut stranger = signed_in(&world, &other).await;
        let missing = find(&mut stranger, "missing").await.replace("missing", "ID");
        assert!(missing.contains(NOTHING));
        for id in [&app.client_id, &organization_id, session, &message_id] {
            assert_eq!(find(&mut stranger, id).await.replace(id, "ID"), missing, "{id}");
        }
        let unknown = find(&mut stranger, "0123456789abcdef0123").await.replace("0123456789abcdef0123", "ID");
        assert_eq!(find(&mut stranger, &request_id).await.replace(&request_id, "ID"), unknown);
        assert!(unknown.contains("운영자의 로그"));
        for odd in ["%3Cscript%3Ealert(1)%3C/script%3E", "..%2F..%2F", "%F0%9F%90%B8"] {
            let page = find(&mut browser, odd).await;
            assert!(page.contains(NOTHING) && !page.contains("<script>"), "{odd}");
        }
        for none in ["", "%00", "%FF", "+"] {
            assert!(!find(&mut browser, none).await.contains(NOTHING), "{none}");
        }
        assert_eq!(find(&mut world.browser(), "x").await, "/sign-in?next=%2Fdevelopers%2Ffind%3Fid%3Dx");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_found_by_the_members_of_the_organization() {
    both(Setup::default(), |world| async move {
        let (developer, other) = (world.person("dev").create().await, world.person("byeol").create().await);
        let mut browser = signed_in(&world, &developer).await;
        let make = form(&browser.open("/developers/new-organization").await, "/developers/new-organization");
        let path = browser.submit(&with(make, "organizationName", "게임즈")).await.location().to_owned();
        let id = path.rsplit('/').next().expect("an id").to_owned();
        let put = async |path: &str, body: serde_json::Value| {
            world.operator(Request::put(path).json(&body)).await.content()
        };
        put(
            &format!("/platform/v1/organizations/{id}"),
            json!({ "organizationName": "게임즈", "verified": true }),
        )
        .await;
        let category = json!({ "categoryType": "GAME", "categoryValue": "게임" });
        put("/platform/v1/categories/game", category).await;
        let campaign = json!({
            "campaignName": "여름", "organizationId": id, "categoryId": "game",
            "rewards": [{ "rewardId": "skin", "rewardName": "스킨" }],
        });
        put("/platform/v1/drops/campaigns/summer", campaign).await;
        let claim =
            json!({ "campaignId": "summer", "rewardId": "skin", "channelId": "byeol", "claimId": "claim-7" });
        world.operator(Request::post("/platform/v1/drops/claims").json(&claim)).await.content();
        let found = find(&mut browser, "claim-7").await;
        assert!(found.contains("드롭스 수령") && found.contains("<code>summer</code>"), "{found}");
        assert!(find(&mut signed_in(&world, &other).await, "claim-7").await.contains(NOTHING));
    })
    .await;
}
