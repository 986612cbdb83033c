//! What developers do with the webhooks of their applications: test messages, and what the operator decided.

use domain::delivery::{DeliveryState, DisabledReason, Next, Outcome};
use domain::limits::{MINUTE_MS, WEBHOOK_TESTS_MAX};
use domain::outbound::SendFailure;
use domain::refusal::Resource;
use domain::{ClientId, Invalid, Refusal, Rule};
use service::owned_webhooks::TestObstacle;

use crate::deliveries::{attempt_all, claim, stage, take};
use crate::webhooks::{URL, webhook};
use crate::world::{World, at_once, both, record, refused};

const FINE: Outcome = Outcome::Answered { status: 204, retry_after: None };
const GONE: Outcome = Outcome::Answered { status: 410, retry_after: None };
const TIMEOUT: Outcome = Outcome::Failed(SendFailure::Timeout);

async fn disabled(world: &World, client: &ClientId) -> Option<DisabledReason> {
    world.service.webhook_details(client).await.unwrap().webhook.disabled.map(|disabled| disabled.reason)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_message_is_signed_like_any_other_and_attempted_once() {
    both(|world| async move {
        let client = stage(&world).await;
        webhook(&world, &client).await;
        let mut written = world.service.deliveries_written();
        let id = world.service.send_test_message(&client).await.unwrap().unwrap();
        assert!(written.has_changed().unwrap(), "senders are woken");
        written.mark_unchanged();
        let [attempt] = &take(&world.service).await[..] else { panic!("one message") };
        assert_eq!((&attempt.key.message_id, &attempt.claim_id), (&id, &None));
        let body = String::from_utf8(attempt.body.clone()).unwrap();
        assert!(body.contains(r#""event":{"type":"webhook_test","version":"1","data":{"clientId":"drops","#));
        assert!(
            attempt
                .headers
                .iter()
                .any(|(name, value)| name.ends_with("-Data-Type") && value == "webhook_test")
        );

        // The lease ends without a result, and the next attempt fails.
        world.advance_ms(MINUTE_MS as u64);
        assert_eq!(attempt_all(&world, TIMEOUT).await, [Some(Next::Dead)]);
        let details = world.service.webhook_delivery(&client, &id).await.unwrap();
        assert_eq!(details.delivery.state, DeliveryState::Dead);
        let shown = world.service.shown_request(&details.delivery, &details.attempts[0]).unwrap();
        assert!(
            shown.headers.iter().any(|(name, value)| name.ends_with("-Signature") && value == "sha256=…")
        );
        assert!(shown.body.starts_with(&format!(r#"{{"version":"1","messageId":"{id}","timestamp""#)));

        // A message that is sent again gets the whole schedule.
        world.service.resend_delivery(&client, &id).await.unwrap();
        assert!(matches!(attempt_all(&world, TIMEOUT).await[..], [Some(Next::Again(_))]));
        let tests = world.service.test_messages(&client, 9, None).await.unwrap();
        assert_eq!((tests.deliveries.len(), tests.next), (1, None));
        claim(&world, "byeol").await;
        assert_eq!(attempt_all(&world, FINE).await, [Some(Next::Done)]);
        assert_eq!(world.service.test_messages(&client, 9, None).await.unwrap().deliveries.len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_concurrent_test_messages_five_are_written_within_a_minute() {
    both(|world| async move {
        let client = stage(&world).await;
        webhook(&world, &client).await;
        let sends = (0..20).map(|n| {
            let (service, client) = (world.node(&format!("node-{n}")), client.clone());
            async move { service.send_test_message(&client).await }
        });
        let sent: Vec<_> = at_once(sends).await.into_iter().map(Result::unwrap).collect();
        let made = sent.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!(i64::try_from(made).unwrap(), WEBHOOK_TESTS_MAX);
        assert!(
            sent.iter()
                .all(|outcome| !matches!(outcome, Err(obstacle) if *obstacle != TestObstacle::TooMany))
        );
        world.advance_ms(MINUTE_MS as u64 + 1);
        assert!(world.service.send_test_message(&client).await.unwrap().is_ok());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_message_needs_a_webhook_that_gets_messages() {
    both(|world| async move {
        let client = stage(&world).await;
        let missing = refused(world.service.send_test_message(&client).await);
        assert_eq!(missing, Refusal::NotFound(Resource::Webhook));
        webhook(&world, &client).await;
        world.service.switch_webhook(&client, false).await.unwrap();
        assert_eq!(world.service.send_test_message(&client).await.unwrap(), Err(TestObstacle::Disabled));
        world.service.put_application(record("bot", domain::ScopeSet::default())).await.unwrap();
        let bot = ClientId::stored("bot".to_owned());
        webhook(&world, &bot).await;
        assert_eq!(world.service.send_test_message(&bot).await.unwrap(), Err(TestObstacle::NotReceiving));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_does_not_undo_what_the_operator_did() {
    both(|world| async move {
        let client = stage(&world).await;
        webhook(&world, &client).await;
        claim(&world, "byeol").await;
        assert_eq!(attempt_all(&world, GONE).await, [Some(Next::Gone)]);
        assert_eq!(disabled(&world, &client).await, Some(DisabledReason::Gone));
        world.service.enable_webhook_of_owner(&client).await.unwrap();
        world.service.enable_webhook_of_owner(&client).await.unwrap();
        assert_eq!(disabled(&world, &client).await, None);

        world.service.switch_webhook(&client, false).await.unwrap();
        let is_off = Refusal::Invalid(Invalid::new("webhook", Rule::Enabled));
        assert_eq!(refused(world.service.enable_webhook_of_owner(&client).await), is_off);
        assert_eq!(refused(world.service.delete_webhook_of_owner(&client).await), is_off);
        world.service.put_webhook(&client, Some(&format!("{URL}/other")), None).await.unwrap();
        assert_eq!(disabled(&world, &client).await, Some(DisabledReason::Operator));
        world.service.switch_webhook(&client, true).await.unwrap();
        world.service.delete_webhook_of_owner(&client).await.unwrap();
        let gone = refused(world.service.delete_webhook_of_owner(&client).await);
        assert_eq!(gone, Refusal::NotFound(Resource::Webhook));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_found_by_its_id_and_by_its_claim() {
    both(|world| async move {
        let client = stage(&world).await;
        let (_, secret) = webhook(&world, &client).await;
        claim(&world, "byeol").await;
        let [attempt] = &take(&world.service).await[..] else { panic!("one message") };
        let id = &attempt.key.message_id;
        for known in ["claim-of-byeol", id.as_str()] {
            assert_eq!(world.service.find_delivery(&client, known).await.unwrap().as_ref(), Some(id));
        }
        for unknown in ["", "claim-of-nobody", "한 글\u{0}"] {
            assert_eq!(world.service.find_delivery(&client, unknown).await.unwrap(), None, "{unknown}");
        }
        let secrets = world.service.hinted_webhook_secrets(&client).await.unwrap();
        assert_eq!(secrets[0].last_characters, Some(secret.last_characters()));
    })
    .await;
}
