//! Sweeps delete expired rows in batches, and no others.

use domain::event::EventType;
use domain::limits::DAY_MS;
use domain::session::{ChangeKind, SessionChange, Subscription};
use domain::{DeliveryId, MessageId, WebhookId, WebhookSecretId};
use store::queries::form_drafts::FormDraft;
use store::queries::lost_events::LostEvents;
use store::queries::sweeps::{SWEEP_ROWS_MAX, Sweep};
use store::queries::tokens::{NewCode, NewToken};
use store::queries::upstreams::NewUpstreamFlow;
use store::{StoreError, Tx, params};

use crate::deliveries::put;
use crate::webhooks::{plant, webhook_id};
use crate::{at, both, channel, client, family, hash, in_seeded, live, node, number, of_client, session, tx};

/// A row of that kind that is over at `ms`.
async fn insert(tx: &mut Tx, sweep: Sweep, n: i64, ms: i64) -> Result<(), StoreError> {
    let (hash, family, expires_at) = (&hash(&n.to_string()), &family("f"), at(ms));
    let (client_id, channel_id) = (&client("app"), &channel("a"));
    let token = NewToken { hash, family, client_id, channel_id, generation: 0, expires_at };
    match sweep {
        Sweep::Codes => {
            tx.insert_code(NewCode {
                hash,
                family,
                client_id,
                channel_id,
                state: hash,
                redirect_uri: "u",
                began_at: at(0),
                expires_at,
            })
            .await
        }
        Sweep::AccessTokens => tx.insert_access_token(token).await,
        Sweep::RefreshTokens => tx.insert_refresh_token(token, at(0)).await,
        Sweep::EndedTokens => {
            let (hash, family) = (&self::hash(&format!("ended {n}")), &self::family("ended"));
            tx.insert_access_token(NewToken { hash, family, ..token }).await?;
            tx.delete_tokens(client_id, channel_id, Some(family)).await
        }
        Sweep::SessionUrls => tx.insert_session_url(hash, &of_client("app"), None, expires_at).await,
        Sweep::BrowserSessions => {
            // A person has a limited number of them.
            let channel = channel(&format!("signed-in-{n}"));
            tx.put_channel(&crate::record(channel.as_str()), at(1)).await?;
            tx.insert_browser_session(hash, &channel, expires_at).await
        }
        Sweep::PasswordResets => {
            person(tx).await?;
            tx.insert_password_reset(hash, channel_id, None, expires_at).await
        }
        Sweep::PendingSignIns => {
            person(tx).await?;
            tx.insert_pending_sign_in(hash, channel_id, expires_at).await
        }
        Sweep::FormDrafts => {
            let channel = channel(&format!("typing-{n}"));
            tx.put_channel(&crate::record(channel.as_str()), at(1)).await?;
            let draft = FormDraft { action: "/a".into(), page: "/a".into(), fields: "[]".into() };
            tx.put_form_draft(&channel, &draft, expires_at).await?;
            assert_eq!(tx.form_draft(&channel, at(ms - 1)).await?, Some(draft));
            assert_eq!(tx.form_draft(&channel, at(ms)).await?, None);
            Ok(())
        }
        Sweep::UpstreamFlows => {
            let flow = NewUpstreamFlow { state: hash, browser: hash, provider: "p", sealed: "s", expires_at };
            tx.insert_upstream_flow(flow).await
        }
        Sweep::Mails => {
            let id = DeliveryId::stored(n.to_string());
            tx.insert_mail(&id, None, "sealed", at(1), expires_at).await
        }
        Sweep::MailCounts => tx.count_mail(&n.to_string(), expires_at, at(-1), 1).await.map(drop),
        Sweep::AuditLog => {
            let insert = "
                INSERT INTO audit_log VALUES ($1, $2, 'person', 'a', '', 'key.add', 'channel', 'a', '{}', '')";
            tx.execute(insert, params![n.to_string(), expires_at]).await.map(drop)
        }
        Sweep::ApplicationUsage => {
            let insert = "INSERT INTO application_usage VALUES ('app', $1, $2, 1, 0)";
            tx.execute(insert, params![expires_at, n.to_string()]).await.map(drop)
        }
        Sweep::ApplicationLoad => {
            let insert = "INSERT INTO application_load VALUES ($1, $2, 1, 0, 0)";
            tx.execute(insert, params![expires_at, n.to_string()]).await.map(drop)
        }
        Sweep::IdempotencyKeys => {
            tx.claim_idempotency_key("POST /a", &n.to_string(), hash, "", expires_at).await.map(drop)
        }
        Sweep::LiveSpans => close_span(tx, n, ms).await,
        Sweep::LostEvents => {
            let lost = LostEvents {
                lost_at: expires_at,
                channel_id: channel_id.clone(),
                node_id: node(&n.to_string()),
            };
            tx.record_lost_events(&lost).await
        }
        Sweep::EventOutbox => {
            let insert = "
                INSERT INTO event_outbox (batch_id, node_id, created_at, channels) VALUES ($1, 'n', $2, 'a')";
            tx.execute(insert, params![n.to_string(), expires_at]).await.map(drop)
        }
        Sweep::WebhookSecrets => {
            let webhook = webhook(tx, "secretive").await?;
            let id = WebhookSecretId::stored(n.to_string());
            tx.insert_webhook_secret(&id, &webhook, "sealed", at(1), at(1)).await?;
            tx.time_webhook_secret(&id, at(1), Some(expires_at)).await
        }
        Sweep::WebhookNotices => {
            let webhook = webhook(tx, "noticed").await?;
            tx.insert_webhook_notice(&webhook, &n.to_string(), expires_at).await
        }
        Sweep::WebhookDeliveries => {
            let webhook = webhook(tx, "receiving").await?;
            put(tx, &webhook, &n.to_string(), ms, n % 2 == 0).await.map(drop)
        }
        Sweep::WebhookRemains => {
            let webhook = deleted_webhook(tx, &format!("left-at-{ms}"), ms).await?;
            put(tx, &webhook, &n.to_string(), KEPT, true).await.map(drop)
        }
        Sweep::DeletedWebhooks => deleted_webhook(tx, &format!("deleted-{n}"), ms).await.map(drop),
        Sweep::Sessions => end_session(tx, n, ms, 0).await,
        Sweep::SessionChanges => end_session(tx, n, ms, 1).await,
        Sweep::ChatMessages => {
            let insert = "
                INSERT INTO chat_messages (message_id, channel_id, sender_channel_id, content, emojis, message_time)
                VALUES ($1, 'a', 'a', '', '{}', $2)";
            tx.execute(insert, params![&message_at(n, ms), ms]).await.map(drop)
        }
        Sweep::Donations => {
            let insert = "INSERT INTO donations VALUES ($1, 'a', NULL, 'CHAT', '1', '', '{}', $2)";
            tx.execute(insert, params![&message_at(n, ms), ms]).await.map(drop)
        }
        Sweep::ClaimChanges => claim_change(tx, n, ms).await,
        Sweep::TemporaryRestrictions => {
            tx.restrict_temporarily(channel_id, &channel(&n.to_string()), expires_at, at(0)).await.map(drop)
        }
        Sweep::ChatSpeakers => {
            tx.take_slow_mode_turn(channel_id, &channel(&n.to_string()), 0, expires_at).await.map(drop)
        }
    }
}

