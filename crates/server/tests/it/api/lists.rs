//! Followers, subscribers and managers of the caller's channel (`docs/spec/channels.md`,
//! `docs/spec/rest.md#lists`), and the platform API that creates them.

use domain::Profile;
use serde_json::{Value, json};
use testkit::{Person, Request, Response, Setup, World, both};

use crate::fixture::{Fixture, wrong};

const ROLES: &str = "streaming-roles";
const NOTHING: &str = r#"{"code":200,"message":null,"content":null}"#;

async fn get(world: &World, fixture: &Fixture, list: &str) -> Response {
    let request = Request::get(format!("/open/v1/channels/{list}")).bearer(&fixture.tokens.access);
    world.send(request).await
}

/// Calls the platform API on `…/channels/haneul/{path}`.
async fn platform(world: &World, method: &str, path: &str, body: &str) -> Response {
    let request = Request::new(method, format!("/platform/v1/channels/{path}"));
    world.operator(request.body(body)).await
}

async fn follow(world: &World, who: &str, date: &str) {
    let body = json!({ "createdDate": date }).to_string();
    let answer = platform(world, "PUT", &format!("haneul/followers/{who}"), &body).await;
    assert_eq!(answer.text(), NOTHING);
}

async fn subscribe(world: &World, who: &str, month: i64, date: &str) {
    let body = json!({
        "subscriberChannelId": who, "tierNo": 1, "tierName": "팬", "month": month, "createdDate": date,
    });
    world.happen("haneul", "subscriptions", &body).await.content();
}

/// A channel without a login.
async fn channel(world: &World, id: &str) {
    let body = json!({ "channelName": id }).to_string();
    assert_eq!(platform(world, "PUT", id, &body).await.text(), NOTHING);
}

async fn column(world: &World, fixture: &Fixture, list: &str, field: &str) -> Vec<String> {
    let content = get(world, fixture, list).await.content();
    let data = content["data"].as_array().expect("data is a list").clone();
    data.iter().map(|item| item[field].as_str().expect("a text").to_owned()).collect()
}

async fn ids(world: &World, fixture: &Fixture, list: &str) -> Vec<String> {
    column(world, fixture, list, "channelId").await
}

