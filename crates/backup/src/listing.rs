//! The backups of a place, and which store they are of.

use domain::{StoreId, Timestamp};

use crate::keep::KeepRules;
use crate::{BackupError, Manifest};

/// Whether backups of another store may be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherStore {
    /// They are refused.
    Refused,
    /// The operator says that they are meant.
    Meant,
}

/// A complete backup of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedBackup {
    /// Its name in the place. Names sort as their times do.
    pub name: String,
    /// Its folder or address.
    pub address: String,
    /// What it holds.
    pub manifest: Manifest,
}

/// A backup that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenBackup {
    /// Its name in the place.
    pub name: String,
    /// Its folder or address.
    pub address: String,
    /// Why, with the name of the file.
    pub problem: String,
}

/// The backups of a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Those that can be used, as far as their manifests and the sizes of their files show, oldest first.
    pub backups: Vec<ListedBackup>,
    /// The others. They are neither restored, nor counted, nor deleted.
    pub broken: Vec<BrokenBackup>,
}

impl Listing {
    /// Adds a backup, by its manifest and the size of its data file.
    pub(crate) fn add(
        &mut self,
        (name, address): (String, String),
        manifest: Result<Manifest, BackupError>,
        (data_file, bytes): (&str, Option<u64>),
    ) {
        let problem = match (&manifest, bytes) {
            (Err(error), _) => error.to_string(),
            (Ok(manifest), Some(bytes)) if bytes == manifest.bytes => String::new(),
            (Ok(_), None) => format!("{data_file} is missing"),
            (Ok(manifest), Some(bytes)) => {
                format!("{data_file} has {bytes} bytes, and its manifest says {}", manifest.bytes)
            }
        };
        match manifest {
            Ok(manifest) if problem.is_empty() => self.backups.push(ListedBackup { name, address, manifest }),
            _ => self.broken.push(BrokenBackup { name, address, problem }),
        }
    }

    /// The ids of the stores.
    fn stores(&self) -> Vec<&StoreId> {
        let mut stores: Vec<_> =
            self.backups.iter().filter_map(|backup| backup.manifest.store_id.as_ref()).collect();
        stores.sort_unstable();
        stores.dedup();
        stores
    }

    /// Refuses a new backup of a store in a place that has only those of others.
    pub(crate) fn refuse_other_store(
        &self,
        own: &StoreId,
        place: &str,
        other: OtherStore,
    ) -> Result<(), BackupError> {
        let stores = self.stores();
        let Some(first) = stores.first().filter(|_| !stores.contains(&own) && other == OtherStore::Refused)
        else {
            return Ok(());
        };
        Err(BackupError::Refused(format!(
            "{place} has backups of another store, {first}, and none of this one, {own}: is this the right store, and is \
             the disk of its data mounted? To keep backups of both there, call it once with --other-store"
        )))
    }

    /// The latest backup, to restore it.
    pub(crate) fn latest(&self, place: &str, other: OtherStore) -> Result<&ListedBackup, BackupError> {
        let latest = self.backups.last();
        let newer = self.broken.last().filter(|broken| latest.is_none_or(|latest| broken.name > latest.name));
        match (latest, newer) {
            (None, None) => Err(BackupError::Refused(format!("{place} has no complete backup"))),
            (None, Some(broken)) => Err(BackupError::Damaged(format!(
                "{place} has no backup that can be used; {}",
                broken.problem
            ))),
            (Some(latest), Some(broken)) => Err(BackupError::Damaged(format!(
                "the newest backup, {}, cannot be used: {}. The one before it is {}: name it to restore it",
                broken.address, broken.problem, latest.address
            ))),
            (Some(latest), None) => {
                let stores = self.stores();
                if stores.len() > 1 && other == OtherStore::Refused {
                    let ids: Vec<&str> = stores.iter().map(|id| id.as_str()).collect();
                    return Err(BackupError::Refused(format!(
                        "{place} has backups of {} stores ({}): name the backup to restore, or say with --other-store that \
                         the latest one, {}, is meant",
                        ids.len(),
                        ids.join(", "),
                        latest.address
                    )));
                }
                Ok(latest)
            }
        }
    }