/// Lets the owner of channel `a` sign in.
async fn person(tx: &mut Tx) -> Result<(), StoreError> {
    tx.put_person(&channel("a"), "login", "hash").await
}

/// The id of a message or donation of that time.
fn message_at(n: i64, ms: i64) -> MessageId {
    let mut random = [0; 10];
    random[2..].copy_from_slice(&n.to_be_bytes());
    MessageId::generate(at(ms), random)
}

/// A claim with one change.
async fn claim_change(tx: &mut Tx, n: i64, ms: i64) -> Result<(), StoreError> {
    for insert in [
        "INSERT INTO organizations (organization_id, organization_name, verified) VALUES ('o', 'o', FALSE)
         ON CONFLICT DO NOTHING",
        "INSERT INTO categories (category_id, category_type, category_value) VALUES ('g', 'GAME', 'g')
         ON CONFLICT DO NOTHING",
        "INSERT INTO drops_campaigns (campaign_id, campaign_name, organization_id, category_id)
         VALUES ('k', 'k', 'o', 'g') ON CONFLICT DO NOTHING",
    ] {
        tx.execute(insert, &[]).await?;
    }
    let claim = "
        INSERT INTO reward_claims (claim_id, organization_id, campaign_id, reward_id, category_id, channel_id,
            fulfillment_state, claimed_at, updated_at)
        VALUES ($1, 'o', 'k', $1, 'g', 'a', 'CLAIMED', 1, 1)";
    let reward = "INSERT INTO drops_rewards (campaign_id, reward_id, reward_name, claimable) VALUES ('k', $1, 'r', TRUE)";
    tx.execute(reward, params![n.to_string()]).await?;
    tx.execute(claim, params![n.to_string()]).await?;
    let change = "INSERT INTO claim_changes VALUES ($1, 'CLAIMED', 'FULFILLED', 'app', $2)";
    tx.execute(change, params![n.to_string(), ms]).await.map(drop)
}