async fn follower_count(world: &World, fixture: &Fixture) -> i64 {
    let content = world.channels(&fixture.app, "channelIds=haneul").await.content();
    content["data"][0]["followerCount"].as_i64().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_comes_first_then_managers_by_date() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let owner = concat!(
            r#"{"code":200,"message":null,"content":{"data":[{"managerChannelId":"haneul","#,
            r#""managerChannelName":"하늘 🚀","userRole":"STREAMING_CHANNEL_OWNER","#,
            r#""createdDate":"2026-07-18T14:32:12.345Z"}"#
        );
        assert_eq!(get(&world, &fixture, ROLES).await.text(), format!("{owner}]}}}}"));
        for id in ["sol", "Bada"] {
            channel(&world, id).await;
        }
        let put = async |who: &str, role: &str| {
            let body = json!({ "userRole": role }).to_string();
            let answer = platform(&world, "PUT", &format!("haneul/managers/{who}"), &body).await;
            assert_eq!(answer.text(), NOTHING);
        };
        world.advance(std::time::Duration::from_millis(1));
        put("sol", "STREAMING_SETTLEMENT_MANAGER").await;
        put("Bada", "STREAMING_CHANNEL_MANAGER").await;
        world.advance(std::time::Duration::from_millis(1));
        put("byeol", "STREAMING_CHANNEL_MANAGER").await;
        put("sol", "STREAMING_CHAT_MANAGER").await;
        assert_eq!(
            get(&world, &fixture, ROLES).await.text(),
            format!(
                "{owner},{},{},{}]}}}}",
                r#"{"managerChannelId":"Bada","managerChannelName":"Bada","userRole":"STREAMING_CHANNEL_MANAGER","createdDate":"2026-07-18T14:32:12.346Z"}"#,
                r#"{"managerChannelId":"sol","managerChannelName":"sol","userRole":"STREAMING_CHAT_MANAGER","createdDate":"2026-07-18T14:32:12.346Z"}"#,
                r#"{"managerChannelId":"byeol","managerChannelName":"별이","userRole":"STREAMING_CHANNEL_MANAGER","createdDate":"2026-07-18T14:32:12.347Z"}"#,
            )
        );
        for _ in 0..2 {
            assert_eq!(platform(&world, "DELETE", "haneul/managers/Bada", "").await.text(), NOTHING);
        }
        let left = column(&world, &fixture, ROLES, "managerChannelId").await;
        assert_eq!(left, ["haneul", "sol", "byeol"]);
        // A manager of another channel reads the managers of the own channel.
        let viewer = world.sign_in(&fixture.app, &fixture.viewer).await;
        let fixture = Fixture { tokens: viewer, ..fixture };
        assert_eq!(column(&world, &fixture, ROLES, "managerChannelId").await, ["byeol"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_come_newest_first_and_then_by_id() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        assert_eq!(get(&world, &fixture, "followers").await.content(), json!({ "data": [] }));
        for id in ["sol", "Sol", "sol-1", "sol_1", "last"] {
            channel(&world, id).await;
        }
        // Without a date, or without a body, the date is now.
        for body in ["", " ", "null", "{}", r#"{"createdDate":null}"#] {
            let answer = platform(&world, "PUT", "haneul/followers/byeol", body).await;
            assert_eq!(answer.text(), NOTHING, "{body}");
        }
        for id in ["sol", "Sol", "sol_1", "sol-1"] {
            follow(&world, id, "2026-07-01T09:00:00.001+09:00").await;
        }
        follow(&world, "last", "1999-12-31T23:59:59Z").await;
        assert_eq!(
            get(&world, &fixture, "followers?size=2").await.text(),
            concat!(
                r#"{"code":200,"message":null,"content":{"data":["#,
                r#"{"channelId":"byeol","channelName":"별이","createdDate":"2026-07-18T14:32:12.345Z"},"#,
                r#"{"channelId":"Sol","channelName":"Sol","createdDate":"2026-07-01T00:00:00.001Z"}]}}"#
            )
        );
        let order = ["byeol", "Sol", "sol", "sol-1", "sol_1", "last"];
        assert_eq!(ids(&world, &fixture, "followers").await, order);
        assert_eq!(ids(&world, &fixture, "followers?page=1&size=4").await, order[4..]);
        assert_eq!(follower_count(&world, &fixture).await, 6);

        // A repeated follow keeps its date, unless the body has one.
        for body in ["", "{}"] {
            platform(&world, "PUT", "haneul/followers/last", body).await.content();
            assert_eq!(ids(&world, &fixture, "followers").await, order);
        }
        follow(&world, "last", "2030-01-01T00:00:00Z").await;
        assert_eq!(ids(&world, &fixture, "followers?size=2").await, ["last", "byeol"]);
        for _ in 0..2 {
            assert_eq!(platform(&world, "DELETE", "haneul/followers/byeol", "").await.text(), NOTHING);
            assert_eq!(follower_count(&world, &fixture).await, 5);
        }
        assert_eq!(ids(&world, &fixture, "followers").await, ["last", "Sol", "sol", "sol-1", "sol_1"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_come_newest_first_or_longest_first_and_then_by_id() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        assert_eq!(get(&world, &fixture, "subscribers").await.content(), json!({ "data": [] }));
        for id in ["sol", "bada"] {
            channel(&world, id).await;
        }
        subscribe(&world, "byeol", 7, "2026-01-01T00:00:00Z").await;
        subscribe(&world, "sol", 7, "2026-03-01T00:00:00Z").await;
        subscribe(&world, "bada", 1, "2026-03-01T00:00:00Z").await;
        for (sort, order) in [
            ("", ["bada", "sol", "byeol"]),
            ("?sort=RECENT", ["bada", "sol", "byeol"]),
            ("?sort=LONGER", ["byeol", "sol", "bada"]),
        ] {
            assert_eq!(ids(&world, &fixture, &format!("subscribers{sort}")).await, order, "{sort}");
        }
        // A later month changes the number of months, and keeps the first day.
        let later = json!({ "subscriberChannelId": "bada", "tierNo": 2, "tierName": "열혈", "month": 12 });
        world.happen("haneul", "subscriptions", &later).await.content();
        assert_eq!(
            get(&world, &fixture, "subscribers?sort=LONGER&size=2&page=0").await.text(),
            concat!(
                r#"{"code":200,"message":null,"content":{"data":["#,
                r#"{"channelId":"bada","channelName":"bada","month":12,"tierNo":2,"#,
                r#""createdDate":"2026-03-01T00:00:00.000Z"},"#,
                r#"{"channelId":"byeol","channelName":"별이","month":7,"tierNo":1,"#,
                r#""createdDate":"2026-01-01T00:00:00.000Z"}]}}"#
            )
        );
        assert_eq!(ids(&world, &fixture, "subscribers").await, ["bada", "sol", "byeol"]);

        let message = wrong("sort", "RECENT, LONGER 중 하나여야 합니다.");
        for sort in ["", "recent", "LONGEST", "RECENT,LONGER", "1", "%EA%B0%80"] {
            get(&world, &fixture, &format!("subscribers?sort={sort}")).await.assert_refused(400, &message);
        }
        let twice = get(&world, &fixture, "subscribers?sort=LONGER&sort=LONGER").await;
        twice.assert_refused(400, &wrong("sort", "한 번만 지정할 수 있습니다."));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_sizes_are_bounded() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        platform(&world, "PUT", "haneul/followers/byeol", "").await.content();
        subscribe(&world, "byeol", 1, "2026-01-01T00:00:00Z").await;
        let size = wrong("size", "1 이상 50 이하의 정수여야 합니다.");
        let page = wrong("page", "0 이상 2147483647 이하의 정수여야 합니다.");
        let once = |field| wrong(field, "한 번만 지정할 수 있습니다.");
        for list in ["followers", "subscribers"] {
            for query in ["size=1", "size=50", "size=050", "page=0", "page=00", "page=0&size=30", "other=x"] {
                assert_eq!(
                    ids(&world, &fixture, &format!("{list}?{query}")).await,
                    ["byeol"],
                    "{list} {query}"
                );
            }
            for query in ["page=1", "page=2147483647", "page=2147483647&size=50", "page=2147483647&size=1"] {
                assert!(ids(&world, &fixture, &format!("{list}?{query}")).await.is_empty(), "{list} {query}");
            }
            for query in
                ["0", "51", "-1", "", "x", "1.0", "1e1", "%2B1", "99999999999999999999", "true", "[]"]
            {
                let answer = get(&world, &fixture, &format!("{list}?size={query}")).await;
                answer.assert_refused(400, &size);
            }
            for query in ["-1", "2147483648", "9223372036854775808", "", "x", "0.0", "null"] {
                let answer = get(&world, &fixture, &format!("{list}?page={query}")).await;
                answer.assert_refused(400, &page);
            }
            for field in ["page", "size"] {
                let answer = get(&world, &fixture, &format!("{list}?{field}=1&{field}=1")).await;
                answer.assert_refused(400, &once(field));
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_returns_every_follower_once_and_ends_with_an_empty_page() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        for n in 0..65 {
            let id = format!("viewer-{n:02}");
            channel(&world, &id).await;
            follow(&world, &id, &format!("2026-07-{:02}T00:00:00Z", 1 + n % 3)).await;
            subscribe(&world, &id, n % 4, &format!("2026-07-{:02}T00:00:00Z", 1 + n % 3)).await;
        }
        for list in ["followers?", "subscribers?", "subscribers?sort=LONGER&"] {
            for size in [1, 7, 13, 30, 50] {
                let mut met = Vec::new();
                for page in 0.. {
                    let found = ids(&world, &fixture, &format!("{list}page={page}&size={size}")).await;
                    if found.is_empty() {
                        break;
                    }
                    met.extend(found);
                }
                let mut distinct = met.clone();
                distinct.sort();
                distinct.dedup();
                assert_eq!((met.len(), distinct.len()), (65, 65), "{list} {size}");
            }
        }
        assert_eq!(ids(&world, &fixture, "followers").await.len(), 30, "the default");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_observed_page_has_its_number_and_dates_in_korea_time() {
    both(Setup { profile: Profile::Observed, ..Setup::default() }, |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let empty = r#"{"data":[],"page":0,"totalCount":0,"totalPages":0}"#;
        for list in ["followers", "subscribers"] {
            let expected = format!(r#"{{"code":200,"message":null,"content":{empty}}}"#);
            assert_eq!(get(&world, &fixture, list).await.text(), expected);
        }
        channel(&world, "sol").await;
        for id in ["byeol", "sol"] {
            follow(&world, id, "2026-07-18T15:00:00Z").await;
            subscribe(&world, id, 3, "2026-07-18T14:59:59Z").await;
        }
        for (list, item) in [
            ("followers", r#""createdDate":"2026-07-19 00:00:00""#),
            ("subscribers", r#""month":3,"tierNo":1,"createdDate":"2026-07-18 23:59:59""#),
        ] {
            assert_eq!(
                get(&world, &fixture, &format!("{list}?size=1&page=1")).await.text(),
                format!(
                    r#"{{"code":200,"message":null,"content":{{"data":[{{"channelId":"sol","channelName":"sol",{item}}}],"page":1,"totalCount":2,"totalPages":2}}}}"#
                )
            );
            let far = get(&world, &fixture, &format!("{list}?page=2147483647&size=50")).await.content();
            assert_eq!(far, json!({ "data": [], "page": 2_147_483_647_i64, "totalCount": 2, "totalPages": 1 }));
        }
        let roles = get(&world, &fixture, ROLES).await.content();
        assert_eq!(roles["data"][0]["createdDate"], "2026-07-18 23:32:12");
        assert_eq!(roles.as_object().expect("an object").len(), 1, "that list has no pages");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_reports_of_the_platform_are_named_and_change_nothing() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let roles = "STREAMING_CHANNEL_MANAGER, STREAMING_CHAT_MANAGER, STREAMING_SETTLEMENT_MANAGER";
        let role = wrong("userRole", &format!("{roles} 중 하나여야 합니다."));
        let date = wrong("createdDate", "RFC 3339 형식의 날짜여야 합니다.");
        let text = wrong("createdDate", "문자열이어야 합니다.");
        let id = "영문자, 숫자, '-', '_', '.'로 된 1자 이상 64자 이하의 ID여야 합니다.";
        let json = wrong("body", "UTF-8로 된 64 KiB 이하의 올바른 JSON이어야 합니다.");
        let object = wrong("body", "JSON 객체여야 합니다.");
        let (manager, follower) = ("haneul/managers/byeol", "haneul/followers/byeol");
        let good_role = r#"{"userRole":"STREAMING_CHAT_MANAGER"}"#;
        let same = "다른 채널이어야 합니다.";
        for (path, body, message) in [
            (manager, r#"{"userRole":"STREAMING_CHANNEL_OWNER"}"#, &role),
            (manager, r#"{"userRole":"streaming_chat_manager"}"#, &role),
            (manager, r#"{"userRole":""}"#, &role),
            (manager, "{}", &wrong("userRole", "필수 값입니다.")),
            (manager, "", &json),
            ("haneul/managers/haneul", good_role, &wrong("managerChannelId", same)),
            ("haneul/managers/%EB%B3%84", good_role, &wrong("managerChannelId", id)),
            ("%EB%B3%84/managers/haneul", good_role, &wrong("channelId", id)),
            ("missing/managers/missing", good_role, &wrong("managerChannelId", same)),
            (follower, r#"{"createdDate":"2026-07-18"}"#, &date),
            (follower, r#"{"createdDate":"2026-02-30T00:00:00Z"}"#, &date),
            (follower, r#"{"createdDate":"2026-07-18T00:00:00"}"#, &date),
            (follower, r#"{"createdDate":""}"#, &date),
            (follower, r#"{"createdDate":1784385132345}"#, &text),
            (follower, "{", &json),
            (follower, "[]", &object),
            (follower, "\"\"", &object),
            ("haneul/followers/haneul", "", &wrong("followerChannelId", same)),
            ("haneul/followers/a%2Fb", "", &wrong("followerChannelId", id)),
        ] {
            platform(&world, "PUT", path, body).await.assert_refused(400, message);
        }
        // An invalid value is reported before a missing one.
        for (method, path, body) in [
            ("PUT", "missing/managers/byeol", good_role),
            ("PUT", "haneul/managers/missing", good_role),
            ("DELETE", "missing/managers/byeol", ""),
            ("DELETE", "haneul/managers/missing", ""),
            ("PUT", "missing/followers/byeol", ""),
            ("PUT", "haneul/followers/missing", "{}"),
            ("DELETE", "missing/followers/byeol", ""),
            ("DELETE", "haneul/followers/missing", ""),
        ] {
            platform(&world, method, path, body).await.assert_refused(404, "NOT_FOUND");
        }
        platform(&world, "PUT", "missing/managers/byeol", "{}").await.assert_refused(400, &wrong("userRole", "필수 값입니다."));
        let subscription = json!({
            "subscriberChannelId": "byeol", "tierNo": 1, "tierName": "팬", "month": 1, "createdDate": "yesterday",
        });
        world.happen("haneul", "subscriptions", &subscription).await.assert_refused(400, &date);

        assert_eq!(column(&world, &fixture, ROLES, "managerChannelId").await, ["haneul"]);
        assert!(ids(&world, &fixture, "followers").await.is_empty());
        assert!(ids(&world, &fixture, "subscribers").await.is_empty());
        assert_eq!(follower_count(&world, &fixture).await, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_follows_of_one_viewer_count_once() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let racers: Vec<_> = (0..50)
            .map(|_| {
                let world = world.clone();
                tokio::spawn(async move {
                    platform(&world, "PUT", "haneul/followers/byeol", "").await.content() == Value::Null
                })
            })
            .collect();
        for racer in racers {
            assert!(racer.await.expect("it runs to its end"));
        }
        assert_eq!(follower_count(&world, &fixture).await, 1);
        assert_eq!(ids(&world, &fixture, "followers").await, ["byeol"]);
    })
    .await;
}

/// A list belongs to the caller, and contains the current names.
#[tokio::test(flavor = "multi_thread")]
async fn lists_belong_to_the_caller_and_have_current_names() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        platform(&world, "PUT", "haneul/followers/byeol", "").await.content();
        subscribe(&world, "byeol", 1, "2026-01-01T00:00:00Z").await;
        let Person { name, .. } = world.person("byeol").name("별똥별 🌠 별똥별").create().await;
        for list in ["followers", "subscribers"] {
            assert_eq!(column(&world, &fixture, list, "channelName").await, std::slice::from_ref(&name));
        }
        let viewer = world.sign_in(&fixture.app, &fixture.viewer).await;
        let fixture = Fixture { tokens: viewer, ..fixture };
        for list in ["followers", "subscribers"] {
            assert!(ids(&world, &fixture, list).await.is_empty(), "{list}");
        }
    })
    .await;
}
