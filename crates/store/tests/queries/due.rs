//! What becomes due in a span of time.

use domain::limits::DAY_MS;
use domain::token::TokenFamily;
use store::queries::due::{Due, DueKind};
use store::queries::tokens::{NewCode, NewToken};
use store::{StoreError, Tx, params};

use crate::webhooks::{plant, plant_campaign, webhook_id};
use crate::{application, at, channel, client, family, hash, in_seeded, of_client, secret};

/// Makes something of that kind that is due at `ms`, named by `n`, and returns its ids.
async fn put(tx: &mut Tx, kind: DueKind, n: i64, ms: i64) -> Result<[Option<String>; 2], StoreError> {
    let name = n.to_string();
    let (hash, family, expires_at) = (&hash(&name), &family(&name), at(ms));
    let (client_id, channel_id) = (&client("app"), &channel("a"));
    let token = NewToken { hash, family, client_id, channel_id, generation: 0, expires_at };
    let ids = |first: &str, second: Option<&str>| Ok([Some(first.to_owned()), second.map(str::to_owned)]);
    match kind {
        DueKind::CodeExpired => {
            tx.insert_code(code(&token)).await?;
            ids("app", Some("a"))
        }
        DueKind::AccessTokenExpired => {
            tx.insert_access_token(token).await?;
            ids("app", Some("a"))
        }
        DueKind::RefreshTokenExpired => {
            tx.insert_refresh_token(token, at(0)).await?;
            ids("app", Some("a"))
        }
        DueKind::SessionUrlExpired => {
            tx.insert_session_url(hash, &of_client("app"), None, expires_at).await?;
            ids("app", None)
        }
        DueKind::SignInExpired => {
            tx.insert_browser_session(hash, channel_id, expires_at).await?;
            ids("a", None)
        }
        DueKind::PendingSignInExpired => {
            tx.insert_pending_sign_in(hash, channel_id, expires_at).await?;
            ids("a", None)
        }
        DueKind::PasswordResetExpired => {
            tx.insert_password_reset(hash, channel_id, None, expires_at).await?;
            ids("a", None)
        }
        DueKind::ApplicationSecretExpired => {
            tx.insert_application_secret(client_id, &secret(&name), at(1)).await?;
            let update = "UPDATE application_secrets SET expires_at = $2 WHERE secret_id = $1";
            tx.execute(update, params![&name, ms]).await?;
            ids("app", Some(&name))
        }
        DueKind::WebhookSecretExpired => {
            plant_once(tx).await?;
            let insert = "
                INSERT INTO webhook_secrets (secret_id, webhook_id, sealed_secret, signs_from, forget_at, created_at)
                VALUES ($1, 'hook', 'sealed', 1, $2, 1)";
            tx.execute(insert, params![&name, ms]).await?;
            ids("hook", Some(&name))
        }
        DueKind::RestrictionEnded => {
            tx.restrict_temporarily(channel_id, &channel(&name), expires_at, at(0)).await?;
            ids("a", Some(&name))
        }
        DueKind::CampaignStarted => campaign(tx, &name, "starts_at", ms).await,
        DueKind::CampaignEnded => campaign(tx, &name, "ends_at", ms).await,
        DueKind::ApplicationUnused60Days => used(tx, &name, ms - 60 * DAY_MS).await,
        DueKind::ApplicationUnused80Days => used(tx, &name, ms - 80 * DAY_MS).await,
        DueKind::ApplicationUnused89Days => used(tx, &name, ms - 89 * DAY_MS).await,
        DueKind::ApplicationDeleted => used(tx, &name, ms - 90 * DAY_MS).await,
        DueKind::ApplicationPurged => {
            let ids = used(tx, &name, 1).await?;
            let update = "UPDATE applications SET deleted_at = $2 WHERE client_id = $1";
            tx.execute(update, params![&name, ms - 30 * DAY_MS]).await?;
            Ok(ids)
        }
        DueKind::WebhookAttempt => {
            plant_once(tx).await?;
            let message = crate::deliveries::put(tx, &webhook_id("hook"), &name, ms, true).await?;
            ids("hook", Some(message.as_str()))
        }
    }
}