    /// The backups of a store that the rules do not keep. Those of other stores stay, and so does the newest
    /// one of those whose manifests name no store.
    pub(crate) fn surplus(&self, own: &StoreId, rules: &KeepRules) -> Vec<&ListedBackup> {
        let is_nameless = |backup: &&ListedBackup| backup.manifest.store_id.is_none();
        let nameless = self.backups.iter().rfind(is_nameless);
        let is_own = |backup: &&ListedBackup| backup.manifest.store_id.as_ref().is_none_or(|id| id == own);
        let of_store: Vec<_> = self.backups.iter().filter(is_own).collect();
        let taken_at: Vec<Timestamp> = of_store
            .iter()
            .map(|backup| Timestamp::parse_rfc3339(&backup.manifest.taken_at).unwrap_or_default())
            .collect();
        let surplus = rules.surplus(&taken_at).into_iter().map(|index| of_store[index]);
        surplus.filter(|backup| nameless.is_none_or(|nameless| nameless.name != backup.name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn manifest(day: u32, store: Option<&str>) -> Manifest {
        Manifest {
            format: 1,
            version: String::new(),
            engine: "sqlite".to_owned(),
            store_id: store.map(|id| StoreId::stored(id.to_owned())),
            key_test: None,
            schema_version: 1,
            taken_at: format!("2026-11-{day:02}T00:00:00Z"),
            bytes: 7,
            sha256: String::new(),
            tables: Vec::new(),
        }
    }

    /// A backup for each day: of a store, of none that is named, or broken.
    fn listing(days: &[Option<&str>]) -> Listing {
        let mut listing = Listing::default();
        for (day, store) in (1..).zip(days) {
            let name = format!("day-{day:02}");
            let store = store.filter(|store| !store.is_empty());
            let bytes = if store == Some("broken") { 6 } else { 7 };
            listing.add((name.clone(), name), Ok(manifest(day, store)), ("stagedoor.db", Some(bytes)));
        }
        listing
    }

    fn deleted(days: &[Option<&str>], own: &str, last: u32) -> Vec<String> {
        let rules = KeepRules { last: NonZeroU32::new(last), ..Default::default() };
        let listing = listing(days);
        let surplus = listing.surplus(&StoreId::stored(own.to_owned()), &rules);
        surplus.iter().map(|backup| backup.name.clone()).collect()
    }

    #[test]
    fn a_place_of_another_store_is_refused() {
        let refused = |days: &[Option<&str>], own: &str, other| {
            listing(days).refuse_other_store(&StoreId::stored(own.to_owned()), "/place", other).err()
        };
        for (days, own, is_refused) in [
            (&[][..], "a", false),
            (&[None, Some("a")], "a", false),
            (&[None, None], "a", false),
            (&[Some("a"), Some("b")], "a", false),
            (&[Some("a")], "b", true),
            (&[None, Some("a"), None], "b", true),
        ] {
            assert_eq!(refused(days, own, OtherStore::Refused).is_some(), is_refused, "{days:?}");
            assert!(refused(days, own, OtherStore::Meant).is_none());
        }
    }

    #[test]
    fn backups_of_other_stores_and_broken_ones_are_never_deleted() {
        let (a, b, no) = (Some("a"), Some("b"), None);
        assert_eq!(deleted(&[a, a, a, a], "a", 2), ["day-01", "day-02"]);
        assert_eq!(deleted(&[a, a, b, b, b], "b", 1), ["day-03", "day-04"]);
        assert_eq!(deleted(&[no, no, b, b], "b", 1), ["day-01", "day-03"], "one without a name stays");
        assert_eq!(deleted(&[Some("broken"), a, Some("broken"), a, a], "a", 2), ["day-02"]);
    }

    #[test]
    fn the_latest_is_refused_beside_other_stores_and_when_a_broken_one_is_newer() {
        let (a, b, broken) = (Some("a"), Some("b"), Some("broken"));
        let latest = |days: &[Option<&str>], other| match listing(days).latest("/place", other) {
            Ok(backup) => backup.name.clone(),
            Err(error) => error.to_string(),
        };
        let refused = OtherStore::Refused;
        assert_eq!(latest(&[a, broken, a], refused), "day-03");
        assert_eq!(latest(&[None, a], refused), "day-02");
        assert!(latest(&[a, b], refused).contains("backups of 2 stores (a, b)"));
        assert_eq!(latest(&[a, b], OtherStore::Meant), "day-02");
        assert!(latest(&[a, broken], refused).contains("The one before it is day-01"));
        assert!(latest(&[broken], refused).contains("has 6 bytes, and its manifest says 7"));
        assert!(latest(&[], refused).contains("no complete backup"));
    }
}
