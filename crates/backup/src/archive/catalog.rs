//! What an archive has, by the names of its files.

use std::collections::{BTreeMap, BTreeSet};

use domain::{StoreId, Timestamp};
use serde::{Deserialize, Serialize};
use store::log_archive::SegmentName;

use super::place::OpenPlace;
use crate::{BackupError, DATA_FILE};

/// The folder of an archive in its place.
pub(super) const FOLDER: &str = "archive";
/// The folder of the descriptions of generations.
pub(super) const DESCRIPTIONS: &str = "generations";
/// The description of a base. A base without it is not complete.
pub(super) const BASE_FILE: &str = "base.json";
/// The end of the name of a description.
const DESCRIPTION_SUFFIX: &str = ".json";
/// The format that this program writes. Programs refuse formats that they do not know.
pub(super) const FORMAT: u32 = 1;

/// A base: a copy of the data file, which is whole when the segments of `redo_from` to `redo_to` are applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Base {
    /// The format of the archive.
    pub format: u32,
    /// The version of the program that made the base.
    pub version: String,
    /// When it was begun (RFC 3339).
    pub started_at: String,
    /// Everything that was acknowledged before is in it (RFC 3339).
    pub complete_until: String,
    /// When it was complete (RFC 3339): no earlier time can be reached with it.
    pub until: String,
    /// The first segment that must be applied.
    pub redo_from: u64,
    /// The last segment that must be applied.
    pub redo_to: u64,
    /// The size of the copy, in bytes.
    pub bytes: u64,
    /// The SHA-256 of the copy, in lower-case hex.
    pub sha256: String,
    /// The store; `None` if the program that made the base knew no id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_id: Option<String>,
}

impl Base {
    /// When it was complete.
    pub fn completed(&self) -> Timestamp {
        Timestamp::parse_rfc3339(&self.until).unwrap_or_default()
    }

    /// Everything that was acknowledged before is in it.
    pub(super) fn complete_until(&self) -> Timestamp {
        Timestamp::parse_rfc3339(&self.complete_until).unwrap_or_default()
    }

    pub(super) fn of(text: &[u8], name: &str) -> Result<Self, BackupError> {
        let damaged = |why: &str| BackupError::Damaged(format!("{name} does not describe a base: {why}"));
        let base: Self = serde_json::from_slice(text).map_err(|error| damaged(&error.to_string()))?;
        check_format(name, base.format, &base.version)?;
        let is_time = |text: &String| Timestamp::parse_rfc3339(text).is_some();
        match base.redo_from >= 1 && is_time(&base.until) && is_time(&base.complete_until) {
            true => Ok(base),
            false => Err(damaged("a time or a number is wrong")),
        }
    }
}

/// The description of a generation. It is written before anything else of the generation, and nothing of a
/// generation is written to a place without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerationDescription {
    /// The format of the archive.
    pub format: u32,
    /// The version of the program that began it.
    pub version: String,
    /// The store.
    pub store_id: String,
    /// When it was begun (RFC 3339).
    pub began_at: String,
}

impl GenerationDescription {
    fn of(text: &[u8], name: &str) -> Result<Self, BackupError> {
        let found: Self = serde_json::from_slice(text).map_err(|error| {
            BackupError::Damaged(format!("{name} does not describe a generation: {error}"))
        })?;
        check_format(name, found.format, &found.version)?;
        Ok(found)
    }
}

/// The name of the description of a generation.
pub(super) fn description_of(generation: &str) -> String {
    format!("{FOLDER}/{DESCRIPTIONS}/{generation}{DESCRIPTION_SUFFIX}")
}

fn check_format(name: &str, format: u32, version: &str) -> Result<(), BackupError> {
    if format <= FORMAT {
        return Ok(());
    }
    Err(BackupError::Refused(format!(
        "{name} has format {format}, and this program knows {FORMAT}: it needs the program of version {version} or newer"
    )))
}

