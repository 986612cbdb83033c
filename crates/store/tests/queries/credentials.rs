//! Consents, codes and tokens, browsers, idempotency keys.

use domain::limits::REUSE_GRACE_MS;
use domain::picture::Picture;
use domain::{Scope, ScopeSet, Timestamp};
use store::queries::idempotency::KeyClaim;
use store::queries::tokens::{NewCode, NewToken, Trace};
use store::{StoreError, Tx};

use crate::{OBSERVED, application, at, both, caller, channel, client, family, hash, in_seeded, scopes, tx};

/// A code of `app` and `a` that lives until 100.
async fn insert_code(tx: &mut Tx, name: &str) -> Result<(), StoreError> {
    let (client_id, channel_id) = (&client("app"), &channel("a"));
    let (hash, family, state) = (&hash(name), &family("f"), &hash("state"));
    tx.insert_code(NewCode {
        hash,
        family,
        client_id,
        channel_id,
        state,
        redirect_uri: "u",
        began_at: at(7),
        expires_at: at(100),
    })
    .await
}

/// An access and a refresh token that live until 100: `access NAME` and `refresh NAME`.
async fn insert_pair(tx: &mut Tx, name: &str, of: (&str, &str, &str)) -> Result<(), StoreError> {
    let (app, user, in_family) = of;
    let (access, refresh) = (hash(&format!("access {name}")), hash(&format!("refresh {name}")));
    let (client_id, channel_id, family) = (client(app), channel(user), family(in_family));
    let token = |hash| NewToken {
        hash,
        family: &family,
        client_id: &client_id,
        channel_id: &channel_id,
        generation: 0,
        expires_at: at(100),
    };
    tx.insert_access_token(token(&access)).await?;
    tx.insert_refresh_token(token(&refresh), at(7)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn all_tokens_and_codes_of_an_application_end_at_once() {
    in_seeded(async move |tx: &mut Tx| {
        insert_code(tx, "code").await?;
        insert_pair(tx, "1", ("app", "a", "f")).await?;
        insert_pair(tx, "2", ("other", "a", "g")).await?;
        let count = async |tx: &mut Tx, app: &str, now| tx.count_token_users(&client(app), at(now), 10).await;
        assert_eq!((count(tx, "app", 9).await?, count(tx, "app", 100).await?), (1, 0));
        assert_eq!(tx.count_token_users(&client("app"), at(9), 0).await?, 0);
        let found = tx.refresh_token(&hash("refresh 1")).await?.unwrap();
        assert_eq!((found.generation, found.began_at), (0, at(7)));
        assert!(!tx.end_all_tokens(&client("missing"), at(0)).await?);
        assert!(tx.end_all_tokens(&client("app"), at(0)).await?);
        assert!(tx.holder(&hash("access 1"), at(9)).await?.is_none());
        assert!(!tx.family_lives(&caller("app", "a", "f")).await?);
        assert!(tx.refresh_token(&hash("refresh 1")).await?.is_none());
        assert!(tx.code(&hash("code")).await?.is_none());
        for name in ["access 1", "refresh 1"] {
            assert_eq!(tx.token_trace(&hash(name)).await?.map(|trace| trace.1), Some(Trace::Revoked));
        }
        assert_eq!((count(tx, "app", 9).await?, count(tx, "other", 9).await?), (0, 1));
        assert!(tx.holder(&hash("access 2"), at(9)).await?.is_some());
        // Later codes and tokens are of the new generation.
        insert_code(tx, "later").await?;
        let (code, _) = tx.code(&hash("later")).await?.unwrap();
        assert_eq!((code.generation, code.began_at), (1, at(7)));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consent_has_the_scopes_of_the_last_one() {
    in_seeded(async move |tx: &mut Tx| {
        let lock =
            async |tx: &mut Tx, app: &str, user: &str| tx.lock_consent(&client(app), &channel(user)).await;
        assert_eq!(lock(tx, "app", "a").await?, Some(scopes()));
        assert_eq!(lock(tx, "app", "missing").await?, None);
        assert_eq!(lock(tx, "missing", "a").await?, None);
        let other: ScopeSet = [Scope::UserRead].into_iter().collect();
        tx.put_consent(&client("app"), &channel("a"), other, at(2)).await?;
        assert_eq!(lock(tx, "app", "a").await?, Some(other));
        assert_eq!(lock(tx, "app", "b").await?, Some(scopes()));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn consents_to_an_application_are_narrowed_to_its_scopes() {
    in_seeded(async move |tx: &mut Tx| {
        let chat: ScopeSet = [Scope::ChatRead].into_iter().collect();
        let narrower: ScopeSet = [Scope::ChatRead, Scope::Drops].into_iter().collect();
        tx.put_consent(&client("app"), &channel("a"), chat, at(2)).await?;
        assert_eq!(tx.narrow_consents(&client("app"), narrower).await?, 2, "one is narrow enough");
        assert_eq!(tx.narrow_consents(&client("app"), narrower).await?, 0);
        assert_eq!(tx.narrow_consents(&client("missing"), ScopeSet::EMPTY).await?, 0);
        for user in ["a", "b", "c"] {
            assert_eq!(tx.lock_consent(&client("app"), &channel(user)).await?, Some(chat));
            assert_eq!(tx.lock_consent(&client("other"), &channel(user)).await?, Some(scopes()));
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_used_once_and_before_its_end() {
    in_seeded(async move |tx: &mut Tx| {
        insert_code(tx, "code").await?;
        insert_code(tx, "late").await?;
        assert!(tx.code(&hash("unknown")).await?.is_none());
        assert!(!tx.use_code(&hash("unknown"), at(1)).await?);
        let (found, state) = tx.code(&hash("code")).await?.unwrap();
        assert_eq!(
            (found.client_id, found.channel_id, found.family),
            (client("app"), channel("a"), family("f"))
        );
        assert_eq!((found.single_use.expires_at, found.single_use.used_at), (at(100), None));
        assert_eq!(state, hash("state"));

        assert!(tx.use_code(&hash("code"), at(99)).await?);
        assert!(!tx.use_code(&hash("code"), at(99)).await?);
        assert_eq!(tx.code(&hash("code")).await?.unwrap().0.single_use.used_at, Some(at(99)));
        assert!(!tx.use_code(&hash("late"), at(100)).await?);
        assert_eq!(tx.code(&hash("late")).await?.unwrap().0.single_use.used_at, None);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_is_used_once_and_before_its_end() {
    in_seeded(async move |tx: &mut Tx| {
        insert_pair(tx, "one", ("app", "a", "f")).await?;
        insert_pair(tx, "two", ("app", "a", "f")).await?;
        assert!(tx.refresh_token(&hash("access one")).await?.is_none());
        let found = tx.refresh_token(&hash("refresh one")).await?.unwrap();
        assert_eq!(
            (found.client_id, found.channel_id, found.family),
            (client("app"), channel("a"), family("f"))
        );
        assert_eq!((found.single_use.expires_at, found.single_use.used_at), (at(100), None));

        assert!(tx.use_refresh_token(&hash("refresh one"), at(99)).await?);
        assert!(!tx.use_refresh_token(&hash("refresh one"), at(99)).await?);
        assert!(!tx.use_refresh_token(&hash("refresh two"), at(100)).await?);
        assert!(!tx.use_refresh_token(&hash("unknown"), at(1)).await?);
        let used = tx.refresh_token(&hash("refresh one")).await?.unwrap().single_use.used_at;
        assert_eq!(used, Some(at(99)));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_has_the_scopes_that_were_consented_to_and_are_still_chosen() {
    in_seeded(async move |tx: &mut Tx| {
        insert_pair(tx, "one", ("app", "a", "f")).await?;
        let holder = tx.holder(&hash("access one"), at(99)).await?.unwrap();
        assert_eq!(holder.caller, caller("app", "a", "f"));
        assert_eq!((holder.channel_name.as_str(), holder.expires_at), ("channel a", at(100)));
        for (token, now) in [("access one", 100), ("refresh one", 1), ("unknown", 1)] {
            assert!(tx.holder(&hash(token), at(now)).await?.is_none(), "{token} {now}");
        }
        let mut other = application("app");
        other.scopes = [Scope::ChatWrite, Scope::UserRead].into_iter().collect();
        other.profile = OBSERVED;
        tx.put_application(&other, at(2)).await?;
        let caller = tx.holder(&hash("access one"), at(99)).await?.unwrap().caller;
        assert_eq!(caller.scopes, [Scope::ChatWrite].into_iter().collect());
        assert_eq!(caller.profile, OBSERVED);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_deleted_by_client_and_user_and_within_them_by_family() {
    in_seeded(async move |tx: &mut Tx| {
        let pairs = [
            ("one", ("app", "a", "f")),
            ("two", ("app", "a", "g")),
            ("three", ("app", "b", "f")),
            ("four", ("other", "a", "f")),
        ];
        for (name, of) in pairs {
            insert_pair(tx, name, of).await?;
        }
        for (app, user, of, left) in [
            ("app", "a", Some("h"), vec!["one", "two", "three", "four"]),
            ("app", "a", Some("f"), vec!["two", "three", "four"]),
            ("app", "a", None, vec!["three", "four"]),
            ("app", "c", None, vec!["three", "four"]),
            ("app", "b", None, vec!["four"]),
        ] {
            let of = of.map(family);
            tx.delete_tokens(&client(app), &channel(user), of.as_ref()).await?;
            for (name, (app, user, in_family)) in pairs {
                let lives = left.contains(&name);
                for kind in ["access", "refresh"] {
                    let holder = tx.token_holder(&hash(&format!("{kind} {name}"))).await?;
                    assert_eq!(holder, lives.then(|| (client(app), channel(user))), "{kind} {name}");
                    let trace =
                        tx.token_trace(&hash(&format!("{kind} {name}"))).await?.expect("it was there");
                    let standing = if kind == "access" { Trace::Access } else { Trace::Refresh };
                    let expected = if lives { standing } else { Trace::Revoked };
                    assert_eq!((trace.0, trace.1), (client(app), expected), "{kind} {name}");
                }
                let caller = caller(app, user, in_family);
                assert_eq!(tx.family_lives(&caller).await?, lives, "{name}");
            }
        }
        assert_eq!(tx.token_holder(&hash("unknown")).await?, None);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_needs_a_consent_and_a_name_of_its_own() {
    both(|store| async move {
        tx!(store, tx => {
            insert_code(tx, "code").await?;
            insert_pair(tx, "one", ("app", "a", "f")).await
        })
        .unwrap();
        let code = tx!(store, tx => { insert_code(tx, "code").await });
        assert!(code.unwrap_err().is_unique("authorization_codes(code_hash)"));
        let pair = tx!(store, tx => { insert_pair(tx, "one", ("app", "b", "g")).await });
        assert!(pair.unwrap_err().is_unique("access_tokens(token_hash)"));
        let orphan = tx!(store, tx => { insert_pair(tx, "two", ("app", "missing", "f")).await });
        assert_eq!(orphan, Err(StoreError::ForeignKey));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_signed_in_until_its_end_or_its_deletion() {
    in_seeded(async move |tx: &mut Tx| {
        tx.insert_browser_session(&hash("one"), &channel("a"), at(100)).await?;
        tx.insert_browser_session(&hash("two"), &channel("a"), at(100)).await?;
        let found = tx.browser_session(&hash("one"), at(99)).await?.unwrap();
        assert_eq!((found.channel_id, found.channel_name.as_str()), (channel("a"), "channel a"));
        assert!(tx.browser_session(&hash("one"), at(100)).await?.is_none());
        assert!(tx.browser_session(&hash("unknown"), at(1)).await?.is_none());
        tx.delete_browser_session(&hash("one")).await?;
        tx.delete_browser_session(&hash("unknown")).await?;
        assert!(tx.browser_session(&hash("one"), at(1)).await?.is_none());
        assert!(tx.browser_session(&hash("two"), at(1)).await?.is_some());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_belongs_to_the_first_request_of_its_operation() {
    in_seeded(async move |tx: &mut Tx| {
        let claims = [
            ("POST /a", "key", "first", "answer 1", None),
            ("POST /a", "key", "second", "answer 2", Some(("first", "answer 1"))),
            ("POST /b", "key", "third", "", None),
            ("POST /a", "Key", "fourth", "", None),
            ("POST /b", "key", "third", "x", Some(("third", ""))),
        ];
        for (operation, key, request, answer, earlier) in claims {
            let now = at(REUSE_GRACE_MS);
            let claim = tx.claim_idempotency_key(operation, key, &hash(request), answer, now).await?;
            let found = match &claim {
                KeyClaim::Ours => None,
                KeyClaim::Earlier { request, answer } => Some((request.clone(), answer.as_str())),
            };
            assert_eq!(found, earlier.map(|(request, answer)| (hash(request), answer)), "{operation} {key}");
        }
        tx.answer_idempotency_key("POST /a", "key", "late").await?;
        for (operation, expected) in [("POST /a", "late"), ("POST /b", "")] {
            let claim = tx.claim_idempotency_key(operation, "key", &hash("x"), "x", at(1)).await?;
            assert!(matches!(claim, KeyClaim::Earlier { answer, .. } if answer == expected), "{operation}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unused_codes_are_deleted_with_the_tokens_of_their_user() {
    in_seeded(async move |tx: &mut Tx| {
        insert_code(tx, "used").await?;
        insert_code(tx, "unused").await?;
        assert!(tx.use_code(&hash("used"), at(2)).await?);
        assert_eq!(tx.delete_unused_codes(&client("app"), &channel("b")).await?, 0);
        assert_eq!(tx.delete_unused_codes(&client("other"), &channel("a")).await?, 0);
        assert_eq!(tx.delete_unused_codes(&client("app"), &channel("a")).await?, 1);
        assert!(tx.code(&hash("unused")).await?.is_none());
        assert!(tx.code(&hash("used")).await?.is_some(), "so that its theft shows");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_consent_deletes_its_codes_and_tokens() {
    in_seeded(async move |tx: &mut Tx| {
        insert_code(tx, "code").await?;
        insert_pair(tx, "one", ("app", "a", "f")).await?;
        insert_pair(tx, "two", ("app", "b", "g")).await?;
        assert_eq!(tx.lock_live_consents(&client("app")).await?, 2, "the third has no token");
        assert_eq!(tx.lock_live_consents(&client("other")).await?, 0);
        assert!(!tx.delete_consent(&client("missing"), &channel("a")).await?);
        assert!(tx.delete_consent(&client("app"), &channel("a")).await?);
        assert!(!tx.delete_consent(&client("app"), &channel("a")).await?);
        assert_eq!(tx.lock_consent(&client("app"), &channel("a")).await?, None);
        assert!(tx.code(&hash("code")).await?.is_none());
        for kind in ["access", "refresh"] {
            assert!(tx.token_holder(&hash(&format!("{kind} one"))).await?.is_none());
            assert!(tx.token_holder(&hash(&format!("{kind} two"))).await?.is_some());
        }
        assert!(tx.lock_consent(&client("other"), &channel("a")).await?.is_some());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_applications_of_a_person_are_listed_from_the_latest_consent_on() {
    in_seeded(async move |tx: &mut Tx| {
        let chat: ScopeSet = [Scope::ChatRead].into_iter().collect();
        for (name, time) in [("app", 5), ("other", 9)] {
            tx.delete_consent(&client(name), &channel("a")).await?;
            tx.put_consent(&client(name), &channel("a"), chat, at(time)).await?;
        }
        tx.note_consent_use(&client("app"), &channel("a"), at(7)).await?;
        let end = (Timestamp::from_millis(i64::MAX), "");
        let listed = tx.connected_applications(&channel("a"), end, 10).await?;
        let found: Vec<_> = listed
            .iter()
            .map(|found| (found.application.client_id.as_str(), found.created_at, found.last_used_at))
            .collect();
        assert_eq!(found, [("other", at(9), None), ("app", at(5), Some(at(7)))]);
        let rest = tx.connected_applications(&channel("a"), (at(9), "other"), 10).await?;
        assert_eq!(rest.len(), 1);
        let one = tx.connected_application(&channel("a"), &client("app")).await?.unwrap();
        assert_eq!((one.scopes, one.unusable_since), (chat, None));
        assert!(tx.connected_application(&channel("missing"), &client("app")).await?.is_none());
        assert_eq!(tx.consented_scopes(&client("app"), &channel("a")).await?, Some(chat));
        assert_eq!(tx.consented_scopes(&client("missing"), &channel("a")).await?, None);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logo_is_replaced_and_removed() {
    in_seeded(async move |tx: &mut Tx| {
        let picture = |base64| Picture::stored("image/png", base64).unwrap();
        assert_eq!(tx.application_logo(&client("app")).await?, None);
        for base64 in ["aaaa", "bbbb"] {
            tx.put_application_logo(&client("app"), Some(&picture(base64))).await?;
            assert_eq!(tx.application_logo(&client("app")).await?, Some(picture(base64)));
            let version = tx.application(&client("app")).await?.unwrap().presentation.logo_version;
            assert_eq!(version, Some(picture(base64).version()));
        }
        tx.put_application_logo(&client("app"), None).await?;
        assert_eq!(tx.application_logo(&client("app")).await?, None);
        assert_eq!(tx.application(&client("app")).await?.unwrap().presentation.logo_version, None);
        Ok(())
    })
    .await;
}
