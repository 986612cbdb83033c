//! The audit log, and the people with an operator role.

use domain::AuditEntryId;
use domain::audit::{ActorKind, AuditAction, AuditEntry, SubjectKind};
use domain::operator_key::OperatorRole;
use store::queries::audit_log::AuditFilter;
use store::{StoreError, Tx};

use crate::{at, both, channel, hash, in_seeded, tx};

fn entry(id: &str, actor: (ActorKind, &str, &str), action: AuditAction, subject: &str) -> AuditEntry {
    let (actor_kind, actor_id, actor_name) = actor;
    AuditEntry {
        entry_id: AuditEntryId::stored(id.to_owned()),
        created_at: at(5),
        actor_kind,
        actor_id: actor_id.to_owned(),
        actor_name: actor_name.to_owned(),
        action,
        subject_kind: SubjectKind::Application,
        subject_id: subject.to_owned(),
        subject_name: String::new(),
        details: "{\"name\":\"가\"}".to_owned(),
        request_id: "r1".to_owned(),
    }
}

fn ids(entries: &[AuditEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.entry_id.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_listed_newest_first_by_any_filters() {
    in_seeded(async move |tx: &mut Tx| {
        let key = (ActorKind::OperatorKey, "k1", "support");
        let person = (ActorKind::Person, "a", "");
        let (disable, enable) = (AuditAction::ApplicationDisable, AuditAction::ApplicationEnable);
        let entries = [
            entry("1", key, disable, "bot"),
            entry("2", person, enable, "bot"),
            entry("3", key, disable, "game"),
            entry("4", person, disable, "bot"),
        ];
        for entry in &entries {
            tx.insert_audit_entry(entry).await?;
        }
        for (subject, actor, action, expected) in [
            (None, None, None, &["4", "3", "2", "1"] as &[_]),
            (Some("bot"), None, None, &["4", "2", "1"]),
            (None, Some("k1"), None, &["3", "1"]),
            (None, None, Some(disable), &["4", "3", "1"]),
            (Some("bot"), Some("a"), None, &["4", "2"]),
            (Some("bot"), None, Some(disable), &["4", "1"]),
            (None, Some("a"), Some(enable), &["2"]),
            (Some("bot"), Some("k1"), Some(disable), &["1"]),
            (Some("nothing"), None, None, &[]),
        ] {
            let (subject, actor) = (subject.map(str::to_owned), actor.map(str::to_owned));
            let filter = AuditFilter { subject, actor, action, ..AuditFilter::default() };
            let found = tx.audit_entries(&filter, None, 10).await?;
            assert_eq!(ids(&found), expected, "{filter:?}");
        }
        let all = AuditFilter::default();
        let before = AuditEntryId::stored("4".to_owned());
        assert_eq!(ids(&tx.audit_entries(&all, Some(&before), 2).await?), ["3", "2"]);
        let found = tx.audit_entries(&all, None, 10).await?;
        assert_eq!(found[1], entries[2]);
        // An application has the name of today.
        let named = domain::application::Application { name: "봇".to_owned(), ..crate::application("bot") };
        tx.put_application(&named, at(1)).await?;
        let names = tx.audit_entries(&all, None, 10).await?;
        assert_eq!(
            names.iter().map(|one| one.subject_name.as_str()).collect::<Vec<_>>(),
            ["봇", "", "봇", "봇"]
        );
        // A range of times is a range of ids.
        let of = |ms| AuditEntryId::generate(at(ms), 0, [0; 6]).to_string();
        for ms in [1_000, 2_000, 3_000] {
            tx.insert_audit_entry(&entry(&of(ms), key, disable, "later")).await?;
        }
        for (since, until, expected) in [
            (Some(2_000), None, vec![3_000, 2_000]),
            (None, Some(2_000), vec![1_000]),
            (Some(1_001), Some(3_000), vec![2_000]),
            (Some(4_000), None, vec![]),
        ] {
            let subject = Some("later".to_owned());
            let filter =
                AuditFilter { subject, since: since.map(at), until: until.map(at), ..AuditFilter::default() };
            let found = tx.audit_entries(&filter, None, 10).await?;
            assert_eq!(ids(&found), expected.into_iter().map(of).collect::<Vec<_>>());
        }
        // A person has the name of today, and none after the deletion.
        assert_eq!((found[0].actor_name.as_str(), found[1].actor_name.as_str()), ("channel a", "support"));
        tx.mark_channel_deleted(&channel("a"), &channel("alias"), &domain::MessageId::bound_at(at(9)), at(9))
            .await?;
        let of_a = AuditFilter { actor: Some("a".to_owned()), ..AuditFilter::default() };
        assert_eq!(tx.audit_entries(&of_a, None, 1).await?[0].actor_name, "");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_has_one_operator_role_which_its_browsers_carry() {
    in_seeded(async move |tx: &mut Tx| {
        for name in ["a", "b"] {
            tx.put_person(&channel(name), name, "hash").await?;
        }
        tx.insert_browser_session(&hash("browser"), &channel("a"), at(100)).await?;
        let role = async |tx: &mut Tx| {
            let found = tx.browser_session(&hash("browser"), at(1)).await?.expect("a session");
            assert_eq!(found.operator_role, tx.operator_role(&channel("a")).await?);
            let details = tx.channel_details(&channel("a")).await?.expect("a channel");
            assert_eq!(found.operator_role, details.operator_role);
            Ok::<_, StoreError>(found.operator_role)
        };
        assert_eq!(role(tx).await?, None);
        assert!(tx.put_operator_role(&channel("a"), OperatorRole::Read, at(2)).await?);
        assert!(!tx.put_operator_role(&channel("a"), OperatorRole::Read, at(3)).await?);
        assert!(tx.put_operator_role(&channel("a"), OperatorRole::Admin, at(4)).await?);
        assert!(tx.put_operator_role(&channel("b"), OperatorRole::Write, at(5)).await?);
        assert_eq!(role(tx).await?, Some(OperatorRole::Admin));
        let operators = tx.operators("", 10).await?;
        assert_eq!(
            operators.iter().map(|one| (one.login.as_str(), one.role, one.created_at)).collect::<Vec<_>>(),
            [("a", OperatorRole::Admin, at(4)), ("b", OperatorRole::Write, at(5))]
        );
        assert_eq!(tx.operators("a", 10).await?, operators[1..]);
        assert_eq!(tx.operators("", 1).await?, operators[..1]);
        assert!(tx.delete_operator_role(&channel("a")).await?);
        assert!(!tx.delete_operator_role(&channel("a")).await?);
        assert_eq!(role(tx).await?, None);
        // The role goes with the account.
        tx.mark_channel_deleted(&channel("b"), &channel("alias"), &domain::MessageId::bound_at(at(9)), at(9))
            .await?;
        assert!(tx.operators("", 10).await?.is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_sign_in_gets_no_role() {
    both(|store| async move {
        let put = tx!(store, tx => { tx.put_operator_role(&channel("c"), OperatorRole::Read, at(1)).await });
        assert!(matches!(put, Err(StoreError::ForeignKey)), "{put:?}");
    })
    .await;
}
