//! Right passwords (`docs/operating.md#guesses`): a check of a password has a price, also a right one, and
//! who repeats checks keeps nobody else out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use service::PasswordCost;
use testkit::{Browser, Form, Page, Person, Request, Setup, World, both, patiently};

use crate::pages::proven;

/// Attackers, each at an address of its own.
const ATTACKERS: usize = 200;
/// Tries of each attacker before the others come, on average.
const TRIES_BEFORE: usize = 12;
/// The accounts of the attackers.
const ACCOUNTS: usize = 50;
/// How long an attacker waits after a refusal.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

fn behind_a_proxy() -> Setup {
    Setup { quotas: true, trusted_proxies: "127.0.0.1", ..Setup::default() }
}

/// A browser at an address.
#[derive(Clone)]
struct Desk {
    browser: Browser,
    address: String,
    person: Person,
}

impl Desk {
    async fn of(world: &World, person: &Person, address: impl Into<String>) -> Self {
        let mut desk = Self { browser: world.browser(), address: address.into(), person: person.clone() };
        let page = Request::get("/sign-in").header("X-Forwarded-For", &desk.address);
        desk.browser.send(page).await;
        desk
    }

    async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Page {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let form = Form { action: path.to_owned(), method: "post".to_owned(), fields, ..Form::default() };
        let form = proven(&self.browser, form);
        let request = Request::post(path)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .header("X-Forwarded-For", &self.address);
        self.browser.send(request.body(form.body())).await
    }

    /// Signs in with the right password. The browser stays as it was, signed out.
    async fn sign_in_again(&self) -> Page {
        self.clone().sign_in().await
    }

    async fn sign_in(&mut self) -> Page {
        let Person { login, password, .. } = self.person.clone();
        self.post("/sign-in", &[("login", &login), ("password", &password)]).await
    }

    /// A change that the right password confirms.
    async fn confirm(&mut self) -> Page {
        let password = self.person.password.clone();
        self.post("/account/email", &[("email", "someone@example.com"), ("password", &password)]).await
    }
}

#[track_caller]
fn assert_no_check_left(page: &Page) {
    assert_eq!(page.response.status, 429, "{}", page.response.text());
    assert_eq!(page.response.header("stagedoor-reason"), Some("quota; name=passwords"));
    assert!(page.response.number("retry-after") > 0);
}

#[allow(clippy::disallowed_methods, reason = "a stranger measures in real time")]
fn now() -> Instant {
    Instant::now()
}

