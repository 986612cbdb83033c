//! TLS to PostgreSQL, by a server of its own with a certificate, and its Unix socket.

use std::path::Path;

use store::testing::PostgresServer;
use store::{DatabaseUrl, Options, Store, StoreError, Target, Tx};
use tls_files::testing::{Holder, TestAuthority, far_future};

use crate::{insert, options, within};

/// Who may connect, and how.
const PG_HBA: &str = "\
local all all scram-sha-256
hostssl all certified 127.0.0.1/32 cert
hostnossl all encrypted 127.0.0.1/32 reject
host all all 127.0.0.1/32 scram-sha-256
";
/// `certified` proves itself by its certificate alone, `encrypted` must speak TLS.
const USERS: &str = "
    CREATE ROLE certified LOGIN; CREATE SCHEMA certified AUTHORIZATION certified;
    CREATE ROLE encrypted LOGIN PASSWORD 'x'; CREATE SCHEMA encrypted AUTHORIZATION encrypted";

async fn open(url: String) -> Result<Store, StoreError> {
    let options = Options { postgres_connections: 2, postgres_read_connections: 1, ..options() };
    Store::open(Target::Postgres { url: url.into() }, options).await
}

/// Why the store cannot be opened. No refusal shows the password.
async fn refusal(url: String) -> String {
    let why = open(url).await.expect_err("it cannot be opened").to_string();
    assert!(!why.contains("of%20a%20test"), "{why}");
    why
}

/// The version of TLS of a look-up's connection; `None` without TLS.
async fn version(store: &Store) -> Option<String> {
    let rows = store
        .read(async move |tx: &mut Tx| {
            tx.query("SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()", &[]).await
        })
        .await;
    let rows: Vec<store::Row> = rows.unwrap_or_else(|error: StoreError| panic!("{error}"));
    rows[0].get(0).unwrap()
}

/// Opens, reads and writes, and returns the version of TLS.
async fn use_it(url: String) -> Option<String> {
    let store = open(url).await.unwrap();
    insert(&store, 1).await.unwrap();
    let version = version(&store).await;
    store
        .write(async |tx: &mut Tx| tx.execute("DELETE FROM notes", &[]).await)
        .await
        .unwrap_or_else(|error: StoreError| panic!("{error}"));
    store.close().await;
    version
}

