//! Accounts: addresses, links of password resets, the second step of a sign-in, and messages to people.

use domain::DeliveryId;
use domain::account::Email;
use store::{StoreError, Tx};

use crate::{at, both, channel, hash, in_seeded, tx};

fn email(text: &str) -> Email {
    Email::parse(text).unwrap()
}

async fn people(tx: &mut Tx) -> Result<(), StoreError> {
    tx.insert_person(&channel("a"), "login-a", "hash-a", Some(&email("x@y.zz"))).await?;
    tx.insert_person(&channel("b"), "login-b", "hash-b", Some(&email("X@Y.zz"))).await?;
    tx.insert_person(&channel("c"), "login-c", "hash-c", None).await
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_are_found_by_channel_login_and_address() {
    in_seeded(async move |tx: &mut Tx| {
        people(tx).await?;
        let account = tx.account(&channel("a")).await?.unwrap();
        assert_eq!((account.login.as_str(), account.email.as_deref()), ("login-a", Some("x@y.zz")));
        assert_eq!((account.password_hash.as_str(), account.two_factor_since), ("hash-a", None));
        assert!(tx.account(&channel("missing")).await?.is_none());
        assert_eq!(tx.contact_by_login("login-b").await?.unwrap().channel_id, channel("b"));
        assert!(tx.contact_by_login("missing").await?.is_none());
        let found = async |tx: &mut Tx, limit| {
            let found = tx.contacts_by_email(&email("x@y.zz"), limit).await?;
            Ok::<_, StoreError>(found.into_iter().map(|found| found.channel_id).collect::<Vec<_>>())
        };
        assert_eq!(found(tx, 5).await?, [channel("a"), channel("b")]);
        assert_eq!(found(tx, 1).await?, [channel("a")]);
        tx.bar_channel(&channel("a"), at(5)).await?;
        assert_eq!(found(tx, 5).await?, [channel("b")]);
        assert!(tx.contact_by_login("login-a").await?.is_none());
        tx.unbar_channel(&channel("a")).await?;
        // The one for whom the address is proven comes first. Another address is unproven.
        assert!(!tx.verify_email(&channel("b"), "other@y.zz", at(7)).await?);
        assert!(tx.verify_email(&channel("b"), "x@y.zz", at(7)).await?);
        assert!(tx.verify_email(&channel("b"), "x@y.zz", at(9)).await?);
        assert_eq!(found(tx, 5).await?, [channel("b"), channel("a")]);
        for (address, verified) in [("x@y.zz", Some(at(7))), ("z@y.zz", None)] {
            assert!(tx.put_email(&channel("b"), Some(&email(address))).await?);
            assert_eq!(tx.account(&channel("b")).await?.unwrap().email_verified_at, verified);
        }
        tx.bar_channel(&channel("a"), at(5)).await?;
        assert!(tx.put_email(&channel("b"), None).await?);
        assert!(!tx.put_email(&channel("missing"), None).await?);
        assert!(found(tx, 5).await?.is_empty());
        assert!(tx.set_password(&channel("b"), "new").await?);
        assert!(!tx.set_password(&channel("missing"), "new").await?);
        assert_eq!(tx.password_hash(&channel("b")).await?.as_deref(), Some("new"));
        for browser in ["one", "two", "three"] {
            tx.insert_browser_session(&hash(browser), &channel("b"), at(100)).await?;
        }
        assert_eq!(tx.delete_other_browser_sessions(&channel("b"), &hash("two")).await?, 2);
        assert!(tx.browser_session(&hash("two"), at(50)).await?.is_some());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_has_one_owner() {
    both(|store| async move {
        tx!(store, tx => { people(tx).await }).unwrap();
        let taken = tx!(store, tx => {
            tx.put_channel(&crate::record("d"), at(1)).await?;
            tx.insert_person(&channel("d"), "login-a", "hash", None).await
        });
        assert!(matches!(taken, Err(StoreError::Unique { .. })), "{taken:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_works_once_until_it_expires() {
    in_seeded(async move |tx: &mut Tx| {
        people(tx).await?;
        for (token, expires_at) in [("one", 10), ("two", 20)] {
            tx.insert_password_reset(&hash(token), &channel("a"), Some("x@y.zz"), at(expires_at)).await?;
            tx.insert_pending_sign_in(&hash(token), &channel("a"), at(expires_at)).await?;
        }
        assert_eq!(tx.password_resets(&channel("a"), at(9)).await?, 2);
        assert_eq!(tx.password_resets(&channel("a"), at(10)).await?, 1);
        assert_eq!(tx.password_reset(&hash("one"), at(9)).await?, Some(channel("a")));
        assert_eq!(tx.password_reset(&hash("one"), at(10)).await?, None);
        assert_eq!(tx.take_password_reset(&hash("one"), at(10)).await?, None);
        assert_eq!(
            tx.take_password_reset(&hash("one"), at(9)).await?,
            Some((channel("a"), Some("x@y.zz".to_owned())))
        );
        assert_eq!(tx.take_password_reset(&hash("one"), at(9)).await?, None);
        assert_eq!(tx.delete_password_resets(&channel("a")).await?, 1);
        assert_eq!(tx.pending_sign_in(&hash("one"), at(9)).await?, Some(channel("a")));
        assert_eq!(tx.pending_sign_in(&hash("one"), at(10)).await?, None);
        assert_eq!(tx.take_pending_sign_in(&hash("one"), at(9)).await?, Some(channel("a")));
        assert_eq!(tx.take_pending_sign_in(&hash("one"), at(9)).await?, None);
        assert_eq!(tx.delete_pending_sign_ins(&channel("a")).await?, 1);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_and_a_recovery_code_are_used_once_and_wrong_codes_are_counted() {
    in_seeded(async move |tx: &mut Tx| {
        people(tx).await?;
        let a = &channel("a");
        assert!(tx.put_two_factor(a, "first").await? && tx.put_two_factor(a, "second").await?);
        assert_eq!(tx.two_factor(a).await?.unwrap().sealed_secret, "second");
        assert!(!tx.use_code_step(a, 5).await?, "it is not confirmed");
        assert!(tx.confirm_two_factor(a, 5, at(50)).await?);
        assert!(!tx.confirm_two_factor(a, 6, at(60)).await?);
        assert!(!tx.put_two_factor(a, "third").await?, "a confirmed secret stays");
        assert_eq!(tx.account(a).await?.unwrap().two_factor_since, Some(at(50)));
        for (step, is_first) in [(5, false), (4, false), (6, true), (6, false), (7, true)] {
            assert_eq!(tx.use_code_step(a, step).await?, is_first, "{step}");
        }
        for (now, counts) in
            [(100, true), (101, true), (102, false), (109, false), (110, true), (111, true), (112, false)]
        {
            assert_eq!(tx.charge_code(a, at(now - 10), at(now), 2).await?, counts, "{now}");
        }
        assert!(tx.use_code_step(a, 8).await?, "a right code forgets the wrong ones");
        assert!(tx.charge_code(a, at(103), at(113), 2).await?);
        assert!(!tx.charge_code(&channel("b"), at(0), at(1), 2).await?);
        for code in ["x", "y"] {
            tx.insert_recovery_code(a, &hash(code)).await?;
        }
        assert!(tx.take_recovery_code(a, &hash("x")).await?);
        assert!(!tx.take_recovery_code(a, &hash("x")).await?);
        assert!(!tx.take_recovery_code(&channel("b"), &hash("y")).await?);
        assert_eq!(tx.recovery_codes(a).await?, 1);
        assert_eq!(tx.delete_recovery_codes(a).await?, 1);
        tx.insert_recovery_code(a, &hash("z")).await?;
        assert!(tx.delete_two_factor(a).await? && !tx.delete_two_factor(a).await?);
        assert_eq!(tx.recovery_codes(a).await?, 0);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_leased_to_one_node_and_goes_with_its_account() {
    in_seeded(async move |tx: &mut Tx| {
        people(tx).await?;
        let id = |text: &str| DeliveryId::stored(text.to_owned());
        tx.insert_mail(&id("one"), Some(&channel("a")), "sealed", at(10), at(1000)).await?;
        tx.insert_mail(&id("two"), Some(&channel("b")), "sealed", at(11), at(1000)).await?;
        tx.insert_mail(&id("decoy"), None, "sealed", at(9), at(1000)).await?;
        assert_eq!(tx.mails_due(at(11), 5).await?, [id("one"), id("two")]);
        assert_eq!(tx.mails_due(at(11), 1).await?, [id("one")]);
        assert_eq!(tx.mails_due(at(10), 5).await?, [id("one")]);
        let leased = tx.lease_mail(&id("one"), at(12), at(30)).await?.unwrap();
        assert_eq!((leased.attempts, leased.expires_at, leased.sealed.as_str()), (1, at(1000), "sealed"));
        assert!(tx.lease_mail(&id("one"), at(29), at(40)).await?.is_none());
        assert_eq!(tx.lease_mail(&id("one"), at(30), at(50)).await?.unwrap().attempts, 2);
        assert!(!tx.retry_mail(&id("one"), 1, at(35)).await?, "the result of an older lease");
        assert!(tx.retry_mail(&id("one"), 2, at(35)).await?);
        assert!(!tx.delete_mail(&id("one"), 1).await?);
        assert!(tx.delete_mail(&id("one"), 2).await?);
        tx.execute("DELETE FROM people", &[]).await?;
        assert!(tx.mails_due(at(100), 5).await?.is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_counted_up_to_a_limit_that_begins_again() {
    in_seeded(async move |tx: &mut Tx| {
        for (now, allowed) in
            [(10, true), (11, true), (12, false), (109, false), (110, true), (111, true), (112, false)]
        {
            assert_eq!(tx.count_mail("of a", at(now), at(now - 100), 2).await?, allowed, "{now}");
        }
        assert!(tx.count_mail("of b", at(112), at(12), 2).await?);
        Ok(())
    })
    .await;
}
