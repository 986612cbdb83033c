//! Passwords, and browsers that are signed in on the consent pages.

use domain::limits::BROWSER_SESSION_LIFETIME_MS;
use domain::secret::BrowserToken;
use domain::{ChannelId, Invalid, Refusal, Rule};
use service::ChannelRecord;
use service::channels::LoginCredentials;

use crate::world::{World, both, refused};

async fn person(world: &World, id: &str, login: &str, password: &str) -> Result<ChannelId, service::Error> {
    let channel_id = ChannelId::stored(id.to_owned());
    let record = ChannelRecord {
        channel_id: channel_id.clone(),
        name: format!("{id}'s channel"),
        image_url: None,
        verified_mark: false,
        real_name_verified: false,
    };
    let credentials =
        LoginCredentials { login: login.to_owned(), password: password.to_owned(), email: None };
    world.service.put_channel(record, Some(credentials)).await?;
    Ok(channel_id)
}

#[tokio::test(flavor = "multi_thread")]
async fn only_login_and_password_together_sign_in() {
    both(|world| async move {
        let user = person(&world, "user", "login", "correct horse").await.unwrap();
        person(&world, "other", "other", "wrong horse").await.unwrap();
        let long = "x".repeat(10_000);
        for (login, password) in [
            ("login", "wrong horse"),
            ("Login", "correct horse"),
            ("login ", "correct horse"),
            ("missing", "correct horse"),
            ("missing", "no login has this password"),
            ("login\0", "correct horse"),
            ("login", ""),
            ("", ""),
            (&long, "correct horse"),
            ("login", &long),
        ] {
            assert!(world.service.sign_in(login, password, false).await.unwrap().is_none(), "{login:?}");
        }
        let token = world.service.sign_in("login", "correct horse", false).await.unwrap().unwrap();
        let signed_in = world.service.signed_in(&token).await.unwrap().unwrap();
        assert_eq!((signed_in.channel_id, signed_in.channel_name.as_str()), (user, "user's channel"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_belongs_to_one_person_and_a_password_can_be_changed() {
    both(|world| async move {
        person(&world, "user", "login", "first").await.unwrap();
        let taken = person(&world, "other", "login", "second").await;
        assert_eq!(refused(taken), Refusal::Invalid(Invalid::new("login", Rule::Taken)));
        let other = vec![ChannelId::stored("other".into())];
        assert!(world.service.channels(other).await.unwrap().is_empty(), "the refused call changed nothing");
        person(&world, "user", "login", "second").await.unwrap();
        assert!(world.service.sign_in("login", "first", false).await.unwrap().is_none());
        assert!(world.service.sign_in("login", "second", false).await.unwrap().is_some());
        for (login, password, field) in [("", "p", "login"), ("a\0", "p", "login"), ("l", "", "password")] {
            match refused(person(&world, "third", login, password).await) {
                Refusal::Invalid(invalid) => assert_eq!(invalid.field, field),
                other => panic!("{other:?}"),
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_signs_in_known_users() {
    both(|world| async move {
        let user = person(&world, "user", "login", "password").await.unwrap();
        for unknown in ["missing", "", "login\0", &"x".repeat(10_000)] {
            assert!(world.service.sign_in_as(unknown).await.unwrap().is_none(), "{unknown:?}");
        }
        let token = world.service.sign_in_as("login").await.unwrap().unwrap();
        assert_eq!(world.service.signed_in(&token).await.unwrap().unwrap().channel_id, user);
        let people = world.service.people(10).await.unwrap();
        assert_eq!(people.iter().map(|person| person.login.as_str()).collect::<Vec<_>>(), ["login"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_stays_signed_in_for_12_hours_or_until_it_signs_out() {
    both(|world| async move {
        person(&world, "user", "login", "password").await.unwrap();
        let sign_in = async || world.service.sign_in_as("login").await.unwrap().unwrap();
        let signed_in = async |token: &BrowserToken| world.service.signed_in(token).await.unwrap().is_some();
        let (first, second) = (sign_in().await, sign_in().await);
        assert_ne!(first.expose(), second.expose(), "each sign-in has a token of its own");
        world.service.sign_out(&first).await.unwrap();
        assert!(!signed_in(&first).await && signed_in(&second).await);
        world.service.sign_out(&first).await.unwrap();
        world.advance_ms(BROWSER_SESSION_LIFETIME_MS as u64 - 1);
        assert!(signed_in(&second).await);
        world.advance_ms(1);
        assert!(!signed_in(&second).await);
        assert!(!signed_in(&BrowserToken::presented("unknown").unwrap()).await);
    })
    .await;
}
