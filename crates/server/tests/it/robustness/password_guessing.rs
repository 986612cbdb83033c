//! Guessed passwords and operator keys (`docs/spec/authorization.md#guessing`): guesses are limited, and
//! no caller is refused because of the guesses of others.

use std::time::Duration;

use futures_util::future::join_all;
use testkit::{Browser, Form, Page, Request, Setup, World, both, encode};

use crate::cli::process::Sandbox;
use crate::fixture::{Fixture, UNKNOWN_TOKEN};

fn behind_a_proxy() -> Setup {
    Setup { quotas: true, trusted_proxies: "127.0.0.1", ..Setup::default() }
}

/// The sign-in page's form, and its browser.
struct SignIn {
    browser: Browser,
    form: Form,
    password: String,
}

impl SignIn {
    async fn of(world: &World, fixture: &Fixture) -> Self {
        let mut browser = world.browser();
        let redirect = encode(&fixture.app.redirect_uri);
        let address = format!("/account-interlock?clientId=bot&redirectUri={redirect}&state=s");
        let form = browser.open(&address).await.form("login").fill("login", &fixture.streamer.login);
        Self { browser, form, password: fixture.streamer.password.clone() }
    }

    /// Sends a password from an address.
    async fn attempt(&self, address: &str, password: &str) -> Page {
        let form = self.form.clone().fill("password", password);
        let request = Request::post(&form.action)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .header("X-Forwarded-For", address);
        self.browser.clone().send(request.body(form.body())).await
    }

    async fn wrong(&self, address: &str) -> u16 {
        let page = self.attempt(address, "wrong").await;
        assert!(!is_consent(&page), "a wrong password signs in");
        page.response.status
    }

    async fn right(&self, address: &str) -> Page {
        self.attempt(address, &self.password).await
    }
}

fn is_consent(page: &Page) -> bool {
    page.response.status == 200 && page.response.text().contains("name=\"decision\"")
}

/// The counters of wrong passwords, and of sign-ins that were refused without a check.
async fn figures(world: &World) -> [u64; 2] {
    let answer = world.operator(Request::get("/metrics")).await;
    ["wrong", "limited"].map(|outcome| {
        let name = format!("stagedoor_sign_in_failures_total{{outcome=\"{outcome}\"}} ");
        let value = answer.text().lines().find_map(|line| line.strip_prefix(&name)).expect("a sample");
        value.parse().expect("a number")
    })
}

