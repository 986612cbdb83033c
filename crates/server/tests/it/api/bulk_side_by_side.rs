//! Concurrent bulk calls and single calls: they wait for each other, and none fails.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use domain::ChannelId;
use serde_json::{Value, json};
use store::testing::UNHURRIED;
use store::{Options, Store, StoreError, Target, Tx};
use testkit::{Request, Response, Setup, Socket, World, both, over_a_wire};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::fixture::Fixture;

const CALLERS: usize = 6;
const VIEWERS: usize = 12;
const STREAMER: &str = "haneul";
/// The channels of the lines.
const CHANNELS: [&str; 3] = ["dal", "bada", STREAMER];

async fn report(world: &World, lines: &[Value]) -> Response {
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    world.operator(Request::post("/platform/v1/events").body(body)).await
}

fn viewer(n: usize) -> String {
    format!("viewer-{}", n % VIEWERS)
}

/// The lines in a different order for each caller.
fn shuffled(lines: &[Value], caller: usize) -> Vec<Value> {
    let mut lines = lines.to_vec();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(caller as u64 + 1);
    for at in (1..lines.len()).rev() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        lines.swap(at, (random >> 33) as usize % (at + 1));
    }
    lines
}

/// Sends the lines from all callers at once. Each answer is 200, and lines are refused only with an expected
/// code.
async fn side_by_side(world: &World, lines: &[Value], expected: &[u64]) -> Vec<Value> {
    let calls = (0..CALLERS).map(|caller| {
        let (world, lines) = (world.clone(), shuffled(lines, caller));
        tokio::spawn(async move { report(&world, &lines).await })
    });
    let mut answers = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        let answer = call.await.expect("an answer").content();
        for refused in answer["refused"].as_array().expect("a list") {
            assert!(expected.contains(&refused["code"].as_u64().expect("a number")), "{refused}");
        }
        answers.push(answer);
    }
    answers
}

/// Creates the channels, the viewers, and the relations that some of the lines end.
async fn set_up(world: &World) -> Fixture {
    let fixture = Fixture::set_up(world).await;
    let channel = |id: &str| json!({ "kind": "channel", "channelId": id, "channelName": id });
    let viewers: Vec<String> = (0..VIEWERS).map(viewer).collect();
    let mut lines: Vec<_> = viewers.iter().map(|id| channel(id)).collect();
    lines.extend(["dal", "bada"].map(channel));
    for channel in ["dal", "bada"] {
        lines.push(json!({ "kind": "follow", "channelId": channel, "followerChannelId": STREAMER }));
        let role = "STREAMING_CHAT_MANAGER";
        lines.push(json!({ "kind": "manager", "channelId": channel, "managerChannelId": STREAMER, "userRole": role }));
    }
    let live = json!({ "kind": "live", "channelId": STREAMER, "categoryId": "star-voyage" });
    lines.extend([live, json!({ "kind": "live", "channelId": "bada" })]);
    assert_eq!(report(world, &lines).await.content()["refused"], json!([]));
    fixture
}

fn line(kind: &str, channel: &str, field: &str, viewer: String, mut more: Value) -> Value {
    more["kind"] = json!(kind);
    more["channelId"] = json!(channel);
    more[field] = json!(viewer);
    more
}

fn follow(channel: &str, n: usize) -> Value {
    line("follow", channel, "followerChannelId", viewer(n), json!({}))
}

fn subscription(channel: &str, n: usize) -> Value {
    let paid = json!({ "tierNo": 1, "tierName": "팬", "month": n % VIEWERS });
    line("subscription", channel, "subscriberChannelId", viewer(n), paid)
}

fn chat(channel: &str, n: usize) -> Value {
    line("chat", channel, "senderChannelId", viewer(n), json!({ "message": format!("{n}") }))
}

/// One line for each viewer in each channel.
fn everywhere(line: fn(&str, usize) -> Value) -> Vec<Value> {
    CHANNELS.iter().flat_map(|channel| (0..VIEWERS).map(move |n| line(channel, n))).collect()
}

