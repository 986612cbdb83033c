//! Every page and heading that a file of the repository cites exists, and no file cites a page that is not in
//! the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Folders with generated files.
const SKIPPED_FOLDERS: &[&str] = &["target", "node_modules", ".git", ".cache", "__pycache__"];
/// Files that programs have generated from other sources.
const SKIPPED_FILES: &[&str] = &["Cargo.lock", "package-lock.json"];

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository")
}

/// Every text file of the repository, by its path.
fn texts() -> BTreeMap<String, String> {
    let (root, mut texts) = (root(), BTreeMap::new());
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            let (path, name) = (entry.path(), entry.file_name());
            let listed = |list: &[&str]| list.iter().any(|skipped| name == *skipped);
            let kind = entry.file_type().expect("a type");
            if kind.is_dir() && !listed(SKIPPED_FOLDERS) {
                folders.push(path);
            } else if kind.is_file() && !listed(SKIPPED_FILES) {
                let name = path.strip_prefix(&root).expect("below").display().to_string();
                // Files that are not UTF-8 are pictures.
                if let Ok(text) = fs::read_to_string(&path) {
                    texts.insert(name, text);
                }
            }
        }
    }
    assert!(texts.len() > 400, "the repository was found");
    texts
}

/// The lines of a Markdown page that are not code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// The anchor that GitHub gives to a heading. Headings here contain no images and no HTML.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c if c.is_alphanumeric() => Some(c),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// The anchors of a Markdown page. A repeated heading gets a number.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let first = anchor(heading);
        let mut unique = first.clone();
        for number in 1.. {
            if anchors.insert(unique) {
                break;
            }
            unique = format!("{first}-{number}");
        }
    }
    anchors
}

/// The citations of paths below `docs/` in a text: the path, and the anchor, if any.
fn citations(text: &str) -> Vec<(&str, Option<&str>)> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let mut found = Vec::new();
    for (at, _) in text.match_indices("docs/") {
        // After a longer path it is another repository's page, or a relative path that the compiler or
        // `links` checks.
        if text[..at].chars().next_back().is_some_and(is_path) {
            continue;
        }
        let cited = &text[at..];
        let end = cited.find(|c| !is_path(c)).unwrap_or(cited.len());
        let path = cited[..end].trim_end_matches('.');
        let behind = cited[path.len()..].strip_prefix('#').filter(|_| path.ends_with(".md"));
        let anchor = behind.map(|rest| {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
            &rest[..end.unwrap_or(rest.len())]
        });
        found.push((path, anchor));
    }
    found
}

/// The targets of a Markdown page's links to files and headings, with their line numbers.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for (at, _) in line.match_indices("](") {
            let target = line[at + 2..].split(')').next().unwrap_or_default();
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push((number, target));
            }
        }
    }
    found
}

/// A path without `.` and `..`, as in the keys of [`texts`].
fn normalized(path: &Path) -> String {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(part) => parts.push(part.to_string_lossy()),
            _ => {}
        }
    }
    parts.join("/")
}

/// The fault of a reference to a path of the repository and, if given, to a heading of that page.
fn fault(texts: &BTreeMap<String, String>, path: &str, anchor: Option<&str>) -> Option<String> {
    if !root().join(path).exists() {
        return Some(format!("{path} does not exist"));
    }
    let anchor = anchor?;
    let page = texts.get(path).map(|text| anchors(text)).unwrap_or_default();
    (!page.contains(anchor)).then(|| format!("{path} has no heading #{anchor}"))
}

#[test]
fn every_cited_page_exists() {
    let (texts, mut faults, mut count) = (texts(), Vec::new(), 0);
    for (name, text) in &texts {
        for (path, anchor) in citations(text) {
            count += usize::from(anchor.is_some());
            faults.extend(fault(&texts, path, anchor).map(|fault| format!("{name}: {fault}")));
        }
    }
    assert!(count > 100, "{count} citations with an anchor were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_linked_page_exists() {
    let (texts, mut faults, mut count) = (texts(), Vec::new(), 0);
    for (name, text) in texts.iter().filter(|(name, _)| name.ends_with(".md")) {
        for (line, target) in links(text) {
            let (path, anchor) = target.split_once('#').map_or((target, None), |(p, a)| (p, Some(a)));
            let folder = Path::new(name).parent().expect("a folder");
            let path = if path.is_empty() { name.clone() } else { normalized(&folder.join(path)) };
            count += 1;
            faults.extend(fault(&texts, &path, anchor).map(|fault| format!("{name}:{line}: {fault}")));
        }
    }
    assert!(count > 100, "{count} links were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A number after these words cites a section of a page that is not in the repository.
#[test]
fn no_section_is_cited_only_by_its_number() {
    let mut faults = Vec::new();
    for (name, text) in texts() {
        // A citation may continue in the next line of a comment.
        let numbered = (1..).zip(text.lines());
        let words: Vec<(usize, &str)> = numbered
            .flat_map(|(number, line)| line.split_whitespace().map(move |word| (number, word)))
            .filter(|(_, word)| !["//", "///", "//!", "#"].contains(word))
            .collect();
        for (at, (number, word)) in words.iter().enumerate() {
            let word = word.trim_start_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
            if !["spec", "specification", "decision", "decisions"].contains(&word.as_str()) {
                continue;
            }
            let between = ["section", "sections", "record", "records"];
            let behind = words[at + 1..].iter().find(|(_, word)| !between.contains(word));
            if let Some((_, cited)) = behind
                && cited.starts_with(|c: char| c.is_ascii_digit())
            {
                faults.push(format!("{name}:{number}: {word} {cited}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_page_of_the_specification_is_in_its_index() {
    let texts = texts();
    let index = &texts["docs/spec/README.md"];
    let pages = texts.keys().filter_map(|name| name.strip_prefix("docs/spec/"));
    let missing: Vec<_> =
        pages.filter(|page| *page != "README.md" && !index.contains(&format!("]({page})"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn headings_have_the_anchors_of_github() {
    let page = "# Session URL\n\n## `a`, b & c_d\n```sh\n# no heading\n```\n## 400: the request\n## Session URL\n#none";
    let expected = ["session-url", "a-b--c_d", "400-the-request", "session-url-1"];
    assert_eq!(anchors(page), expected.map(str::to_owned).into());
}
