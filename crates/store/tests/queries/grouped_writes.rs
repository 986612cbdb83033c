//! Changes of subscriptions and watched minutes that share a statement, on PostgreSQL.

use domain::event::EventType;
use domain::session::ChangeKind;
use domain::token::Caller;
use domain::{CategoryId, ChannelId};
use store::queries::subscription_groups::{SessionBounds, SubscriptionRow};
use store::queries::tokens::NewToken;
use store::queries::watching::Watched;
use store::queries::watching_groups::{AddedMinutes, MinutesReport};
use store::testing::migrated_postgres;
use store::{Options, Store, StoreError, Tx};

use crate::drops::plant;
use crate::{at, caller, channel, client, family, hash, live, node, of_client, seed, session, tx};

const CHAT: EventType = EventType::Chat;
const DONATION: EventType = EventType::Donation;
const BOUNDS: SessionBounds = SessionBounds { subscriptions: 2, changes_kept: 100, delete_every: 100 };

async fn on_postgres(seed_more: impl AsyncFnOnce(&Store), body: impl AsyncFnOnce(Store)) {
    let fresh = migrated_postgres(None).await;
    let store = fresh.open(Options::default()).await;
    tx!(store, tx => { seed(tx).await }).unwrap();
    seed_more(&store).await;
    body(store.clone()).await;
    store.close().await;
    fresh.remove().await;
}

/// Sessions `s` and `t`, and a token of `a`.
async fn plant_sessions(tx: &mut Tx) -> Result<(), StoreError> {
    for key in ["s", "t"] {
        tx.insert_session(&session(key), &of_client("app"), None, &node("n"), at(1)).await?;
    }
    let (client_id, channel_id, family) = (&client("app"), &channel("a"), &family("f"));
    let (hash, expires_at) = (&hash("token"), at(1_000));
    let token = NewToken { hash, family, client_id, channel_id, generation: 0, expires_at };
    tx.insert_access_token(token).await
}

/// Changes sessions of `app` for `a`. Gives the numbers of the changes.
async fn change(
    store: &Store,
    caller: Caller,
    asked: &'static [(&'static str, EventType, ChangeKind)],
) -> Vec<Option<i64>> {
    let numbered = tx!(*store, tx => {
        let keys: Vec<_> = asked.iter().map(|(key, ..)| session(key)).collect();
        let rows = asked.iter().zip(&keys).map(|((_, event, kind), session_key)| SubscriptionRow {
            session_key,
            caller: &caller,
            event: *event,
            kind: *kind,
        });
        let rows: Vec<_> = rows.collect();
        let locked = tx.lock_subscription_changes(&rows).await?;
        assert_eq!(locked, (0..rows.len()).collect::<Vec<_>>(), "all rows are free");
        tx.change_subscriptions(&rows, BOUNDS, at(5)).await
    });
    let number = |(number, of)| {
        assert_eq!(of, node("n"));
        number
    };
    numbered.unwrap().into_iter().map(|given| given.map(number)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_subscriptions_are_numbered_and_bounded_for_each_session() {
    use ChangeKind::{Subscribed, Unsubscribed};
    on_postgres(
        async |store| tx!(*store, tx => { plant_sessions(tx).await }).unwrap(),
        async |store| {
            let a = || caller("app", "a", "f");
            let first: &[_] =
                &[("s", CHAT, Subscribed), ("t", CHAT, Subscribed), ("s", DONATION, Subscribed)];
            assert_eq!(change(&store, a(), first).await, [Some(1), Some(1), Some(2)]);
            let full: &[_] = &[("s", CHAT, Subscribed), ("t", DONATION, Subscribed)];
            assert_eq!(change(&store, a(), full).await, [None, Some(2)], "s is full");
            assert_eq!(change(&store, a(), &[("s", CHAT, Unsubscribed)]).await, [Some(3)]);
            let ended = change(&store, caller("app", "a", "ended"), &[("s", CHAT, Subscribed)]).await;
            assert_eq!(ended, [None], "no such token");
            let held = tx!(store, tx => { tx.count_subscriptions(&session("s")).await });
            assert_eq!(held, Ok(1));
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_session_or_consent_that_does_not_exist_is_left_out() {
    on_postgres(
        async |store| tx!(*store, tx => { plant_sessions(tx).await }).unwrap(),
        async |store| {
            let locked = tx!(store, tx => {
                let (s, unknown) = (session("s"), session("unknown"));
                let (a, stranger) = (caller("app", "a", "f"), caller("app", "stranger", "f"));
                let row = |session_key, caller| SubscriptionRow {
                    session_key, caller, event: CHAT, kind: ChangeKind::Subscribed,
                };
                tx.lock_subscription_changes(&[row(&unknown, &a), row(&s, &a), row(&s, &stranger)]).await
            });
            assert_eq!(locked, Ok(vec![1]));
        },
    )
    .await;
}

/// Campaigns, and `a` on air with one.
async fn plant_live(tx: &mut Tx) -> Result<(), StoreError> {
    plant(tx).await?;
    let mut live = live(1, 0, 0);
    live.show.category_id = Some(CategoryId::stored("sea".to_owned()));
    tx.begin_live(&channel("a"), &live, at(1)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_one_statement_are_added_up_and_each_gets_its_own_sum() {
    on_postgres(
        async |store| tx!(*store, tx => { plant_live(tx).await }).unwrap(),
        async |store| {
            let added = tx!(store, tx => {
                let [a, b, c, missing] = ["a", "b", "c", "missing"].map(channel);
                let (both, one, unknown, twice) = ([b.clone(), c.clone()], [b.clone()], [missing], [b.clone(), b]);
                let report = |channel, viewers, minutes| MinutesReport { channel, viewers, minutes };
                let reports = [
                    report(&a, &both[..], 5),
                    report(&a, &unknown[..], 5),
                    report(&a, &one[..], 2),
                    report(&c, &one[..], 9),
                    report(&a, &twice[..], 7),
                ];
                tx.add_reported_minutes(&reports, at(10)).await
            });
            let added = added.unwrap();
            let sums = |report: &Option<AddedMinutes>| -> Vec<(String, ChannelId, i64)> {
                let watched = report.iter().flat_map(|report| &report.watched);
                let row = |w: &Watched| (w.campaign_id.as_str().to_owned(), w.viewer.clone(), w.minutes);
                watched.map(row).collect()
            };
            let of = |campaign: &str, viewer: &str, minutes| (campaign.to_owned(), channel(viewer), minutes);
            let (ours, theirs) = ("ours-sea", "theirs-sea");
            assert_eq!(
                sums(&added[0]),
                [of(ours, "b", 5), of(ours, "c", 5), of(theirs, "b", 5), of(theirs, "c", 5)]
            );
            assert_eq!(sums(&added[2]), [of(ours, "b", 7), of(theirs, "b", 7)]);
            assert_eq!((added[1].is_none(), added[4].is_none()), (true, true), "nothing is added");
            let off_air = added[3].as_ref().unwrap();
            assert_eq!((off_air.on_air, off_air.watched.len()), (false, 0));
        },
    )
    .await;
}
