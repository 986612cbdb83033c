//! Applications, channels and people, and the events of channels.

use domain::application::RedirectUri;
use domain::channel::UserRole;
use domain::chat::DonationType;
use domain::event::{ChatEvent, DonationEvent, SubscriptionEvent};
use domain::limits::CHANNEL_IDS_MAX;
use domain::quota::QuotaShare;
use domain::{MessageId, Scope, ScopeSet};
use store::queries::channels::ChannelRecord;
use store::queries::chats::NewMessage;
use store::queries::relations::FollowOutcome;
use store::{StoreError, Tx, params};

use crate::{
    OBSERVED, application, at, both, channel, client, hash, in_seeded, number, of_client, organization,
    record, secret, taken_url, tx,
};

#[tokio::test(flavor = "multi_thread")]
async fn an_application_has_the_values_of_the_last_put() {
    in_seeded(async move |tx: &mut Tx| {
        assert!(tx.application(&client("missing")).await?.is_none());
        let bare = tx.application(&client("app")).await?.unwrap();
        assert_eq!((bare.name.as_str(), bare.scopes), ("application app", crate::scopes()));
        assert!(bare.organization.is_none() && bare.profile.is_none());

        tx.put_organization(&organization("org", false)).await?;
        tx.put_organization(&organization("org", true)).await?;
        let mut full = application("app");
        full.name = "다른 이름".to_owned();
        full.organization = Some(organization("org", false));
        full.scopes = [Scope::Drops, Scope::UserRead].into_iter().collect();
        full.profile = OBSERVED;
        full.quota = QuotaShare::Unlimited;
        tx.put_application(&full, at(2)).await?;
        let found = tx.application(&client("app")).await?.unwrap();
        assert_eq!((&found.name, found.scopes, found.profile), (&full.name, full.scopes, OBSERVED));
        assert_eq!((bare.quota, found.quota), (QuotaShare::FULL, QuotaShare::Unlimited));
        let owner = found.organization.unwrap();
        assert_eq!(
            (owner.name.as_str(), owner.verified),
            ("organization org", true),
            "the organization's own row"
        );
        for (name, profile) in [("app", OBSERVED), ("other", None)] {
            tx.insert_session_url(&hash("url"), &of_client(name), None, at(100)).await?;
            assert_eq!(
                tx.take_session_url(&hash("url"), at(1)).await?,
                Some(taken_url(&of_client(name), profile))
            );
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redirect_addresses_are_known_byte_for_byte() {
    in_seeded(async move |tx: &mut Tx| {
        let uri = RedirectUri::parse("https://app.example/callback?a=1").unwrap();
        for _ in 0..2 {
            tx.insert_redirect_uri(&client("app"), &uri).await?;
        }
        for (owner, text, known) in [
            ("app", uri.as_str(), true),
            ("other", uri.as_str(), false),
            ("app", "https://app.example/Callback?a=1", false),
            ("app", "https://app.example/callback?a=1 ", false),
            ("app", "", false),
        ] {
            assert_eq!(tx.has_redirect_uri(&client(owner), text).await?, known, "{owner} {text}");
        }
        assert_eq!(tx.redirect_uris(&client("app")).await?, [uri.as_str()]);
        assert!(tx.redirect_uris(&client("other")).await?.is_empty());
        tx.delete_redirect_uris(&client("other")).await?;
        assert!(tx.has_redirect_uri(&client("app"), uri.as_str()).await?);
        tx.delete_redirect_uris(&client("app")).await?;
        assert!(!tx.has_redirect_uri(&client("app"), uri.as_str()).await?);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_has_the_secrets_that_it_was_given() {
    in_seeded(async move |tx: &mut Tx| {
        assert!(tx.application_secrets(&client("app"), at(1)).await?.is_empty());
        for text in ["one", "two", "one"] {
            tx.insert_application_secret(&client("app"), &secret(text), at(1)).await?;
        }
        // A secret has one owner, the first.
        tx.insert_application_secret(&client("other"), &secret("one"), at(1)).await?;
        let found = tx.application_secrets(&client("app"), at(1)).await?;
        assert_eq!(found.len(), 2);
        assert!(["one", "two"].iter().all(|text| found.iter().any(|secret| secret.hash == hash(text))));
        assert!(tx.application_secrets(&client("other"), at(1)).await?.is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_parent_is_a_foreign_key_error() {
    both(|store| async move {
        let uri = RedirectUri::parse("https://app.example/").unwrap();
        let mut orphan = application("app");
        orphan.organization = Some(organization("missing", true));
        let (missing, no_client) = (channel("missing"), client("missing"));
        let (n, c) = (missing.clone(), no_client.clone());
        let outcomes = [
            tx!(store, tx => { tx.put_application(&orphan, at(1)).await }),
            tx!(store, tx => { tx.insert_redirect_uri(&client("missing"), &uri).await }),
            tx!(store, tx => { tx.insert_application_secret(&client("missing"), &secret("s"), at(1)).await }),
            tx!(store, tx => { tx.put_person(&channel("missing"), "login", "hash").await }),
            tx!(store, tx => { tx.put_manager(&channel("a"), &n, UserRole::StreamingChatManager, at(1)).await }),
            tx!(store, tx => { tx.follow(&channel("a"), &channel("missing"), at(1)).await.map(drop) }),
            tx!(store, tx => { tx.put_consent(&c, &channel("a"), ScopeSet::EMPTY, at(1)).await }),
            tx!(store, tx => { tx.insert_browser_session(&hash("t"), &missing, at(1)).await }),
            tx!(store, tx => { tx.insert_session_url(&hash("u"), &crate::of_client("missing"), None, at(1)).await }),
            tx!(store, tx => { tx.put_subscriber(&channel("missing"), &subscription("a", 1), at(1)).await }),
        ];
        for (index, outcome) in outcomes.into_iter().enumerate() {
            assert_eq!(outcome, Err(StoreError::ForeignKey), "{index}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_are_found_by_up_to_20_ids_without_unknown_ones() {
    in_seeded(async move |tx: &mut Tx| {
        let full = ChannelRecord {
            image_url: Some("https://i.example/b.png".to_owned()),
            verified_mark: true,
            real_name_verified: true,
            name: "별 👋".to_owned(),
            ..record("b")
        };
        tx.put_channel(&full, at(9)).await?;
        assert!(tx.channels_by_id(&[]).await?.is_empty());
        assert!(tx.channels_by_id(&[channel("missing")]).await?.is_empty());
        let found = tx.channels_by_id(&[channel("b")]).await?;
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.as_str(), found[0].verified_mark, found[0].follower_count),
            ("별 👋", true, 0)
        );
        assert_eq!(found[0].image_url, full.image_url);
        let mut ids = vec![channel("a"), channel("a"), channel("c")];
        ids.extend((ids.len()..CHANNEL_IDS_MAX).map(|n| channel(&format!("unknown-{n}"))));
        let mut found: Vec<_> = tx.channels_by_id(&ids).await?.into_iter().map(|c| c.channel_id).collect();
        found.sort();
        assert_eq!(found, [channel("a"), channel("c")]);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_have_a_login_of_their_own() {
    both(|store| async move {
        tx!(store, tx => {
            assert!(tx.person_by_login("login").await?.is_none());
            tx.put_person(&channel("b"), "first", "one").await?;
            tx.put_person(&channel("b"), "login", "two").await?;
            tx.put_person(&channel("a"), "Login", "three").await?;
            assert!(tx.person_by_login("first").await?.is_none());
            let person = tx.person_by_login("login").await?.unwrap();
            assert_eq!((person.channel_id, person.password_hash.as_str()), (channel("b"), "two"));
            let people = tx.people(10).await?;
            let lines: Vec<_> = people.iter().map(|p| (p.login.as_str(), p.channel_id.as_str(), p.channel_name.as_str())).collect();
            assert_eq!(lines, [("Login", "a", "channel a"), ("login", "b", "channel b")]);
            assert_eq!(tx.people(1).await?.len(), 1);
            assert_eq!(tx.people(0).await?.len(), 0);
            Ok(())
        })
        .unwrap();
        let taken = tx!(store, tx => { tx.put_person(&channel("c"), "login", "hash").await });
        assert_eq!(taken, Err(StoreError::Unique { constraint: "people(login)".to_owned() }));
        let nul = tx!(store, tx => { tx.person_by_login("login\0").await.map(drop) });
        assert_eq!(nul, Err(StoreError::NulInText));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_speaker_has_the_role_of_this_channel() {
    in_seeded(async move |tx: &mut Tx| {
        tx.put_manager(&channel("a"), &channel("b"), UserRole::StreamingSettlementManager, at(1)).await?;
        tx.put_manager(&channel("a"), &channel("b"), UserRole::StreamingChatManager, at(2)).await?;
        for (of, who, expected) in [
            ("a", "b", Some(Some(UserRole::StreamingChatManager))),
            ("a", "c", Some(None)),
            ("b", "b", Some(None)),
            ("c", "b", Some(None)),
            ("a", "missing", None),
            ("missing", "a", None),
        ] {
            let speaker = tx.speaker(&channel(of), &channel(who)).await?;
            assert_eq!(speaker.as_ref().map(|speaker| speaker.role), expected, "{of} {who}");
            if let Some(speaker) = speaker {
                assert_eq!((speaker.name, speaker.verified_mark), (format!("channel {who}"), false));
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follow_counts_once() {
    in_seeded(async move |tx: &mut Tx| {
        assert_eq!(tx.follow(&channel("a"), &channel("b"), at(1)).await?, FollowOutcome::New);
        assert_eq!(tx.follow(&channel("a"), &channel("b"), at(2)).await?, FollowOutcome::Since(at(1)));
        assert_eq!(tx.follow(&channel("a"), &channel("c"), at(3)).await?, FollowOutcome::New);
        // Replacing a channel forgets none of it.
        tx.put_channel(&record("a"), at(4)).await?;
        let counts = [("a", 2), ("b", 0)];
        for (of, count) in counts {
            assert_eq!(tx.channels_by_id(&[channel(of)]).await?[0].follower_count, count);
        }
        Ok(())
    })
    .await;
}

fn subscription(by: &str, month: i64) -> SubscriptionEvent {
    SubscriptionEvent {
        subscriber_channel_id: channel(by),
        subscriber_nickname: by.to_owned(),
        tier_no: 2,
        tier_name: "별".to_owned(),
        month,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_is_one_row_with_the_first_day() {
    in_seeded(async move |tx: &mut Tx| {
        tx.put_subscriber(&channel("a"), &subscription("b", 1), at(5)).await?;
        tx.put_subscriber(&channel("a"), &subscription("b", 2), at(6)).await?;
        let row = tx.query_one("SELECT month, created_at, tier_no, tier_name FROM subscribers", &[]).await?;
        assert_eq!((row.get::<i64>(0)?, row.get::<i64>(1)?), (2, 5));
        assert_eq!((row.get::<i64>(2)?, row.get::<&str>(3)?), (2, "별"));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_and_donations_are_recorded_with_all_values() {
    in_seeded(async move |tx: &mut Tx| {
        let chat = ChatEvent {
            sender_channel_id: channel("b"),
            nickname: "b".into(),
            badges: Vec::new(),
            verified_mark: false,
            user_role_code: domain::channel::UserRoleCode::CommonUser,
            chat_channel_id: "chat-a".into(),
            content: "안녕 👋 'quoted'".into(),
            emojis: Default::default(),
            message_time: at(77),
        };
        let id = MessageId::stored("m".into());
        let message = NewMessage { id: &id, channel: &channel("a"), chat: &chat, emojis: "{}".into() };
        tx.insert_chat_messages(&[message]).await?;
        const FIND: &str = "SELECT content, message_time FROM chat_messages WHERE message_id = $1";
        let row = tx.query_one(FIND, params![&id]).await?;
        assert_eq!((row.get::<&str>(0)?, row.get::<i64>(1)?), (chat.content.as_str(), 77));

        for (id, donator) in [("d1", Some((channel("b"), "b".to_owned()))), ("d2", None)] {
            let donation = DonationEvent {
                donation_type: DonationType::Video,
                donator,
                pay_amount: "1000".into(),
                donation_text: String::new(),
                emojis: Default::default(),
            };
            tx.insert_donation(&MessageId::stored(id.into()), &channel("a"), &donation, "{}", at(5)).await?;
        }
        assert_eq!(number(tx, "SELECT COUNT(*) FROM donations WHERE donator_channel_id IS NULL").await?, 1);
        assert_eq!(number(tx, "SELECT COUNT(*) FROM donations WHERE donator_channel_id = 'b'").await?, 1);
        Ok(())
    })
    .await;
}
