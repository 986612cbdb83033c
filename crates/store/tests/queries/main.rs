//! Every statement of the service, run on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod accounts;
mod application_life;
mod application_load;
mod application_usage;
mod audit_log;
mod browser_sessions;
mod channel_deletions;
mod chat;
mod chat_appends;
mod credential_changes;
mod credentials;
mod damage;
mod deliveries;
mod developers;
mod drops;
mod due;
mod event_outbox;
mod expire;
mod follow_groups;
mod grouped_writes;
mod lists;
mod lives;
mod locks;
mod lost_events;
mod measures;
mod nouns;
mod operator_keys;
mod operator_lists;
mod partition_storage;
mod partitions;
mod restrictions;
mod revocations;
mod seals;
mod session_details;
mod session_lists;
mod sessions;
mod store_identity;
mod subscriptions;
mod sweeps;
mod time_partitions;
mod transfer;
mod upstreams;
mod watching;
mod webhooks;
mod world_rows;

use domain::application::{Application, Organization, Presentation};
use domain::quota::QuotaShare;
use domain::secret::SecretHash;
use domain::session::SessionOwner;
use domain::token::{Caller, TokenFamily};
use domain::{
    ApplicationSecretId, ChannelId, ClientId, NodeId, OrganizationId, Profile, Scope, ScopeSet, SessionKey,
    Timestamp,
};
use store::queries::application_secrets::NewSecret;
use store::queries::channels::ChannelRecord;
use store::queries::lives::{LiveOnAir, LiveShow};
use store::queries::sessions::TakenUrl;
use store::{SendAsyncFnOnce, Store, StoreError, Tx};

/// Runs statements in one transaction.
macro_rules! tx {
    ($store:expr, $tx:ident => $body:block) => {
        crate::in_tx(&$store, async move |$tx: &mut store::Tx| $body).await
    };
}
pub(crate) use tx;

/// [`Store::write`], with its error settled.
async fn in_tx<T, F>(store: &Store, body: F) -> Result<T, StoreError>
where
    F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<T, StoreError>> + Send + 'static,
    T: Send + 'static,
{
    store.write(body).await
}

/// Runs the body in one transaction over the seeds, on both engines.
async fn in_seeded<F>(body: F)
where
    F: for<'t> SendAsyncFnOnce<&'t mut Tx, Result<(), StoreError>> + Clone + Send + 'static,
{
    both(|store| {
        let body = body.clone();
        async move { store.write(body).await.unwrap() }
    })
    .await;
}

/// Runs the body on both engines, over the seeds.
async fn both<Fut>(mut body: impl FnMut(Store) -> Fut)
where
    Fut: Future<Output = ()> + Send + 'static,
{
    store::testing::both(|store| {
        let work = body(store.clone());
        async move {
            tx!(store, tx => { seed(tx).await }).unwrap();
            work.await;
        }
    })
    .await;
}

/// Channels `a`, `b` and `c`, applications `app` and `other`, and every channel's consent to both.
async fn seed(tx: &mut Tx) -> Result<(), StoreError> {
    for name in ["a", "b", "c"] {
        tx.put_channel(&record(name), at(1)).await?;
    }
    for name in ["app", "other"] {
        tx.put_application(&application(name), at(1)).await?;
        for user in ["a", "b", "c"] {
            tx.put_consent(&client(name), &channel(user), scopes(), at(1)).await?;
        }
    }
    Ok(())
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn channel(id: &str) -> ChannelId {
    ChannelId::stored(id.to_owned())
}

fn client(id: &str) -> ClientId {
    ClientId::stored(id.to_owned())
}

fn node(id: &str) -> NodeId {
    NodeId::stored(id.to_owned())
}

fn session(id: &str) -> SessionKey {
    SessionKey::stored(id.to_owned())
}

fn family(id: &str) -> TokenFamily {
    TokenFamily(id.to_owned())
}

fn hash(of: &str) -> SecretHash {
    SecretHash::of(of)
}

/// A secret whose text is also its id.
fn secret(text: &str) -> NewSecret {
    let secret_id = ApplicationSecretId::stored(text.to_owned());
    NewSecret { secret_id, hash: hash(text), last_characters: format!("-{text}") }
}

fn taken_url(owner: &SessionOwner, profile: Option<Profile>) -> TakenUrl {
    TakenUrl { owner: owner.clone(), secret_id: None, profile }
}

fn scopes() -> ScopeSet {
    [Scope::ChatRead, Scope::ChatWrite, Scope::DonationRead].into_iter().collect()
}

fn caller(app: &str, user: &str, of: &str) -> Caller {
    Caller {
        client_id: client(app),
        channel_id: channel(user),
        scopes: scopes(),
        profile: None,
        quota: QuotaShare::FULL,
        family: family(of),
    }
}

fn of_client(id: &str) -> SessionOwner {
    SessionOwner::Client { client_id: client(id) }
}

fn of_user(id: &str, user: &str) -> SessionOwner {
    SessionOwner::User { client_id: client(id), channel_id: channel(user) }
}

fn record(id: &str) -> ChannelRecord {
    ChannelRecord {
        channel_id: channel(id),
        name: format!("channel {id}"),
        image_url: None,
        verified_mark: false,
        real_name_verified: false,
    }
}

fn application(id: &str) -> Application {
    Application {
        client_id: client(id),
        name: format!("application {id}"),
        organization: None,
        owner: None,
        scopes: scopes(),
        profile: None,
        quota: QuotaShare::FULL,
        presentation: Presentation::default(),
    }
}

/// A live with nothing special to it.
fn live(live_id: i64, count: i64, since: i64) -> LiveOnAir {
    LiveOnAir {
        live_id,
        counted_since: since,
        show: LiveShow {
            title: format!("live {live_id}"),
            thumbnail_image_url: None,
            concurrent_user_count: count,
            adult: false,
            category_id: None,
            tags: Vec::new(),
        },
    }
}

fn organization(id: &str, verified: bool) -> Organization {
    Organization {
        organization_id: OrganizationId::stored(id.to_owned()),
        name: format!("organization {id}"),
        verified,
    }
}

/// A single number.
async fn number(tx: &mut Tx, sql: &'static str) -> Result<i64, StoreError> {
    tx.query_one(sql, &[]).await?.get(0)
}

const OBSERVED: Option<Profile> = Some(Profile::Observed);

/// The texts of the source files in a folder and in its folders.
fn sources(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = |path: std::path::PathBuf| {
        if path.is_dir() { sources(&path) } else { vec![std::fs::read_to_string(path).unwrap()] }
    };
    entries.flat_map(texts).collect()
}

#[test]
fn every_query_is_tested() {
    let crate_folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = |folder: &str| -> String { sources(&crate_folder.join(folder)).concat() };
    let (queries, tests) = (sources("src/queries"), sources("tests/queries"));
    let names: Vec<&str> =
        queries.split("pub async fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next()).collect();
    assert!(names.len() > 50, "the queries were not found");
    let untested: Vec<&&str> = names.iter().filter(|name| !tests.contains(&format!(".{name}("))).collect();
    assert!(untested.is_empty(), "queries without a test on both engines: {untested:?}");
}
