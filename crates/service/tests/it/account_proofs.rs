//! Fresh proofs, proven addresses, and the notices that go there.

use domain::limits::{
    EMAIL_PROOF_LIFETIME_MS, MAIL_COUNTED_MS, MAILS_MAX, MAILS_UNPROVEN_MAX, PASSWORD_RESET_ACCOUNTS_MAX,
    PASSWORD_RESETS_MAX, RECENT_SIGN_IN_MS,
};
use domain::mail::{Mail, MailKind};
use domain::refusal::TokenFault;
use domain::{ChannelId, Language, Refusal, Rule};
use service::ChannelRecord;
use service::accounts::NewAccount;
use service::channels::LoginCredentials;

use crate::accounts::{
    NEW_PASSWORD, PAGE, PASSWORD, invalid, mails, new_account, registered, with_two_factor,
};
use crate::world::{World, at_once, both, refused, winners};

/// Proves the address of an account, as its person does with the link.
async fn prove(world: &World, channel: &ChannelId) {
    assert!(world.service.send_email_proof(channel, PROOF_PAGE, Language::Korean).await.unwrap());
    let mail = mails(world).await.pop().expect("a message");
    assert!(world.service.prove_email(&proof_of(&mail)).await.unwrap());
}

const PROOF_PAGE: &str = "https://x.example/account/email/proof";

fn proof_of(mail: &Mail) -> String {
    assert_eq!((mail.kind, mail.name.as_str()), (MailKind::EmailProof, ""));
    let link = mail.link.as_deref().expect("it has a link");
    let token = link.strip_prefix(&format!("{PROOF_PAGE}?token=")).expect("of this page");
    token.replace("%2B", "+").replace("%2F", "/").replace("%3D", "=")
}

#[tokio::test(flavor = "multi_thread")]
async fn notices_go_to_proven_addresses_only_and_are_limited() {
    both(|world| async move {
        let (channel, mut token) = registered(&world, "haneul").await;
        let notify = async || {
            world.service.notify(&channel, MailKind::ClientSecretMade, Language::Korean).await.unwrap();
            mails(&world).await
        };
        assert!(notify().await.is_empty(), "anybody may type any address");
        // Links go to an unproven address, but few. Only the address that a link was sent to is proven by it.
        let mut links = Vec::new();
        for _ in 0..MAILS_UNPROVEN_MAX {
            assert!(world.service.send_email_proof(&channel, PROOF_PAGE, Language::Korean).await.unwrap());
            links.push(proof_of(&mails(&world).await[0]));
        }
        assert!(!world.service.send_email_proof(&channel, PROOF_PAGE, Language::Korean).await.unwrap());
        world.advance_ms(MAIL_COUNTED_MS as u64);
        world
            .service
            .change_email(&channel, PASSWORD, (Some("new@b.co"), ""), Language::Korean)
            .await
            .unwrap();
        assert!(mails(&world).await.is_empty(), "the former address was not proven");
        assert!(!world.service.prove_email(&links[0]).await.unwrap());
        for wrong in ["", "x", &"x".repeat(10_000), &format!("{}x", links[0])] {
            assert!(!world.service.prove_email(wrong).await.unwrap());
        }
        prove(&world, &channel).await;
        assert_eq!(notify().await[0].to, "new@b.co");
        world
            .service
            .change_email(&channel, PASSWORD, (Some("third@b.co"), ""), Language::Korean)
            .await
            .unwrap();
        let told = mails(&world).await;
        assert_eq!((told[0].kind, told[0].to.as_str()), (MailKind::EmailChanged, "new@b.co"));
        prove(&world, &channel).await;
        let (mut sent, mut password) = (0, PASSWORD.to_owned());
        for n in 0..2 * MAILS_MAX {
            let new = format!("{NEW_PASSWORD} {n}");
            let changed =
                world.service.change_password(&channel, &token, (&password, &new), Language::Korean);
            token = changed.await.unwrap();
            password = new;
            sent += mails(&world).await.len() as i64;
        }
        assert_eq!(sent, MAILS_MAX);
        assert_eq!(notify().await.len(), 1, "each kind has its own count");
        world.advance_ms(MAIL_COUNTED_MS as u64);
        assert_eq!(notify().await.len(), 1);
    })
    .await;
}