/// A server with a certificate of this authority for `localhost`, which trusts the certificates of its
/// clients.
async fn server(authority: &TestAuthority) -> PostgresServer {
    let mut server = PostgresServer::create().await;
    let folder = server.folder().to_owned();
    authority.write(&folder, "ca.pem");
    let own = authority.issue(Holder::Server("localhost"), far_future()).write(&folder, "server");
    private(&own.key);
    std::fs::write(folder.join("data/pg_hba.conf"), PG_HBA).unwrap();
    server.give_files().await;
    let setting = |name: &str, file: &str| format!("{name}={}", folder.join(file).display());
    let settings = [
        "ssl=on".to_owned(),
        setting("ssl_ca_file", "ca.pem"),
        setting("ssl_cert_file", "server.pem"),
        setting("ssl_key_file", "server.key"),
        setting("unix_socket_directories", ""),
    ];
    server.start(&settings.each_ref().map(String::as_str));
    within(async {
        while tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(USERS).await.unwrap();
    server
}

/// Takes the rights of others, as PostgreSQL demands of a key.
fn private(key: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_checked_as_the_url_says() {
    let (authority, other) = (TestAuthority::new(), TestAuthority::new());
    let mut server = server(&authority).await;
    let folder = server.folder().to_owned();
    other.write(&folder, "other.pem");
    let (login, port) = (server.login(), server.port());
    let file = |name: &str| folder.join(name).display().to_string();
    let at = |host: &str, query: &str| format!("postgres://{login}@{host}:{port}/postgres?{query}");
    let (ours, foreign) = (file("ca.pem"), file("other.pem"));

    assert_eq!(use_it(at("localhost", "sslmode=disable")).await, None);
    for good in [
        at("localhost", "application_name=x"),
        at("127.0.0.1", "sslmode=prefer"),
        at("127.0.0.1", "sslmode=require"),
        at("127.0.0.1", &format!("sslmode=verify-ca&sslrootcert={ours}")),
        at("localhost", &format!("sslmode=verify-full&sslrootcert={ours}")),
    ] {
        assert_eq!(use_it(good).await.as_deref(), Some("TLSv1.3"));
    }
    for (host, query, word) in [
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={ours}"), "is for localhost"),
        ("localhost", format!("sslmode=verify-full&sslrootcert={foreign}"), "no trusted authority"),
        ("localhost", format!("sslmode=verify-ca&sslrootcert={foreign}"), "no trusted authority"),
        // A named authority is checked.
        ("localhost", format!("sslmode=require&sslrootcert={foreign}"), "no trusted authority"),
        ("localhost", "sslmode=verify-full".to_owned(), "no trusted authority"),
    ] {
        let why = refusal(at(host, &query)).await;
        assert!(why.contains(word), "{query}: {why}");
    }
    // The Unix socket needs no TLS in any mode.
    let local = format!("postgres://{login}@/postgres?host={}&port={port}&sslmode=verify-full", file(""));
    assert_eq!(use_it(local).await, None);
    let why = refusal(format!("postgres://encrypted:x@127.0.0.1:{port}/postgres?sslmode=disable")).await;
    assert!(why.contains("pg_hba.conf") && why.contains("sslmode"), "{why}");
    let why = refusal(format!("postgres://encrypted:y@127.0.0.1:{port}/postgres")).await;
    assert!(why.contains("password"), "{why}");

    // Without TLS on the server.
    server.stop("fast").await;
    server.start(&["ssl=off"]);
    let plain = at("127.0.0.1", "");
    within(async {
        while open(plain.clone()).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(use_it(plain).await, None);
    let why = refusal(at("localhost", "sslmode=require")).await;
    assert!(why.contains("does not support TLS") && why.contains("ssl=on"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_is_the_proof_and_can_be_replaced_at_any_time() {
    let (authority, other) = (TestAuthority::new(), TestAuthority::new());
    let server = server(&authority).await;
    let folder = server.folder().to_owned();
    let own = authority.issue(Holder::Client("certified"), far_future()).write(&folder, "client");
    let stranger = other.issue(Holder::Client("certified"), far_future()).write(&folder, "stranger");
    let url = |certificate: &Path, key: &Path| {
        let (root, certificate, key) =
            (folder.join("ca.pem").display().to_string(), certificate.display(), key.display());
        format!(
            "postgres://certified@localhost:{}/postgres?sslmode=verify-full&sslrootcert={root}&sslcert={certificate}&sslkey={key}",
            server.port()
        )
    };
    let store = open(url(&own.certificate, &own.key)).await.unwrap();
    insert(&store, 1).await.unwrap();
    assert_eq!(version(&store).await.as_deref(), Some("TLSv1.3"));

    let why =
        refusal(format!("postgres://certified@localhost:{}/postgres?sslmode=require", server.port())).await;
    assert!(why.contains("client certificate"), "{why}");
    let why = refusal(url(&stranger.certificate, &stranger.key)).await;
    assert!(why.contains("refuses this client's certificate"), "{why}");
    let mixed = url(&own.certificate, &stranger.key);
    let why = DatabaseUrl::from(mixed.clone()).check().expect_err("two pairs").to_string();
    assert!(why.contains("do not fit"), "{why}");
    assert_eq!(refusal(mixed).await, why);

    // A renewed pair is used by the next connection.
    authority.issue(Holder::Client("certified"), far_future()).write(&folder, "client");
    let again = open(url(&own.certificate, &own.key)).await.unwrap();
    insert(&again, 2).await.unwrap();
    again.close().await;
    // A damaged pair fails new connections with an error. Open connections stay.
    std::fs::write(&own.key, "no key").unwrap();
    insert(&store, 3).await.unwrap();
    let why = refusal(url(&own.certificate, &own.key)).await;
    assert!(why.contains("client.key"), "{why}");
    store.close().await;
}
