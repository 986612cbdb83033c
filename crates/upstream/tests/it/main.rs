//! Sign-ins at a provider that is right, and at one that is wrong on purpose, over real sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use domain::Timestamp;
use domain::upstream::UpstreamIdentity;
use openidconnect::url::Url;
use serde_json::json;
use upstream::testing::{TestProvider, Wrong};
use upstream::{Callback, Failure, FlowSecrets, Outcome, Provider, StepState};

const REDIRECT: &str = "https://api.example.com/sign-in/upstream/sky/callback";
const NOW_MS: i64 = 1_800_000_000_000;

fn now() -> Timestamp {
    Timestamp::from_millis(NOW_MS)
}

fn secrets() -> FlowSecrets {
    FlowSecrets { state: "state".into(), nonce: "nonce".into(), verifier: "v".repeat(43), asks_again: false }
}

async fn world() -> (TestProvider, Provider) {
    let server = TestProvider::start().await;
    server.set_clock(NOW_MS);
    let provider = Provider::new(server.settings("sky", "")).unwrap();
    (server, provider)
}

/// A whole sign-in.
async fn sign_in(
    server: &TestProvider,
    provider: &Provider,
    now: Timestamp,
) -> Result<UpstreamIdentity, Failure> {
    sign_in_with(server, provider, &secrets(), now).await
}

async fn sign_in_with(
    server: &TestProvider,
    provider: &Provider,
    secrets: &FlowSecrets,
    now: Timestamp,
) -> Result<UpstreamIdentity, Failure> {
    let address = provider.begin(secrets, REDIRECT, now).await?;
    assert_eq!(address.contains("max_age=0"), secrets.asks_again, "{address}");
    let callback = Url::parse(&server.sign_in(&address)).unwrap();
    let get =
        |name: &str| callback.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    let (code, iss) = (get("code").unwrap(), get("iss"));
    provider.identify(Callback { code: &code, iss: iss.as_deref() }, secrets, REDIRECT, now).await
}

#[tokio::test]
async fn a_right_provider_tells_who_came() {
    let (server, provider) = world().await;
    server.set_claims(json!({
        "sub": "42", "name": " 하늘\u{0}", "picture": "https://id.example.com/42.png",
        "email": "haneul@example.com", "email_verified": true,
    }));
    let identity = sign_in(&server, &provider, now()).await.unwrap();
    let expected = UpstreamIdentity {
        provider: "sky".into(),
        issuer: server.issuer().into(),
        subject: "42".into(),
        name: Some("하늘".into()),
        picture: Some("https://id.example.com/42.png".into()),
        email: Some("haneul@example.com".into()),
    };
    assert_eq!(identity, expected);
    // The discovery document and the keys are read once.
    let before = server.requests();
    sign_in(&server, &provider, now()).await.unwrap();
    assert_eq!(server.requests() - before, 1, "one for the code");
    let later = now().plus_ms(60 * 60 * 1_000);
    server.set_clock(later.as_millis());
    sign_in(&server, &provider, later).await.unwrap();
    assert_eq!(server.requests() - before, 4, "again after an hour");
}

#[tokio::test]
async fn a_proof_is_asked_for_again_and_an_old_sign_in_is_none() {
    let (server, provider) = world().await;
    let proof = FlowSecrets { asks_again: true, ..secrets() };
    let now_s = NOW_MS / 1_000;
    for (signed_in_s, is_proof) in [(None, true), (Some(now_s - 5), true), (Some(now_s - 3_600), false)] {
        server.set_claims(json!({ "sub": "42", "auth_time": signed_in_s }));
        let proven = sign_in_with(&server, &provider, &proof, now()).await;
        assert_eq!(proven.is_ok(), is_proof, "{signed_in_s:?}: {proven:?}");
        sign_in(&server, &provider, now()).await.expect("a sign-in may be an old one of the provider");
    }
}

#[tokio::test]
async fn an_address_counts_only_if_the_provider_has_verified_it() {
    let (server, provider) = world().await;
    for (verified, counts) in
        [(json!(true), true), (json!(false), false), (json!("true"), false), (json!(null), false)]
    {
        server.set_claims(json!({ "sub": "1", "name": "a", "email": "a@b.co", "email_verified": verified }));
        let identity = sign_in(&server, &provider, now()).await.unwrap();
        assert_eq!(identity.email.is_some(), counts, "{verified}");
    }
}

#[tokio::test]
async fn further_claims_are_asked_for_and_must_be_about_the_same_person() {
    let (server, provider) = world().await;
    server.set_claims(json!({ "sub": "1" }));
    server.set_user_info(json!({ "sub": "1", "nickname": "누리" }));
    assert_eq!(sign_in(&server, &provider, now()).await.unwrap().name.as_deref(), Some("누리"));
    server.be(Wrong::OtherUserInfo);
    assert_eq!(sign_in(&server, &provider, now()).await.unwrap().name, None);
}