/// What a stranger asks for, and what a thief repeats, does not hide what a thief does.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_silences_a_notice() {
    both(|world| async move {
        let (channel, _) = registered(&world, "haneul").await;
        prove(&world, &channel).await;
        for account in ["haneul", "haneul@example.com"] {
            for _ in 0..2 * MAILS_MAX {
                world.service.request_password_reset(account, PAGE, Language::Korean).await.unwrap();
            }
        }
        assert_eq!(mails(&world).await.len() as i64, PASSWORD_RESETS_MAX);
        for _ in 0..2 * MAILS_MAX {
            world.service.notify(&channel, MailKind::StreamKeyShown, Language::Korean).await.unwrap();
        }
        assert_eq!(mails(&world).await.len() as i64, MAILS_MAX);
        world.service.issue_password_reset(&channel, PAGE, Language::Korean).await.unwrap();
        assert_eq!(mails(&world).await[0].kind, MailKind::PasswordResetIssued);
        let new = (Some("thief@b.co"), "");
        world.service.change_email(&channel, PASSWORD, new, Language::Korean).await.unwrap();
        let told = mails(&world).await;
        assert_eq!((told[0].kind, told[0].to.as_str()), (MailKind::EmailChanged, "haneul@example.com"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_proves_an_address_for_a_day() {
    both(|world| async move {
        let (channel, _) = registered(&world, "haneul").await;
        world.service.send_email_proof(&channel, PROOF_PAGE, Language::Korean).await.unwrap();
        let link = proof_of(&mails(&world).await[0]);
        assert_eq!(world.service.address_of_proof(&link).as_deref(), Some("haneul@example.com"));
        world.advance_ms(EMAIL_PROOF_LIFETIME_MS as u64);
        assert_eq!(world.service.address_of_proof(&link), None);
        assert!(!world.service.prove_email(&link).await.unwrap());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn squatters_of_an_address_do_not_keep_its_owner_from_a_new_password() {
    both(|world| async move {
        let squat = |n: usize| NewAccount {
            email: Some("vera@example.com".into()),
            ..new_account(&format!("squatter-{n}"))
        };
        for n in 0..PASSWORD_RESET_ACCOUNTS_MAX as usize {
            world.service.register(squat(n)).await.unwrap();
        }
        let (vera, _) = world
            .service
            .register(NewAccount { email: Some("vera@example.com".into()), ..new_account("vera") })
            .await
            .unwrap();
        prove(&world, &vera).await;
        world.service.request_password_reset("vera@example.com", PAGE, Language::Korean).await.unwrap();
        let sent = mails(&world).await;
        assert_eq!((sent.len(), sent[0].accounts[0].login.as_str()), (1, "vera"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_one_line() {
    both(|world| async move {
        let hostile = "URGENT\r\nBcc: all@corp.example";
        let account = NewAccount { channel_name: hostile.into(), ..new_account("haneul") };
        assert_eq!(refused(world.service.register(account).await), invalid("channelName", Rule::OneLine));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_is_fresh_for_ten_minutes_at_its_browser() {
    both(|world| async move {
        let (channel, _, codes) = with_two_factor(&world, "haneul").await;
        let [browser, other] = [(); 2].map(|()| world.service.sign_in_as("haneul"));
        let (browser, other) = (browser.await.unwrap().unwrap(), other.await.unwrap().unwrap());
        let is_fresh = async |browser| world.service.is_confirmed(&channel, browser).await.unwrap();
        assert!(is_fresh(&browser).await, "a sign-in is a proof");
        world.advance_ms(RECENT_SIGN_IN_MS as u64);
        assert!(!is_fresh(&browser).await);
        let confirm = async |password: &str, code: &str| {
            world.service.confirm(&channel, &browser, password, code).await
        };
        assert_eq!(refused(confirm("wrong", &codes[0]).await), invalid("password", Rule::RightPassword));
        assert_eq!(refused(confirm(PASSWORD, "").await), invalid("code", Rule::RightCode));
        assert!(!is_fresh(&browser).await);
        let renewed = confirm(PASSWORD, &codes[0]).await.unwrap();
        assert!(is_fresh(&renewed).await && !is_fresh(&browser).await && !is_fresh(&other).await);
        assert!(world.service.signed_in(&browser).await.unwrap().is_none(), "a copy is signed out");
        world.advance_ms(RECENT_SIGN_IN_MS as u64);
        assert!(!is_fresh(&renewed).await);
        // A change of the address asks for the code, too.
        let change = async |code: &str| {
            world.service.change_email(&channel, PASSWORD, (Some("a@b.co"), code), Language::Korean).await
        };
        assert_eq!(refused(change("").await), invalid("code", Rule::RightCode));
        change(&codes[1]).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_concurrent_requests_for_a_link_three_are_sent() {
    both(|world| async move {
        let (channel, _) = registered(&world, "haneul").await;
        prove(&world, &channel).await;
        let tasks = (0..20).map(|_| {
            let service = world.service.clone();
            async move { service.request_password_reset("haneul", PAGE, Language::Korean).await }
        });
        winners(at_once(tasks).await, &Refusal::Internal);
        assert_eq!(mails(&world).await.len() as i64, PASSWORD_RESETS_MAX);
    })
    .await;
}

/// What an operator's key, or a consent of a stolen sign-in, does to an account.
#[tokio::test(flavor = "multi_thread")]
async fn acts_without_a_page_of_the_person_send_notices() {
    both(|world| async move {
        let (channel, _) = registered(&world, "haneul").await;
        prove(&world, &channel).await;
        let kinds = async || mails(&world).await.iter().map(|mail| mail.kind).collect::<Vec<_>>();
        let application = world.application("app").await;
        for expected in [&[MailKind::StreamKeyAllowed][..], &[]] {
            world.code(&application, &channel).await;
            assert_eq!(kinds().await, expected, "once for each application");
        }
        let put = async |password: &str, email: &str| {
            let (login, password, email) = ("haneul".to_owned(), password.to_owned(), Some(email.to_owned()));
            let credentials = LoginCredentials { login, password, email };
            world.service.put_channel(channel_record(&channel), Some(credentials)).await.unwrap();
        };
        put(PASSWORD, "haneul@example.com").await;
        assert_eq!(kinds().await, [], "nothing is changed");
        put(NEW_PASSWORD, "haneul@example.com").await;
        assert_eq!(kinds().await, [MailKind::PasswordChanged]);
        put(NEW_PASSWORD, "thief@b.co").await;
        assert_eq!(kinds().await, [MailKind::EmailChanged], "to the former address");
    })
    .await;
}

fn channel_record(channel: &ChannelId) -> ChannelRecord {
    ChannelRecord {
        channel_id: channel.clone(),
        name: "하늘".to_owned(),
        image_url: None,
        verified_mark: false,
        real_name_verified: false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_concurrent_acts_that_renew_a_browser_one_succeeds_and_stays_signed_in() {
    both(|world| async move {
        let (channel, token) = registered(&world, "haneul").await;
        let tasks = (0..6).map(|n| {
            let (service, channel, token) = (world.service.clone(), channel.clone(), token.clone());
            async move {
                match n % 2 {
                    0 => service.end_other_browser_sessions(&channel, &token).await,
                    _ => service.confirm(&channel, &token, PASSWORD, "").await,
                }
            }
        });
        let won = winners(at_once(tasks).await, &Refusal::InvalidToken(TokenFault::Revoked));
        assert_eq!(won.len(), 1);
        assert!(world.service.signed_in(&won[0]).await.unwrap().is_some());
    })
    .await;
}
