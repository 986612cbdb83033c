//! Applications: authentication and registration.

use std::collections::HashSet;

use domain::application::{Organization, RedirectUri};
use domain::audit::Actor;
use domain::limits::APPLICATION_SECRETS_MAX;
use domain::refusal::Resource;
use domain::secret::ClientSecret;
use domain::{ClientId, Invalid, OrganizationId, Refusal, Rule, Scope, ScopeSet};
use serde_json::Value;
use service::applications::ApplicationRecord;
use service::audit_log::AuditFilter;

use crate::world::{REDIRECT, STATE, at_once, both, record, refused};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn its_people_make_a_limited_number_of_secrets_also_at_once() {
    both(|world| async move {
        world.service.put_application(record("app", ScopeSet::EMPTY)).await.unwrap().unwrap();
        let app = ClientId::stored("app".into());
        let made = at_once((0..60).map(|_| {
            let (service, app) = (world.service.clone(), app.clone());
            async move { service.add_own_secret(&app, None).await }
        }));
        let full =
            Refusal::Invalid(Invalid::new("clientSecret", Rule::Fewer { max: APPLICATION_SECRETS_MAX }));
        let made: Vec<_> =
            made.await.into_iter().filter_map(|made| made.map_err(|e| assert_eq!(e, full)).ok()).collect();
        // The first one came with the application.
        assert_eq!(made.len() as i64, APPLICATION_SECRETS_MAX - 1);
        assert_eq!(world.service.secrets(&app).await.unwrap().len() as i64, APPLICATION_SECRETS_MAX);
        // One that has expired makes room. The operator has no limit.
        let secrets = world.service.secrets(&app).await.unwrap();
        world.service.delete_secret(&app, &secrets[0].secret_id).await.unwrap();
        world.service.add_own_secret(&app, None).await.unwrap();
        assert_eq!(refused(world.service.add_own_secret(&app, None).await), full);
        world.service.add_secret(&app, None).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_of_many_changes_at_once_is_logged_beside_the_one_before_it() {
    both(|world| async move {
        world.service.put_application(record("app", ScopeSet::EMPTY)).await.unwrap().unwrap();
        let operator = world.service.acting_as(Actor::ConfiguredKey, None, String::new());
        let made = at_once((0..20).map(|n| {
            let (service, uri) = (operator.clone(), RedirectUri::parse(&format!("https://{n}.example/")));
            let record =
                ApplicationRecord { redirect_uris: vec![uri.unwrap()], ..record("app", ScopeSet::EMPTY) };
            async move { service.put_application(record).await }
        }));
        assert!(made.await.iter().all(Result::is_ok));
        let entries = world.service.audit_log(AuditFilter::default(), 50, None).await.unwrap().items;
        assert_eq!(entries.len(), 20);
        // An address is removed by the one change after that which added it.
        let removed = entries.iter().map(|entry| {
            let details: Value = serde_json::from_str(&entry.details).unwrap();
            details["removedRedirectUris"].to_string()
        });
        assert_eq!(removed.collect::<HashSet<_>>().len(), 20);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_authenticates_with_any_of_its_secrets() {
    both(|world| async move {
        let first = world.service.put_application(record("app", ScopeSet::EMPTY)).await.unwrap().unwrap();
        let other = world.service.put_application(record("other", ScopeSet::EMPTY)).await.unwrap().unwrap();
        let app = ClientId::stored("app".into());
        let second = world.service.add_secret(&app, None).await.unwrap();
        let known = ClientSecret::presented("a secret that is known outside").unwrap();
        world.service.ensure_secret(&app, &known).await.unwrap();
        world.service.ensure_secret(&app, &known).await.unwrap();
        for secret in [&first, &second, &known] {
            let proven = world.service.authenticate_client("app", secret.expose()).await.unwrap();
            assert_eq!(proven.client_id, app);
        }
        let long = "x".repeat(10_000);
        for (client, secret) in [
            ("app", other.expose()),
            ("other", first.expose()),
            ("app", ""),
            ("app", long.as_str()),
            ("missing", first.expose()),
            ("no id\0", first.expose()),
            ("", ""),
        ] {
            let outcome = world.service.authenticate_client(client, secret).await;
            assert_eq!(refused(outcome), Refusal::InvalidClient, "{client:?}");
        }
        let missing = world.service.add_secret(&ClientId::stored("missing".into()), None).await;
        assert_eq!(refused(missing), Refusal::NotFound(Resource::Application));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_application_made_many_times_at_once_gets_one_secret() {
    both(|world| async move {
        let outcomes = at_once((0..20).map(|_| {
            let service = world.service.clone();
            async move { service.put_application(record("app", ScopeSet::EMPTY)).await }
        }));
        let secrets: Vec<_> = outcomes.await.into_iter().filter_map(|outcome| outcome.unwrap()).collect();
        assert_eq!(secrets.len(), 1);
        assert!(world.service.authenticate_client("app", secrets[0].expose()).await.is_ok());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_is_replaced_completely_or_not_at_all() {
    both(|world| async move {
        let other = "https://app.example/other";
        world.application("app").await;
        let unknown = ApplicationRecord {
            organization_id: Some(OrganizationId::stored("missing".into())),
            redirect_uris: vec![RedirectUri::parse(other).unwrap()],
            ..record("app", ScopeSet::EMPTY)
        };
        let outcome = world.service.put_application(unknown.clone()).await;
        let expected = Invalid::new("organizationId", Rule::KnownOrganization);
        assert_eq!(refused(outcome), Refusal::Invalid(expected));
        let registered = async |uri| world.service.sign_in_request("app", uri, STATE).await.unwrap().is_ok();
        assert!(registered(REDIRECT).await && !registered(other).await);

        let organization = Organization {
            organization_id: OrganizationId::stored("missing".into()),
            name: "회사".into(),
            verified: true,
        };
        world.service.put_organization(organization).await.unwrap();
        let drops = ApplicationRecord { scopes: [Scope::Drops].into_iter().collect(), ..unknown };
        assert!(world.service.put_application(drops).await.unwrap().is_none(), "no second secret");
        assert!(!registered(REDIRECT).await && registered(other).await);
        let app = world.service.application(&ClientId::stored("app".into())).await.unwrap().unwrap();
        assert!(app.may_use_drops());
    })
    .await;
}