/// Later than any sweep here.
const KEPT: i64 = 1_000_000;

/// The webhook of that name, which is there from then on.
async fn webhook(tx: &mut Tx, name: &str) -> Result<WebhookId, StoreError> {
    let known = tx.query_opt("SELECT 1 FROM webhooks WHERE webhook_id = $1", params![name]).await?;
    if known.is_none() { plant(tx, name).await } else { Ok(webhook_id(name)) }
}

/// One that lost its application at `ms`, as `delete_webhook` leaves it; in one statement, because many are
/// made at once.
async fn deleted_webhook(tx: &mut Tx, name: &str, ms: i64) -> Result<WebhookId, StoreError> {
    let insert = "
        INSERT INTO webhooks (webhook_id, enabled, created_at, changed_at) VALUES ($1, TRUE, 1, $2)
        ON CONFLICT DO NOTHING";
    tx.execute(insert, params![name, ms]).await?;
    Ok(webhook_id(name))
}

/// A viewer count that the one live had until `ms`.
async fn close_span(tx: &mut Tx, n: i64, ms: i64) -> Result<(), StoreError> {
    if tx.live_on_air(&channel("a")).await?.is_none() {
        tx.begin_live(&channel("a"), &live(1, 0, 0), at(1)).await?;
        tx.open_live_span(1, 0, 0).await?;
    }
    tx.open_live_span(1, n, n + 1).await?;
    tx.close_live_span(1, n + 1, n + 2, at(ms)).await
}

/// A session that ended at `ms`, with that many changes in its log.
async fn end_session(tx: &mut Tx, n: i64, ms: i64, changes: i64) -> Result<(), StoreError> {
    let key = session(&format!("s{n}"));
    tx.insert_session(&key, &of_client("app"), None, &node("n"), at(1)).await?;
    for version in 1..=changes {
        let subscription = Subscription { event_type: EventType::Chat, channel_id: channel("a") };
        let change = SessionChange { version, kind: ChangeKind::Subscribed, subscription };
        tx.insert_session_change(&key, &node("n"), &change).await?;
    }
    tx.disconnect_session(&key, at(ms), "client_goodbye").await.map(drop)
}