fn code<'a>(token: &NewToken<'a>) -> NewCode<'a> {
    let NewToken { hash, family, client_id, channel_id, expires_at, .. } = *token;
    NewCode {
        hash,
        family: family as &TokenFamily,
        client_id,
        channel_id,
        state: hash,
        redirect_uri: "u",
        began_at: at(0),
        expires_at,
    }
}

async fn plant_once(tx: &mut Tx) -> Result<(), StoreError> {
    if tx.webhook(&client("hook")).await?.is_none() {
        plant(tx, "hook").await?;
    }
    Ok(())
}

async fn used(tx: &mut Tx, name: &str, ms: i64) -> Result<[Option<String>; 2], StoreError> {
    tx.put_application(&application(name), at(1)).await?;
    let update = "UPDATE applications SET last_used_at = $2 WHERE client_id = $1";
    tx.execute(update, params![name, ms]).await?;
    Ok([Some(name.to_owned()), None])
}

/// A campaign of that name with that time.
async fn campaign(tx: &mut Tx, name: &str, column: &str, ms: i64) -> Result<[Option<String>; 2], StoreError> {
    plant_campaign(tx).await?;
    let insert = match column {
        "starts_at" => {
            "INSERT INTO drops_campaigns (campaign_id, campaign_name, organization_id, category_id, starts_at)
            VALUES ($1, 'c', 'games', 'sea', $2)"
        }
        _ => {
            "INSERT INTO drops_campaigns (campaign_id, campaign_name, organization_id, category_id, ends_at)
            VALUES ($1, 'c', 'games', 'sea', $2)"
        }
    };
    tx.execute(insert, params![name, ms]).await?;
    Ok([Some(name.to_owned()), None])
}

/// Later than all that the seeds and other kinds leave.
const BASE: i64 = 1_000 * DAY_MS;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_due_in_a_span_is_found_in_the_order_of_its_times() {
    in_seeded(async move |tx: &mut Tx| {
        tx.put_person(&channel("a"), "a", "hash").await?;
        for (n, kind) in (1..).zip(DueKind::all()) {
            let base = BASE + n * 200 * DAY_MS;
            let mut expected = Vec::new();
            // The second one is made first.
            for (i, ms) in [(2, 20), (1, 10), (0, 0), (3, 21)] {
                let ids = put(tx, kind, n * 10 + i, base + ms).await?;
                expected.push(Due { at: at(base + ms), kind, ids });
            }
            let [second, first, ..] = &expected[..] else { unreachable!("four were made") };
            let found = tx.due(kind, at(base), at(base + 20), 9, 0).await?;
            assert_eq!(found, [first.clone(), second.clone()], "{kind:?}");
            let found = tx.due(kind, at(base), at(base + 20), 1, 0).await?;
            assert_eq!(found, std::slice::from_ref(first), "{kind:?}");
            let found = tx.due(kind, at(base), at(base + 20), 9, 1).await?;
            assert_eq!(found, std::slice::from_ref(second), "{kind:?}");
            assert_eq!(tx.due(kind, at(base + 20), at(base + 20), 9, 0).await?, [], "{kind:?}");
            if DueKind::PASSIVE.contains(&kind) {
                assert_eq!(tx.next_end(at(base)).await?, Some(at(base + 10)), "{kind:?}");
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_is_due_until_it_is_given() {
    in_seeded(async move |tx: &mut Tx| {
        let kind = DueKind::ApplicationUnused60Days;
        let ids = used(tx, "idle", BASE).await?;
        let due = Due { at: at(BASE + 60 * DAY_MS), kind, ids };
        let until = at(BASE + 60 * DAY_MS);
        assert_eq!(tx.due(kind, at(BASE), until, 9, 0).await?, [due]);
        let notice = kind.notice().unwrap();
        tx.give_application_notices(notice, until, at(BASE)).await?;
        assert_eq!(tx.due(kind, at(BASE), until, 9, 0).await?, []);
        Ok(())
    })
    .await;
}