/// Lines of every kind, each with a key. Their result does not depend on their order.
fn lines_of_every_kind(reward: &str) -> Vec<Value> {
    let mut lines = [everywhere(follow), everywhere(subscription), everywhere(chat)].concat();
    for channel in CHANNELS {
        for n in 0..VIEWERS {
            let donation = json!({ "donationType": "CHAT", "payAmount": "1000", "donationText": "" });
            lines.push(line("donation", channel, "donatorChannelId", viewer(n), donation));
        }
        for n in 0..3 {
            let role = json!({ "userRole": "STREAMING_CHANNEL_MANAGER" });
            lines.push(line("manager", channel, "managerChannelId", viewer(n), role));
        }
    }
    for n in 0..VIEWERS {
        let watched: Vec<_> = (0..3).map(|more| viewer(n + 5 * more)).collect();
        lines.extend([
            json!({ "kind": "watching", "channelId": STREAMER, "viewerChannelIds": watched, "minutes": 1 }),
            json!({ "kind": "claim", "campaignId": "voyage", "rewardId": reward, "channelId": viewer(n) }),
            json!({ "kind": "channel", "channelId": format!("new-{n}"), "channelName": "새 채널" }),
            json!({ "kind": "category", "categoryId": format!("game-{n}"), "categoryType": "GAME", "categoryValue": "놀이" }),
        ]);
    }
    for channel in ["dal", "bada"] {
        lines.push(json!({ "kind": "unfollow", "channelId": channel, "followerChannelId": STREAMER }));
        lines.push(json!({ "kind": "unmanager", "channelId": channel, "managerChannelId": STREAMER }));
    }
    lines.push(json!({ "kind": "live", "channelId": "dal", "liveTitle": "놀이", "concurrentUserCount": 7 }));
    lines.push(json!({ "kind": "liveEnd", "channelId": "bada" }));
    keyed(lines)
}

fn keyed(mut lines: Vec<Value>) -> Vec<Value> {
    for (n, line) in lines.iter_mut().enumerate() {
        line["idempotencyKey"] = json!(format!("key-{n}"));
    }
    lines
}

async fn ids(world: &World, fixture: &Fixture, list: &str, field: &str) -> Vec<String> {
    let request = Request::get(format!("/open/v1/channels/{list}")).bearer(&fixture.tokens.access);
    let content = world.send(request).await.content();
    let items = content["data"].as_array().expect("a list");
    items.iter().map(|item| item[field].as_str().expect("a text").to_owned()).collect()
}

async fn followers(world: &World, fixture: &Fixture, channel: &str) -> Value {
    let found = world.channels(&fixture.app, &format!("channelIds={channel}")).await.content();
    found["data"][0]["followerCount"].clone()
}

async fn minutes(world: &World, viewer: &str) -> Value {
    let target = format!("/platform/v1/drops/campaigns/voyage/progress/{viewer}");
    world.operator(Request::get(target)).await.content()["minutes"].clone()
}

/// The streamer's session receives exactly this many events of each kind.
async fn assert_receives(world: &World, socket: &mut Socket, expected: [usize; 3]) {
    let mut received = [0; 3];
    for _ in 0..expected.iter().sum() {
        let (event, _) = socket.next_event().await.expect("an event");
        let place = ["CHAT", "DONATION", "SUBSCRIPTION"].iter().position(|name| *name == event);
        received[place.expect("an event of these")] += 1;
    }
    assert_eq!(received, expected);
    world.say(STREAMER, STREAMER, "the end").await.content();
    assert_eq!(socket.event("CHAT").await["content"], "the end", "and no event more");
}

async fn listen(world: &World, fixture: &Fixture) -> Socket {
    let mut socket = world.open_user_session(&fixture.tokens.access).await;
    for event in ["chat", "donation", "subscription"] {
        world.subscribe(&fixture.tokens.access, event, socket.session_key()).await.content();
        socket.system("subscribed").await;
    }
    socket
}

/// Checks the result of [`lines_of_every_kind`].
async fn assert_all_happened_once(world: &World, fixture: &Fixture) {
    let viewers: BTreeSet<String> = (0..VIEWERS).map(viewer).collect();
    for list in ["followers", "subscribers"] {
        let listed = ids(world, fixture, list, "channelId").await;
        assert_eq!(listed.len(), VIEWERS, "{list}");
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), viewers, "{list}");
    }
    let longest = ids(world, fixture, "subscribers?sort=LONGER", "channelId").await;
    assert_eq!((longest.len(), &longest[0]), (VIEWERS, &viewer(VIEWERS - 1)));
    for channel in CHANNELS {
        assert_eq!(followers(world, fixture, channel).await, VIEWERS, "{channel}");
    }
    assert_eq!(ids(world, fixture, "streaming-roles", "managerChannelId").await.len(), 4);
    for n in 0..VIEWERS {
        assert_eq!(minutes(world, &viewer(n)).await, 3, "{n}");
    }
    let claims = world.reward_claims(&fixture.publisher.app, "campaignId=voyage").await.content();
    assert_eq!(claims["data"].as_array().expect("a list").len(), VIEWERS);
    let lives = world.lives(&fixture.app, "").await.content();
    assert_eq!(lives["data"].as_array().expect("a list").len(), 2);
    assert_eq!(lives["data"][0]["liveTitle"], "놀이");
    let new: Vec<_> = (0..VIEWERS).map(|n| format!("new-{n}")).collect();
    let found = world.channels(&fixture.app, &format!("channelIds={}", new.join(","))).await.content();
    assert_eq!(found["data"].as_array().expect("a list").len(), VIEWERS);
    let found = world.categories(&fixture.app, "query=놀이").await.content();
    assert_eq!(found["data"].as_array().expect("a list").len(), VIEWERS);
}

