//! The log contains no secrets: runs a whole flow at level debug, on both databases, and searches the log for
//! each secret.

use serde_json::json;
use testkit::{Browser, Request, Socket, Tokens, query_value};

use crate::cli::process::{Sandbox, stagedoor};

/// The secrets that a flow used, by name.
#[derive(Default)]
struct Used(Vec<(&'static str, String)>);

impl Used {
    fn note(&mut self, what: &'static str, secret: &str) {
        assert!(secret.len() >= 8, "{what} is too short to look for");
        self.0.push((what, secret.to_owned()));
    }
}

async fn flow(sandbox: &Sandbox) -> Used {
    let mut used = Used::default();
    let api = &sandbox.api;
    used.note("operator key", sandbox.world["operatorKey"].as_str().expect("a text"));
    for index in 0..8 {
        for app in ["demo", "drops"] {
            let tokens = sandbox.user(index, app).1;
            used.note("seeded access token", &tokens.access);
            used.note("seeded refresh token", &tokens.refresh);
        }
    }
    let app = api.application("another").redirect_uris(&["https://bot.example/callback"]).create().await;
    used.note("client secret", &app.client_secret);
    let person = api.person("someone").with("password", "correct horse battery staple").create().await;
    let person = testkit::Person { password: "correct horse battery staple".to_owned(), ..person };
    used.note("password", &person.password);

    let state = "a-state-that-is-a-secret-of-the-application";
    let mut browser = Browser::new(api.address());
    let consent = api.sign_in_page(&mut browser, &app, &person, state).await;
    used.note("state", state);
    used.note("browser cookie", browser.cookie("stagedoor_browser").expect("a cookie"));
    let form = consent.form("decision");
    used.note("CSRF proof", form.field("csrf").expect("a proof"));
    let redirect = browser.submit(&form.press("decision", "allow")).await;
    let code = query_value(redirect.location(), "code").expect("a code");
    used.note("code", &code);
    let tokens = Tokens::of(&api.exchange(&app, &code, state).await.content());
    let next = Tokens::of(&api.refresh(&app, &tokens.refresh).await.content());
    for tokens in [&tokens, &next] {
        used.note("access token", &tokens.access);
        used.note("refresh token", &tokens.refresh);
    }
    let answer = api.user_session_url(&next.access).await.content();
    let url = answer["url"].as_str().expect("a text");
    used.note("session URL token", &query_value(url, "auth").expect("a token"));
    let mut socket = Socket::open(url).await;
    api.subscribe(&next.access, "chat", socket.session_key()).await.content();
    socket.system("subscribed").await;
    api.send_chat(&next.access, "안녕").await.content();
    socket.event("CHAT").await;
    for _ in 0..2 {
        let answer = api.stream_key(&next.access).await.content();
        used.note("stream key", answer["streamKey"].as_str().expect("a text"));
        api.operator(Request::post("/platform/v1/channels/someone/stream-key")).await.content();
    }
    webhooks(sandbox, &mut used).await;
    used_in_vain(sandbox, &mut used, &app, url).await;
    api.revoke(&app, &next.access).await.content();
    socket.system("revoked").await;
    used
}

/// The secrets of a webhook, and its URL, which may contain a secret of the receiver.
async fn webhooks(sandbox: &Sandbox, used: &mut Used) {
    let api = &sandbox.api;
    let webhook = "/platform/v1/applications/another/webhook";
    let key = "receivers-own-key-0123456789";
    used.note("part of a webhook's address", key);
    let put = async |url: String| api.operator(Request::put(webhook).json(&json!({ "url": url }))).await;
    let made = put(format!("http://127.0.0.1:9/{key}")).await.content();
    used.note("webhook secret", made["secret"].as_str().expect("a text"));
    let given = "a-secret-that-was-brought-along-0123456789";
    used.note("webhook secret that was brought along", given);
    let add = Request::post(format!("{webhook}/secrets")).json(&json!({ "secret": given }));
    api.operator(add).await.content();
    let short = "too-short-a-secret-0123";
    used.note("webhook secret that was refused", short);
    let add = Request::post(format!("{webhook}/secrets")).json(&json!({ "secret": short }));
    api.operator(add).await.message();
    put(format!("https://10.0.0.1/{key}")).await.message();
    put(format!("https://{key}@games.example/")).await.message();
}

/// Secrets that are misplaced or refused. They must not be logged either.
async fn used_in_vain(sandbox: &Sandbox, used: &mut Used, app: &testkit::Application, url: &str) {
    let api = &sandbox.api;
    let mistyped = "mistyped-secret-0123456789";
    used.note("mistyped secret", mistyped);
    let wrong = testkit::Application { client_secret: mistyped.to_owned(), ..app.clone() };
    api.exchange(app, mistyped, mistyped).await.message();
    api.refresh(app, mistyped).await.message();
    api.refresh(&wrong, mistyped).await.message();
    api.channels(&wrong, "channelIds=x").await.message();
    api.me(mistyped).await.message();
    api.send(Request::get(format!("/open/v1/users/me?access_token={mistyped}"))).await.message();
    api.send(Request::get(format!("/nowhere?auth={mistyped}"))).await.message();
    api.send(Request::post("/auth/v1/token").body(format!("{{\"clientSecret\":\"{mistyped}")))
        .await
        .message();
    api.token(json!({ "clientSecret": mistyped, "code": [mistyped] })).await.message();
    Socket::connect(url).await.expect_err("used up").message();
    Socket::connect(&url.replace("auth=", &format!("auth={mistyped}"))).await.expect_err("unknown").message();
    let mut browser = Browser::new(api.address());
    let address = format!(
        "/account-interlock?clientId={}&redirectUri={}&state={mistyped}",
        app.client_id,
        testkit::encode(&app.redirect_uri)
    );
    let form = browser.open(&address).await.form("login").fill("login", mistyped).fill("password", mistyped);
    browser.submit(&form).await;
    browser.open(&format!("{address}&state=x")).await;
}

fn assert_silent(log: &str, used: &Used) {
    assert!(log.contains("DEBUG") && log.contains("/auth/v1/token"), "the log is there: {log}");
    for (what, secret) in &used.0 {
        if let Some(line) = log.lines().find(|line| line.contains(secret.as_str())) {
            panic!("a {what} is in the log: {line}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_of_a_whole_flow_is_in_the_log() {
    let fresh = store::testing::postgres().await;
    for url in [None, fresh.url()] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = folder.path().join("log");
        let mut command = stagedoor(&["dev", "--json", "--listen", "127.0.0.1:0", "--log", "debug"]);
        command.stdout(std::process::Stdio::piped()).stderr(std::fs::File::create(&log).expect("a file"));
        if let Some(url) = &url {
            command.env("STAGEDOOR_DATABASE_URL", url);
        }
        let sandbox = Sandbox::of(command, log).await;
        let used = flow(&sandbox).await;
        sandbox.signal("TERM").await;
        let log_file = sandbox.log_path();
        sandbox.end().await;
        let log = std::fs::read_to_string(log_file).expect("the log");
        assert_silent(&log, &used);
    }
    fresh.remove().await;
}
