//! What the source promises: who uses whom, how long a file may be, where a secret becomes a text, what is never left behind.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a source file.
const LINES_MAX: usize = 650;

/// Who may use whom of our crates, outside of tests (the table in ARCHITECTURE.md). `web`, `gateway` and `jobs` never use
/// each other: that is what lets them run as one process or apart.
const MAY_USE: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("socketio", &[]),
    ("fuzz", &[]),
    ("store", &["domain"]),
    ("nats", &[]),
    ("http-client", &[]),
    ("bus", &["domain", "nats"]),
    ("service", &["domain", "store", "bus"]),
    ("web", &["domain", "service"]),
    ("gateway", &["domain", "service", "bus", "socketio"]),
    ("jobs", &["domain", "http-client", "service"]),
    ("server", &["domain", "http-client", "store", "bus", "service", "web", "gateway", "jobs"]),
    ("testkit", &["domain", "store", "bus", "service", "socketio", "web", "gateway", "jobs", "server"]),
    // A client of the service from outside.
    ("loadgen", &[]),
];

/// Crates of others that only one of ours may know.
const ALONE_KNOWS: &[(&str, &[&str])] = &[
    ("store", &["rusqlite", "tokio-postgres", "deadpool-postgres"]),
    ("web", &["axum", "askama"]),
    ("bus", &["postcard"]),
    ("service", &["getrandom", "argon2"]),
    ("server", &["clap", "tracing-subscriber"]),
    ("socketio", &["sha1"]),
    ("http-client", &["rustls-native-certs"]),
];

/// Where the text of a secret may be taken out: into the one answer that hands it out, and into the sandbox's notes.
const EXPOSE: &[&str] = &[
    "server/src/dev/notes.rs",
    "server/src/dev/world.rs",
    "service/src/identity/application_secrets.rs",
    "service/src/channel/broadcast_settings.rs",
    "service/src/webhook/webhooks.rs",
    "store/src/postgres/connector.rs",
    "web/src/auth/pages.rs",
    "web/src/auth/sign_in.rs",
    "web/src/auth/tokens.rs",
    "web/src/open/listener.rs",
    "web/src/open/sessions.rs",
    "web/src/open/streams.rs",
    "web/src/platform/applications.rs",
    "web/src/platform/webhooks.rs",
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of all crates").to_owned()
}

/// Every source file below a folder, by its path in `crates/`.
fn sources() -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![crates()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                let name = entry.strip_prefix(crates()).expect("below").display().to_string();
                files.push((name, fs::read_to_string(&entry).expect("a text")));
            }
        }
    }
    assert!(files.len() > 50, "the sources were found");
    files.sort();
    files
}

/// The dependencies that stand in a manifest's section, which ends at the next one.
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

#[test]
fn crates_use_each_other_only_as_the_table_says() {
    let ours: BTreeSet<String> = manifests().into_iter().map(|(name, _)| name).collect();
    for (name, manifest) in manifests() {
        let (_, may) =
            MAY_USE.iter().find(|(row, _)| *row == name).unwrap_or_else(|| panic!("{name} has no row"));
        let may: BTreeSet<String> = may.iter().map(|name| (*name).to_owned()).collect();
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}: folder and crate are named alike");
        assert!(!manifest.contains("[target."), "{name}: dependencies for one platform escape this test");
        let used = dependencies(&manifest, "[dependencies]");
        let used: BTreeSet<_> = used.intersection(&ours).cloned().collect();
        let wrong: Vec<_> = used.difference(&may).collect();
        assert!(wrong.is_empty(), "{name} uses {wrong:?}");
    }
}

#[test]
fn a_library_that_one_crate_alone_knows_stays_there() {
    for (name, manifest) in manifests() {
        let used = dependencies(&manifest, "[dependencies]");
        for (owner, libraries) in ALONE_KNOWS.iter().filter(|(owner, _)| *owner != name) {
            for library in *libraries {
                // The load program has a command line of its own.
                let own_command_line = name == "loadgen" && *owner == "server";
                assert!(
                    own_command_line || !used.contains(*library),
                    "{name} knows {library}, which is {owner}'s"
                );
            }
        }
    }
}

#[test]
fn testkit_and_fuzz_are_for_tests_alone() {
    for (name, manifest) in manifests() {
        let used = dependencies(&manifest, "[dependencies]");
        assert!(!used.contains("testkit") && !used.contains("fuzz"), "{name}");
    }
}

#[test]
fn no_source_file_is_longer_than_a_reader_can_bear() {
    for (name, text) in sources() {
        let lines = text.lines().count();
        assert!(lines <= LINES_MAX, "{name} has {lines} lines");
    }
}

#[test]
fn nothing_is_left_undone_or_switched_off() {
    // Put together here, so that this file does not find itself.
    let forbidden = [["#[ign", "ore"], ["todo", "!("], ["unimplemented", "!("], ["dbg", "!("], ["FIX", "ME"]];
    for (name, text) in sources() {
        for parts in forbidden {
            let word = parts.concat();
            assert!(!text.contains(&word), "{name} has {word}");
        }
    }
}

#[test]
fn secrets_become_texts_only_where_the_list_says() {
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