/// A run of segments without a gap, and the bases within.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Generation {
    /// Its name, which begins with its time.
    pub name: String,
    /// The store; `None` if no description says it.
    pub store_id: Option<String>,
    /// Whether its description is there.
    pub(super) is_described: bool,
    /// The complete bases, oldest first: their names and what they say.
    pub bases: Vec<(String, Base)>,
    /// The names of the bases without a description or without the copy.
    pub(super) partial_bases: Vec<String>,
    /// The segments, in their order.
    pub segments: Vec<SegmentName>,
    /// Why its description, or that of a base, cannot be used. Such a base is neither restored nor deleted.
    pub problems: Vec<String>,
}

/// Sorts the names of an archive's files by generation. The bases have no descriptions yet.
fn generations(names: &[String]) -> (Vec<Generation>, Vec<(usize, String)>) {
    let mut found: BTreeMap<&str, (Generation, BaseNames<'_>)> = BTreeMap::new();
    for name in names {
        let words: Vec<&str> = name.split('/').collect();
        if let [FOLDER, DESCRIPTIONS, file] = words.as_slice() {
            if let Some(generation) = file.strip_suffix(DESCRIPTION_SUFFIX) {
                found.entry(generation).or_default().0.is_described = true;
            }
            continue;
        }
        let [FOLDER, generation, kind, rest @ ..] = words.as_slice() else { continue };
        let (entry, bases) = found.entry(generation).or_default();
        match (*kind, rest) {
            ("segments", [segment]) => entry.segments.extend(SegmentName::parse(segment)),
            ("bases", [base, BASE_FILE]) => _ = bases.described.insert(*base),
            ("bases", [base, DATA_FILE]) => _ = bases.copied.insert(*base),
            ("bases", [base, _]) => _ = bases.partial.insert(*base),
            _ => {}
        }
    }
    let (mut generations, mut whole) = (Vec::new(), Vec::new());
    for (index, (name, (mut generation, bases))) in found.into_iter().enumerate() {
        let all = [&bases.described, &bases.copied, &bases.partial].into_iter().flatten().copied();
        let is_whole = |base: &&str| bases.described.contains(base) && bases.copied.contains(base);
        let (both, broken): (BTreeSet<&str>, BTreeSet<&str>) = all.partition(is_whole);
        whole.extend(both.into_iter().map(|base| (index, base.to_owned())));
        generation.partial_bases = broken.into_iter().map(str::to_owned).collect();
        generation.segments.sort();
        name.clone_into(&mut generation.name);
        generations.push(generation);
    }
    (generations, whole)
}

/// The names of the bases of a generation, by the files that they have.
#[derive(Debug, Default)]
struct BaseNames<'a> {
    described: BTreeSet<&'a str>,
    copied: BTreeSet<&'a str>,
    partial: BTreeSet<&'a str>,
}

/// The generations of an archive, or of a folder of it, with their bases.
pub(super) async fn read_catalog(
    place: &mut OpenPlace,
    folder: &str,
) -> Result<Vec<Generation>, BackupError> {
    let names = place.names(folder).await?;
    let (mut found, bases) = generations(&names);
    for generation in found.iter_mut().filter(|generation| generation.is_described) {
        match read_description(place, &generation.name).await? {
            Ok(described) => generation.store_id = described.map(|described| described.store_id),
            Err(problem) => generation.problems.push(problem.to_string()),
        }
    }
    for (index, name) in bases {
        let Some(generation) = found.get_mut(index) else { continue };
        let file = format!("{FOLDER}/{}/bases/{name}/{BASE_FILE}", generation.name);
        // An archiver may delete an old base meanwhile.
        let Some(description) = place.get(&file).await? else { continue };
        match Base::of(&description, &file) {
            Ok(base) => {
                generation.store_id = generation.store_id.take().or_else(|| base.store_id.clone());
                generation.bases.push((name, base));
            }
            Err(problem) => generation.problems.push(problem.to_string()),
        }
    }
    Ok(found)
}

/// Why parts of an archive cannot be used.
pub(super) fn problems(found: &[Generation]) -> Vec<String> {
    found.iter().flat_map(|generation| generation.problems.clone()).collect()
}