#[tokio::test]
async fn a_wrong_answer_is_no_sign_in() {
    for (wrong, outcome, text) in [
        (Wrong::Issuer, Outcome::Invalid, "issuer"),
        (Wrong::Audience, Outcome::Invalid, "audience"),
        (Wrong::FurtherAudience, Outcome::Invalid, "audience"),
        (Wrong::AuthorizedParty, Outcome::Invalid, "authorized party"),
        (Wrong::Nonce, Outcome::Invalid, "nonce"),
        (Wrong::NoNonce, Outcome::Invalid, "nonce"),
        (Wrong::NoSignature, Outcome::Invalid, "No signature"),
        (Wrong::EmptySignature, Outcome::Invalid, "Crypto"),
        (Wrong::SharedPublicKey, Outcome::Invalid, "HS256"),
        (Wrong::SharedSecret, Outcome::Invalid, "HS256"),
        (Wrong::OtherKey, Outcome::Invalid, "Crypto"),
        (Wrong::UnknownKey, Outcome::Invalid, "no key"),
        (Wrong::Expired, Outcome::Invalid, "Expired"),
        (Wrong::Future, Outcome::Invalid, "future"),
        (Wrong::OtherAccessToken, Outcome::Invalid, "access token"),
        (Wrong::NoSubject, Outcome::Invalid, "subject"),
        (Wrong::NoIdToken, Outcome::Invalid, "no ID token"),
        (Wrong::CallbackIssuer, Outcome::Invalid, "another issuer"),
        (Wrong::NoCallbackIssuer, Outcome::Invalid, "another issuer"),
        (Wrong::DiscoveryIssuer, Outcome::Invalid, "calls itself"),
        (Wrong::PrivateEndpoint, Outcome::Invalid, "token_endpoint"),
        (Wrong::SharedSecretsOnly, Outcome::Invalid, "no algorithm"),
        (Wrong::Oversized, Outcome::Unavailable, "too long"),
        (Wrong::Endless, Outcome::Unavailable, "too long"),
        (Wrong::Silent, Outcome::Unavailable, "within 1 seconds"),
        (Wrong::Down, Outcome::Unavailable, "503"),
        (Wrong::Html, Outcome::Invalid, "not JSON"),
    ] {
        let (server, provider) = world().await;
        server.be(wrong);
        let failure = sign_in(&server, &provider, now()).await.expect_err(&format!("{wrong:?}"));
        assert_eq!(failure.outcome(), outcome, "{wrong:?}: {failure}");
        let reason = failure.to_string();
        assert!(reason.contains(text), "{wrong:?}: {reason}");
        for secret in ["code-", "access-", "a secret of", "eyJ"] {
            assert!(!reason.contains(secret), "{wrong:?}: {reason}");
        }
        assert!(!reason.contains(char::is_control));
    }
}

#[tokio::test]
async fn the_token_answers_are_bounded_too() {
    for (wrong, text) in [
        (Wrong::Oversized, "too long"),
        (Wrong::Silent, "within 1 seconds"),
        (Wrong::Html, "not JSON"),
        (Wrong::Down, "503"),
    ] {
        let (server, provider) = world().await;
        let address = provider.begin(&secrets(), REDIRECT, now()).await.unwrap();
        server.be(wrong);
        server.sign_in(&address);
        let callback = Callback { code: "code-1", iss: Some(server.issuer()) };
        let failure = provider.identify(callback, &secrets(), REDIRECT, now()).await.expect_err("wrong");
        assert!(failure.to_string().contains(text), "{wrong:?}: {failure}");
    }
}

#[tokio::test]
async fn a_code_needs_its_own_verifier_and_works_once() {
    let (server, provider) = world().await;
    let address = provider.begin(&secrets(), REDIRECT, now()).await.unwrap();
    for (code, verifier) in
        [("code-1", "w".repeat(43)), ("code-1", "v".repeat(43)), ("unknown", "v".repeat(43))]
    {
        if code == "code-1" && verifier.starts_with('w') {
            server.sign_in(&address);
        }
        let other = FlowSecrets { verifier, ..secrets() };
        let callback = Callback { code, iss: Some(server.issuer()) };
        let failure = provider.identify(callback, &other, REDIRECT, now()).await.expect_err("refused");
        assert_eq!(failure, Failure::Refused("invalid_grant".into()));
    }
    let empty = Callback { code: "", iss: Some(server.issuer()) };
    let failure = provider.identify(empty, &secrets(), REDIRECT, now()).await.expect_err("no code");
    assert_eq!(failure.outcome(), Outcome::Invalid);
}

#[tokio::test]
async fn new_keys_are_read_at_a_bounded_rate() {
    let (server, provider) = world().await;
    sign_in(&server, &provider, now()).await.unwrap();
    server.rotate_keys("two", 2);
    assert!(sign_in(&server, &provider, now()).await.is_err(), "the keys were read just now");
    let before = server.requests();
    let later = now().plus_ms(31_000);
    sign_in(&server, &provider, later).await.unwrap();
    assert_eq!(server.requests() - before, 2, "the code and the keys");
    server.be(Wrong::UnknownKey);
    let before = server.requests();
    for _ in 0..5 {
        assert!(sign_in(&server, &provider, later.plus_ms(1_000)).await.is_err());
    }
    assert_eq!(server.requests() - before, 5, "the codes alone");
}

