//! Accounts: registration, passwords, links of password resets, the second step of a sign-in, removal.

use std::net::IpAddr;

use domain::client_address::AddressBlock;
use domain::limits::{
    BROWSER_SESSIONS_MAX, CODE_FAILURES_MAX, CODE_FAILURES_MS, MAIL_LEASE_MS, MAIL_RETRY_MS,
    PASSWORD_RESET_LIFETIME_MS, PASSWORD_RESETS_MAX, PENDING_SIGN_IN_LIFETIME_MS, RECOVERY_CODES,
    TOTP_STEP_MS,
};
use domain::mail::{Mail, MailKind};
use domain::password_fault::PasswordFault;
use domain::secret::BrowserToken;
use domain::totp::TotpSecret;
use domain::{ChannelId, Invalid, Language, Refusal, Rule};
use service::accounts::{Confirmation, NewAccount};
use service::password_resets::ResetOutcome;
use service::two_factor::EnteredCode;
use service::{Error, Service};

use crate::world::{World, at_once, both, refused, winners};

pub(crate) const PASSWORD: &str = "wolkenbruchig";
pub(crate) const NEW_PASSWORD: &str = "regenbogenhaut";
pub(crate) const PAGE: &str = "https://x.example/reset-password";

pub(crate) fn new_account(login: &str) -> NewAccount {
    NewAccount {
        login: login.to_owned(),
        email: Some(format!("{login}@Example.com")),
        channel_name: format!("{login}'s channel"),
        password: PASSWORD.to_owned(),
    }
}

pub(crate) async fn registered(world: &World, login: &str) -> (ChannelId, BrowserToken) {
    world.service.register(new_account(login)).await.unwrap()
}

/// One of many addresses. Few checks of one address wait at the same time.
fn address(n: u8) -> Option<AddressBlock> {
    Some(AddressBlock::from(IpAddr::from([192, 0, 2, n])))
}

pub(crate) fn invalid(field: &'static str, rule: Rule) -> Refusal {
    Refusal::Invalid(Invalid::new(field, rule))
}

async fn signs_in(world: &World, login: &str, password: &str) -> Option<BrowserToken> {
    world.service.sign_in(login, password, false).await.unwrap()
}

async fn is_signed_in(world: &World, token: &BrowserToken) -> bool {
    world.service.signed_in(token).await.unwrap().is_some()
}

/// The messages that are due, in the order in which they were written.
pub(crate) async fn mails(world: &World) -> Vec<Mail> {
    let mut mails = Vec::new();
    for attempt in world.service.take_mails(20).await.unwrap() {
        world.service.end_mail(&attempt.id, attempt.number).await.unwrap();
        mails.push(attempt.mail);
    }
    mails
}

fn token_of(mail: &Mail) -> String {
    let link = mail.link.as_deref().expect("it has a link");
    link.strip_prefix("https://x.example/reset-password?token=").expect("of this page").to_owned()
}

async fn requested_link(world: &World, account: &str) -> String {
    world.service.request_password_reset(account, PAGE, Language::Korean).await.unwrap();
    token_of(mails(world).await.last().expect("a message"))
}