/// The description of a generation: `None` if it is not there, the inner error if it cannot be used.
async fn read_description(
    place: &mut OpenPlace,
    generation: &str,
) -> Result<Result<Option<GenerationDescription>, BackupError>, BackupError> {
    let name = description_of(generation);
    let text = place.get(&name).await?;
    Ok(text.map(|text| GenerationDescription::of(&text, &name)).transpose())
}

/// The ids of the stores whose generations are described in a place. A description that cannot be used names
/// none.
pub(super) async fn described_stores(place: &mut OpenPlace) -> Result<BTreeSet<String>, BackupError> {
    let names = place.names(&format!("{FOLDER}/{DESCRIPTIONS}")).await?;
    let mut stores = BTreeSet::new();
    for generation in generations(&names).0 {
        let described = read_description(place, &generation.name).await?.ok().flatten();
        stores.extend(described.map(|described| described.store_id));
    }
    Ok(stores)
}

/// The generations of one store: of that with an id, or of the only one.
///
/// # Errors
/// [`BackupError::Refused`] if there are those of several stores and none is named, or none of the one that
/// is named.
pub(super) fn of_store(
    found: Vec<Generation>,
    store: Option<&StoreId>,
) -> Result<Vec<Generation>, BackupError> {
    let stores: BTreeSet<String> = found.iter().filter_map(|each| each.store_id.clone()).collect();
    let listed = || stores.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    match store {
        Some(store) if stores.contains(store.as_str()) => {
            let is_own = |each: &Generation| each.store_id.as_deref() == Some(store.as_str());
            Ok(found.into_iter().filter(is_own).collect())
        }
        Some(store) => Err(BackupError::Refused(format!(
            "the archive has nothing of the store {store}: it has {}",
            if stores.is_empty() { "no store with an id".to_owned() } else { listed() }
        ))),
        None if stores.len() > 1 => Err(BackupError::Refused(format!(
            "the archive has generations of {} stores, {}: name one with --store-id. `stagedoor backup --list` shows \
             what each reaches",
            stores.len(),
            listed()
        ))),
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_by_generation() {
        let names = [
            "archive/generations/g.json",
            "archive/generations/.partial",
            "archive/g/segments/.partial",
            "archive/g/segments/000000000001-000000000001-20261126T100000.000Z.segment",
            "archive/g/bases/v/base.json",
            "archive/g/bases/w/stagedoor.db",
            "archive/g/bases/x/stagedoor.db.partial",
            "archive/g/bases/y/stagedoor.db",
            "archive/g/bases/y/base.json",
            "archive/g/other",
            "elsewhere",
        ];
        let (found, bases) = generations(&names.map(str::to_owned));
        assert_eq!((found.len(), bases), (1, vec![(0, "y".to_owned())]));
        assert!(found[0].is_described && found[0].segments.len() == 1, "{found:?}");
        assert_eq!(found[0].partial_bases, ["v", "w", "x"], "a base has a copy and a description");
    }

    #[test]
    fn the_generations_of_two_stores_are_told_apart() {
        let of = |name: &str, store: Option<&str>| Generation {
            name: name.to_owned(),
            store_id: store.map(str::to_owned),
            ..Generation::default()
        };
        let names = |found: Vec<Generation>| found.into_iter().map(|each| each.name).collect::<Vec<_>>();
        let store = |id: &str| StoreId::stored(id.to_owned());
        let one = || vec![of("a", None), of("b", Some("s"))];
        assert_eq!(names(of_store(one(), None).unwrap()), ["a", "b"]);
        assert_eq!(names(of_store(one(), Some(&store("s"))).unwrap()), ["b"]);
        let words = of_store(one(), Some(&store("t"))).unwrap_err().to_string();
        assert!(words.contains("nothing of the store t: it has s"), "{words}");
        let two = || [one(), vec![of("c", Some("t"))]].concat();
        let words = of_store(two(), None).unwrap_err().to_string();
        assert!(words.contains("2 stores, s, t: name one with --store-id"), "{words}");
        assert_eq!(names(of_store(two(), Some(&store("t"))).unwrap()), ["c"]);
    }
}
