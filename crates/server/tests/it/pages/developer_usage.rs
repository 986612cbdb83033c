//! The usage of an application in the developer center: requests, quotas, refused requests, the countdown.

use std::time::Duration;

use domain::limits::DAY_MS;
use serde_json::json;
use testkit::{Application, Browser, Request, Response, Setup, World, both, patiently};

use super::developers::{HOSTILE, address, choose, register, status};
use super::{assert_guarded, signed_in};

async fn html(browser: &mut Browser, path: &str) -> String {
    let page = browser.open(path).await;
    assert_guarded(&page);
    page.response.text().to_owned()
}

/// The row of a table that has this text.
#[track_caller]
fn row<'h>(html: &'h str, text: &str) -> &'h str {
    let row = html.split("<tr").find(|row| row.contains(text));
    row.unwrap_or_else(|| panic!("no row of {text}: {html}"))
}

fn request_id(response: &Response) -> String {
    response.header("x-request-id").expect("an id").to_owned()
}

async fn say(world: &World, token: &str, message: &str) -> Response {
    world.send(Request::post("/open/v1/chats/send").bearer(token).json(&json!({ "message": message }))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_shown_by_scope_and_day_with_those_that_were_refused() {
    both(Setup { quotas: true, ..Setup::default() }, |world| async move {
        let developer = world.person("dev").create().await;
        let viewer = world.person("byeol").create().await;
        let name = json!({ "channelName": HOSTILE });
        world.operator(Request::put("/platform/v1/channels/byeol").json(&name)).await.content();
        let mut browser = signed_in(&world, &developer).await;
        let app = register(&mut browser, "봇", "").await;
        choose(&mut browser, &app, &["user-read", "chat-write"]).await;
        let path = address(&app, "/usage");
        assert!(html(&mut browser, &path).await.contains("이 기간에는 요청이 없습니다."));

        let tokens = world.sign_in(&app, &viewer).await;
        for _ in 0..3 {
            world.me(&tokens.access).await.content();
        }
        say(&world, &tokens.access, "안녕").await.content();
        let refused = say(&world, &tokens.access, "").await;
        assert_eq!(refused.status, 400);
        let missing = world.send(Request::get("/open/v1/restrict-channels").bearer(&tokens.access)).await;
        missing.assert_refused(403, "FORBIDDEN");
        world.channels(&app, "channelIds=dev").await.content();

        let shown = html(&mut browser, &path).await;
        for (kind, requests, refused) in [
            ("유저 정보 조회", 3, 0),
            ("채팅 메시지 쓰기", 2, 1),
            ("활동제한 조회", 1, 1),
            ("권한이 필요 없는 클라이언트 호출", 1, 0),
            ("토큰 발급과 갱신", 1, 0),
        ] {
            let row = row(&shown, kind);
            assert!(row.contains(&format!("요청 수\">{requests}<")), "{row}");
            assert!(row.contains(&format!("실패\">{refused}<")), "{row}");
        }
        assert!(shown.contains("role=\"img\"") && shown.contains("<rect class=\"c0\""));
        // Which request was refused, why, and whose it was.
        let of_scope = row(&shown, &request_id(&missing));
        for text in
            ["GET /open/v1/restrict-channels", "403", "scope-missing; scope=restriction-read", "byeol"]
        {
            assert!(of_scope.contains(text), "{text}: {of_scope}");
        }
        assert!(row(&shown, &request_id(&refused)).contains("invalid; field=message"));
        // The quotas of the application and of its user.
        assert!(row(&shown, "채팅 메시지(모든 앱)").contains("2 / 20"));
        assert!(row(&shown, "이 앱에서 한 유저의 호출").contains("/ 800"));
        assert!(!shown.contains("<script>") && !shown.contains("<img src=x"));
        let english = html(&mut browser, &format!("{path}?lang=en&days=7")).await;
        assert!(english.contains("Requests by scope") && english.contains("Write chat"));

        // Written, and the next day a part of the past.
        world.advance(Duration::from_secs(6));
        world.advance(Duration::from_millis(DAY_MS.unsigned_abs()));
        let mut browser = signed_in(&world, &developer).await;
        let later = patiently("the requests are written", async {
            loop {
                let page = html(&mut browser, &format!("{path}?days=7&lang=ko")).await;
                if !page.contains("이 기간에는 요청이 없습니다.") {
                    return page;
                }
            }
        })
        .await;
        assert!(row(&later, "유저 정보 조회").contains("요청 수\">3<"));
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        let expired = html(&mut browser, &path).await;
        assert!(row(&expired, "token-expired").contains("GET /open/v1/users/me"), "{expired}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_days_until_an_unused_application_is_deleted_are_shown_from_the_beginning() {
    both(Setup::default(), |world| async move {
        let developer = world.person("dev").create().await;
        let app = register(&mut signed_in(&world, &developer).await, "봇", "").await;
        world.advance(Duration::from_millis(10 * DAY_MS.unsigned_abs()));
        let mut browser = signed_in(&world, &developer).await;
        for end in ["", "/usage"] {
            let html = html(&mut browser, &address(&app, end)).await;
            assert!(html.contains("쓰지 않으면 삭제되는 날") && html.contains("(80일 뒤)"), "{end}: {html}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_usage_of_others_does_not_exist() {
    both(Setup::default(), |world| async move {
        let (developer, other) = (world.person("dev").create().await, world.person("byeol").create().await);
        let app: Application = register(&mut signed_in(&world, &developer).await, "봇", "").await;
        let mut stranger = signed_in(&world, &other).await;
        for path in [address(&app, "/usage"), "/developers/applications/missing/usage".to_owned()] {
            assert_eq!(status(&mut stranger, &path).await, 404, "{path}");
        }
    })
    .await;
}