#[tokio::test]
async fn a_provider_that_went_away_keeps_what_is_known_of_it() {
    let (server, provider) = world().await;
    sign_in(&server, &provider, now()).await.unwrap();
    server.be(Wrong::Down);
    let later = now().plus_ms(2 * 60 * 60 * 1_000);
    assert!(provider.begin(&secrets(), REDIRECT, later).await.is_ok(), "the last document is used");
    let before = server.requests();
    for _ in 0..5 {
        provider.begin(&secrets(), REDIRECT, later.plus_ms(1_000)).await.unwrap();
    }
    assert_eq!(server.requests(), before, "it is not asked again at once");
    let much_later = now().plus_ms(25 * 60 * 60 * 1_000);
    assert!(provider.begin(&secrets(), REDIRECT, much_later).await.is_err());
    server.be(Wrong::Nothing);
    assert!(provider.begin(&secrets(), REDIRECT, much_later.plus_ms(6_000)).await.is_ok());
}

#[tokio::test]
async fn those_who_wait_for_a_silent_provider_fail_together() {
    let (server, provider) = world().await;
    server.be(Wrong::Silent);
    let waiting: Vec<_> = (0..40)
        .map(|_| {
            let provider = provider.clone();
            tokio::spawn(async move { provider.begin(&secrets(), REDIRECT, now()).await })
        })
        .collect();
    let all = async {
        let mut busy = 0;
        for each in waiting {
            let failure = each.await.unwrap().expect_err("silent");
            busy += usize::from(failure == Failure::Busy);
        }
        busy
    };
    let busy = tokio::time::timeout(Duration::from_secs(20), all).await.expect("no one waits for the others");
    assert_eq!(busy, 8, "32 may talk");
    assert_eq!(server.requests(), 1);
}

async fn report(server: &TestProvider, entry: &str, base_url: &str) -> Vec<(&'static str, StepState)> {
    let provider = Provider::new(server.settings("sky", entry)).unwrap();
    let report = upstream::check(&provider, base_url, now()).await;
    assert_eq!(report.redirect_address, format!("{base_url}/sign-in/upstream/sky/callback"));
    report.steps.iter().map(|step| (step.name, step.state)).collect()
}

#[tokio::test]
async fn the_check_names_each_step() {
    let (server, _) = world().await;
    let base = "https://api.example.com";
    let steps = report(&server, "", base).await;
    assert!(steps.iter().all(|(_, state)| *state == StepState::Ok), "{steps:?}");
    assert_eq!(steps.len(), 11, "{steps:?}");
    for (wrong, name) in [
        (Wrong::Down, "discovery"),
        (Wrong::Html, "discovery"),
        (Wrong::DiscoveryIssuer, "issuer"),
        (Wrong::PrivateEndpoint, "endpoints"),
        (Wrong::SharedSecretsOnly, "signatures"),
    ] {
        server.be(wrong);
        let failed: Vec<_> = report(&server, "", base).await;
        let failed: Vec<_> = failed.iter().filter(|(_, state)| *state == StepState::Failed).collect();
        assert_eq!(failed, [&(name, StepState::Failed)], "{wrong:?}");
    }
    server.be(Wrong::Nothing);
    server.set_clock(NOW_MS + 120_000);
    assert!(report(&server, "", base).await.contains(&("clock", StepState::Failed)));
    server.set_clock(NOW_MS);
    let warned = report(&server, "    scopes: [profile, tenant]\n", "http://127.0.0.1:8080").await;
    assert!(warned.contains(&("scopes", StepState::Warning)), "{warned:?}");
    assert!(warned.contains(&("redirect address", StepState::Warning)), "{warned:?}");
}

#[tokio::test]
async fn the_check_tells_a_wrong_secret() {
    let (server, _) = world().await;
    let right = server.entry("sky", "");
    let wrong = right.replace("a secret of the tests", "another secret");
    let folder = std::env::temp_dir().join(format!("upstream-check-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("upstreams.yaml");
    std::fs::write(&file, format!("upstreams:\n{wrong}")).unwrap();
    let settings = upstream::read_file(&file).unwrap().remove(0);
    std::fs::remove_dir_all(&folder).unwrap();
    let provider = Provider::new(settings).unwrap();
    let report = upstream::check(&provider, "https://api.example.com", now()).await;
    let last = report.steps.last().unwrap();
    assert_eq!((last.name, last.state), ("client", StepState::Failed));
    assert!(last.found.contains("invalid_client") && last.advice.contains("clientId"), "{last:?}");
    assert!(!report.is_good() && report.is_reached);
}
