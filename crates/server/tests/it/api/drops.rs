//! The query and the update of reward claims (`docs/spec/drops.md#query`, `docs/spec/drops.md#update`).

use std::time::Duration;

use domain::Scope;
use serde_json::{Value, json};
use testkit::{Application, Request, Response, Setup, World, both};

use crate::fixture::{Fixture, wrong};
use store::Tx;

/// The publisher, a rival, and their claims.
struct Cast {
    app: Application,
    rival: Application,
}

/// The publisher's claims are e d c b a, newest first. The rival has x.
async fn cast(world: &World) -> Cast {
    let fixture = Fixture::set_up(world).await;
    world.category("talk", "토크").await;
    put_organization(world, "rival", true).await;
    let rival = world.application("rival").scopes(&[Scope::Drops]);
    let rival = rival.with("organizationId", "rival").create().await;
    for (campaign, organization, category) in
        [("sea", "publisher", "star-voyage"), ("sky", "publisher", "talk"), ("theirs", "rival", "talk")]
    {
        let body = json!({
            "campaignName": campaign, "organizationId": organization, "categoryId": category,
            "rewards": [{ "rewardId": "sword", "rewardName": "검" }, { "rewardId": "bow", "rewardName": "활" }],
        });
        world.put_campaign(campaign, &body).await.content();
    }
    for (id, campaign, reward, channel) in [
        ("a", "sea", "sword", "haneul"),
        ("b", "sea", "bow", "haneul"),
        ("c", "sky", "sword", "haneul"),
        ("d", "sky", "sword", "byeol"),
        ("x", "theirs", "sword", "haneul"),
        ("e", "sea", "sword", "byeol"),
    ] {
        // b and c are claimed at the same time.
        world.advance(Duration::from_millis(if id == "c" { 0 } else { 10 }));
        make(world, id, campaign, reward, channel).await.content();
    }
    update(world, &fixture.publisher.app, &["b", "d"], "FULFILLED").await.content();
    Cast { app: fixture.publisher.app.clone(), rival }
}

async fn put_organization(world: &World, id: &str, verified: bool) {
    let body = json!({ "organizationName": id, "verified": verified });
    world.operator(Request::put(format!("/platform/v1/organizations/{id}")).json(&body)).await.content();
}

async fn make(world: &World, id: &str, campaign: &str, reward: &str, channel: &str) -> Response {
    let body = json!({ "claimId": id, "campaignId": campaign, "rewardId": reward, "channelId": channel });
    world.claim(&body).await
}

async fn update(world: &World, app: &Application, ids: &[&str], state: &str) -> Response {
    world.update_claims(app, &json!({ "claimIds": ids, "fulfillmentState": state })).await
}

/// The ids of a page, and its cursor.
async fn page(world: &World, app: &Application, query: &str) -> (String, String) {
    let content = world.reward_claims(app, query).await.content();
    let keys: Vec<_> = content.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(keys, ["data", "page"]);
    let claims = content["data"].as_array().expect("data is a list");
    let ids: Vec<_> = claims.iter().map(|claim| claim["claimId"].as_str().expect("a text")).collect();
    (ids.join(" "), content["page"]["cursor"].as_str().expect("cursor is a text").to_owned())
}

