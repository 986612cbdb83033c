//! Messages to webhooks, from the claim to the recorded result.

use domain::delivery::{DeliveryState, DisabledReason, Next, Outcome, signature};
use domain::drops::{Campaign, Reward};
use domain::limits::{DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, WEBHOOK_LEASE_MS};
use domain::live::{Category, CategoryType};
use domain::outbound::SendFailure;
use domain::refusal::Resource;
use domain::{
    CampaignId, CategoryId, ClaimId, ClientId, DeliveryId, OrganizationId, Refusal, RewardId, Timestamp,
};
use service::Service;
use service::bulk::{ChannelEvent, Entry, KeyedEntry};
use service::deliveries::{Attempt, Delivery, DeliveryDetails, DeliveryQuery, RESENT_MAX, Report};
use service::drops::RewardRequest;
use store::{Tx, params};

use crate::webhooks::{URL, publisher, webhook};
use crate::world::{World, at_once, both, refused, winners};

const GONE: Outcome = answered(410);
const BUSY: Outcome = answered(503);
const FINE: Outcome = answered(204);

const fn answered(status: u16) -> Outcome {
    Outcome::Answered { status, retry_after: None }
}

/// Makes an application `drops` whose webhook receives the claims of campaign `voyage`.
pub async fn stage(world: &World) -> ClientId {
    let client = publisher(world, "drops").await;
    let category = Category {
        category_id: CategoryId::stored("sea".to_owned()),
        category_type: CategoryType::Game,
        category_value: "The sea".to_owned(),
        poster_image_url: None,
    };
    world.service.put_category(category).await.unwrap();
    let reward = Reward {
        reward_id: RewardId::stored("compass".to_owned()),
        name: "compass".to_owned(),
        watch_minutes: 0,
    };
    let campaign = Campaign {
        campaign_id: CampaignId::stored("voyage".to_owned()),
        name: "voyage".to_owned(),
        organization_id: OrganizationId::stored("games".to_owned()),
        category_id: "sea".to_owned(),
        period: domain::drops::Period::default(),
        channels: None,
        rewards: vec![reward],
    };
    world.service.put_campaign(campaign).await.unwrap();
    client
}

fn request(by: &str) -> RewardRequest {
    RewardRequest {
        campaign_id: CampaignId::stored("voyage".to_owned()),
        reward_id: RewardId::stored("compass".to_owned()),
        channel_id: domain::ChannelId::stored(by.to_owned()),
        claim_id: Some(ClaimId::stored(format!("claim-of-{by}"))),
    }
}

pub async fn claim(world: &World, by: &str) {
    world.user(by).await;
    world.service.claim_reward(request(by), None).await.unwrap();
}

/// Takes all due messages.
pub async fn take(service: &Service) -> Vec<Attempt> {
    let mut taken = Vec::new();
    for webhook in service.webhooks_due(None, 100).await.unwrap() {
        taken.extend(service.take_deliveries(&webhook, 100).await.unwrap());
    }
    taken
}

fn report(world: &World, attempt: &Attempt, outcome: Outcome) -> Report {
    let began_at = world.service.clock().now();
    let (key, signed_at) = (attempt.key.clone(), Some(attempt.signed_at));
    Report { key, outcome, began_at, duration_ms: 7, answer: b"answer".to_vec(), signed_at }
}

/// Takes all due messages and records the same outcome for each.
pub async fn attempt_all(world: &World, outcome: Outcome) -> Vec<Option<Next>> {
    let taken = take(&world.service).await;
    let reports = taken.iter().map(|attempt| report(world, attempt, outcome)).collect();
    let nexts = world.service.record_attempts(reports).await.unwrap();
    nexts.into_iter().map(|(_, next)| next).collect()
}

async fn listed(world: &World, client: &ClientId) -> Vec<Delivery> {
    let query = DeliveryQuery::default();
    world.service.webhook_deliveries(client, query, 100, None).await.unwrap().deliveries
}

