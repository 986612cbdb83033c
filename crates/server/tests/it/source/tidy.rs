//! Rules of the source code: dependencies between crates, length of files, the files that may expose a
//! secret, and forbidden leftovers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum width of a comment line, in characters.
const COMMENT_WIDTH_MAX: usize = 110;
/// Maximum number of lines of a source file.
const LINES_MAX: usize = 640;

/// The files that may expose a secret's text: for the one answer that contains it, and for the sandbox's
/// notes.
const EXPOSE: &[&str] = &[
    "domain/src/totp.rs",
    "sandbox/src/http/catch/token_call.rs",
    "sandbox/src/http/codes.rs",
    "sandbox/src/http/environment.rs",
    "sandbox/src/http/tokens.rs",
    "sandbox/src/http/trigger/webhooks.rs",
    "sandbox/src/http/try_it.rs",
    "sandbox/src/overview.rs",
    "sandbox/src/world_file/export.rs",
    "sandbox/src/world_file/load.rs",
    "server/src/dev/hosted.rs",
    "server/src/dev/notes.rs",
    "server/src/dev/world.rs",
    "service/src/developer/registration.rs",
    "service/src/identity/application_secrets.rs",
    "service/src/identity/password_resets.rs",
    "service/src/identity/two_factor.rs",
    "service/src/identity/operator_keys.rs",
    "service/src/channel/broadcast_settings.rs",
    "service/src/webhook/webhooks.rs",
    "site/src/developers/register.rs",
    "site/src/developers/secrets.rs",
    "site/src/developers/webhook.rs",
    "site/src/operator/keys.rs",
    "site/src/studio/stream_key.rs",
    "site/src/two_factor.rs",
    "store/src/postgres/connector.rs",
    "web/src/auth/sign_in.rs",
    "web/src/auth/tokens.rs",
    "web/src/cookies.rs",
    "web/src/open/listener.rs",
    "web/src/open/sessions.rs",
    "web/src/open/streams.rs",
    "web/src/platform/applications.rs",
    "web/src/platform/keys.rs",
    "web/src/platform/webhooks.rs",
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of all crates").to_owned()
}

/// Every source file, by its path in `crates/`.
pub(crate) fn sources() -> Vec<(String, String)> {
    files(&["rs"])
}

/// Every file of these kinds, by its path in `crates/`.
fn files(extensions: &[&str]) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![crates()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|kind| extensions.iter().any(|one| kind == *one)) {
                let name = entry.strip_prefix(crates()).expect("below").display().to_string();
                files.push((name, fs::read_to_string(&entry).expect("a text")));
            }
        }
    }
    assert!(files.len() > 50, "the files were found");
    files.sort();
    files
}

#[test]
fn one_component_says_what_is_wrong_with_a_field() {
    let raw = "class=\"wrong\"";
    let with: Vec<_> = files(&["html"]).into_iter().filter(|(_, text)| text.contains(raw)).collect();
    let with: Vec<_> = with.iter().map(|(name, text)| (name.as_str(), text.matches(raw).count())).collect();
    assert_eq!(with, [("web/templates/pages/components.html", 1)]);
}

#[test]
fn korean_texts_spell_redirection_in_one_way() {
    // What people type into the search, in any spelling.
    let typed = ["web/src/documents/search/same.txt", "web/src/documents/search/questions.txt"];
    let others = [("리다이렉", "트"), ("리다이렉", "션"), ("리디렉", "트")];
    let others = others.map(|(start, end)| format!("{start}{end}"));
    for (name, text) in files(&["rs", "html", "js", "txt", "markdown"]) {
        let is_typed = typed.contains(&name.as_str());
        assert!(is_typed || !others.iter().any(|other| text.contains(other)), "{name}");
    }
}

/// The dependencies in a section of a manifest.
fn dependencies(manifest: &str, section: &str) -> BTreeSet<String> {
    let mut inside = false;
    let mut names = BTreeSet::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line == section;
        } else if inside && !line.trim_start().starts_with('#') && line.contains('=') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            names.insert(name.trim().to_owned());
        }
    }
    names
}

fn manifests() -> Vec<(String, String)> {
    let folders = fs::read_dir(crates()).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut manifests: Vec<_> = folders
        .filter(|folder| folder.join("Cargo.toml").exists())
        .map(|folder| {
            let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest"))
        })
        .collect();
    manifests.sort();
    manifests
}

/// A row of the table of crates in ARCHITECTURE.md.
struct Row {
    name: String,
    /// The crates of this project that it uses.
    uses: BTreeSet<String>,
    /// Whether it may use every crate above it.
    uses_all: bool,
    /// The libraries that only this crate may use.
    alone_knows: BTreeSet<String>,
}

/// The table of crates in ARCHITECTURE.md, from the bottom up.
fn table() -> Vec<Row> {
    let page = crates().parent().expect("the repository").join("ARCHITECTURE.md");
    let page = fs::read_to_string(page).expect("a text");
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<_>>();
    let lines = page.lines().skip_while(|line| !line.starts_with("| Crate |")).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|')).map(|line| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let ["", name, _, uses, alone_knows, ""] = cells[..] else { panic!("no row of four cells: {line}") };
        Row {
            name: name.trim_matches('`').to_owned(),
            uses: names(uses),
            uses_all: uses == "all of the above",
            alone_knows: names(alone_knows),
        }
    });
    rows.collect()
}