#[tokio::test(flavor = "multi_thread")]
async fn follows_and_subscriptions_in_any_order_are_all_accepted() {
    both(Setup::hurried(), |world| async move {
        let fixture = set_up(&world).await;
        for lines in [everywhere(follow), everywhere(subscription)] {
            for answer in side_by_side(&world, &lines, &[]).await {
                assert_eq!(answer["accepted"], lines.len());
            }
        }
        assert_eq!(followers(&world, &fixture, STREAMER).await, VIEWERS);
        assert_eq!(ids(&world, &fixture, "followers", "channelId").await.len(), VIEWERS);
        assert_eq!(ids(&world, &fixture, "subscribers", "channelId").await.len(), VIEWERS);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_every_kind_in_any_order_take_effect_once() {
    both(Setup::hurried(), |world| async move {
        let fixture = set_up(&world).await;
        let mut socket = listen(&world, &fixture).await;
        let lines = lines_of_every_kind(&fixture.publisher.next_reward());
        for answer in side_by_side(&world, &lines, &[]).await {
            assert_eq!(answer["accepted"], lines.len());
        }
        assert_receives(&world, &mut socket, [VIEWERS; 3]).await;
        assert_all_happened_once(&world, &fixture).await;
        // Repeated lines are answered, and change nothing.
        assert_eq!(report(&world, &lines).await.content()["accepted"], lines.len());
        assert_receives(&world, &mut socket, [0; 3]).await;
        assert_all_happened_once(&world, &fixture).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_with_the_same_keys_in_any_order_are_posted_once() {
    both(Setup::hurried(), |world| async move {
        let fixture = set_up(&world).await;
        let mut socket = listen(&world, &fixture).await;
        let lines = keyed(everywhere(chat));
        for answer in side_by_side(&world, &lines, &[]).await {
            assert_eq!(answer["accepted"], lines.len());
        }
        assert_receives(&world, &mut socket, [VIEWERS, 0, 0]).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_lines_change_nothing_and_free_their_keys() {
    both(Setup::hurried(), |world| async move {
        let fixture = set_up(&world).await;
        let wrong = |n: usize| {
            json!({ "kind": "follow", "channelId": CHANNELS[n % 2], "followerChannelId": format!("missing-{n}"),
                "idempotencyKey": format!("wrong-{n}") })
        };
        let mut lines = lines_of_every_kind(&fixture.publisher.next_reward());
        let good = lines.len();
        lines.extend((0..10).map(wrong));
        for answer in side_by_side(&world, &lines, &[404]).await {
            assert_eq!((&answer["accepted"], &answer["refusedCount"]), (&json!(good), &json!(10)));
        }
        assert_all_happened_once(&world, &fixture).await;
        let mut mended: Vec<_> = (0..10).map(wrong).collect();
        for line in &mut mended {
            line["followerChannelId"] = json!(STREAMER);
        }
        assert_eq!(report(&world, &mended).await.content()["accepted"], 10);
    })
    .await;
}

/// The first batches miss that the chat is in slow mode. Deadlocked batches are run again.
#[tokio::test(flavor = "multi_thread")]
async fn slow_mode_accepts_one_message_of_a_viewer_in_six_concurrent_bodies() {
    both(Setup::default(), |world| async move {
        let fixture = set_up(&world).await;
        let slow = json!({ "chatSlowModeSec": 300 });
        world.change_chat_settings(&fixture.tokens.access, &slow).await.content();
        let lines: Vec<_> = (0..VIEWERS).map(|n| chat(STREAMER, n)).collect();
        let answers = side_by_side(&world, &lines, &[403]).await;
        let refused: u64 = answers.iter().filter_map(|answer| answer["refusedCount"].as_u64()).sum();
        assert_eq!(refused, (VIEWERS * (CALLERS - 1)) as u64);
    })
    .await;
}

/// Makes the single calls of the lines, one after the other.
async fn call_one_by_one(world: &World, token: &str, caller: usize, rounds: usize) {
    for n in 0..rounds {
        let (who, channel) = (viewer(caller + 5 * n), CHANNELS[(caller + n) % 2]);
        let follow = format!("/platform/v1/channels/{channel}/followers/{who}");
        let manager = format!("/platform/v1/channels/{channel}/managers/{who}");
        let watched: Vec<_> = (0..VIEWERS).rev().map(|more| viewer(more * 7 + n)).collect();
        let watching = json!({ "channelId": STREAMER, "viewerChannelIds": watched, "minutes": 1 });
        let paid = json!({ "subscriberChannelId": who, "tierNo": 2, "tierName": "팬", "month": n });
        world.operator(Request::put(&follow).json(&json!({}))).await.content();
        world.happen(channel, "subscriptions", &paid).await.content();
        world.operator(Request::post("/platform/v1/drops/watching").json(&watching)).await.content();
        let live = json!({ "concurrentUserCount": n, "categoryId": "star-voyage" });
        world.put_live(STREAMER, &live).await.content();
        let tags = json!({ "tags": [format!("{caller}x{n}")] });
        world.patch_live_setting(token, &tags).await.content();
        let role = json!({ "userRole": "STREAMING_CHAT_MANAGER" });
        world.operator(Request::put(&manager).json(&role)).await.content();
        world.operator(Request::delete(&manager)).await.content();
        world.operator(Request::delete(&follow)).await.content();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn single_calls_and_bulk_calls_wait_for_each_other() {
    const ROUNDS: usize = 10;
    both(Setup::hurried(), |world| async move {
        let fixture = set_up(&world).await;
        let lines = lines_of_every_kind(&fixture.publisher.next_reward());
        let singles = (0..CALLERS).map(|caller| {
            let (world, token) = (world.clone(), fixture.tokens.access.clone());
            tokio::spawn(async move { call_one_by_one(&world, &token, caller, ROUNDS).await })
        });
        let singles: Vec<_> = singles.collect();
        side_by_side(&world, &lines, &[]).await;
        for single in singles {
            single.await.expect("every call is answered");
        }
        for n in 0..VIEWERS {
            assert_eq!(minutes(&world, &viewer(n)).await, 3 + ROUNDS * CALLERS, "{n}");
        }
    })
    .await;
}

/// A transaction that locks a channel until it is released.
struct Holder {
    end: Arc<Notify>,
    task: JoinHandle<Result<(), StoreError>>,
}

async fn lock_channel(store: &Store, channel: &str) -> Holder {
    let (locked, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (store, channel) = (store.clone(), ChannelId::stored(channel.to_owned()));
    let (has_locked, may_end) = (locked.clone(), end.clone());
    let task = tokio::spawn(async move {
        let work = store.write(async move |tx: &mut Tx| {
            tx.lock_channel(&channel).await?;
            has_locked.notify_one();
            may_end.notified().await;
            Ok(())
        });
        work.await
    });
    locked.notified().await;
    Holder { end, task }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_blocked_for_too_long_changes_nothing_and_can_be_repeated() {
    let setup = Setup { store_deadline: Duration::from_millis(1_700), ..Setup::default() };
    over_a_wire(setup, |world, wire| async move {
        let fixture = set_up(&world).await;
        let other = Options { deadline: 3 * UNHURRIED, ..Options::default() };
        let store = Store::open(Target::Postgres { url: wire.url().into() }, other).await.expect("a store");
        let holder = lock_channel(&store, "dal").await;
        let refused = report(&world, &[follow("bada", 0), follow("dal", 0)]).await;
        refused.assert_refused(429, "TOO_MANY_REQUESTS");
        assert_eq!(
            (refused.header("retry-after"), refused.header("stagedoor-reason")),
            (Some("1"), Some("busy"))
        );
        // The lines before it in the same body have taken effect.
        let mut lines: Vec<_> = (0..200).map(|n| chat(STREAMER, n)).collect();
        lines.push(follow("dal", 0));
        let answer = report(&world, &lines).await.content();
        let refused: Vec<_> =
            answer["refused"].as_array().expect("a list").iter().map(|line| &line["code"]).collect();
        assert!(answer["accepted"].as_u64() > Some(0) && !refused.is_empty(), "{answer}");
        assert!(refused.iter().all(|code| **code == 429), "{answer}");
        holder.end.notify_one();
        holder.task.await.expect("a task that ends").expect("a commit");
        store.close().await;
        assert_eq!(followers(&world, &fixture, "bada").await, 1);
        let again = report(&world, &[follow("bada", 0), follow("dal", 0)]).await.content();
        assert_eq!(again["accepted"], 2);
        assert_eq!(
            (followers(&world, &fixture, "bada").await, followers(&world, &fixture, "dal").await),
            (json!(2), json!(2))
        );
    })
    .await;
}
