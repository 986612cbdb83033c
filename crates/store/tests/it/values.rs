//! Parameters and columns have the same values on both engines.

use store::{Row, Store, StoreError, Tx, Value, params};

use crate::both;

async fn query(store: &Store, sql: &'static str, params: &[Value<'static>]) -> Result<Vec<Row>, StoreError> {
    let params = params.to_vec();
    store.read(async move |tx: &mut Tx| tx.query(sql, &params).await).await
}

async fn execute(store: &Store, sql: &'static str, params: &[Value<'static>]) -> Result<u64, StoreError> {
    let params = params.to_vec();
    store.write(async move |tx: &mut Tx| tx.execute(sql, &params).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_value_is_read_as_it_was_written() {
    const INSERT: &str = "INSERT INTO notes (id, body, flag) VALUES ($1, $2, $3)";
    const SELECT: &str = "SELECT body, flag FROM notes WHERE id = $1 AND body IS NOT DISTINCT FROM $2";
    both(|store| async move {
        for (id, body, flag) in [
            (0, None, None),
            (i64::MAX, Some(""), Some(true)),
            (i64::MIN, Some("치즈 스트리밍 채팅 — 안녕하세요"), Some(false)),
            (-1, Some("👩‍👩‍👧‍👦🧀\u{301}\u{10ffff}"), None),
            (1, Some("'; DROP TABLE notes; -- \\ % _ \r\n\t\u{1}"), Some(true)),
        ] {
            assert_eq!(execute(&store, INSERT, params![id, body, flag]).await, Ok(1));
            let rows = query(&store, SELECT, params![id, body]).await.unwrap();
            let [row] = &rows[..] else { panic!("{id}: {} rows", rows.len()) };
            assert_eq!(row.get::<Option<String>>(0), Ok(body.map(str::to_owned)));
            assert_eq!(row.get::<Option<&str>>(0), Ok(body));
            assert_eq!(row.get::<Option<bool>>(1), Ok(flag));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_bound_by_their_number_not_their_position() {
    both(|store| async move {
        let insert = "INSERT INTO notes (body, id, flag) VALUES ($2, $1, $3)";
        assert_eq!(execute(&store, insert, params![7, "seven", true]).await, Ok(1));
        let select = "SELECT id FROM notes WHERE body = $2 AND (flag = $3 OR body <> $2) AND id = $1";
        let rows = query(&store, select, params![7, "seven", true]).await.unwrap();
        assert_eq!(rows[0].get::<i64>(0), Ok(7));
        let eleven = "SELECT CAST($11 AS BIGINT), CAST($1 AS BIGINT), CAST($2 AS BIGINT) + CAST($3 AS BIGINT)
                      + CAST($4 AS BIGINT) + CAST($5 AS BIGINT) + CAST($6 AS BIGINT) + CAST($7 AS BIGINT)
                      + CAST($8 AS BIGINT) + CAST($9 AS BIGINT) + CAST($10 AS BIGINT)";
        let rows = query(&store, eleven, params![1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11]).await.unwrap();
        assert_eq!((rows[0].get::<i64>(0), rows[0].get::<i64>(1)), (Ok(11), Ok(1)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_engines_refuse_the_nul_character() {
    both(|store| async move {
        let insert = "INSERT INTO notes (id, body) VALUES ($1, $2)";
        for body in ["\0", "a\0b", "a\0"] {
            assert_eq!(execute(&store, insert, params![1, body]).await, Err(StoreError::NulInText));
            let select = "SELECT id FROM notes WHERE body = $1";
            assert_eq!(query(&store, select, params![body]).await, Err(StoreError::NulInText));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_and_too_few_parameters_are_refused() {
    both(|store| async move {
        let sql = "SELECT id FROM notes WHERE id = $1";
        for given in [params![], params![1, 2]] {
            let outcome = query(&store, sql, given).await;
            assert!(matches!(outcome, Err(StoreError::Parameter { .. })), "{outcome:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_read_as_another_type_is_an_error() {
    both(|store| async move {
        let insert = "INSERT INTO notes (id, body, flag) VALUES ($1, $2, $3)";
        assert_eq!(execute(&store, insert, params![2, "2", true]).await, Ok(1));
        let rows = query(&store, "SELECT id, body, flag, NULLIF(id, 2) FROM notes", &[]).await.unwrap();
        let row = &rows[0];
        assert!(matches!(row.get::<String>(0), Err(StoreError::Decode { column: 0, .. })));
        assert!(matches!(row.get::<bool>(0), Err(StoreError::Decode { .. })), "2 is neither true nor false");
        assert!(matches!(row.get::<i64>(1), Err(StoreError::Decode { column: 1, .. })));
        assert!(matches!(row.get::<bool>(1), Err(StoreError::Decode { .. })));
        assert!(matches!(row.get::<String>(2), Err(StoreError::Decode { .. })));
        assert!(matches!(row.get::<i64>(3), Err(StoreError::Decode { .. })), "null needs an Option");
        assert!(matches!(row.get::<i64>(4), Err(StoreError::Decode { column: 4, .. })));
        assert_eq!(row.get::<Option<i64>>(3), Ok(None));
        assert_eq!((row.get::<u32>(0), row.get::<u64>(0)), (Ok(2), Ok(2)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expressions_have_the_same_values_on_both_engines() {
    both(|store| async move {
        for id in 1..=3 {
            crate::insert(&store, id).await.unwrap();
        }
        let rows = query(
            &store,
            "SELECT COUNT(*), 1, EXISTS (SELECT 1 FROM notes WHERE id = 3), MAX(id), CAST(SUM(id) AS BIGINT),
             COALESCE(MIN(body), ''), 'a' LIKE 'A' FROM notes",
            &[],
        )
        .await
        .unwrap();
        let row = &rows[0];
        assert_eq!((row.get(0), row.get(1), row.get(2)), (Ok(3_i64), Ok(1_i64), Ok(true)));
        assert_eq!((row.get(3), row.get(4), row.get(5)), (Ok(3_i64), Ok(6_i64), Ok("a note")));
        assert_eq!(row.get(6), Ok(false));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_counts_are_counts_of_changed_rows() {
    both(|store| async move {
        for id in 1..=3 {
            crate::insert(&store, id).await.unwrap();
        }
        for (sql, changed) in [
            ("UPDATE notes SET body = 'x' WHERE id > 1", 2),
            ("UPDATE notes SET body = 'x' WHERE id > 9", 0),
            ("UPDATE notes SET body = 'y' RETURNING id", 3),
            ("CREATE TABLE more (id BIGINT)", 0),
            ("DELETE FROM notes WHERE id = 1", 1),
        ] {
            assert_eq!(execute(&store, sql, &[]).await, Ok(changed), "{sql}");
        }
        let one = store.read(async move |tx: &mut Tx| tx.query_one("SELECT id FROM notes", &[]).await).await;
        assert!(matches!(one, Err(StoreError::Misuse(_))));
        let none = store
            .read(async move |tx: &mut Tx| tx.query_one("SELECT id FROM notes WHERE id = 9", &[]).await)
            .await;
        assert_eq!(none, Err(StoreError::NoRow));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_refuses_a_parameter_of_another_type() {
    let fresh = store::testing::postgres().await;
    let store = fresh.open(crate::options()).await;
    for (sql, value) in [
        ("SELECT id FROM notes WHERE id = $1", Value::from("s3cret")),
        ("SELECT id FROM notes WHERE body = $1", Value::from(5)),
        ("SELECT id FROM notes WHERE flag = $1", Value::from(5)),
        ("SELECT 1 + $1", Value::from(5)),
    ] {
        let error = query(&store, sql, &[value]).await.unwrap_err();
        assert!(matches!(error, StoreError::Parameter { parameter: 1, .. }), "{error:?}");
    }
    let sum = query(&store, "SELECT SUM(id) FROM notes", &[]).await;
    assert!(matches!(sum, Err(StoreError::Decode { .. })), "{sum:?}");
    store.close().await;
    fresh.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_error_shows_a_value() {
    const SECRET: &str = "s3cret-code";
    both(|store| async move {
        let insert = "INSERT INTO codes (code) VALUES ($1)";
        assert_eq!(execute(&store, insert, params![SECRET]).await, Ok(1));
        let failures = [
            execute(&store, insert, params![SECRET]).await.unwrap_err(),
            execute(&store, "INSERT INTO late (parent_id) VALUES ($1)", params![SECRET]).await.unwrap_err(),
            query(&store, "SELECT code, code -> 'a' FROM codes WHERE code = $1", params![SECRET])
                .await
                .unwrap_err(),
            query(&store, "SELECT id FROM notes WHERE id = $1 AND body = $2", params![SECRET])
                .await
                .unwrap_err(),
        ];
        for error in failures {
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains(SECRET), "{shown}");
        }
        let rows = query(&store, "SELECT code FROM codes", &[]).await.unwrap();
        assert!(!format!("{rows:?} {:?}", params![SECRET]).contains(SECRET));
    })
    .await;
}