const fn count(sweep: Sweep) -> &'static str {
    match sweep {
        Sweep::Codes => "SELECT COUNT(*) FROM authorization_codes",
        Sweep::AccessTokens => "SELECT COUNT(*) FROM access_tokens",
        Sweep::RefreshTokens => "SELECT COUNT(*) FROM refresh_tokens",
        Sweep::EndedTokens => "SELECT COUNT(*) FROM ended_tokens",
        Sweep::LiveSpans => "SELECT COUNT(*) FROM live_spans WHERE closed_at IS NOT NULL",
        Sweep::LostEvents => "SELECT COUNT(*) FROM lost_events",
        Sweep::EventOutbox => "SELECT COUNT(*) FROM event_outbox",
        Sweep::SessionUrls => "SELECT COUNT(*) FROM session_urls",
        Sweep::BrowserSessions => "SELECT COUNT(*) FROM browser_sessions",
        Sweep::PasswordResets => "SELECT COUNT(*) FROM password_resets",
        Sweep::PendingSignIns => "SELECT COUNT(*) FROM pending_sign_ins",
        Sweep::FormDrafts => "SELECT COUNT(*) FROM form_drafts",
        Sweep::UpstreamFlows => "SELECT COUNT(*) FROM upstream_flows",
        Sweep::Mails => "SELECT COUNT(*) FROM mail_outbox",
        Sweep::MailCounts => "SELECT COUNT(*) FROM mail_counts",
        Sweep::AuditLog => "SELECT COUNT(*) FROM audit_log",
        Sweep::ApplicationUsage => "SELECT COUNT(*) FROM application_usage",
        Sweep::ApplicationLoad => "SELECT COUNT(*) FROM application_load",
        Sweep::Sessions => "SELECT COUNT(*) FROM sessions",
        Sweep::SessionChanges => "SELECT COUNT(*) FROM session_changes",
        Sweep::IdempotencyKeys => "SELECT COUNT(*) FROM idempotency_keys",
        Sweep::ChatMessages => "SELECT COUNT(*) FROM chat_messages",
        Sweep::Donations => "SELECT COUNT(*) FROM donations",
        Sweep::ClaimChanges => "SELECT COUNT(*) FROM claim_changes",
        Sweep::TemporaryRestrictions => "SELECT COUNT(*) FROM temporary_restrictions",
        Sweep::ChatSpeakers => "SELECT COUNT(*) FROM chat_speakers",
        Sweep::WebhookSecrets => "SELECT COUNT(*) FROM webhook_secrets",
        Sweep::WebhookNotices => "SELECT COUNT(*) FROM webhook_notices",
        Sweep::WebhookDeliveries => "SELECT COUNT(*) FROM webhook_deliveries",
        Sweep::WebhookRemains => "SELECT COUNT(*) FROM webhook_deliveries",
        Sweep::DeletedWebhooks => "SELECT COUNT(*) FROM webhooks",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_deletes_expired_rows_and_no_others() {
    in_seeded(async move |tx: &mut Tx| {
        for sweep in Sweep::ALL {
            for (n, ms) in [98, 99, 100, 101].into_iter().enumerate() {
                let n = n as i64 + 10 * (sweep as i64 + 1);
                insert(tx, sweep, n, ms).await?;
            }
        }
        for sweep in Sweep::ALL {
            // The kinds that hang on sessions were inserted with the sessions of both.
            let sessions = if matches!(sweep, Sweep::Sessions) { 2 } else { 1 };
            let before = number(tx, count(sweep)).await?;
            assert_eq!(tx.sweep(sweep, at(97)).await?, 0, "{sweep:?}");
            assert_eq!(tx.sweep(sweep, at(100)).await?, 3 * sessions, "{sweep:?}");
            assert_eq!(tx.sweep(sweep, at(100)).await?, 0, "{sweep:?}");
            assert_eq!(number(tx, count(sweep)).await?, before - 3 * sessions as i64);
            if matches!(sweep, Sweep::Sessions) {
                // They took their logs along; these are for the next sweep.
                assert_eq!(number(tx, count(Sweep::SessionChanges)).await?, 1);
                for n in 200..203 {
                    insert(tx, Sweep::SessionChanges, n, 100).await?;
                }
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connected_sessions_are_never_swept() {
    in_seeded(async move |tx: &mut Tx| {
        let key = session("open");
        tx.insert_session(&key, &of_client("app"), None, &node("n"), at(1)).await?;
        let subscription = Subscription { event_type: EventType::Chat, channel_id: channel("a") };
        let change = SessionChange { version: 1, kind: ChangeKind::Subscribed, subscription };
        tx.insert_session_change(&key, &node("n"), &change).await?;
        for sweep in [Sweep::Sessions, Sweep::SessionChanges] {
            assert_eq!(tx.sweep(sweep, at(i64::MAX)).await?, 0);
        }
        assert_eq!(tx.session_changes_after(&key, 0).await?.len(), 1);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_logs_of_sessions_that_ended_long_ago_are_left_to_the_sweep_of_sessions() {
    in_seeded(async move |tx: &mut Tx| {
        end_session(tx, 1, 100, 1).await?;
        assert_eq!(tx.sweep(Sweep::SessionChanges, at(100 + DAY_MS)).await?, 0);
        assert_eq!(tx.sweep(Sweep::SessionChanges, at(99 + DAY_MS)).await?, 1);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_sweep_deletes_a_batch_at_once_and_two_sweeps_do_not_conflict() {
    both(|store| async move {
        for sweep in Sweep::ALL {
            let (now, later) = (at(100), at(300));
            tx!(store, tx => {
                for n in 0..SWEEP_ROWS_MAX + 1 {
                    insert(tx, sweep, n, 100).await?;
                }
                Ok(())
            })
            .unwrap();
            assert_eq!(
                tx!(store, tx => { tx.sweep(sweep, now).await }),
                Ok(SWEEP_ROWS_MAX as u64),
                "{sweep:?}"
            );
            assert_eq!(tx!(store, tx => { tx.sweep(sweep, now).await }), Ok(1), "{sweep:?}");
            tx!(store, tx => {
                for n in 0..200 {
                    insert(tx, sweep, 1_000 + n, 200).await?;
                }
                Ok(())
            })
            .unwrap();
            let sweeps = [store.clone(), store.clone()]
                .map(|store| tokio::spawn(async move { tx!(store, tx => { tx.sweep(sweep, later).await }) }));
            let mut swept = 0_u64;
            for sweep in sweeps {
                swept += sweep.await.unwrap().unwrap();
            }
            assert_eq!(swept, 200, "{sweep:?}");
            if matches!(sweep, Sweep::Sessions | Sweep::SessionChanges) {
                tx!(store, tx => { tx.execute("DELETE FROM sessions", &[]).await }).unwrap();
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_of_long_logs_stays_within_its_batch() {
    in_seeded(async move |tx: &mut Tx| {
        for n in 0..3 {
            end_session(tx, n, 100, 300).await?;
        }
        for swept in [SWEEP_ROWS_MAX as u64, 900 - SWEEP_ROWS_MAX as u64, 0] {
            assert_eq!(tx.sweep(Sweep::SessionChanges, at(100)).await?, swept);
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_takes_the_oldest_rows_of_a_range() {
    in_seeded(async move |tx: &mut Tx| {
        for sweep in [Sweep::ChatMessages, Sweep::Donations, Sweep::ClaimChanges] {
            for ms in [5, 3, 4, 1, 2] {
                insert(tx, sweep, ms, ms).await?;
            }
            assert_eq!(tx.sweep_rows(sweep, at(4), 3).await?, 3, "{sweep:?}");
            assert_eq!(number(tx, count(sweep)).await?, 2, "{sweep:?}");
            assert_eq!(tx.sweep_rows(sweep, at(4), 3).await?, 1, "the one of the time itself: {sweep:?}");
            assert_eq!(tx.sweep_rows(sweep, at(4), 3).await?, 0, "{sweep:?}");
        }
        Ok(())
    })
    .await;
}
