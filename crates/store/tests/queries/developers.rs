//! The owners of applications, the members of organizations, and requests to the operator.

use domain::application::Presentation;
use domain::https_url::HttpsUrl;
use domain::member::MemberRole;
use domain::quota::QuotaShare;
use domain::review::{ReviewKind, ReviewState, ReviewSubject};
use domain::{ChannelId, OrganizationId, ReviewRequestId, Scope, ScopeSet};
use store::queries::application_life::ApplicationLife;
use store::queries::channel_deletions::DeletionStep;
use store::queries::review_requests::{NewReviewRequest, ReviewEnd, ReviewRequest};
use store::{StoreError, Tx};

use crate::{OBSERVED, application, at, channel, client, in_seeded, organization};

fn games() -> OrganizationId {
    OrganizationId::stored("games".to_owned())
}

/// Organization `games` with the admin `a`.
async fn put_games(tx: &mut Tx) -> Result<(), StoreError> {
    tx.put_organization(&organization("games", false)).await?;
    tx.put_organization_member(&games(), &channel("a"), MemberRole::Admin, at(3)).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_with_members_keeps_an_admin() {
    in_seeded(async move |tx: &mut Tx| {
        put_games(tx).await?;
        let (id, a, b) = (games(), channel("a"), channel("b"));
        assert!(tx.lock_organization(&id).await? && tx.has_organization(&id).await?);
        let missing = OrganizationId::stored("missing".to_owned());
        assert!(!tx.lock_organization(&missing).await? && !tx.has_organization(&missing).await?);
        for role in [MemberRole::Viewer, MemberRole::Developer] {
            assert!(!tx.put_organization_member(&id, &a, role, at(4)).await?);
        }
        assert!(!tx.delete_organization_member(&id, &a).await?);
        assert!(tx.put_organization_member(&id, &a, MemberRole::Admin, at(4)).await?);

        assert!(tx.put_organization_member(&id, &b, MemberRole::Viewer, at(5)).await?);
        assert!(!tx.delete_organization_member(&id, &a).await?, "a viewer is no admin");
        assert!(tx.put_organization_member(&id, &b, MemberRole::Admin, at(6)).await?);
        assert!(tx.put_organization_member(&id, &a, MemberRole::Developer, at(6)).await?);
        assert!(!tx.delete_organization_member(&id, &b).await?);
        assert_eq!(tx.organization_role(&id, &a).await?, Some(MemberRole::Developer));
        assert_eq!(tx.organization_role(&id, &channel("c")).await?, None);
        assert_eq!((tx.organization_member_count(&id).await?, tx.organizations_made(&b).await?), (2, 0));
        tx.make_organization(&organization("made", false), &b).await?;
        assert_eq!((tx.organizations_made(&a).await?, tx.organizations_made(&b).await?), (0, 1));

        let members = tx.organization_members(&id, "", 10).await?;
        let listed: Vec<_> =
            members.iter().map(|m| (m.channel_name.as_str(), m.role, m.created_at)).collect();
        let developer = ("channel a", MemberRole::Developer, at(3));
        assert_eq!(listed, [developer, ("channel b", MemberRole::Admin, at(5))]);
        assert_eq!(tx.organization_members(&id, "a", 10).await?.len(), 1);
        assert_eq!(tx.organization_members(&id, "", 1).await?.len(), 1);
        let [membership] = tx.memberships(&b, "", 10).await?.try_into().unwrap();
        assert_eq!(
            (membership.role, membership.organization.name.as_str()),
            (MemberRole::Admin, "organization games")
        );
        assert!(tx.memberships(&b, "games", 10).await?.is_empty());
        assert!(
            tx.membership(&a, &id).await?.is_some() && tx.membership(&channel("c"), &id).await?.is_none()
        );

        assert!(tx.delete_organization_member(&id, &a).await?);
        assert!(!tx.delete_organization_member(&id, &a).await?);
        tx.delete_organization(&id).await?;
        assert!(tx.memberships(&b, "", 10).await?.is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_find_their_own_applications_and_those_of_their_organizations() {
    in_seeded(async move |tx: &mut Tx| {
        put_games(tx).await?;
        let mut owned = application("app");
        owned.owner = Some(channel("a"));
        tx.put_application(&owned, at(2)).await?;
        let mut shared = application("other");
        shared.organization = Some(organization("games", false));
        tx.put_application(&shared, at(2)).await?;
        tx.put_application(&application("third"), at(2)).await?;

        let ids = |found: Vec<ApplicationLife>| {
            found.into_iter().map(|life| life.application.client_id.to_string()).collect::<Vec<_>>()
        };
        let (a, b) = (channel("a"), channel("b"));
        assert_eq!(ids(tx.applications_of_owner(&a, "", at(0), 10).await?), ["app"]);
        assert!(tx.applications_of_owner(&a, "app", at(0), 10).await?.is_empty());
        assert!(tx.applications_of_owner(&b, "", at(0), 10).await?.is_empty());
        assert_eq!(ids(tx.applications_of_organization(&games(), "", at(0), 10).await?), ["other"]);
        assert!(tx.applications_of_organization(&games(), "other", at(0), 10).await?.is_empty());
        assert_eq!(tx.owned_application_count(&a, 50).await?, 1);
        assert_eq!(tx.organization_application_count(&games(), 50).await?, 1);

        let (life, role) = tx.application_access(&client("other"), &channel("a"), at(0)).await?.unwrap();
        assert_eq!((life.application.owner, role), (None, Some(MemberRole::Admin)));
        let (life, role) = tx.application_access(&client("app"), &channel("b"), at(0)).await?.unwrap();
        assert_eq!((life.application.owner, role), (Some(channel("a")), None));
        assert!(tx.application_access(&client("missing"), &channel("a"), at(0)).await?.is_none());

        tx.set_application_owner(&client("app"), None, Some(&games())).await?;
        assert_eq!(tx.organization_application_count(&games(), 50).await?, 2);
        assert_eq!(tx.organization_application_count(&games(), 1).await?, 1);
        tx.set_application_owner(&client("app"), Some(&channel("b")), None).await?;
        assert_eq!(ids(tx.applications_of_owner(&b, "", at(0), 10).await?), ["app"]);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_owner_changes_leaves_the_rest_as_it_is() {
    in_seeded(async move |tx: &mut Tx| {
        let app = client("app");
        let homepage = HttpsUrl::parse("homepageUrl", "https://app.example").ok();
        let presentation = Presentation { homepage: homepage.clone(), ..Presentation::default() };
        tx.change_application(&app, "다른 이름", OBSERVED, &presentation).await?;
        let found = tx.application(&app).await?.unwrap();
        assert_eq!((found.name.as_str(), found.profile), ("다른 이름", OBSERVED));
        assert_eq!((found.presentation.homepage, found.quota), (homepage, QuotaShare::FULL));
        assert_eq!(found.scopes, crate::scopes());

        let chat: ScopeSet = [Scope::ChatRead].into_iter().collect();
        let drops: ScopeSet = [Scope::Drops].into_iter().collect();
        tx.set_application_scopes(&app, chat).await?;
        assert!(tx.grant_application_scopes(&app, drops).await?);
        assert!(!tx.grant_application_scopes(&client("missing"), drops).await?);
        let scopes = tx.application(&app).await?.unwrap().scopes;
        assert_eq!(scopes, [Scope::ChatRead, Scope::Drops].into_iter().collect());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_and_owner_each_enable_what_they_disabled() {
    in_seeded(async move |tx: &mut Tx| {
        let app = client("app");
        let state = async |tx: &mut Tx| {
            let life = tx.application_life(&client("app"), at(0)).await?.unwrap();
            let by = (life.is_disabled_by_operator, life.is_disabled_by_owner);
            Ok::<_, StoreError>((life.disabled_at, by))
        };
        tx.disable_application_of_owner(&app, at(5)).await?;
        assert_eq!(state(tx).await?, (Some(at(5)), (false, true)));
        assert!(tx.application(&app).await?.is_none());
        assert!(tx.disable_application(&app, at(6), at(0)).await?);
        assert_eq!(state(tx).await?, (Some(at(5)), (true, true)));
        tx.enable_application_of_owner(&app).await?;
        assert_eq!(state(tx).await?, (Some(at(5)), (true, false)));
        tx.disable_application_of_owner(&app, at(7)).await?;
        assert!(tx.enable_application(&app, at(0)).await?);
        assert_eq!(state(tx).await?, (Some(at(5)), (false, true)));
        tx.enable_application_of_owner(&app).await?;
        assert_eq!(state(tx).await?, (None, (false, false)));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_use_does_not_restore_what_its_owner_deleted() {
    in_seeded(async move |tx: &mut Tx| {
        let app = client("app");
        assert!(tx.delete_application_of_owner(&app, at(5)).await?);
        assert!(!tx.delete_application_of_owner(&app, at(6)).await?);
        assert!(!tx.note_application_use(&app, at(4)).await?);
        let life = tx.application_life(&app, at(0)).await?.unwrap();
        assert_eq!((life.deleted_at, life.is_deleted_by_owner), (Some(at(5)), true));
        assert!(tx.restore_application(&app, at(7), at(0)).await?);
        let life = tx.application_life(&app, at(0)).await?.unwrap();
        assert_eq!((life.deleted_at, life.is_deleted_by_owner, life.last_used_at), (None, false, at(7)));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_applications_of_a_deleted_person_are_purged() {
    in_seeded(async move |tx: &mut Tx| {
        put_games(tx).await?;
        let mut owned = application("app");
        owned.owner = Some(channel("a"));
        tx.put_application(&owned, at(2)).await?;
        tx.insert_review_request(&request("r1", ReviewSubject::Verification(games())), at(3), 20).await?;
        let until = domain::MessageId::bound_at(at(100));
        assert!(tx.mark_channel_deleted(&channel("a"), &channel("deleted-a"), &until, at(9)).await?);
        while tx.delete_channel_rows(&channel("a"), at(10)).await? == DeletionStep::More {}
        assert!(tx.is_application_purging(&client("app")).await?);
        assert!(!tx.is_application_purging(&client("other")).await?);
        assert_eq!(tx.owned_application_count(&channel("a"), 50).await?, 0);
        assert_eq!(tx.organization_member_count(&games()).await?, 0);
        assert!(tx.review_requests_of_organization(&games(), 10).await?.is_empty());
        assert_eq!(tx.begin_purge_of_owned(&channel("b"), at(9)).await?, []);
        Ok(())
    })
    .await;
}

fn request(id: &str, subject: ReviewSubject) -> NewReviewRequest {
    NewReviewRequest {
        request_id: request_id(id),
        subject,
        requested_by: channel("a"),
        message: "부탁".to_owned(),
    }
}

fn request_id(id: &str) -> ReviewRequestId {
    ReviewRequestId::stored(id.to_owned())
}

fn ids(requests: Vec<ReviewRequest>) -> Vec<String> {
    requests.into_iter().map(|request| request.request_id.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_of_a_kind_is_pending_and_the_first_decision_counts() {
    in_seeded(async move |tx: &mut Tx| {
        put_games(tx).await?;
        let app = client("app");
        let chat: ScopeSet = [Scope::ChatRead].into_iter().collect();
        let verification = ReviewSubject::Verification(games());
        assert!(tx.rename_organization(&games(), "게임즈").await?);
        assert!(tx.insert_review_request(&request("r1", verification.clone()), at(3), 20).await?);
        assert!(!tx.rename_organization(&games(), "다른 이름").await?);
        assert!(!tx.insert_review_request(&request("r2", verification.clone()), at(3), 20).await?);
        assert!(
            tx.insert_review_request(&request("r3", ReviewSubject::Drops(app.clone())), at(4), 20).await?
        );
        let scopes = ReviewSubject::Scopes(app.clone(), chat);
        assert!(tx.insert_review_request(&request("r4", scopes), at(5), 20).await?);

        assert_eq!(ids(tx.review_requests(ReviewState::Pending, "", 10).await?), ["r1", "r3", "r4"]);
        assert_eq!(ids(tx.review_requests(ReviewState::Pending, "r1", 1).await?), ["r3"]);
        assert_eq!(ids(tx.review_requests_of_application(&app, 10).await?), ["r4", "r3"]);
        assert_eq!(ids(tx.review_requests_of_organization(&games(), 10).await?), ["r1"]);
        let found = tx.review_request(&request_id("r4")).await?.unwrap();
        assert_eq!((found.kind, found.scopes, found.created_at), (ReviewKind::Scopes, chat, at(5)));
        assert_eq!(
            (found.application_name.as_deref(), found.requested_by_name.as_str()),
            (Some("application app"), "channel a")
        );
        assert!(tx.review_request(&request_id("r2")).await?.is_none());

        let end = ReviewEnd { state: ReviewState::Approved, decided_by: "someone", note: Some("좋아요") };
        let decided = tx.decide_review_request(&request_id("r1"), &end, at(8)).await?.unwrap();
        assert_eq!((decided.kind, decided.organization_id), (ReviewKind::Organization, Some(games())));
        let refused = ReviewEnd { state: ReviewState::Refused, ..end };
        assert!(tx.decide_review_request(&request_id("r1"), &refused, at(9)).await?.is_none());
        assert!(!tx.withdraw_review_request(&request_id("r1"), at(9)).await?);
        let found = tx.review_request(&request_id("r1")).await?.unwrap();
        assert_eq!((found.state, found.decided_at), (ReviewState::Approved, Some(at(8))));
        assert_eq!((found.decided_by.as_deref(), found.note.as_deref()), (Some("someone"), Some("좋아요")));
        assert!(tx.verify_organization(&games()).await?);
        assert!(!tx.rename_organization(&games(), "다른 이름").await?);
        assert!(tx.membership(&channel("a"), &games()).await?.unwrap().organization.verified);

        assert!(tx.withdraw_review_request(&request_id("r3"), at(9)).await?);
        tx.withdraw_requests_of_application(&app, at(9)).await?;
        assert!(tx.review_requests(ReviewState::Pending, "", 10).await?.is_empty());
        assert_eq!(ids(tx.review_requests(ReviewState::Withdrawn, "", 10).await?), ["r3", "r4"]);
        // A further one is possible, and the oldest ones are forgotten.
        assert!(tx.insert_review_request(&request("r5", ReviewSubject::Drops(app.clone())), at(9), 2).await?);
        assert_eq!(ids(tx.review_requests_of_application(&app, 10).await?), ["r5", "r4"]);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_names_a_login_and_is_used_up_by_its_person() {
    in_seeded(async move |tx: &mut Tx| {
        put_games(tx).await?;
        let (id, b) = (games(), channel("b"));
        tx.put_person(&b, "login-b", "hash").await?;
        tx.put_invitation(&id, "login-b", MemberRole::Viewer, &channel("a"), at(5)).await?;
        tx.put_invitation(&id, "login-b", MemberRole::Developer, &channel("a"), at(6)).await?;
        tx.put_invitation(&id, "unknown", MemberRole::Viewer, &channel("a"), at(3)).await?;
        let listed = tx.invitations(&id, at(0)).await?;
        let listed: Vec<_> =
            listed.iter().map(|one| (one.login.as_str(), one.role, one.created_at)).collect();
        let developer = ("login-b", MemberRole::Developer, at(6));
        assert_eq!(listed, [developer, ("unknown", MemberRole::Viewer, at(3))]);
        assert_eq!((tx.invitations(&id, at(3)).await?.len(), tx.invitation_count(&id).await?), (1, 2));
        let [received] = tx.invitations_of_person(&b, at(0)).await?.try_into().unwrap();
        assert_eq!((received.organization_id, received.role), (games(), MemberRole::Developer));
        assert_eq!(received.organization_name, "organization games");
        assert!(tx.invitations_of_person(&b, at(6)).await?.is_empty());

        assert_eq!(tx.take_invitation(&id, &channel("c"), at(0)).await?, None);
        assert_eq!(tx.take_invitation(&id, &b, at(6)).await?, None, "it has expired");
        assert_eq!(tx.take_invitation(&id, &b, at(0)).await?, Some(MemberRole::Developer));
        assert_eq!(tx.take_invitation(&id, &b, at(0)).await?, None);
        tx.delete_expired_invitations(&id, at(2)).await?;
        assert_eq!(tx.invitation_count(&id).await?, 1);
        tx.delete_expired_invitations(&id, at(3)).await?;
        assert_eq!(tx.invitation_count(&id).await?, 0);
        tx.put_invitation(&id, "unknown", MemberRole::Viewer, &channel("a"), at(3)).await?;
        tx.delete_invitation(&id, "unknown").await?;
        assert_eq!(tx.invitation_count(&id).await?, 0);

        let other = OrganizationId::stored("other".to_owned());
        tx.put_organization(&organization("other", false)).await?;
        for (id, login, made) in [(&id, "login-b", 5), (&id, "unknown", 6), (&other, "login-b", 7)] {
            tx.put_invitation(id, login, MemberRole::Viewer, &channel("a"), at(made)).await?;
        }
        let (a, c) = (channel("a"), channel("c"));
        assert_eq!((tx.invitations_made(&a, at(0)).await?, tx.invitations_made(&a, at(5)).await?), (3, 2));
        assert_eq!(tx.invitations_made(&c, at(0)).await?, 0);
        let received = tx.invitations_of_person(&b, at(0)).await?;
        let received: Vec<_> = received.iter().map(|one| one.organization_id.as_str()).collect();
        assert_eq!(received, ["other", "games"], "the newest first");
        assert_eq!(tx.decline_invitations(&b, at(6)).await?.len(), 1, "those of until then");
        assert_eq!(tx.decline_invitations(&b, at(7)).await?.len(), 1);
        assert_eq!((tx.invitation_count(&id).await?, tx.invitation_count(&other).await?), (1, 0));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_names_a_login_and_is_used_up_by_its_person() {
    in_seeded(async move |tx: &mut Tx| {
        let (x, b) = (client("app"), channel("b"));
        tx.put_person(&b, "login-b", "hash").await?;
        tx.set_application_owner(&x, Some(&channel("a")), None).await?;
        tx.put_application_offer(&x, "unknown", at(4)).await?;
        tx.put_application_offer(&x, "login-b", at(5)).await?;
        let sent = tx.application_offer(&x, at(0)).await?.unwrap();
        assert_eq!((sent.login.as_str(), sent.created_at), ("login-b", at(5)));
        assert_eq!(tx.application_offer(&x, at(5)).await?, None, "it has expired");
        let [received] = tx.application_offers_of_person(&b, at(0)).await?.try_into().unwrap();
        assert_eq!(
            (received.client_id.as_str(), received.owner_name.as_deref(), received.organization_name),
            ("app", Some("channel a"), None)
        );
        assert!(tx.application_offers_of_person(&b, at(5)).await?.is_empty());
        assert!(tx.application_offers_of_person(&channel("c"), at(0)).await?.is_empty());
        assert!(!tx.take_application_offer(&x, &channel("c"), at(0)).await?);
        assert!(!tx.take_application_offer(&x, &b, at(5)).await?, "it has expired");
        assert!(tx.take_application_offer(&x, &b, at(0)).await?);
        assert!(!tx.take_application_offer(&x, &b, at(0)).await?);
        tx.put_application_offer(&x, "login-b", at(5)).await?;
        tx.delete_application_offer(&x).await?;
        assert_eq!(tx.application_offer(&x, at(0)).await?, None);
        Ok(())
    })
    .await;
}

/// An invitation and an offer belong to the account that had the login, and go with it.
#[tokio::test(flavor = "multi_thread")]
async fn who_takes_a_login_later_gets_neither_its_invitations_nor_its_offers() {
    in_seeded(async move |tx: &mut Tx| {
        put_games(tx).await?;
        let (id, b, c, until) = (games(), channel("b"), channel("c"), domain::MessageId::bound_at(at(9)));
        tx.put_person(&b, "login-b", "hash").await?;
        for login in ["login-b", "nobody-yet"] {
            tx.put_invitation(&id, login, MemberRole::Admin, &channel("a"), at(5)).await?;
        }
        for (app, login) in [("app", "login-b"), ("other", "nobody-yet")] {
            tx.put_application_offer(&client(app), login, at(5)).await?;
        }
        let received = async |tx: &mut Tx, person: &ChannelId| {
            let invitations = tx.invitations_of_person(person, at(0)).await?.len();
            Ok::<_, StoreError>((invitations, tx.application_offers_of_person(person, at(0)).await?.len()))
        };
        assert_eq!(received(tx, &b).await?, (1, 1));
        // A person who gets another login keeps them.
        tx.put_person(&b, "login-b2", "hash").await?;
        assert_eq!(received(tx, &b).await?, (1, 1));
        for login in ["login-b", "nobody-yet"] {
            tx.put_person(&c, login, "hash").await?;
            assert_eq!(received(tx, &c).await?, (0, 0), "{login}");
            assert_eq!(tx.take_invitation(&id, &c, at(0)).await?, None);
            assert!(!tx.take_application_offer(&client("app"), &c, at(0)).await?);
            assert!(!tx.take_application_offer(&client("other"), &c, at(0)).await?);
        }
        tx.mark_channel_deleted(&b, &channel("alias"), &until, at(9)).await?;
        assert_eq!(received(tx, &b).await?, (0, 0));
        assert_eq!(tx.invitations(&id, at(0)).await?.len(), 1, "that of the login which nobody had");
        assert!(tx.application_offer(&client("app"), at(0)).await?.is_none());
        Ok(())
    })
    .await;
}
