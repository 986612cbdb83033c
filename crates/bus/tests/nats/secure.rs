//! TLS and signatures between a client and NATS.

use std::path::Path;

use bus::testing::NatsServer;
use bus::{Access, Address, Bus, NatsBus, Options};
use nats::testing::{TestKey, TestKind};
use nats::{Connection, ConnectionError, Servers};
use serde_json::json;
use tls_files::PairFiles;
use tls_files::testing::{Holder, TestAuthority, far_future};

use super::{changed, channel, next, options, ready};

async fn connect(access: &Access) -> Result<Connection, ConnectionError> {
    Connection::connect(access, &Servers::new(&access.address), 0, None, "a test").await
}

async fn refusal(access: &Access) -> String {
    connect(access).await.err().expect("it is refused").to_string()
}

fn address(server: &NatsServer, scheme: &str, host: &str) -> Address {
    Address::parse(&format!("{scheme}://{host}:{}", server.address().port())).expect("an address")
}

/// The lines of a server's configuration for TLS.
fn tls(folder: &Path, own: &PairFiles, verify: bool) -> String {
    format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: {verify} }}",
        own.certificate.display(),
        own.key.display(),
        folder.join("ca.pem").display()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_and_clients_are_checked_over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let (authority, other) = (TestAuthority::new(), TestAuthority::new());
    let ours = authority.write(folder.path(), "ca.pem");
    let foreign = other.write(folder.path(), "other.pem");
    let own = authority.issue(Holder::Server("localhost"), far_future()).write(folder.path(), "server");
    let client = authority.issue(Holder::Client("a node"), far_future()).write(folder.path(), "client");
    let server = NatsServer::configured(&tls(folder.path(), &own, true)).await;
    let good = Access {
        authorities: Some(ours.clone()),
        certificate: Some(client.clone()),
        ..address(&server, "nats", "localhost").into()
    };
    let options = Options { access: good.clone(), ..options(&server.url(), "one") };
    let bus = NatsBus::connect(options).await.expect("the server answers");
    let mut subscriber = bus.subscribe();
    ready(&bus.interest(&channel("probe"))).await;
    bus.publish(changed("one", 8)).await;
    assert_eq!(next(&mut subscriber).await, "one 8");

    let refused = |access| async move { refusal(&access).await };
    let foreign = Access { authorities: Some(foreign), ..good.clone() };
    assert!(refused(foreign).await.contains("no trusted authority"));
    let misnamed = Access { address: address(&server, "tls", "127.0.0.1"), ..good.clone() };
    assert!(refused(misnamed).await.contains("is for localhost"));
    let system = Access { authorities: None, ..good.clone() };
    assert!(refused(system).await.contains("no trusted authority"));
    let anonymous = Access { certificate: None, ..good.clone() };
    let why = refused(anonymous).await;
    assert!(why.contains("client"), "{why}");

    // A renewed certificate is used by the next connection. A damaged one is named.
    authority.issue(Holder::Client("a node"), far_future()).write(folder.path(), "client");
    assert!(connect(&good).await.is_ok());
    std::fs::write(&client.key, "no key").expect("written");
    assert!(refused(good.clone()).await.contains("client.key"));
    assert!(good.check().expect_err("no key").to_string().contains("client.key"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_never_left_out_where_it_is_demanded() {
    let server = NatsServer::start().await;
    let why = refusal(&address(&server, "tls", "localhost").into()).await;
    assert!(why.contains("has no TLS"), "{why}");
    assert!(connect(&address(&server, "nats", "localhost").into()).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_signs_in_with_the_seed_of_its_nkey() {
    let folder = tempfile::tempdir().expect("a folder");
    let (user, stranger) = (TestKey::new(TestKind::User, 7), TestKey::new(TestKind::User, 8));
    let users = format!("authorization {{ users: [ {{ nkey: {} }} ] }}", user.public());
    let server = NatsServer::configured(&users).await;
    let seed = folder.path().join("seed");
    let access = Access { credentials: Some(seed.clone()), ..address(&server, "nats", "127.0.0.1").into() };
    std::fs::write(&seed, user.seed()).expect("written");
    assert!(connect(&access).await.is_ok());
    std::fs::write(&seed, stranger.seed()).expect("written");
    let why = refusal(&access).await;
    assert!(why.contains("Authorization Violation"), "{why}");
    std::fs::write(&seed, "no seed").expect("written");
    assert!(access.check().expect_err("no seed").to_string().contains("seed"));
    assert!(refusal(&Access { credentials: None, ..access.clone() }).await.contains("Authorization"));

    let open = NatsServer::start().await;
    std::fs::write(&seed, user.seed()).expect("written");
    let why = refusal(&Access { address: address(&open, "nats", "127.0.0.1"), ..access }).await;
    assert!(why.contains("no users with nkeys"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_signs_in_with_a_jwt_of_its_account() {
    let folder = tempfile::tempdir().expect("a folder");
    let (operator, account) = (TestKey::new(TestKind::Operator, 1), TestKey::new(TestKind::Account, 2));
    let user = TestKey::new(TestKind::User, 3);
    let of_operator = operator.sign(&operator, json!({ "type": "operator", "version": 2 }));
    let of_account = operator.sign(
        &account,
        json!({
            "type": "account", "version": 2, "limits": {
                "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
                "conn": -1, "leaf": -1,
            },
        }),
    );
    let of_user = account.sign(
        &user,
        json!({ "type": "user", "version": 2, "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1 }),
    );
    let server = NatsServer::configured(&format!(
        "operator: {of_operator}\nresolver: MEMORY\nresolver_preload: {{ {}: {of_account} }}",
        account.public()
    ))
    .await;
    let file = folder.path().join("node.creds");
    let creds = |seed: &str| {
        format!(
            "-----BEGIN NATS USER JWT-----\n{of_user}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        )
    };
    std::fs::write(&file, creds(&user.seed())).expect("written");
    let access = Access { credentials: Some(file.clone()), ..address(&server, "nats", "127.0.0.1").into() };
    assert!(connect(&access).await.is_ok());
    std::fs::write(&file, creds(&TestKey::new(TestKind::User, 4).seed())).expect("written");
    let why = refusal(&access).await;
    assert!(why.contains("Authorization Violation"), "{why}");
}
