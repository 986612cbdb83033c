//! Credentials that end before their time.

use domain::session::SessionOwner;
use store::Tx;
use store::queries::expire::{ExpireFilter, Expiring};
use store::queries::tokens::{NewCode, NewToken};

use crate::{at, channel, client, family, hash, in_seeded, of_client};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_meant_and_still_valid_ends_now() {
    in_seeded(async move |tx: &mut Tx| {
        let (client_id, channel_id) = (client("app"), channel("a"));
        for (name, expires) in [("over", 10), ("one", 100), ("two", 100)] {
            let (hash, family, expires_at) = (&hash(name), &family(name), at(expires));
            let (client_id, channel_id) = (&client_id, &channel_id);
            let token = || NewToken { hash, family, client_id, channel_id, generation: 0, expires_at };
            tx.insert_access_token(token()).await?;
            tx.insert_refresh_token(token(), at(0)).await?;
            tx.insert_code(NewCode {
                hash,
                family,
                client_id,
                channel_id,
                state: hash,
                redirect_uri: "https://app.example/",
                began_at: at(0),
                expires_at,
            })
            .await?;
            let owner: SessionOwner = of_client("app");
            tx.insert_session_url(hash, &owner, None, expires_at).await?;
        }
        let now = at(50);
        for what in [Expiring::Code, Expiring::AccessToken, Expiring::RefreshToken, Expiring::SessionUrl] {
            let user = (what != Expiring::SessionUrl).then(|| channel_id.clone());
            let filter = |hash, client_id, channel_id| ExpireFilter { hash, client_id, channel_id };
            let other = filter(None, Some(client("other")), None);
            assert_eq!(tx.expire(what, &other, now).await?, [], "{what:?}");
            let one = filter(Some(hash("one")), None, None);
            assert_eq!(tx.expire(what, &one, now).await?, [(client_id.clone(), user.clone())], "{what:?}");
            assert_eq!(tx.expire(what, &one, now).await?, [], "{what:?}: it is over");
            let rest = filter(None, Some(client_id.clone()), user.clone());
            assert_eq!(tx.expire(what, &rest, now).await?.len(), 1, "{what:?}");
        }
        assert_eq!(tx.holder(&hash("two"), at(49)).await?.map(|holder| holder.expires_at), Some(now));
        assert!(tx.holder(&hash("two"), now).await?.is_none());
        Ok(())
    })
    .await;
}
