//! What becomes due.

use service::due::DueKind;

use crate::world::{both, client_owner};

#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_due_is_counted_and_the_earliest_is_kept() {
    both(|world| async move {
        let owner = client_owner(&world.application("app").await);
        let from = world.service.clock().now();
        for _ in 0..3 {
            world.advance_ms(1);
            world.service.issue_session_url(owner.clone()).await.unwrap();
        }
        let until = from.plus_ms(3_600_000);
        let all = [DueKind::SessionUrlExpired, DueKind::CampaignEnded];
        let (due, count) = world.service.all_due(&all, from, until, 2).await.unwrap();
        assert_eq!((due.len(), count), (2, 3));
        assert!(due[0].at < due[1].at);
        let (due, count) = world.service.all_due(&all, from, due[0].at, 0).await.unwrap();
        assert_eq!((due.len(), count), (0, 1));
    })
    .await;
}
