//! The requests of applications: counted in memory, written later.

use domain::Scope;
use domain::limits::DAY_MS;
use domain::usage::{RequestCount, UsageKind, day_of};
use service::application_usage::UsageRow;

use crate::world::{World, both};

const CHAT: UsageKind = UsageKind::Scope(Scope::ChatRead);

async fn usage(world: &World, app: &str) -> Vec<(UsageKind, RequestCount, i64)> {
    let id = domain::ClientId::stored(app.to_owned());
    let now = world.service.clock().now();
    let rows = world.service.usage_of_application(&id, now.plus_ms(-DAY_MS)).await.unwrap();
    let days_ago = |row: &UsageRow| (day_of(now).as_millis() - row.day.as_millis()) / DAY_MS;
    rows.iter().map(|row| (row.kind, row.count, days_ago(row))).collect()
}

const fn count(requests: i64, refused: i64) -> RequestCount {
    RequestCount { requests, refused }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_seen_at_once_and_written_together() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let tokens = world.tokens(&app, &user).await;
        let before = world.service.store_stats().committed;
        for is_refused in [false, false, true] {
            let holder = world.service.authenticate_user(tokens.access.expose()).await.unwrap();
            holder.usage.as_ref().unwrap().count(CHAT, is_refused);
        }
        assert_eq!(usage(&world, "app").await, [(CHAT, count(3, 1), 0)]);
        assert_eq!(world.service.store_stats().committed, before);
        assert_eq!(world.service.flush_usage().await, Ok(1));
        assert_eq!(world.service.store_stats().committed, before + 1);
        assert_eq!(world.service.flush_usage().await, Ok(0));
        assert_eq!(usage(&world, "app").await, [(CHAT, count(3, 1), 0)]);

        // Another node adds to it, and tomorrow is another day.
        let other = world.node("node-b");
        let holder = other.authenticate_user(tokens.access.expose()).await.unwrap();
        holder.usage.as_ref().unwrap().count(CHAT, false);
        assert_eq!(other.flush_usage().await, Ok(1));
        world.advance_ms(DAY_MS.unsigned_abs() / 2);
        world.advance_ms(DAY_MS.unsigned_abs() / 2 - 1_000);
        holder.usage.as_ref().unwrap().count(UsageKind::User, false);
        assert_eq!(other.flush_usage().await, Ok(1));
        assert_eq!(usage(&world, "app").await, [(CHAT, count(4, 1), 1), (UsageKind::User, count(1, 0), 0)]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_could_not_be_written_are_kept() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let tokens = world.tokens(&app, &user).await;
        let holder = world.service.authenticate_user(tokens.access.expose()).await.unwrap();
        holder.usage.as_ref().unwrap().count(CHAT, true);
        world.store.close().await;
        for _ in 0..2 {
            // It would be Ok(0) if the first call had lost them.
            assert!(world.service.flush_usage().await.is_err());
        }
    })
    .await;
}