async fn ids(world: &World, app: &Application, query: &str) -> String {
    page(world, app, query).await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_has_nine_fields_and_dates_in_utc_in_both_profiles() {
    for profile in [domain::Profile::Documented, domain::Profile::Observed] {
        both(Setup { profile, ..Setup::default() }, |world| async move {
            let Cast { app, .. } = cast(&world).await;
            world.advance(Duration::from_millis(5));
            update(&world, &app, &["a"], "FULFILLED").await.content();
            let answer = world.reward_claims(&app, "page.size=20&claimId=a").await;
            assert_eq!(
                answer.text(),
                concat!(
                    r#"{"code":200,"message":null,"content":{"data":[{"claimId":"a","campaignId":"sea","#,
                    r#""rewardId":"sword","categoryId":"star-voyage","categoryName":"스타 보이지","#,
                    r#""channelId":"haneul","fulfillmentState":"FULFILLED","claimedDate":"2026-07-18T14:32:12.355Z","#,
                    r#""updatedDate":"2026-07-18T14:32:12.400Z"}],"page":{"cursor":""}}}"#
                )
            );
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_filter_returns_only_the_organizations_claims_newest_first() {
    both(Setup::default(), |world| async move {
        let Cast { app, rival } = cast(&world).await;
        let all = [
            ("e", "sea", "byeol", "CLAIMED"),
            ("d", "sky", "byeol", "FULFILLED"),
            ("c", "sky", "haneul", "CLAIMED"),
            ("b", "sea", "haneul", "FULFILLED"),
            ("a", "sea", "haneul", "CLAIMED"),
        ];
        let category = |campaign: &str| if campaign == "sea" { "star-voyage" } else { "talk" };
        for named in [None, Some("a,e,x,nothing,%ED%95%9C,c"), Some("x")] {
            for channel in [None, Some("haneul"), Some("byeol"), Some("missing"), Some("")] {
                for scope in
                    ["", "campaignId=sea", "campaignId=theirs", "categoryId=talk", "categoryId=%27%20OR%201"]
                {
                    for state in [None, Some("CLAIMED"), Some("FULFILLED")] {
                        let mut query = vec![scope.to_owned()];
                        query.extend(named.map(|ids| format!("claimId={ids}")));
                        query.extend(channel.map(|id| format!("channelId={id}")));
                        query.extend(state.map(|state| format!("fulfillmentState={state}")));
                        let query = query.join("&");
                        let passes = |claim: &&(&str, &str, &str, &str)| {
                            named.is_none_or(|ids| ids.split(',').any(|id| id == claim.0))
                                && channel.is_none_or(|id| id == claim.2)
                                && state.is_none_or(|state| state == claim.3)
                                && match scope.split_once('=') {
                                    None => true,
                                    Some(("campaignId", id)) => id == claim.1,
                                    Some((_, id)) => id == category(claim.1),
                                }
                        };
                        let expected: Vec<_> = all.iter().filter(passes).map(|claim| claim.0).collect();
                        assert_eq!(ids(&world, &app, &query).await, expected.join(" "), "{query}");
                    }
                }
            }
        }
        assert_eq!(ids(&world, &rival, "").await, "x");
        assert_eq!(ids(&world, &rival, "campaignId=sea").await, "");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claim_ids_have_several_spellings_and_up_to_a_hundred_items() {
    both(Setup::default(), |world| async move {
        let Cast { app, .. } = cast(&world).await;
        for query in [
            "claimId=a,b",
            "claimId=a%2Cb",
            "claimId=a&claimId=b",
            "claimId[]=a&claimId%5B%5D=b",
            "claimId=b,a,b,,a",
            "claimId=a,b&page.size=1",
        ] {
            assert_eq!(page(&world, &app, query).await, ("b a".to_owned(), String::new()), "{query}");
        }
        for query in ["claimId=", "claimId=,,", "claimId", "claimId[]="] {
            assert_eq!(ids(&world, &app, query).await, "", "{query} asks for no claim");
        }
        let some = |count: usize| (0..count).map(|n| format!("n{n}")).collect::<Vec<_>>().join(",");
        assert_eq!(ids(&world, &app, &format!("claimId={},a,{}", some(99), some(99))).await, "a");
        let most = wrong("claimId", "1개 이상 100개 이하여야 합니다.");
        let query = format!("claimId={}", some(101));
        world.reward_claims(&app, &query).await.assert_refused(400, &most);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_returns_every_claim_once_at_any_size_in_both_profiles() {
    both(Setup::default(), |world| async move {
        let Cast { app, .. } = cast(&world).await;
        for (from, size) in [
            ("page.from", "page.size"),
            ("page[from]", "page[size]"),
            ("page%5Bfrom%5D", "page%5Bsize%5D"),
            ("page%2Efrom", "page[size]"),
        ] {
            for (filter, expected) in
                [("", "e d c b a"), ("&fulfillmentState=CLAIMED", "e c a"), ("&channelId=haneul", "c b a")]
            {
                for items in 1..=6 {
                    let (mut walked, mut cursor) = (Vec::new(), String::new());
                    loop {
                        let query = format!("{from}={cursor}&{size}={items}{filter}");
                        let (ids, next) = page(&world, &app, &query).await;
                        walked.extend(ids.split_whitespace().map(str::to_owned));
                        cursor = next;
                        if cursor.is_empty() {
                            break;
                        }
                        assert_eq!(ids.split_whitespace().count(), items, "only the last page is shorter");
                    }
                    assert_eq!(walked.join(" "), expected, "{from} {items} {filter}");
                }
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_skips_and_repeats_no_claim_while_claims_change() {
    both(Setup::default(), |world| async move {
        let Cast { app, .. } = cast(&world).await;
        let (mut walked, mut cursor) = (Vec::new(), String::new());
        for n in 0.. {
            let (ids, next) = page(&world, &app, &format!("page.size=1&page.from={cursor}")).await;
            walked.push(ids);
            if next.is_empty() {
                break;
            }
            cursor = next;
            let viewer = format!("viewer-{n}");
            world.person(&viewer).create().await;
            make(&world, &format!("new-{n}"), "sea", "sword", &viewer).await.content();
            update(&world, &app, &["a", "e", &walked[0]], ["CLAIMED", "FULFILLED"][n % 2]).await.content();
        }
        assert_eq!(walked, ["e", "d", "c", "b", "a"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_is_valid_for_its_own_list_caller_and_filters_and_any_size() {
    both(Setup::default(), |world| async move {
        let Cast { app, rival } = cast(&world).await;
        let colleague = world.application("colleague").scopes(&[Scope::Drops]);
        let colleague = colleague.with("organizationId", "publisher").create().await;
        let (_, cursor) = page(&world, &app, "page.size=2").await;
        assert_eq!(ids(&world, &app, &format!("page.size=1000&page.from={cursor}")).await, "c b a");
        let message = wrong("page.from", "같은 목록의 이전 응답에서 받은 값이어야 합니다.");
        let refused = async |app: &Application, query: String| {
            world.reward_claims(app, &query).await.assert_refused(400, &message);
        };
        for borrower in [&rival, &colleague] {
            refused(borrower, format!("page.from={cursor}")).await;
        }
        for filter in
            ["channelId=haneul", "campaignId=sea", "categoryId=sea", "fulfillmentState=CLAIMED", "claimId=a"]
        {
            refused(&app, format!("{filter}&page.from={cursor}")).await;
        }
        let (_, of_campaign) = page(&world, &app, "campaignId=sea&page.size=1").await;
        for filter in ["", "campaignId=sky", "categoryId=sea"] {
            refused(&app, format!("{filter}&page.from={of_campaign}")).await;
        }
        for cut in [1, cursor.len() / 2, cursor.len() - 1] {
            refused(&app, format!("page.from={}", &cursor[..cut])).await;
            let mut flipped = cursor.clone().into_bytes();
            flipped[cut] = if flipped[cut] == b'A' { b'B' } else { b'A' };
            refused(&app, format!("page.from={}", String::from_utf8(flipped).expect("ASCII"))).await;
        }
        for text in ["0", "a", "%EA%B0%80", "null", &"A".repeat(4_000)] {
            refused(&app, format!("page.from={text}")).await;
        }
        for (query, field) in [
            (format!("page.from={cursor}&page[from]={cursor}"), "page.from"),
            (format!("page.from={cursor}&page.from={cursor}"), "page.from"),
            ("page[size]=1&page[size]=1".to_owned(), "page[size]"),
            ("page.size=1&page%5Bsize%5D=1".to_owned(), "page.size"),
            ("channelId=a&channelId=a".to_owned(), "channelId"),
            ("fulfillmentState=CLAIMED&fulfillmentState=CLAIMED".to_owned(), "fulfillmentState"),
        ] {
            let once = wrong(field, "한 번만 지정할 수 있습니다.");
            world.reward_claims(&app, &query).await.assert_refused(400, &once);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_query_are_named() {
    both(Setup::default(), |world| async move {
        let Cast { app, .. } = cast(&world).await;
        let size = wrong("page.size", "1 이상 1000 이하의 정수여야 합니다.");
        for text in ["0", "1001", "-1", "1.5", "", "x", "99999999999999999999"] {
            for name in ["page.size", "page[size]"] {
                world.reward_claims(&app, &format!("{name}={text}")).await.assert_refused(400, &size);
            }
        }
        let state = wrong("fulfillmentState", "CLAIMED, FULFILLED 중 하나여야 합니다.");
        for text in ["", "claimed", "DONE", "CLAIMED,FULFILLED"] {
            let query = format!("fulfillmentState={text}");
            world.reward_claims(&app, &query).await.assert_refused(400, &state);
        }
        let together = wrong("campaignId", "categoryId와 함께 지정할 수 없습니다.");
        for query in ["campaignId=sea&categoryId=talk", "categoryId=&campaignId="] {
            world.reward_claims(&app, query).await.assert_refused(400, &together);
        }
        assert_eq!(ids(&world, &app, "page.size=1000").await, "e d c b a");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_twenty_claims_by_default() {
    both(Setup::default(), |world| async move {
        let Cast { app, .. } = cast(&world).await;
        for n in 0..16 {
            let viewer = format!("viewer-{n}");
            world.person(&viewer).create().await;
            make(&world, &viewer, "sea", "sword", &viewer).await.content();
        }
        let (first, cursor) = page(&world, &app, "").await;
        assert_eq!(first.split(' ').count(), 20);
        assert_eq!(page(&world, &app, &format!("page.from={cursor}")).await, ("a".to_owned(), String::new()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_returns_the_result_of_each_id_once() {
    both(Setup::default(), |world| async move {
        let Cast { app, rival } = cast(&world).await;
        let long = "x".repeat(65);
        let asked = ["nothing", "e", "no id", "x", "b", "", "한글", "a", "e", "also-nothing", long.as_str()];
        let answer = update(&world, &app, &asked, "FULFILLED").await;
        assert_eq!(
            answer.text(),
            format!(
                concat!(
                    r#"{{"code":200,"message":null,"content":{{"data":["#,
                    r#"{{"status":"SUCCESS","ids":["e","b","a"]}},"#,
                    r#"{{"status":"INVALID_ID","ids":["no id","","한글","{long}"]}},"#,
                    r#"{{"status":"NOT_FOUND","ids":["nothing","also-nothing"]}},"#,
                    r#"{{"status":"UNAUTHORIZED","ids":["x"]}}]}}}}"#
                ),
                long = long
            )
        );
        assert_eq!(ids(&world, &app, "fulfillmentState=FULFILLED").await, "e d b a");
        assert_eq!(ids(&world, &rival, "fulfillmentState=CLAIMED").await, "x");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_real_change_updates_the_date() {
    both(Setup::default(), |world| async move {
        let Cast { app, .. } = cast(&world).await;
        let updated = async || {
            let content = world.reward_claims(&app, "claimId=a").await.content();
            content["data"][0]["updatedDate"].as_str().expect("a text").to_owned()
        };
        let made = updated().await;
        let mut seen = vec![made];
        for (state, changes) in [
            ("CLAIMED", false),
            ("FULFILLED", true),
            ("FULFILLED", false),
            ("CLAIMED", true),
            ("CLAIMED", false),
        ] {
            world.advance(Duration::from_secs(1));
            let content = update(&world, &app, &["a"], state).await.content();
            assert_eq!(content, json!({ "data": [{ "status": "SUCCESS", "ids": ["a"] }] }));
            let date = updated().await;
            assert_eq!(seen.last() != Some(&date), changes, "{state}");
            seen.push(date);
        }
        let beginning = world.now_ms() - 5_000;
        world.stop().await;
        let store = world.open_store().await;
        let noted = store.read::<_, store::StoreError, _>(async move |tx: &mut Tx| {
            let sql = "SELECT from_state, to_state, client_id, changed_at FROM claim_changes
                    WHERE claim_id = $1 ORDER BY changed_at";
            let row = |row: &store::Row| {
                Ok((row.get::<String>(0)?, row.get::<String>(1)?, row.get::<String>(2)?, row.get::<i64>(3)?))
            };
            tx.query(sql, &["a".into()]).await?.iter().map(row).collect::<Result<Vec<_>, _>>()
        });
        let note = |from: &str, to: &str, seconds: i64| {
            (from.to_owned(), to.to_owned(), "publisher".to_owned(), beginning + seconds * 1_000)
        };
        let expected = [note("CLAIMED", "FULFILLED", 2), note("FULFILLED", "CLAIMED", 4)];
        assert_eq!(noted.await.expect("notes"), expected);
        store.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_has_one_to_a_hundred_distinct_ids_and_a_state() {
    both(Setup::default(), |world| async move {
        let Cast { app, .. } = cast(&world).await;
        let some = |count: usize| (0..count).map(|n| json!(format!("n{n}"))).collect::<Vec<_>>();
        let items = wrong("claimIds", "1개 이상 100개 이하여야 합니다.");
        let list = wrong("claimIds", "문자열 목록이어야 합니다.");
        let nul = wrong("claimIds", "NUL 문자(U+0000)가 있으면 안 됩니다.");
        for (ids, message) in [
            (json!([]), &items),
            (json!(some(101)), &items),
            (json!("a"), &list),
            (json!(["a", 1]), &list),
            (json!(["a", null]), &list),
            (json!(["a\u{0}"]), &nul),
        ] {
            let body = json!({ "claimIds": ids, "fulfillmentState": "FULFILLED" });
            world.update_claims(&app, &body).await.assert_refused(400, message);
        }
        for state in ["", "fulfilled", "DONE"] {
            let message = wrong("fulfillmentState", "CLAIMED, FULFILLED 중 하나여야 합니다.");
            update(&world, &app, &["a"], state).await.assert_refused(400, &message);
        }
        let twice = [some(100), some(100)].concat();
        let body = json!({ "claimIds": twice, "fulfillmentState": "FULFILLED" });
        let content = world.update_claims(&app, &body).await.content();
        assert_eq!(content, json!({ "data": [{ "status": "NOT_FOUND", "ids": some(100) }] }));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_updates_of_the_same_claims_all_succeed() {
    both(Setup::default(), |world| async move {
        let Cast { app, .. } = cast(&world).await;
        let calls: Vec<_> = (0..40)
            .map(|n| {
                let (world, app) = (world.clone(), app.clone());
                let mut ids = ["a", "b", "c", "d", "e"];
                ids.rotate_left(n % 5);
                if n % 2 == 0 {
                    ids.reverse();
                }
                let state = ["CLAIMED", "FULFILLED"][n % 2];
                tokio::spawn(async move { (update(&world, &app, &ids, state).await, ids) })
            })
            .collect();
        for call in calls {
            let (answer, ids) = call.await.expect("every call is answered");
            assert_eq!(answer.content(), json!({ "data": [{ "status": "SUCCESS", "ids": ids }] }));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_scope_or_a_verified_organization_the_drops_scope_is_required() {
    both(Setup::default(), |world| async move {
        let Cast { app, .. } = cast(&world).await;
        put_organization(&world, "unverified", false).await;
        let all = || domain::ScopeSet::of_users().iter().collect::<Vec<_>>();
        let drops = [Scope::Drops];
        let of = |id: &str, scopes: &[Scope], organization: Value| {
            world.application(id).scopes(scopes).with("organizationId", organization).create()
        };
        let outsiders = [
            of("scopeless", &all(), json!("publisher")).await,
            of("ownerless", &drops, Value::Null).await,
            of("unproven", &drops, json!("unverified")).await,
        ];
        let refused = async |app: &Application| {
            let query = world.reward_claims(app, "page.size=x").await;
            query.assert_refused(403, "드롭스 scope가 필요합니다.");
            update(&world, app, &[], "x").await.assert_refused(403, "드롭스 scope가 필요합니다.");
        };
        for outsider in &outsiders {
            refused(outsider).await;
        }
        // A change of the organization or the application takes effect at once.
        put_organization(&world, "publisher", false).await;
        refused(&app).await;
        put_organization(&world, "publisher", true).await;
        world.reward_claims(&app, "").await.content();
        world.application("publisher").scopes(&all()).with("organizationId", "publisher").replace().await;
        refused(&app).await;
        put_organization(&world, "unverified", true).await;
        assert_eq!(ids(&world, &outsiders[2], "").await, "");
    })
    .await;
}
