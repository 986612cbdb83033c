//! What people own and manage: races are decided by the database.

use domain::application::Organization;
use domain::limits::{DAY_MS, INVITATIONS_PER_DAY_MAX, ORGANIZATIONS_MAX};
use domain::member::MemberRole;
use domain::refusal::Resource;
use domain::review::{Decision, ReviewState, ReviewSubject};
use domain::{ChannelId, Invalid, OrganizationId, Refusal, Rule};
use service::review_requests::ReviewDecision;

use crate::world::{World, at_once, both, refused};

/// Organization `games` with these admins.
async fn games(world: &World, admins: &[&ChannelId]) -> OrganizationId {
    let organization_id = OrganizationId::stored("games".to_owned());
    let organization =
        Organization {
            organization_id: organization_id.clone(), name: "게임즈".to_owned(), verified: false
        };
    world.service.put_organization(organization).await.unwrap();
    for admin in admins {
        let put = world.service.put_organization_member(&organization_id, admin, MemberRole::Admin, None);
        put.await.unwrap();
    }
    organization_id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_admins_who_remove_each_other_leave_one() {
    both(|world| async move {
        let (a, b) = (world.user("a").await, world.user("b").await);
        for _ in 0..10 {
            let id = games(&world, &[&a, &b]).await;
            let outcomes = at_once(
                [(a.clone(), b.clone()), (b.clone(), a.clone())]
                    .map(|(by, of)| {
                        let (service, id) = (world.service.clone(), id.clone());
                        async move { service.remove_member(&by, &id, &of).await }
                    })
                    .into_iter(),
            );
            let outcomes = outcomes.await;
            assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
            let members = world.service.organization_members(&id, 10, None).await.unwrap().items;
            assert_eq!(members.iter().map(|member| member.role).collect::<Vec<_>>(), [MemberRole::Admin]);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn admins_who_step_down_at_the_same_time_leave_one() {
    both(|world| async move {
        let (a, b) = (world.user("a").await, world.user("b").await);
        for _ in 0..10 {
            let id = games(&world, &[&a, &b]).await;
            let tasks = [a.clone(), b.clone()].into_iter().enumerate().map(|(n, person)| {
                let (service, id) = (world.service.clone(), id.clone());
                async move {
                    match n {
                        0 => service.remove_member(&person, &id, &person).await,
                        _ => service.change_member(&person, &id, &person, MemberRole::Viewer).await,
                    }
                }
            });
            let outcomes = at_once(tasks).await;
            let last = |field| Err(Refusal::Invalid(Invalid::new(field, Rule::LastAdmin)));
            assert!(
                outcomes == [Ok(()), last("role")] || outcomes == [last("channelId"), Ok(())],
                "{outcomes:?}"
            );
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_decisions_at_once_one_counts() {
    both(|world| async move {
        let a = world.user("a").await;
        let id = games(&world, &[&a]).await;
        for _ in 0..5 {
            let subject = ReviewSubject::Verification(id.clone());
            let submitted = at_once((0..4).map(|_| {
                let (service, a, subject) = (world.service.clone(), a.clone(), subject.clone());
                async move { service.submit_review_request(&a, subject, "부탁").await }
            }));
            let submitted = submitted.await;
            let request = submitted[0].clone().unwrap();
            assert!(submitted.iter().all(|outcome| outcome.as_ref() == Ok(&request)), "{submitted:?}");
            let decisions = (0..4).map(|n| {
                let (service, request) = (world.service.clone(), request.clone());
                let decision = if n % 2 == 0 { Decision::Approve } else { Decision::Refuse };
                let decision = ReviewDecision { decision, note: None, decided_by: format!("operator {n}") };
                async move { service.decide_review_request(&request, decision).await }
            });
            let outcomes = at_once(decisions).await;
            let decided = world.service.review_request(&request).await.unwrap();
            let approved = decided.state == ReviewState::Approved;
            for (n, outcome) in outcomes.iter().enumerate() {
                assert_eq!(outcome.is_ok(), (n % 2 == 0) == approved, "{outcomes:?} {decided:?}");
            }
            let membership = world.service.membership(&a, &id, MemberRole::Admin).await.unwrap();
            assert_eq!(membership.organization.verified, approved);
            games(&world, &[&a]).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_person_makes_a_limited_number_of_organizations() {
    both(|world| async move {
        let a = world.user("a").await;
        let made = at_once((0..ORGANIZATIONS_MAX + 4).map(|n| {
            let (service, a) = (world.service.clone(), a.clone());
            async move { service.make_organization(&a, format!("조직 {n}")).await }
        }));
        let made = made.await;
        assert_eq!(made.iter().filter(|outcome| outcome.is_ok()).count() as i64, ORGANIZATIONS_MAX);
        let memberships = world.service.memberships(&a).await.unwrap();
        assert!(memberships.iter().all(|one| one.role == MemberRole::Admin && !one.organization.verified));
        // Who leaves an organization has made it all the same.
        let b = world.user("b").await;
        for membership in &memberships {
            let id = &membership.organization.organization_id;
            world.service.put_organization_member(id, &b, MemberRole::Admin, None).await.unwrap();
            world.service.remove_member(&a, id, &a).await.unwrap();
        }
        assert!(world.service.memberships(&a).await.unwrap().is_empty());
        // Who is a member of many may make as many.
        world.service.make_organization(&b, "첫 조직".to_owned()).await.unwrap();
        let wrong = Invalid::new("organizationName", Rule::Fewer { max: ORGANIZATIONS_MAX });
        assert_eq!(
            refused(world.service.make_organization(&a, "또".to_owned()).await),
            Refusal::Invalid(wrong)
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_people_manage_an_organization() {
    both(|world| async move {
        let [a, b, c] = [world.user("a").await, world.user("b").await, world.user("c").await];
        let id = games(&world, &[&a]).await;
        let not_found = Refusal::NotFound(Resource::Organization);
        let service = &world.service;
        service.put_organization_member(&id, &b, MemberRole::Developer, None).await.unwrap();
        for person in [&b, &c] {
            let changed = service.change_member(person, &id, &a, MemberRole::Viewer).await;
            assert_eq!(refused(changed), not_found);
            assert_eq!(refused(service.remove_member(person, &id, &a).await), not_found);
            let subject = ReviewSubject::Verification(id.clone());
            assert_eq!(refused(service.submit_review_request(person, subject, "부탁").await), not_found);
        }
        assert_eq!(refused(service.membership(&c, &id, MemberRole::Viewer).await), not_found);
        assert_eq!(refused(service.remove_member(&c, &id, &c).await), not_found);
        assert_eq!(refused(service.change_member(&a, &id, &c, MemberRole::Viewer).await), not_found);
        let subject = ReviewSubject::Verification(id.clone());
        let request = service.submit_review_request(&a, subject, "부탁").await.unwrap();
        let missing = Refusal::NotFound(Resource::ReviewRequest);
        assert_eq!(refused(service.withdraw_review_request(&b, &request).await), missing);
        service.withdraw_review_request(&a, &request).await.unwrap();
        let pending = Invalid::new("requestId", Rule::Pending);
        assert_eq!(refused(service.withdraw_review_request(&a, &request).await), Refusal::Invalid(pending));
        // Every member may leave.
        service.remove_member(&b, &id, &b).await.unwrap();
        assert_eq!(service.memberships(&b).await.unwrap().len(), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_person_makes_a_limited_number_of_invitations_a_day_also_at_once() {
    both(|world| async move {
        let [a, b] = [world.user("a").await, world.user("b").await];
        let service = &world.service;
        let one = service.make_organization(&a, "하나".to_owned()).await.unwrap();
        let other = service.make_organization(&a, "둘".to_owned()).await.unwrap();
        let made = at_once((0..INVITATIONS_PER_DAY_MAX + 20).map(|n| {
            let (service, a) = (world.service.clone(), a.clone());
            let id = if n % 2 == 0 { one.clone() } else { other.clone() };
            async move { service.invite_member(&a, &id, &format!("login-{n}"), MemberRole::Viewer).await }
        }));
        let made = made.await;
        assert_eq!(made.iter().filter(|outcome| outcome.is_ok()).count() as i64, INVITATIONS_PER_DAY_MAX);
        let full = Invalid::new("login", Rule::Fewer { max: INVITATIONS_PER_DAY_MAX });
        let again = || service.invite_member(&a, &one, "again", MemberRole::Viewer);
        assert_eq!(refused(again().await), Refusal::Invalid(full));
        // The other admin of the organization has invitations of its own.
        service.put_organization_member(&one, &b, MemberRole::Admin, None).await.unwrap();
        service.invite_member(&b, &one, "again", MemberRole::Viewer).await.unwrap();
        world.advance_ms(DAY_MS.unsigned_abs());
        again().await.unwrap();
    })
    .await;
}
