//! Violated constraints have one name on both engines.

use store::{StoreError, Tx};

use crate::both;

fn unique(constraint: &str) -> StoreError {
    StoreError::Unique { constraint: constraint.to_owned() }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_violated_constraint_has_its_error() {
    both(|store| async move {
        for sql in [
            "INSERT INTO codes (code) VALUES ('taken')",
            "INSERT INTO parents (id, children) VALUES ('p', 0)",
            "INSERT INTO children (parent_id, kind, open) VALUES ('p', 'first', TRUE)",
        ] {
            assert_eq!(
                store.write(async move |tx: &mut Tx| tx.execute(sql, &[]).await).await,
                Ok::<_, StoreError>(1)
            );
        }
        for (sql, expected) in [
            ("INSERT INTO codes (code) VALUES ('taken')", unique("codes(code)")),
            (
                "INSERT INTO children (parent_id, kind, open) VALUES ('p', 'first', FALSE)",
                unique("children(parent_id, kind)"),
            ),
            (
                "INSERT INTO children (parent_id, kind, open) VALUES ('p', 'second', TRUE)",
                unique("children(parent_id)"),
            ),
            (
                "INSERT INTO children (parent_id, kind, open) VALUES ('missing', 'x', FALSE)",
                StoreError::ForeignKey,
            ),
            ("DELETE FROM parents WHERE id = 'p'", StoreError::ForeignKey),
            ("INSERT INTO children (parent_id, kind, open) VALUES ('p', 'bad', FALSE)", StoreError::Check),
            ("INSERT INTO children (parent_id, kind, open) VALUES ('p', NULL, FALSE)", StoreError::NotNull),
            ("INSERT INTO late (parent_id) VALUES ('missing')", StoreError::ForeignKey),
        ] {
            let outcome = store.write(async move |tx: &mut Tx| tx.execute(sql, &[]).await).await;
            assert_eq!(outcome, Err(expected), "{sql}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_statement_fails_with_the_engines_message() {
    both(|store| async move {
        for (sql, word) in [
            ("SELECT missing FROM nowhere", "nowhere"),
            ("SELEC 1", "SELEC"),
            ("SELECT \"text\" FROM notes", "text"),
        ] {
            let outcome = store.read(async move |tx: &mut Tx| tx.query(sql, &[]).await).await;
            match outcome {
                Err(StoreError::Statement { message, .. }) => assert!(message.contains(word), "{message}"),
                other => panic!("{sql}: {other:?}"),
            }
        }
    })
    .await;
}