#[test]
fn crates_use_each_other_only_as_the_table_says() {
    let table = table();
    let ours: BTreeSet<String> = table.iter().map(|row| row.name.clone()).collect();
    let mut above = BTreeSet::new();
    for Row { name, uses, uses_all, .. } in table {
        let manifest = crates().join(&name).join("Cargo.toml");
        let manifest = fs::read_to_string(manifest).unwrap_or_else(|_| panic!("the table names {name}"));
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}: folder and crate are named alike");
        assert!(!manifest.contains("[target."), "{name}: dependencies for one platform escape this test");
        let used: BTreeSet<_> =
            dependencies(&manifest, "[dependencies]").intersection(&ours).cloned().collect();
        let fits = if uses_all { used.is_subset(&above) } else { used == uses };
        assert!(fits, "{name} uses {used:?}, the table says {uses:?}");
        above.insert(name);
    }
    let folders: BTreeSet<String> = manifests().into_iter().map(|(name, _)| name).collect();
    assert_eq!(folders, ours, "each crate has a row");
}

#[test]
fn an_exclusive_library_stays_in_its_crate() {
    let manifests = manifests();
    for row in table() {
        for library in row.alone_knows {
            let knows = |manifest: &str| dependencies(manifest, "[dependencies]").contains(&library);
            // The load program has its own command line.
            let others = manifests.iter().filter(|(name, _)| name != "loadgen");
            let known: Vec<_> = others.filter(|(_, text)| knows(text)).map(|(name, _)| name).collect();
            assert_eq!(known, [&row.name], "{library}");
        }
    }
}

#[test]
fn only_tests_use_testkit_and_fuzz() {
    for (name, manifest) in manifests() {
        let used = dependencies(&manifest, "[dependencies]");
        assert!(!used.contains("testkit") && !used.contains("fuzz"), "{name}");
    }
}

#[test]
fn no_source_file_is_too_long() {
    for (name, text) in sources() {
        let lines = text.lines().count();
        assert!(lines <= LINES_MAX, "{name} has {lines} lines");
    }
}

#[test]
fn no_comment_is_too_wide() {
    let mut wide = Vec::new();
    for (name, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            // A row of a table stays on one line.
            let is_prose = line.trim_start().starts_with("//") && !line.contains("//! |");
            if is_prose && line.chars().count() > COMMENT_WIDTH_MAX {
                wide.push(format!("{name}:{}", number + 1));
            }
        }
    }
    assert!(wide.is_empty(), "comments wider than {COMMENT_WIDTH_MAX}: {wide:?}");
}

#[test]
fn commands_print_without_a_panic() {
    for (name, text) in sources() {
        let is_program = name.starts_with("server/src/") || name.starts_with("commands/src/");
        if is_program && name != "commands/src/output.rs" {
            assert!(
                !text.contains("println!(") && !text.contains("print!("),
                "{name}: see commands/src/output.rs"
            );
        }
    }
}

#[test]
fn no_leftovers_or_disabled_tests() {
    // The words are split here, so that the test does not find this file.
    let forbidden = [["#[ign", "ore"], ["todo", "!("], ["unimplemented", "!("], ["dbg", "!("], ["FIX", "ME"]];
    for (name, text) in sources() {
        for parts in forbidden {
            let word = parts.concat();
            assert!(!text.contains(&word), "{name} has {word}");
        }
    }
}

/// Whether a text calls `.get(0)` or `.get::<T>(0)`, with any number.
fn gets_by_number(text: &str) -> bool {
    text.split(".get").skip(1).any(|rest| {
        let arguments = match rest.strip_prefix("::<") {
            Some(generic) => generic.split_once(">(").map(|(_, arguments)| arguments),
            None => rest.strip_prefix('('),
        };
        arguments.is_some_and(|arguments| arguments.starts_with(|first: char| first.is_ascii_digit()))
    })
}

#[test]
fn queries_read_rows_by_their_declared_columns() {
    assert!(gets_by_number("row.get(0)?") && gets_by_number("row.get::<Option<&str>>(12)?"));
    assert!(!gets_by_number("blocks.get(index + 1), map.get(&0), settings.get()"));
    let numbered: Vec<_> = sources()
        .into_iter()
        .filter(|(name, text)| name.starts_with("store/src/queries/") && gets_by_number(text))
        .map(|(name, _)| name)
        .collect();
    assert!(numbered.is_empty(), "declare the columns with `columns!` instead of numbers: {numbered:?}");
}

#[test]
fn only_the_listed_files_expose_secrets() {
    let call = [".expose", "()"].concat();
    let calls = |text: &str| text.split("#[cfg(test)]").next().is_some_and(|code| code.contains(&call));
    let tests = |name: &str| {
        name.contains("/tests/")
            || name.ends_with("/tests.rs")
            || name.contains("/benches/")
            || name.starts_with("testkit/")
    };
    let found: Vec<_> = sources()
        .into_iter()
        .filter(|(name, text)| !tests(name) && calls(text))
        .map(|(name, _)| name)
        .collect();
    let unexpected: Vec<_> = found.iter().filter(|name| !EXPOSE.contains(&name.as_str())).collect();
    assert!(unexpected.is_empty(), "{unexpected:?} take secrets out");
    for name in EXPOSE {
        assert!(found.iter().any(|found| found == name), "{name} is on the list for nothing");
    }
}