/// Advances the clock until the work is done, and returns the elapsed time.
async fn advance_until<T>(world: &World, work: impl Future<Output = T>) -> (Duration, T) {
    const STEP: Duration = Duration::from_millis(250);
    let mut work = Box::pin(work);
    let mut moved = Duration::ZERO;
    loop {
        match tokio::time::timeout(Duration::from_millis(100), &mut work).await {
            Ok(done) => return (moved, done),
            Err(_) => {
                world.advance(STEP);
                moved += STEP;
                assert!(moved < Duration::from_secs(60), "it never ends");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_300_concurrent_guesses_at_most_10_are_checked() {
    both(behind_a_proxy(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let sign_in = SignIn::of(&world, &fixture).await;
        let statuses = join_all((0..300).map(|_| sign_in.wrong("203.0.113.7"))).await;
        let looked_at = statuses.iter().filter(|status| **status == 200).count();
        // Fewer where the attempts fill the queue of checks.
        assert!((2..=10).contains(&looked_at), "{looked_at}");
        assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 300 - looked_at);
        for _ in looked_at..10 {
            assert_eq!(sign_in.wrong("203.0.113.7").await, 200);
        }
        assert_eq!(figures(&world).await, [10, 300 - looked_at as u64]);
        let refused = sign_in.right("203.0.113.7").await;
        assert_eq!((refused.response.status, refused.response.number("retry-after")), (429, 6));
        assert_eq!(refused.response.header("stagedoor-reason"), Some("quota; name=failures"));
        // Another address of the attacker's block and the owner's own address are not affected.
        assert!(is_consent(&sign_in.right("127.0.0.1").await));
        let other = SignIn { form: sign_in.form.clone().fill("login", &fixture.viewer.login), ..sign_in };
        let other = SignIn { password: fixture.viewer.password.clone(), ..other };
        assert!(is_consent(&other.right("203.0.113.8").await));
        // One try is free after six seconds.
        world.advance(Duration::from_secs(6));
        assert!(is_consent(&other.right("203.0.113.7").await));
        assert_eq!(other.wrong("203.0.113.7").await, 200);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_password_uses_no_attempt() {
    both(behind_a_proxy(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let sign_in = SignIn::of(&world, &fixture).await;
        for _ in 0..9 {
            assert_eq!(sign_in.wrong("203.0.113.7").await, 200);
        }
        for _ in 0..15 {
            assert!(is_consent(&sign_in.right("203.0.113.7").await));
        }
        assert_eq!(figures(&world).await, [9, 0]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_from_many_addresses_are_delayed_and_the_owner_is_not() {
    both(behind_a_proxy(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let sign_in = SignIn::of(&world, &fixture).await;
        for address in 1..=10 {
            assert_eq!(sign_in.wrong(&format!("203.0.113.{address}")).await, 200);
        }
        // The owner's address is known, so there is no delay.
        assert!(is_consent(&sign_in.right("127.0.0.1").await));
        // All others wait, the first one for the interval of ten tries a minute. An address has two tries a
        // minute.
        let three = join_all((0..3).map(|_| sign_in.wrong("203.0.113.11")));
        let (waited, mut statuses) = advance_until(&world, three).await;
        assert!(waited >= Duration::from_secs(6), "{waited:?}");
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 200, 429]);
        // Twenty addresses at once: none is refused.
        let addresses: Vec<_> = (20..40).map(|address| format!("203.0.113.{address}")).collect();
        let crowd = join_all(addresses.iter().map(|address| sign_in.wrong(address)));
        let (waited, statuses) = advance_until(&world, crowd).await;
        assert!((Duration::from_secs(6)..Duration::from_secs(40)).contains(&waited), "{waited:?}");
        assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
        // An owner at a new address is delayed too, and then the address is known.
        let crowd = join_all(addresses.iter().map(|address| sign_in.wrong(address)));
        let (_, (_, page)) =
            advance_until(&world, async { tokio::join!(crowd, sign_in.right("198.51.100.1")) }).await;
        assert!(is_consent(&page), "{}", page.response.text());
        assert!(is_consent(&sign_in.right("198.51.100.1").await));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_address_is_not_limited_by_other_people_there() {
    both(behind_a_proxy(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let sign_in = SignIn::of(&world, &fixture).await;
        assert!(is_consent(&sign_in.right("203.0.113.7").await));
        let form = sign_in.form.clone().fill("login", "another login");
        let stranger = SignIn { form, password: String::new(), browser: sign_in.browser.clone() };
        for tried in 0..12 {
            assert_eq!(stranger.wrong("203.0.113.7").await, if tried < 10 { 200 } else { 429 });
        }
        assert!(is_consent(&sign_in.right("203.0.113.7").await));
        // The account's own tries at this address are limited.
        for tried in 0..12 {
            assert_eq!(sign_in.wrong("203.0.113.7").await, if tried < 10 { 200 } else { 429 });
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_operator_keys_are_limited_and_the_right_one_is_never_refused() {
    both(behind_a_proxy(), |world| async move {
        let from = |address: &str| Request::get("/platform/v1/sessions").header("X-Forwarded-For", address);
        for tried in 0..15 {
            let answer = world.send(from("203.0.113.7").bearer(UNKNOWN_TOKEN)).await;
            match tried {
                0..10 => answer.assert_refused(401, "INVALID_TOKEN"),
                _ => answer.assert_refused(429, "TOO_MANY_REQUESTS"),
            }
        }
        let metrics = Request::get("/metrics").header("X-Forwarded-For", "203.0.113.7");
        world.send(metrics.bearer(UNKNOWN_TOKEN)).await.assert_refused(429, "TOO_MANY_REQUESTS");
        world.operator(from("203.0.113.7")).await.content();
        world.send(from("203.0.113.8").bearer(UNKNOWN_TOKEN)).await.assert_refused(401, "INVALID_TOKEN");
        let answer = world.operator(Request::get("/metrics")).await;
        assert!(answer.text().contains("\nstagedoor_operator_refused_total 17\n"), "{}", answer.text());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_logged_once_a_minute_with_the_address() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &["--trusted-proxies", "127.0.0.1"]).await;
    let app = sandbox.application("demo");
    for address in ["203.0.113.7", "203.0.113.8", "203.0.113.9"] {
        let sent = [
            Request::get("/platform/v1/sessions").bearer(UNKNOWN_TOKEN),
            Request::get("/open/v1/channels?channelIds=x").client(&app.client_id, UNKNOWN_TOKEN),
        ];
        for request in sent {
            let answer = sandbox.api.send(request.header("X-Forwarded-For", address)).await;
            assert_eq!(answer.status, 401);
        }
    }
    let log = std::fs::read_to_string(sandbox.log_path()).expect("the log");
    for text in ["wrong operator keys", "wrong client secrets"] {
        let lines: Vec<_> = log.lines().filter(|line| line.contains(text)).collect();
        assert_eq!(lines.len(), 1, "{log}");
        for part in ["WARN", "address=203.0.113.7", "times=1", "client=203.0.113.7"] {
            assert!(lines[0].contains(part), "{part}: {}", lines[0]);
        }
    }
    assert!(!log.contains(UNKNOWN_TOKEN), "{log}");
}