async fn only(world: &World, client: &ClientId) -> DeliveryDetails {
    let [delivery] = &listed(world, client).await[..] else { panic!("one message") };
    world.service.webhook_delivery(client, &delivery.message_id).await.unwrap()
}

async fn disabled(world: &World, client: &ClientId) -> Option<DisabledReason> {
    world.service.webhook_details(client).await.unwrap().webhook.disabled.map(|disabled| disabled.reason)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_sent_once_and_signed_as_specified() {
    both(|world| async move {
        let client = stage(&world).await;
        let (_, secret) = webhook(&world, &client).await;
        let mut written = world.service.deliveries_written();
        claim(&world, "byeol").await;
        assert!(written.has_changed().unwrap(), "senders are woken");
        written.mark_unchanged();

        let [attempt] = &take(&world.service).await[..] else { panic!("one message") };
        assert_eq!((attempt.url.as_deref(), attempt.key.number), (Some(URL), 1));
        let now = world.service.clock().now();
        let id = attempt.key.message_id.as_str();
        let body = String::from_utf8(attempt.body.clone()).unwrap();
        let beginning = format!(
            r#"{{"version":"1","messageId":"{id}","timestamp":"{}","event":{{"type":"drop_reward_claim","version":"1","data":{{"claimId":"claim-of-byeol","campaignId":"voyage","#,
            now.rfc3339()
        );
        assert!(body.starts_with(&beginning), "{body}");
        let signed = signature(&secret, &attempt.key.message_id, now, &attempt.body);
        let header = |name: &str| {
            let name = format!("Service-Event-Message-{name}");
            attempt.headers.iter().find(|header| header.0 == name).map(|header| header.1.clone())
        };
        assert_eq!(header("Signature"), Some(signed));
        assert_eq!(header("Timestamp"), Some(now.rfc3339()));
        assert_eq!((header("Id").as_deref(), id.len()), (Some(id), 36));
        assert_eq!(header("Retry"), None);

        assert_eq!(take(&world.service).await.len(), 0, "the message is in flight");
        let done = world.service.record_attempts(vec![report(&world, attempt, FINE)]).await.unwrap();
        assert_eq!(done, [(attempt.key.clone(), Some(Next::Done))]);
        let details = only(&world, &client).await;
        assert_eq!((details.delivery.state, details.attempts.len()), (DeliveryState::Delivered, 1));
        assert_eq!((details.attempts[0].status, details.attempts[0].excerpt.as_str()), (Some(204), "answer"));
        assert!(refused(world.service.claim_reward(request("byeol"), None).await) != Refusal::Internal);
        assert_eq!(listed(&world, &client).await.len(), 1, "a refused claim has no message");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_message_is_sent_eight_times_with_the_same_data() {
    both(|world| async move {
        let client = stage(&world).await;
        let (_, secret) = webhook(&world, &client).await;
        claim(&world, "byeol").await;
        let pauses = [
            5 * SECOND_MS,
            5 * MINUTE_MS,
            30 * MINUTE_MS,
            2 * HOUR_MS,
            5 * HOUR_MS,
            10 * HOUR_MS,
            10 * HOUR_MS,
        ];
        let mut data = None;
        for n in 1..=8 {
            let [attempt] = &take(&world.service).await[..] else { panic!("attempt {n}") };
            let retry = attempt.headers.iter().find(|header| header.0.ends_with("-Retry"));
            assert_eq!(retry.map(|header| header.1.clone()), (n > 1).then(|| (n - 1).to_string()));
            let now = world.service.clock().now();
            let signed = signature(&secret, &attempt.key.message_id, now, &attempt.body);
            assert!(attempt.headers.iter().any(|header| header.1 == signed), "signed anew");
            let body: serde_json::Value = serde_json::from_slice(&attempt.body).unwrap();
            let event = data.get_or_insert_with(|| body["event"].clone());
            assert_eq!(body["event"], *event);

            let outcome = if n % 2 == 0 { BUSY } else { Outcome::Failed(SendFailure::Timeout) };
            let nexts = world.service.record_attempts(vec![report(&world, attempt, outcome)]).await.unwrap();
            let Some(Next::Again(at)) = nexts[0].1 else {
                assert_eq!((nexts[0].1, n), (Some(Next::Dead), 8));
                break;
            };
            let pause = at.as_millis() - now.as_millis();
            let planned = pauses[n - 1];
            assert!((planned..=planned + planned / 10).contains(&pause), "{n}: {pause}");
            world.advance_ms(pause as u64 - 1);
            assert_eq!(take(&world.service).await.len(), 0);
            world.advance_ms(1);
        }
        let details = only(&world, &client).await;
        assert_eq!((details.delivery.state, details.attempts.len()), (DeliveryState::Dead, 8));
        assert_eq!(disabled(&world, &client).await, None, "a day of failure is not five");
        world.advance_ms(DAY_MS as u64);
        assert_eq!(take(&world.service).await.len(), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_a_dead_node_goes_to_another_node_and_a_late_result_is_ignored() {
    both(|world| async move {
        let client = stage(&world).await;
        webhook(&world, &client).await;
        claim(&world, "byeol").await;
        let dead = world.node("node-b");
        let taken = take(&dead).await.remove(0);
        world.advance_ms(WEBHOOK_LEASE_MS as u64 - 1);
        assert_eq!(take(&world.service).await.len(), 0, "the node may still be alive");
        world.advance_ms(1);
        let again = take(&world.service).await.remove(0);
        assert_eq!((again.key.message_id.clone(), again.key.number), (taken.key.message_id.clone(), 2));

        let late = dead.record_attempts(vec![report(&world, &taken, BUSY)]).await.unwrap();
        assert_eq!(late, [(taken.key.clone(), None)]);
        let done = world.service.record_attempts(vec![report(&world, &again, FINE)]).await.unwrap();
        assert_eq!(done[0].1, Some(Next::Done));
        let repeated = world.service.record_attempts(vec![report(&world, &again, BUSY)]).await.unwrap();
        assert_eq!(repeated[0].1, None);
        let details = only(&world, &client).await;
        assert_eq!(details.delivery.state, DeliveryState::Delivered);
        let numbers: Vec<_> = details.attempts.iter().map(|attempt| attempt.number).collect();
        assert_eq!(numbers, [2]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_nodes_take_each_message_once_and_record_many_results_at_once() {
    both(|world| async move {
        let client = stage(&world).await;
        webhook(&world, &client).await;
        let other = publisher(&world, "other").await;
        webhook(&world, &other).await;
        for n in 0..60 {
            claim(&world, &format!("viewer-{n}")).await;
        }
        let nodes = (0..8).map(|n| {
            let (node, world) = (world.node(&format!("node-{n}")), world.clone());
            async move {
                let mut recorded = 0;
                loop {
                    let mut taken = Vec::new();
                    for webhook in node.webhooks_due(None, 9).await? {
                        taken.extend(node.take_deliveries(&webhook, 3).await?);
                    }
                    if taken.is_empty() {
                        return Ok(recorded);
                    }
                    let reports = taken.iter().map(|attempt| report(&world, attempt, FINE)).collect();
                    let nexts = node.record_attempts(reports).await?;
                    assert!(nexts.iter().all(|(_, next)| *next == Some(Next::Done)));
                    recorded += nexts.len();
                }
            }
        });
        let recorded = winners(at_once(nodes).await, &Refusal::Internal);
        assert_eq!((recorded.len(), recorded.iter().sum::<usize>()), (8, 120));
        assert_eq!(world.count("SELECT COUNT(*) FROM webhook_attempts").await, 120);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_410_disables_at_once_and_later_messages_can_be_sent_again() {
    both(|world| async move {
        let client = stage(&world).await;
        webhook(&world, &client).await;
        for by in ["one", "two"] {
            claim(&world, by).await;
        }
        let due = world.service.webhooks_due(None, 9).await.unwrap().remove(0);
        let first = world.service.take_deliveries(&due, 1).await.unwrap().remove(0);
        let nexts = world.service.record_attempts(vec![report(&world, &first, GONE)]).await.unwrap();
        assert_eq!(nexts[0].1, Some(Next::Gone));
        let details = world.service.webhook_details(&client).await.unwrap();
        assert_eq!(details.webhook.disabled.map(|disabled| disabled.reason), Some(DisabledReason::Gone));
        assert_eq!(details.notices.len(), 1);
        assert_eq!(
            (details.notices[0].kind.as_str(), world.service.webhooks_disabled()),
            ("DISABLED_GONE", 1)
        );

        claim(&world, "three").await;
        let states: Vec<_> = listed(&world, &client).await.iter().map(|delivery| delivery.state).collect();
        let mut sorted = states.clone();
        sorted.sort_by_key(|state| state.name());
        assert_eq!(sorted, [DeliveryState::Dead, DeliveryState::Dead, DeliveryState::Waiting]);
        assert_eq!(world.service.webhooks_due(None, 9).await.unwrap(), []);
        assert_eq!(
            world.service.take_deliveries(&due, 9).await.unwrap().len(),
            0,
            "all messages are on hold"
        );

        world.service.put_webhook(&client, Some(URL), Some(true)).await.unwrap();
        assert_eq!(take(&world.service).await.len(), 1, "waiting messages are sent");
        let now = world.service.clock().now();
        let (from, until) = (now, now.plus_ms(1));
        let sent = world.service.resend_deliveries(&client, DeliveryState::Dead, from, until).await.unwrap();
        assert_eq!((sent.messages, sent.all), (2, true));
        assert_eq!(take(&world.service).await.len(), 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_five_days_of_failure_without_success_disable_a_webhook() {
    both(|world| async move {
        let client = stage(&world).await;
        webhook(&world, &client).await;
        // One claim a day, each with one attempt. The last claim comes after exactly five days.
        let days = async |name: &str, outcomes: &[Outcome]| {
            for (day, outcome) in outcomes.iter().enumerate() {
                world
                    .store
                    .write(async move |tx: &mut Tx| {
                        tx.execute(
                            "UPDATE webhook_deliveries SET state = 'DEAD', in_flight = FALSE",
                            params![],
                        )
                        .await
                    })
                    .await
                    .unwrap();
                claim(&world, &format!("{name}-{day}")).await;
                assert_eq!(attempt_all(&world, *outcome).await.len(), 1);
                world.advance_ms(DAY_MS as u64);
            }
            disabled(&world, &client).await
        };
        assert_eq!(days("a", &[BUSY, BUSY, BUSY, FINE, BUSY, BUSY, BUSY, BUSY, BUSY]).await, None);
        assert_eq!(
            days("b", &[FINE, BUSY, BUSY, BUSY, BUSY, BUSY]).await,
            None,
            "more than four days of failure are not five"
        );
        assert_eq!(days("c", &[BUSY]).await, Some(DisabledReason::Failing));
        let details = world.service.webhook_details(&client).await.unwrap();
        assert_eq!(details.notices[0].kind, "DISABLED_FAILING");

        world.service.put_webhook(&client, Some(URL), Some(true)).await.unwrap();
        assert_eq!(days("d", &[BUSY]).await, None, "the five days start over");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_message_is_sent_again_on_demand_but_never_twice_at_once() {
    both(|world| async move {
        let client = stage(&world).await;
        webhook(&world, &client).await;
        claim(&world, "byeol").await;
        let unknown = DeliveryId::bound_at(Timestamp::from_millis(1));
        assert_eq!(
            refused(world.service.resend_delivery(&client, &unknown).await),
            Refusal::NotFound(Resource::Delivery)
        );
        let attempt = take(&world.service).await.remove(0);
        let id = &attempt.key.message_id;
        let details = world.service.resend_delivery(&client, id).await.unwrap();
        assert!(details.delivery.in_flight);
        assert_eq!(take(&world.service).await.len(), 0, "it is being sent");
        world.service.record_attempts(vec![report(&world, &attempt, FINE)]).await.unwrap();

        let resends = (0..10).map(|n| {
            let (service, client, id) = (world.node(&format!("node-{n}")), client.clone(), id.clone());
            async move {
                service.resend_delivery(&client, &id).await?;
                Ok(take(&service).await)
            }
        });
        let taken = winners(at_once(resends).await, &Refusal::Internal);
        let mut taken: Vec<_> = taken.into_iter().flatten().collect();
        assert_eq!(taken.len(), 1);
        let again = taken.remove(0);
        assert_eq!((again.key.number, again.key.failures), (2, 0));
        world.service.record_attempts(vec![report(&world, &again, BUSY)]).await.unwrap();
        let details = only(&world, &client).await;
        assert_eq!((details.delivery.state, details.attempts.len()), (DeliveryState::Waiting, 2));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_sent_again_during_its_last_attempt_gets_the_whole_schedule() {
    both(|world| async move {
        let client = stage(&world).await;
        webhook(&world, &client).await;
        claim(&world, "byeol").await;
        let failed_often = "UPDATE webhook_deliveries SET failures = 7";
        world.store.write(async move |tx: &mut Tx| tx.execute(failed_often, &[]).await).await.unwrap();
        let last = take(&world.service).await.remove(0);
        assert_eq!(last.key.failures, 7);
        world.service.resend_delivery(&client, &last.key.message_id).await.unwrap();
        let nexts = world.service.record_attempts(vec![report(&world, &last, BUSY)]).await.unwrap();
        assert!(matches!(nexts[0].1, Some(Next::Again(_))), "{nexts:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_in_bulk_are_sent_like_single_ones() {
    both(|world| async move {
        let client = stage(&world).await;
        webhook(&world, &client).await;
        let mut written = world.service.deliveries_written();
        let claims = |names: &[&str]| -> Vec<_> {
            let entry = |by: &&str| {
                let request = request(by);
                Entry::Event(request.channel_id.clone(), ChannelEvent::Claim(request))
            };
            names.iter().map(|by| KeyedEntry { entry: entry(by), key: None }).collect()
        };
        for by in ["a", "b"] {
            world.user(by).await;
        }
        written.mark_unchanged();
        let outcomes = world.service.report(claims(&["a", "b", "a", "missing"])).await.unwrap();
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_none()).count(), 2);
        assert!(written.has_changed().unwrap());
        let mut sent: Vec<_> =
            listed(&world, &client).await.into_iter().filter_map(|delivery| delivery.claim_id).collect();
        sent.sort();
        assert_eq!(sent, ["claim-of-a", "claim-of-b"].map(|id| ClaimId::stored(id.to_owned())));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_webhook_leaves_no_rows_to_the_next_one() {
    both(|world| async move {
        let client = stage(&world).await;
        webhook(&world, &client).await;
        claim(&world, "byeol").await;
        let attempt = take(&world.service).await.remove(0);
        world.service.delete_webhook(&client).await.unwrap();
        webhook(&world, &client).await;
        assert_eq!(listed(&world, &client).await.len(), 0);
        world.advance_ms(WEBHOOK_LEASE_MS as u64);
        assert_eq!(take(&world.service).await.len(), 0);
        // A later result changes nothing.
        world.service.record_attempts(vec![report(&world, &attempt, GONE)]).await.unwrap();
        assert_eq!(disabled(&world, &client).await, None);
        for _ in 0..2 {
            world.service.sweep().await.unwrap();
        }
        assert_eq!(world.count("SELECT COUNT(*) FROM webhook_deliveries").await, 0);
        assert_eq!(world.count("SELECT COUNT(*) FROM webhooks").await, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_kept_for_thirty_days_after_their_end() {
    both(|world| async move {
        world.service.prepare_partitions().await;
        let client = stage(&world).await;
        webhook(&world, &client).await;
        claim(&world, "byeol").await;
        attempt_all(&world, FINE).await;
        world.advance_ms(30 * DAY_MS as u64 - 1);
        world.service.sweep().await.unwrap();
        assert_eq!(listed(&world, &client).await.len(), 1);
        // On PostgreSQL the messages of three days go as a whole.
        world.advance_ms(if world.store.is_remote() { 3 * DAY_MS as u64 } else { 1 });
        world.service.sweep().await.unwrap();
        assert_eq!(listed(&world, &client).await.len(), 0);
        assert_eq!(world.count("SELECT COUNT(*) FROM webhook_attempts").await, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_window_is_sent_again_in_parts() {
    both(|world| async move {
        let client = stage(&world).await;
        let webhook_id = webhook(&world, &client).await.0.webhook.webhook_id;
        let rows = RESENT_MAX as i64 + 1_200;
        let dead = "
            INSERT INTO webhook_deliveries (webhook_id, message_id, claim_id, data, state, due_at, created_at, changed_at)
            WITH RECURSIVE n (n) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT n + 1 FROM n WHERE n < CAST($2 AS BIGINT) - 1)
            SELECT CAST($1 AS TEXT), '0000' || CAST(1000000 + n AS TEXT), 'c', '{}', 'DEAD', 1, 1, 1 FROM n";
        let id = webhook_id.clone();
        world
            .store
            .write(async move |tx: &mut Tx| { tx.execute(dead, params![&id, rows]).await })
            .await
            .unwrap();
        let all = (Timestamp::from_millis(0), Timestamp::LAST);
        for (messages, complete) in [(RESENT_MAX, false), (1_200, true), (0, true)] {
            let sent = world.service.resend_deliveries(&client, DeliveryState::Dead, all.0, all.1).await.unwrap();
            assert_eq!((sent.messages, sent.all), (messages, complete));
        }
        assert_eq!(take(&world.service).await.len(), 100);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_messages_is_paged_by_cursor() {
    both(|world| async move {
        let client = stage(&world).await;
        webhook(&world, &client).await;
        for n in 0..5 {
            claim(&world, &format!("viewer-{n}")).await;
            world.advance_ms(1);
        }
        let page = async |query: DeliveryQuery, cursor: Option<&str>| {
            world.service.webhook_deliveries(&client, query, 2, cursor).await
        };
        let (mut seen, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let found = page(DeliveryQuery::default(), cursor.as_deref()).await.unwrap();
            let claims = found.deliveries.into_iter().filter_map(|delivery| delivery.claim_id);
            seen.extend(claims.map(|claim| claim.to_string()));
            match found.next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, [4, 3, 2, 1, 0].map(|n| format!("claim-of-viewer-{n}")));
        let dead = DeliveryQuery { state: Some(DeliveryState::Dead), ..DeliveryQuery::default() };
        assert!(page(dead, cursor.as_deref()).await.is_err(), "a cursor is of its list");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_concurrent_calls_for_missing_messages_one_writes_each_message() {
    both(|world| async move {
        let client = stage(&world).await;
        webhook(&world, &client).await;
        for by in ["byeol", "nuri", "bada"] {
            claim(&world, by).await;
        }
        let before = listed(&world, &client).await;
        let lost = "DELETE FROM webhook_deliveries";
        world.store.write(async move |tx: &mut Tx| tx.execute(lost, params![]).await).await.unwrap();
        let tasks = (0..8).map(|_| {
            let (service, client) = (world.service.clone(), client.clone());
            let all = (Timestamp::from_millis(0), Timestamp::LAST);
            async move { service.write_missing_deliveries(&client, all.0, all.1).await }
        });
        let written = winners(at_once(tasks).await, &Refusal::Internal);
        assert_eq!(written.iter().map(|some| some.messages).sum::<u64>(), 3);
        let ids = |some: &[Delivery]| some.iter().map(|one| one.message_id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&listed(&world, &client).await), ids(&before), "with the ids that they had");
    })
    .await;
}