/// Repeats right sign-ins and right confirmations until the flag is set. Gives the numbers of those that were
/// let in and refused.
async fn attack(mut desk: Desk, stop: Arc<AtomicBool>, [done, refused]: [Arc<AtomicUsize>; 2]) {
    let signed_out = desk.clone();
    // Many sign in at once, so most of them are refused at first. Only who is signed in can confirm.
    while !stop.load(Relaxed) && desk.sign_in().await.response.status != 303 {
        tokio::time::sleep(REFUSED_PAUSE).await;
    }
    for n in 0.. {
        if stop.load(Relaxed) {
            return;
        }
        let page = if n % 2 == 0 { signed_out.sign_in_again().await } else { desk.confirm().await };
        if page.response.status == 429 {
            let reason = page.response.header("stagedoor-reason").unwrap_or_default();
            assert!(["busy", "quota; name=passwords", "quota; name=pages"].contains(&reason), "{reason}");
            refused.fetch_add(1, Relaxed);
            tokio::time::sleep(REFUSED_PAUSE).await;
        } else {
            assert_ne!(page.response.header("location"), Some("/sign-in"), "a try without a check");
            done.fetch_add(1, Relaxed);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_attackers_with_right_passwords_keep_nobody_out() {
    let setup = Setup { system_clock: true, password_cost: PasswordCost::default(), ..behind_a_proxy() };
    both(setup, |world| async move {
        let mut attackers = Vec::new();
        for n in 0..ACCOUNTS {
            attackers.push(world.person(&format!("attacker-{n}")).create().await);
        }
        let mut desks = Vec::new();
        for n in 0..ATTACKERS {
            let address = format!("198.51.{}.{}", n / 100, n % 100);
            desks.push(Desk::of(&world, &attackers[n % ACCOUNTS], address).await);
        }
        let mut people = Vec::new();
        for n in 0..8 {
            let person = world.person(&format!("person-{n}")).create().await;
            let desk = Desk::of(&world, &person, format!("203.0.113.{n}")).await;
            // Half of them have signed in there before.
            if n % 2 == 0 {
                desk.sign_in_again().await.location();
            }
            people.push(desk);
        }
        let (stop, counts) = (Arc::new(AtomicBool::new(false)), [Arc::default(), Arc::default()]);
        let attacks: Vec<_> =
            desks.into_iter().map(|desk| attack(desk, stop.clone(), counts.clone())).collect();
        let attacks: Vec<_> = attacks.into_iter().map(tokio::spawn).collect();
        // Until the attackers are known as such: each has repeated its tries.
        let wanted = ATTACKERS * TRIES_BEFORE;
        let begun = now();
        while counts.iter().map(|count| count.load(Relaxed)).sum::<usize>() < wanted
            && begun.elapsed() < Duration::from_secs(40)
        {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        for mut desk in people {
            let began = now();
            let page = patiently("a sign-in", desk.sign_in()).await;
            assert_eq!(page.response.status, 303, "{}: {}", desk.address, page.response.text());
            assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
            let page = patiently("a confirmation", desk.confirm()).await;
            let reason = page.response.header("stagedoor-reason");
            assert_eq!(page.response.status, 303, "{}: {reason:?}, {counts:?}", desk.address);
        }
        stop.store(true, Relaxed);
        for attack in attacks {
            patiently("the end of an attack", attack).await.expect("no panic");
        }
        let [done, refused] = counts.map(|count| count.load(Relaxed));
        assert!(done > 0 && refused > 0, "{done} {refused}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_password_has_a_price_of_its_account_and_of_its_address() {
    both(behind_a_proxy(), |world| async move {
        let [one, other] = [world.person("one").create().await, world.person("other").create().await];
        let here = "203.0.113.7";
        let desk = Desk::of(&world, &one, here).await;
        let others = Desk::of(&world, &other, here).await;
        for _ in 0..30 {
            desk.sign_in_again().await.location();
        }
        assert_no_check_left(&desk.sign_in_again().await);
        // Also from elsewhere: it is the account's own. And anybody else at this address who is new there.
        assert_no_check_left(&Desk::of(&world, &one, "203.0.113.8").await.sign_in_again().await);
        assert_no_check_left(&others.sign_in_again().await);
        // Other addresses and accounts are not concerned.
        Desk::of(&world, &other, "203.0.113.8").await.sign_in_again().await.location();
        world.advance(Duration::from_secs(2));
        desk.sign_in_again().await.location();
        assert_no_check_left(&desk.sign_in_again().await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_has_checks_of_its_own_at_a_known_address() {
    both(behind_a_proxy(), |world| async move {
        let [one, other] = [world.person("one").create().await, world.person("other").create().await];
        let here = "203.0.113.7";
        let (desk, others) = (Desk::of(&world, &one, here).await, Desk::of(&world, &other, here).await);
        desk.sign_in_again().await.location();
        for _ in 0..29 {
            others.sign_in_again().await.location();
        }
        let stranger = world.person("stranger").create().await;
        assert_no_check_left(&Desk::of(&world, &stranger, here).await.sign_in_again().await);
        for _ in 0..10 {
            desk.sign_in_again().await.location();
        }
        assert_no_check_left(&desk.sign_in_again().await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_of_strangers_cost_an_account_nothing() {
    both(behind_a_proxy(), |world| async move {
        let one = world.person("one").create().await;
        let desk = Desk::of(&world, &one, "203.0.113.7").await;
        desk.sign_in_again().await.location();
        let wrong = Person { password: "wrong".to_owned(), ..one.clone() };
        for n in 0..10 {
            let stranger = Desk::of(&world, &wrong, format!("198.51.100.{n}")).await;
            assert_eq!(stranger.sign_in_again().await.response.status, 200);
        }
        for _ in 0..29 {
            desk.sign_in_again().await.location();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_that_checks_or_makes_a_password_pays() {
    both(behind_a_proxy(), |world| async move {
        let [one, other] = [world.person("one").create().await, world.person("other").create().await];
        let here = "203.0.113.7";
        let mut desk = Desk::of(&world, &one, here).await;
        let signed_out = desk.clone();
        desk.sign_in().await.location();
        for _ in 0..29 {
            signed_out.sign_in_again().await.location();
        }
        let password = one.password.as_str();
        for (path, fields) in [
            ("/account/email", &[("email", "a@example.com")][..]),
            ("/account/password", &[("newPassword", "wolkenbruchig")]),
            ("/account/delete", &[("login", "another login")]),
            ("/account/two-factor/confirm", &[("code", "123456")]),
            ("/account/two-factor/codes", &[]),
            ("/account/two-factor/off", &[("code", "123456")]),
        ] {
            let fields = [fields, &[("password", password)]].concat();
            assert_no_check_left(&desk.post(path, &fields).await);
        }
        // A fresh proof, ten minutes after the sign-in.
        world.advance(Duration::from_mins(11));
        for _ in 0..30 {
            signed_out.sign_in_again().await.location();
        }
        assert_no_check_left(&desk.post("/studio/stream-key", &[("confirmPassword", password)]).await);
        // At this address nobody registers, and a link sets no password of the account, until later.
        let account = [("login", "newcomer"), ("channelName", "새 사람"), ("password", "wolkenbruchig")];
        let mut newcomer = Desk::of(&world, &other, here).await;
        assert_no_check_left(&newcomer.post("/register", &account).await);
        let link = format!("/platform/v1/channels/{}/password-reset", one.channel_id);
        let link = world.operator(Request::post(&link)).await.content()["link"].clone();
        let token = link.as_str().and_then(|link| link.split_once("token=")).expect("a token").1.to_owned();
        let chosen = [("token", token.as_str()), ("newPassword", "wolkenbruchig")];
        assert_no_check_left(&newcomer.post("/reset-password", &chosen).await);
        world.advance(Duration::from_secs(4));
        newcomer.post("/register", &account).await.location();
        newcomer.post("/reset-password", &chosen).await.location();
    })
    .await;
}
