//! Changes of credentials that other nodes read.

use domain::ScopeSet;
use store::queries::credential_changes::{ChangeSlot, Dependency, SLOTS};
use store::queries::tokens::NewToken;
use store::{StoreError, Tx};

use crate::{
    application, at, both, channel, client, family, hash, in_seeded, number, organization, record, scopes,
    sources, tx,
};

/// What the transaction under way has noted.
async fn noted(tx: &mut Tx) -> Result<Vec<ChangeSlot>, StoreError> {
    tx.record_credential_changes().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_an_answer_notes_its_dependency() {
    in_seeded(async move |tx: &mut Tx| {
        let (app, user) = (client("app"), channel("a"));
        assert_eq!(noted(tx).await?, []);
        let consent = ChangeSlot::from(Dependency::Consent(&app, &user));
        tx.put_consent(&app, &user, ScopeSet::default(), at(2)).await?;
        assert_eq!(noted(tx).await?, [consent]);
        tx.delete_tokens(&app, &user, None).await?;
        tx.delete_tokens(&app, &user, Some(&family("f"))).await?;
        assert_eq!(noted(tx).await?, [consent], "each once");
        let applications = ChangeSlot::from(Dependency::Application(&app));
        tx.narrow_consents(&app, ScopeSet::default()).await?;
        assert_eq!(noted(tx).await?, [applications]);
        tx.put_application(&application("app"), at(2)).await?;
        assert_eq!(noted(tx).await?, [applications]);
        let owner = organization("o", true);
        tx.put_organization(&owner).await?;
        assert_eq!(noted(tx).await?, [ChangeSlot::from(Dependency::Organization(&owner.organization_id))]);
        tx.put_channel(&record("a"), at(2)).await?;
        assert_eq!(noted(tx).await?, [ChangeSlot::from(Dependency::Channel(&user))]);
        tx.delete_consent(&app, &user).await?;
        assert_eq!(noted(tx).await?, [consent]);
        let mut deleted = Vec::new();
        while let Some(client_id) = tx.delete_unused_application(at(3), at(2)).await? {
            deleted.push(ChangeSlot::from(Dependency::Application(&client_id)));
        }
        deleted.sort();
        assert_eq!(deleted.len(), 2);
        assert_eq!(noted(tx).await?, deleted);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_depends_on_the_consent_the_application_and_the_channel() {
    in_seeded(async move |tx: &mut Tx| {
        let (app, user) = (client("app"), channel("a"));
        let (hash, family) = (hash("t"), family("f"));
        let token = NewToken {
            hash: &hash,
            family: &family,
            client_id: &app,
            channel_id: &user,
            generation: 0,
            expires_at: at(100),
        };
        tx.insert_access_token(token).await?;
        let slots = tx.holder(&hash, at(1)).await?.unwrap().slots();
        let dependencies =
            [Dependency::Consent(&app, &user), Dependency::Application(&app), Dependency::Channel(&user)];
        assert_eq!(slots, dependencies.map(ChangeSlot::from));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_committed_change_is_counted_in_its_slot_and_a_rolled_back_one_is_not() {
    both(|store| async move {
        let versions = async || tx!(store, tx => { tx.credential_versions().await }).unwrap();
        let slot = ChangeSlot::from(Dependency::Consent(&client("app"), &channel("a")));
        assert_eq!(versions().await, []);
        for version in 1..=2 {
            tx!(store, tx => {
                tx.put_consent(&client("app"), &channel("a"), scopes(), at(1)).await?;
                tx.record_credential_changes().await
            })
            .unwrap();
            assert_eq!(versions().await, [(slot, version)]);
        }
        let refused: Result<(), StoreError> = tx!(store, tx => {
            tx.put_consent(&client("app"), &channel("b"), scopes(), at(1)).await?;
            tx.record_credential_changes().await?;
            Err(StoreError::NoRow)
        });
        assert_eq!(refused, Err(StoreError::NoRow));
        assert_eq!(versions().await, [(slot, 2)]);
        // The next transaction on the same connection does not report the change either.
        let noted = tx!(store, tx => { tx.record_credential_changes().await });
        assert_eq!(noted, Ok(Vec::new()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_stays_within_its_slots() {
    in_seeded(async move |tx: &mut Tx| {
        for n in 0..SLOTS * 2 {
            tx.put_channel(&record(&format!("channel {n}")), at(1)).await?;
        }
        let noted = noted(tx).await?;
        assert!(noted.len() > SLOTS / 2, "they are spread: {}", noted.len());
        assert!(noted.is_sorted(), "locked in one order");
        assert!(noted.iter().all(|slot| slot.index() < SLOTS));
        assert_eq!(tx.credential_versions().await?.len(), noted.len());
        assert_eq!(
            number(tx, "SELECT COUNT(*) FROM credential_changes").await?,
            i64::try_from(noted.len()).unwrap()
        );
        Ok(())
    })
    .await;
}

#[test]
fn every_statement_that_changes_a_credential_notes_it() {
    /// What changes these is what answers rest on; a new row of theirs is no change of an answer.
    const CHANGES: [&str; 10] = [
        "UPDATE access_tokens",
        "DELETE FROM access_tokens",
        "UPDATE applications",
        "DELETE FROM applications",
        "INTO applications ",
        "UPDATE application_secrets",
        "DELETE FROM application_secrets",
        "UPDATE consents SET scopes",
        "DELETE FROM consents",
        "INTO consents",
    ];
    /// These end what was deleted before, or change nothing that calls are answered from.
    const NO_ANSWER: [&str; 7] = [
        "NOTE_USE",
        "NOTE_SECRET_USE",
        "NOTE_SUBSCRIBED",
        "RESTORE",
        "BEGIN_PURGE:",
        "PURGE",
        "LOCK_APPLICATION",
    ];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/queries");
    let (mut found, mut forgotten) = (0, Vec::new());
    for source in sources(folder.as_ref()) {
        let statements = source.split("\nconst ").skip(1).filter_map(|rest| {
            let (name, rest) = rest.split_once(':')?;
            let text = rest.split(";\n").next()?;
            CHANGES.iter().any(|change| text.contains(change)).then_some(name)
        });
        for name in
            statements.filter(|name| !NO_ANSWER.iter().any(|other| format!("{name}:").starts_with(other)))
        {
            found += 1;
            let runs_it = |method: &&str| {
                method.split(|c: char| c != '_' && !c.is_alphanumeric()).any(|word| word == name)
            };
            let method = source.split("pub async fn ").skip(1).find(runs_it);
            if !method.is_some_and(|method| method.contains("self.credentials_changed(")) {
                forgotten.push(name.to_owned());
            }
        }
    }
    assert!(found >= 4, "the statements were not found");
    assert!(forgotten.is_empty(), "call credentials_changed where these run: {forgotten:?}");
}