#[tokio::test(flavor = "multi_thread")]
async fn people_register_with_a_login_of_their_own_and_a_good_password() {
    both(|world| async move {
        let (channel, token) = registered(&world, "haneul").await;
        assert!(is_signed_in(&world, &token).await);
        assert!(signs_in(&world, "haneul", PASSWORD).await.is_some());
        let account = world.service.account(&channel).await.unwrap();
        assert_eq!(
            (account.login.as_str(), account.email.as_deref()),
            ("haneul", Some("haneul@example.com"))
        );
        assert_eq!((account.channel_name.as_str(), account.two_factor_since), ("haneul's channel", None));
        let change = |change: fn(&mut NewAccount)| {
            let mut account = new_account("nuri");
            change(&mut account);
            account
        };
        for (account, refusal) in [
            (new_account("haneul"), invalid("login", Rule::Taken)),
            (change(|a| a.login = "Nuri".into()), invalid("login", Rule::Login)),
            (change(|a| a.email = Some("nuri".into())), invalid("email", Rule::Email)),
            (
                change(|a| a.channel_name = " ".into()),
                invalid("channelName", Rule::Chars { min: 1, max: 100 }),
            ),
            (
                change(|a| a.password = "kx9$Qv2".into()),
                invalid("password", Rule::Password(PasswordFault::Short { min: 8 })),
            ),
            (
                change(|a| a.password = "password1".into()),
                invalid("password", Rule::Password(PasswordFault::Common)),
            ),
            (
                change(|a| a.password = "nuri's channel".into()),
                invalid("password", Rule::Password(PasswordFault::Personal)),
            ),
        ] {
            assert_eq!(refused(world.service.register(account).await), refusal);
        }
        assert_eq!(
            world.count("SELECT COUNT(*) FROM channels").await,
            1,
            "a refused registration leaves nothing"
        );
        world.service.register(change(|a| a.email = Some("  ".into()))).await.unwrap();
        // The same address again: the answer does not confirm that it is known.
        world
            .service
            .register(NewAccount { email: Some("haneul@example.com".into()), ..new_account("byeol") })
            .await
            .unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_concurrent_registrations_of_a_login_one_succeeds() {
    both(|world| async move {
        let tasks = (0..8_u8).map(|n| {
            let service = world.service.asked_from(address(n));
            async move { service.register(new_account("haneul")).await }
        });
        let won = winners(at_once(tasks).await, &invalid("login", Rule::Taken));
        assert_eq!(won.len(), 1);
        assert_eq!(world.count("SELECT COUNT(*) FROM channels").await, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_the_same_from_every_keyboard() {
    both(|world| async move {
        let composed = "조용한 아침의 나라";
        // The same text in Unicode's form NFD, as some keyboards send it.
        let decomposed: String = unicode_nfd(composed);
        assert_ne!(composed, decomposed);
        world
            .service
            .register(NewAccount { password: decomposed.clone(), ..new_account("haneul") })
            .await
            .unwrap();
        assert!(signs_in(&world, "haneul", composed).await.is_some());
        assert!(signs_in(&world, "haneul", &decomposed).await.is_some());
    })
    .await;
}

/// Splits the syllables of Hangul into their letters.
fn unicode_nfd(text: &str) -> String {
    let split = |c: char| -> Vec<char> {
        let Some(index) = u32::from(c).checked_sub(0xac00).filter(|index| *index < 11_172) else {
            return vec![c];
        };
        let letters = [0x1100 + index / 588, 0x1161 + index % 588 / 28, 0x11a7 + index % 28];
        let count = if index % 28 == 0 { 2 } else { 3 };
        letters[..count].iter().filter_map(|letter| char::from_u32(*letter)).collect()
    };
    text.chars().flat_map(split).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_password_signs_other_browsers_out_and_ends_links() {
    both(|world| async move {
        let (channel, token) = registered(&world, "haneul").await;
        let other = signs_in(&world, "haneul", PASSWORD).await.unwrap();
        let link = requested_link(&world, "haneul").await;
        let change = async |old: &str, new: &str| {
            world.service.change_password(&channel, &token, (old, new), Language::Korean).await
        };
        assert_eq!(
            refused(change("wrong password", NEW_PASSWORD).await),
            invalid("password", Rule::RightPassword)
        );
        assert_eq!(
            refused(change(PASSWORD, "12345678").await),
            invalid("newPassword", Rule::Password(PasswordFault::Sequence))
        );
        assert!(is_signed_in(&world, &other).await);
        // Notices go to proven addresses.
        world.service.send_email_proof(&channel, "https://x.example/proof", Language::Korean).await.unwrap();
        let proof = mails(&world).await.pop().and_then(|mail| mail.link).expect("a link");
        assert!(world.service.prove_email(proof.split_once('=').unwrap().1).await.unwrap());
        let new = change(PASSWORD, NEW_PASSWORD).await.unwrap();
        assert!(is_signed_in(&world, &new).await && !is_signed_in(&world, &other).await);
        assert!(!is_signed_in(&world, &token).await, "a copy of the former token");
        let newer = world.service.end_other_browser_sessions(&channel, &new).await.unwrap();
        assert!(is_signed_in(&world, &newer).await && !is_signed_in(&world, &new).await);
        assert!(signs_in(&world, "haneul", PASSWORD).await.is_none());
        assert!(signs_in(&world, "haneul", NEW_PASSWORD).await.is_some());
        assert!(!world.service.is_password_reset(&link).await.unwrap());
        let sent = mails(&world).await;
        assert_eq!((sent[0].kind, sent[0].link.as_deref()), (MailKind::PasswordChanged, None));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_concurrent_changes_of_a_password_one_succeeds() {
    both(|world| async move {
        let (channel, token) = registered(&world, "haneul").await;
        let tasks = (0..6_u8).map(|n| {
            let service = world.service.asked_from(address(n));
            let (channel, token) = (channel.clone(), token.clone());
            async move {
                let new = format!("{NEW_PASSWORD} {n}");
                let changed =
                    service.change_password(&channel, &token, (PASSWORD, &new), Language::Korean).await;
                // The password was changed before or after the check.
                changed.map(|_| new).map_err(|_| Error::from(Refusal::Internal))
            }
        });
        let won = winners(at_once(tasks).await, &Refusal::Internal);
        assert_eq!(won.len(), 1);
        assert!(signs_in(&world, "haneul", &won[0]).await.is_some());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_signed_in_in_a_limited_number_of_browsers_and_the_oldest_goes() {
    both(|world| async move {
        let (_, first) = registered(&world, "haneul").await;
        let sign_ins = |count: i64| {
            at_once((0..count).map(|_| {
                let service = world.service.clone();
                async move { Ok(service.sign_in_as("haneul").await?.expect("the login is known")) }
            }))
        };
        world.advance_ms(1_000);
        let others = winners(sign_ins(BROWSER_SESSIONS_MAX - 1).await, &Refusal::Internal);
        assert!(is_signed_in(&world, &first).await, "there is room for all");
        world.advance_ms(1_000);
        let more = winners(sign_ins(40).await, &Refusal::Internal);
        assert_eq!(world.count("SELECT COUNT(*) FROM browser_sessions").await, BROWSER_SESSIONS_MAX);
        assert!(!is_signed_in(&world, &first).await, "the oldest sign-in has ended");
        for token in &more {
            assert!(is_signed_in(&world, token).await);
        }
        let mut left = 0;
        for token in &others {
            left += i64::from(is_signed_in(&world, token).await);
        }
        assert_eq!(left, BROWSER_SESSIONS_MAX - 40);
        // Another person's browsers do not count.
        let (_, other) = registered(&world, "byeol").await;
        assert!(is_signed_in(&world, &other).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_sets_a_password_once_within_half_an_hour() {
    both(|world| async move {
        let (channel, token) = registered(&world, "haneul").await;
        let reset =
            async |link: &str, new: &str| world.service.reset_password(link, new, Language::Korean).await;
        let link = requested_link(&world, "haneul").await;
        assert!(world.service.is_password_reset(&link).await.unwrap());
        assert_eq!(
            refused(reset(&link, "haneul haneul").await),
            invalid("newPassword", Rule::Password(PasswordFault::Personal))
        );
        for wrong in ["", "unknown", &"x".repeat(10_000)] {
            assert_eq!(reset(wrong, NEW_PASSWORD).await.unwrap(), ResetOutcome::LinkInvalid);
        }
        assert!(!world.service.account(&channel).await.unwrap().email_is_proven);
        let done = ResetOutcome::Done { has_providers: false };
        assert_eq!(reset(&link, NEW_PASSWORD).await.unwrap(), done);
        assert!(world.service.account(&channel).await.unwrap().email_is_proven, "the link went there");
        assert_eq!(reset(&link, PASSWORD).await.unwrap(), ResetOutcome::LinkInvalid);
        assert!(!is_signed_in(&world, &token).await, "every browser is signed out");
        assert!(signs_in(&world, "haneul", NEW_PASSWORD).await.is_some());

        let issued = world.service.issue_password_reset(&channel, PAGE, Language::Korean).await.unwrap();
        let link = issued.link.split_once('=').unwrap().1.to_owned();
        world.advance_ms(PASSWORD_RESET_LIFETIME_MS as u64 - 1);
        assert!(world.service.is_password_reset(&link).await.unwrap());
        world.advance_ms(1);
        assert!(!world.service.is_password_reset(&link).await.unwrap());
        assert_eq!(reset(&link, PASSWORD).await.unwrap(), ResetOutcome::LinkInvalid);
        let without_login = world.user("without-login").await;
        let refused =
            refused(world.service.issue_password_reset(&without_login, PAGE, Language::Korean).await);
        assert_eq!(refused.status(), 404);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_concurrent_uses_of_a_link_one_succeeds() {
    both(|world| async move {
        registered(&world, "haneul").await;
        let link = requested_link(&world, "haneul").await;
        let tasks = (0..6_u8).map(|n| {
            let (service, link) = (world.service.asked_from(address(n)), link.clone());
            async move {
                let new = format!("{NEW_PASSWORD} {n}");
                service.reset_password(&link, &new, Language::Korean).await.map(|outcome| (outcome, new))
            }
        });
        let outcomes = winners(at_once(tasks).await, &Refusal::Internal);
        let done: Vec<_> = outcomes
            .into_iter()
            .filter(|(outcome, _)| matches!(outcome, ResetOutcome::Done { .. }))
            .collect();
        assert_eq!(done.len(), 1);
        assert!(signs_in(&world, "haneul", &done[0].1).await.is_some());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_an_unknown_account_writes_as_much_and_sends_nothing() {
    both(|world| async move {
        registered(&world, "haneul").await;
        world
            .service
            .register(NewAccount { email: Some("haneul@example.com".into()), ..new_account("byeol") })
            .await
            .unwrap();
        world.service.register(NewAccount { email: None, ..new_account("nuri") }).await.unwrap();
        let ask = async |account: &str| {
            world.service.request_password_reset(account, PAGE, Language::English).await.unwrap();
        };
        for unknown in ["missing", "missing@example.com", "nuri", "", "a\0", &"x".repeat(10_000)] {
            ask(unknown).await;
        }
        assert!(mails(&world).await.is_empty());
        assert_eq!(world.count("SELECT COUNT(*) FROM mail_outbox").await, 6);
        ask("HANEUL@example.com ").await;
        let sent = mails(&world).await;
        let [mail] = &sent[..] else { panic!("one message for all accounts of an address: {}", sent.len()) };
        let mut logins: Vec<_> = mail.accounts.iter().map(|account| account.login.as_str()).collect();
        logins.sort_unstable();
        assert_eq!(logins, ["byeol", "haneul"]);
        assert_eq!(
            (mail.to.as_str(), mail.language.as_str(), mail.name.as_str()),
            ("haneul@example.com", "en", "")
        );
        assert_ne!(mail.accounts[0].link, mail.accounts[1].link);
        for _ in 0..PASSWORD_RESETS_MAX + 2 {
            ask("byeol").await;
        }
        assert_eq!(
            mails(&world).await.len() as i64,
            PASSWORD_RESETS_MAX - 1,
            "an account has few valid links"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_sent_again_and_given_up_in_the_end() {
    both(|world| async move {
        registered(&world, "haneul").await;
        world.service.request_password_reset("haneul", PAGE, Language::Korean).await.unwrap();
        let node = world.node("other");
        let take = async |service: &Service| service.take_mails(5).await.unwrap().pop();
        let first = take(&world.service).await.unwrap();
        assert!(take(&node).await.is_none(), "it is leased");
        world.advance_ms(MAIL_LEASE_MS as u64);
        let second = take(&node).await.expect("the first node died");
        assert_eq!((second.id.clone(), second.number), (first.id.clone(), 2));
        world.service.end_mail(&first.id, first.number).await.unwrap();
        for number in 2..=MAIL_RETRY_MS.len() as i64 {
            assert!(node.retry_mail(&second.id, number).await.unwrap());
            world.advance_ms(MAIL_RETRY_MS[number as usize - 1] as u64);
            assert_eq!(take(&node).await.map(|attempt| attempt.number), Some(number + 1));
        }
        assert!(!node.retry_mail(&second.id, MAIL_RETRY_MS.len() as i64 + 1).await.unwrap());
        assert_eq!(world.count("SELECT COUNT(*) FROM mail_outbox").await, 0);
    })
    .await;
}

/// The code that an app shows, by the time of the world.
fn code(world: &World, secret: &TotpSecret) -> String {
    secret.code(world.service.clock().now().as_millis() / TOTP_STEP_MS)
}

fn next_step(world: &World) {
    world.advance_ms(TOTP_STEP_MS as u64);
}

/// An account whose sign-in has a second step.
pub(crate) async fn with_two_factor(world: &World, login: &str) -> (ChannelId, TotpSecret, Vec<String>) {
    let (channel, browser) = registered(world, login).await;
    let secret = world.service.begin_two_factor(&channel, &browser).await.unwrap();
    let (code, proof) = (code(world, &secret), Confirmation::new(PASSWORD, &browser));
    let codes = world.service.confirm_two_factor(&channel, proof, &code, Language::Korean).await.unwrap();
    let codes = codes.iter().map(|code| code.expose().to_owned()).collect();
    (channel, secret, codes)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_with_a_second_step_needs_a_code_that_was_not_used() {
    both(|world| async move {
        let (channel, token) = registered(&world, "haneul").await;
        let secret = world.service.begin_two_factor(&channel, &token).await.unwrap();
        assert!(signs_in(&world, "haneul", PASSWORD).await.is_some(), "it is not confirmed");
        let confirm = async |password: &str, code: &str| {
            let proof = Confirmation::new(password, &token);
            world.service.confirm_two_factor(&channel, proof, code, Language::Korean).await
        };
        assert_eq!(refused(confirm("wrong", "000000").await), invalid("password", Rule::RightPassword));
        assert_eq!(refused(confirm(PASSWORD, "12345").await), invalid("code", Rule::CurrentCode));
        let shown = async |browser| world.service.unconfirmed_two_factor(&channel, browser).await.unwrap();
        assert_eq!(shown(&token).await, Some(secret.clone()));
        let first = code(&world, &secret);
        // Another browser of the person neither sees the secret nor confirms it.
        let other = signs_in(&world, "haneul", PASSWORD).await.unwrap();
        assert_eq!(shown(&other).await, None);
        let proof = Confirmation::new(PASSWORD, &other);
        let foreign = world.service.confirm_two_factor(&channel, proof, &first, Language::Korean).await;
        assert_eq!(refused(foreign), invalid("code", Rule::CurrentCode));
        let codes = confirm(PASSWORD, &first).await.unwrap();
        assert_eq!(codes.len(), RECOVERY_CODES);
        assert_eq!(shown(&token).await, None);
        assert!(is_signed_in(&world, &token).await);
        assert!(world.service.begin_two_factor(&channel, &token).await.is_err(), "it is on");

        let pending = signs_in(&world, "haneul", PASSWORD).await.unwrap();
        assert!(!is_signed_in(&world, &pending).await && world.service.awaits_code(&pending).await.unwrap());
        let enter =
            async |token: &BrowserToken, code: &str| world.service.enter_code(token, code).await.unwrap();
        assert!(
            matches!(enter(&pending, &first).await, EnteredCode::Wrong),
            "the confirmation used this code"
        );
        next_step(&world);
        let second = code(&world, &secret);
        let EnteredCode::SignedIn(token) = enter(&pending, &second).await else { panic!("it is right") };
        assert!(is_signed_in(&world, &token).await && !is_signed_in(&world, &pending).await);
        assert!(matches!(enter(&pending, &second).await, EnteredCode::Expired));
        let again = signs_in(&world, "haneul", PASSWORD).await.unwrap();
        assert!(matches!(enter(&again, &second).await, EnteredCode::Wrong), "each code is used once");
        world.advance_ms(PENDING_SIGN_IN_LIFETIME_MS as u64);
        assert!(!world.service.awaits_code(&again).await.unwrap());
        assert!(matches!(enter(&again, &code(&world, &secret)).await, EnteredCode::Expired));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_concurrent_uses_of_one_code_one_succeeds() {
    both(|world| async move {
        let (_, secret, codes) = with_two_factor(&world, "haneul").await;
        next_step(&world);
        for code in [code(&world, &secret), codes[0].clone()] {
            let mut pending = Vec::new();
            for _ in 0..4 {
                pending.push(signs_in(&world, "haneul", PASSWORD).await.unwrap());
            }
            let tasks = pending.into_iter().map(|token| {
                let (service, code) = (world.service.clone(), code.clone());
                async move { service.enter_code(&token, &code).await }
            });
            let outcomes = winners(at_once(tasks).await, &Refusal::Internal);
            let signed_in = outcomes.iter().filter(|one| matches!(one, EnteredCode::SignedIn(_))).count();
            assert_eq!(signed_in, 1, "{outcomes:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_codes_of_an_account_are_limited_over_all_sign_ins_and_nodes() {
    both(|world| async move {
        let (_, secret, codes) = with_two_factor(&world, "haneul").await;
        let node = world.node("other");
        let pending = async || signs_in(&world, "haneul", PASSWORD).await.unwrap();
        for attempt in 0..CODE_FAILURES_MAX {
            let service = if attempt % 2 == 0 { &world.service } else { &node };
            let entered = service.enter_code(&pending().await, "12345").await.unwrap();
            assert!(matches!(entered, EnteredCode::Wrong), "{attempt}");
        }
        next_step(&world);
        let right = code(&world, &secret);
        let entered = world.service.enter_code(&pending().await, &right).await.unwrap();
        assert!(matches!(entered, EnteredCode::Limited), "a right code gets the answer of a wrong one");
        let entered = world.service.enter_code(&pending().await, &codes[0].to_uppercase()).await.unwrap();
        assert!(matches!(entered, EnteredCode::SignedIn(_)), "a recovery code helps");
        let entered = world.service.enter_code(&pending().await, &codes[0]).await.unwrap();
        assert!(matches!(entered, EnteredCode::Wrong), "once");
        world.advance_ms(CODE_FAILURES_MS as u64);
        let right = code(&world, &secret);
        let entered = world.service.enter_code(&pending().await, &right).await.unwrap();
        assert!(matches!(entered, EnteredCode::SignedIn(_)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_step_is_turned_off_by_its_owner_or_removed_by_the_operator() {
    both(|world| async move {
        let (channel, secret, codes) = with_two_factor(&world, "haneul").await;
        let off = async |password: &str, code: &str| {
            world.service.turn_two_factor_off(&channel, password, code, Language::Korean).await
        };
        assert_eq!(refused(off("wrong", &codes[0]).await), invalid("password", Rule::RightPassword));
        assert_eq!(refused(off(PASSWORD, "12345").await), invalid("code", Rule::RightCode));
        let renewed = world.service.renew_recovery_codes(&channel, PASSWORD, Language::Korean).await.unwrap();
        assert_eq!(refused(off(PASSWORD, &codes[0]).await), invalid("code", Rule::RightCode));
        off(PASSWORD, renewed[0].expose()).await.unwrap();
        let token = signs_in(&world, "haneul", PASSWORD).await.unwrap();
        assert!(is_signed_in(&world, &token).await);
        drop(secret);

        let (channel, _, _) = with_two_factor(&world, "nuri").await;
        let pending = signs_in(&world, "nuri", PASSWORD).await.unwrap();
        for _ in 0..2 {
            world.service.remove_two_factor(&channel, Language::Korean).await.unwrap();
        }
        assert!(!world.service.awaits_code(&pending).await.unwrap());
        let token = signs_in(&world, "nuri", PASSWORD).await.unwrap();
        assert!(is_signed_in(&world, &token).await);
        let missing = ChannelId::stored("missing".into());
        assert_eq!(refused(world.service.remove_two_factor(&missing, Language::Korean).await).status(), 404);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_account_leaves_nothing_of_its_person() {
    both(|world| async move {
        let (channel, _, codes) = with_two_factor(&world, "haneul").await;
        let application = world.application("app").await;
        let tokens = world.tokens(&application, &channel).await;
        let browser = world.service.sign_in_as("haneul").await.unwrap().unwrap();
        let link = requested_link(&world, "haneul").await;
        world.service.request_password_reset("haneul", PAGE, Language::Korean).await.unwrap();
        let pending = signs_in(&world, "haneul", PASSWORD).await.unwrap();
        let remove = async |login: &str, password: &str, code: &str| {
            world.service.delete_account(&channel, login, code, password).await
        };
        assert_eq!(refused(remove("haneul", "wrong", "").await), invalid("password", Rule::RightPassword));
        assert_eq!(refused(remove("nuri", PASSWORD, "").await), invalid("login", Rule::OwnLogin));
        assert_eq!(refused(remove("haneul", PASSWORD, "").await), invalid("code", Rule::RightCode));
        assert!(world.lives(&tokens).await);
        remove("haneul", PASSWORD, &codes[1]).await.unwrap();
        assert!(!world.lives(&tokens).await && !is_signed_in(&world, &browser).await);
        assert!(signs_in(&world, "haneul", PASSWORD).await.is_none());
        assert!(!world.service.is_password_reset(&link).await.unwrap());
        assert!(matches!(world.service.enter_code(&pending, &codes[0]).await.unwrap(), EnteredCode::Expired));
        assert!(mails(&world).await.is_empty(), "messages to the person go too");
        for table in [
            "SELECT COUNT(*) FROM people",
            "SELECT COUNT(*) FROM two_factors",
            "SELECT COUNT(*) FROM recovery_codes",
            "SELECT COUNT(*) FROM password_resets",
            "SELECT COUNT(*) FROM pending_sign_ins",
            "SELECT COUNT(*) FROM mail_outbox",
            "SELECT COUNT(*) FROM consents",
        ] {
            assert_eq!(world.count(table).await, 0, "{table}");
        }
        assert_eq!(refused(remove("haneul", PASSWORD, "").await).status(), 404);
        registered(&world, "haneul").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_changes_the_address_with_the_password() {
    both(|world| async move {
        let (channel, _) = registered(&world, "haneul").await;
        let link = requested_link(&world, "haneul").await;
        let change = async |password: &str, email: Option<&str>| {
            world.service.change_email(&channel, password, (email, ""), Language::Korean).await
        };
        assert_eq!(refused(change("wrong", Some("a@b.co")).await), invalid("password", Rule::RightPassword));
        assert_eq!(refused(change(PASSWORD, Some("a")).await), invalid("email", Rule::Email));
        change(PASSWORD, Some("New@b.co")).await.unwrap();
        assert_eq!(world.service.account(&channel).await.unwrap().email.as_deref(), Some("new@b.co"));
        assert!(!world.service.is_password_reset(&link).await.unwrap(), "links to the former address end");
        change(PASSWORD, None).await.unwrap();
        assert_eq!(world.service.account(&channel).await.unwrap().email, None);
    })
    .await;
}
