//! Session lists by page number: each page is that of the plain statement with OFFSET.

use domain::limits::{CLIENT_SESSIONS_MAX, DAY_MS, DISCONNECTED_SESSION_VISIBLE_MS};
use domain::session::SessionOwner;
use domain::{SessionKey, Timestamp};
use store::queries::Page;
use store::queries::sweeps::Sweep;
use store::{StoreError, Tx, params};

use crate::{both, in_seeded, node, number, of_client, of_user, tx};

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// The list without ordinals.
const BY_OFFSET: &str = "
    SELECT session_key FROM sessions WHERE client_id = $1 AND COALESCE(channel_id, '') = $2
    AND (disconnected_at IS NULL OR disconnected_at > $3)
    ORDER BY session_key DESC LIMIT $4 OFFSET $5";

async fn by_offset(
    tx: &mut Tx,
    owner: &SessionOwner,
    ended_after: Timestamp,
    page: Page,
) -> Result<Vec<String>, StoreError> {
    let user = owner.channel_id().map_or("", |id| id.as_str());
    let values = params![owner.client_id(), user, ended_after, page.size, page.offset()];
    tx.query(BY_OFFSET, values).await?.iter().map(|row| row.get::<&str>(0).map(str::to_owned)).collect()
}

/// Every page, those beyond the end too, and the total are those of the statement with OFFSET.
async fn compare(tx: &mut Tx, owner: &SessionOwner, ended_after: Timestamp) -> Result<i64, StoreError> {
    let total = tx.count_sessions_of(owner, ended_after).await?;
    for size in [1, 7, 50] {
        for page in 0..=total / size + 1 {
            let page = Page { size, page };
            let listed = tx.sessions_of(owner, ended_after, page).await?;
            let keys: Vec<_> = listed.iter().map(|session| session.session_key.as_str().to_owned()).collect();
            assert_eq!(
                keys,
                by_offset(tx, owner, ended_after, page).await?,
                "{owner:?} {ended_after:?} {page:?}"
            );
        }
    }
    let whole = by_offset(tx, owner, ended_after, Page { size: 1_000_000, page: 0 }).await?;
    assert_eq!(total, whole.len() as i64, "{owner:?} {ended_after:?}");
    Ok(total)
}

/// Sessions begin and end at random for 300 days, some of them last for months, and old ones are deleted,
/// late or never.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_that_of_offset_while_sessions_begin_and_end_and_go() {
    in_seeded(async move |tx: &mut Tx| {
        let owners = [of_client("app"), of_client("other"), of_user("app", "a"), of_user("other", "a")];
        let mut random = Numbers(7);
        let mut connected: Vec<(SessionKey, usize)> = Vec::new();
        let (mut compared, mut long) = (0, 0);
        let mut now = Timestamp::from_millis(1_795_665_600_000);
        for step in 0..900_u64 {
            now = now.plus_ms(random.below(2 * DAY_MS.unsigned_abs() / 3) as i64);
            let owner = random.below(4) as usize;
            let is_full =
                connected.iter().filter(|(_, of)| *of == owner).count() as i64 >= CLIENT_SESSIONS_MAX;
            if random.below(5) < 3 && !is_full {
                let key = SessionKey::generate(now, [step as u8; 10]);
                tx.insert_session(&key, &owners[owner], None, &node("n"), now).await?;
                connected.push((key, owner));
            } else if connected.len() > 4 {
                // The first four last until the end.
                let index = 4 + random.below(connected.len() as u64 - 4) as usize;
                let (key, _) = connected.swap_remove(index);
                tx.disconnect_session(&key, now, "client_goodbye").await?;
            }
            let ended_after = now.plus_ms(-DISCONNECTED_SESSION_VISIBLE_MS);
            if step % 150 == 149 {
                for owner in &owners {
                    compared += compare(tx, owner, ended_after).await?;
                    long += i64::from(compare(tx, owner, now).await? > 0);
                }
            }
            if (400..600).contains(&step) && step % 40 == 0 {
                tx.sweep(Sweep::Sessions, ended_after).await?;
            }
        }
        assert!(compared > 500 && long > 10, "{compared} {long}");
        // Nothing begins any more, and what has ended goes.
        for days in [1, 30, 89, 91, 400] {
            for owner in &owners {
                let now = now.plus_ms(days * DAY_MS);
                compare(tx, owner, now.plus_ms(-DISCONNECTED_SESSION_VISIBLE_MS)).await?;
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_that_begin_at_once_get_ordinals_without_gaps() {
    both(|store| async move {
        let connecting = (0..4_u8).map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                for m in 0..10 {
                    let now = Timestamp::from_millis(1_795_665_600_000 + i64::from(m));
                    let (owner, key) = (of_client("app"), SessionKey::generate(now, [16 * m + n; 10]));
                    tx!(store, tx => {
                        tx.lock_session_owner(&owner).await?;
                        tx.insert_session(&key, &owner, None, &node("n"), now).await
                    })
                    .unwrap();
                }
            })
        });
        for task in connecting.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        for (sql, expected) in [
            ("SELECT COUNT(DISTINCT ordinal) FROM sessions", 40),
            ("SELECT MAX(ordinal) FROM sessions", 40),
            ("SELECT MIN(ordinal) FROM sessions", 1),
        ] {
            assert_eq!(tx!(store, tx => { number(tx, sql).await }), Ok(expected), "{sql}");
        }
    })
    .await;
}
