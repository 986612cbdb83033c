//! Pages of other origins: an overlay may run anywhere, so any page may use a session whose URL it has. The
//! socket reads no cookie, so a page without a URL has no access.

use testkit::{Connection, Request, Setup, both, websocket_request};

use super::sessions::session_queries;

const EVIL: &str = "https://evil.example";

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_any_origin_may_use_only_a_url_that_it_has() {
    both(Setup::default(), |world| async move {
        let queries = session_queries(&world, "page", 2).await;
        let polling = format!("/socket.io/?{}&EIO=4&transport=polling", queries[0]);
        let answer = world.send(Request::get(&polling).header("Origin", EVIL)).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("access-control-allow-origin"), Some(EVIL));
        assert_eq!(answer.header("access-control-allow-credentials"), Some("true"));
        assert_eq!(answer.header("vary"), Some("Origin"));
        assert_eq!(answer.header("set-cookie"), None);

        let request = websocket_request(&format!("{}&EIO=4&transport=websocket", queries[1]));
        let answer = Connection::open(world.address()).await.send(&request.header("Origin", EVIL)).await;
        assert_eq!(answer.status, 101);

        // Without a session URL's token a page gets nothing, even with the browser's cookies.
        for auth in ["", "auth=", "auth=guess"] {
            for transport in ["polling", "websocket"] {
                let request = websocket_request(&format!("{auth}&EIO=4&transport={transport}"))
                    .header("Origin", EVIL)
                    .header("Cookie", "session=x; stagedoor=y; auth=z");
                assert_eq!(Connection::open(world.address()).await.send(&request).await.status, 401);
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_socket_allows_other_origins() {
    both(Setup::default(), |world| async move {
        let preflight = |target: &str, method: &str, headers: &str| {
            Request::new("OPTIONS", target)
                .header("Origin", EVIL)
                .header("Access-Control-Request-Method", method)
                .header("Access-Control-Request-Headers", headers)
        };
        let answer =
            world.send(preflight("/socket.io/?EIO=4&transport=polling", "POST", "content-type")).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("access-control-allow-methods"), Some("GET, POST"));
        // A page may not send the header that carries REST tokens.
        assert_eq!(answer.header("access-control-allow-headers"), Some("Content-Type"));
        for target in ["/open/v1/users/me", "/auth/v1/token", "/platform/v1/channels/x", "/account-interlock"]
        {
            let answer = world.send(preflight(target, "POST", "authorization")).await;
            assert_eq!(answer.header("access-control-allow-origin"), None, "{target}");
            let answer = world.send(Request::get(target).header("Origin", EVIL)).await;
            assert_eq!(answer.header("access-control-allow-origin"), None, "{target}");
        }
    })
    .await;
}
