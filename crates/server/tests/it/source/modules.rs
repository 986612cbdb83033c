//! The modules of a crate use each other in one direction. An arrow goes from a file to the file whose names
//! it uses. Arrows between a module and its submodules do not count.

use std::collections::{BTreeMap, BTreeSet};

use super::tidy::sources;

/// A module's path within its crate: `["fanout", "shard"]`. That of the crate's root is empty.
type Module = Vec<String>;

/// A module of a crate: its file, and its text without tests and comments.
struct Source {
    file: String,
    text: String,
}

/// The modules of each crate.
fn crates() -> BTreeMap<String, BTreeMap<Module, Source>> {
    let mut crates: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for (file, text) in sources() {
        let Some((name, path)) = file.split_once("/src/") else { continue };
        let mut module: Module = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        if matches!(module.last().map(String::as_str), Some("lib" | "main" | "mod")) {
            module.pop();
        }
        if module.iter().any(|part| part == "tests" || part.ends_with("_tests")) {
            continue;
        }
        let source = Source { text: code(&text), file: file.clone() };
        // A program beside a library has the same root. No module uses the program's names.
        let modules = crates.entry(name.to_owned()).or_default();
        if path != "main.rs" || !modules.contains_key(&module) {
            modules.insert(module, source);
        }
    }
    crates
}

/// The text without its tests, comments and the brackets of its `use` declarations.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    spell_out(&lines.collect::<Vec<_>>().join("\n"))
}

/// Replaces each `use` declaration with one declaration per name: `use a::{b, c::{d}};` becomes `use a::b;
/// use a::c::d;`.
fn spell_out(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("use ") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let starts = before.is_empty() || before.ends_with(['\n', ' ', ')']);
        match from.find(';') {
            Some(end) if starts => {
                for name in names(&from["use ".len()..end]) {
                    out.push_str(&format!("use {name};\n"));
                }
                rest = &from[end + 1..];
            }
            _ => {
                out.push_str("use ");
                rest = &from["use ".len()..];
            }
        }
    }
    out + rest
}

/// The paths of a `use` tree.
fn names(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((prefix, list)) = tree.split_once('{') else { return vec![tree.to_owned()] };
    let list = list.strip_suffix('}').unwrap_or(list);
    let (mut depth, mut parts, mut part) = (0_i32, Vec::new(), String::new());
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    parts.push(part);
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| names(part)).map(|name| format!("{prefix}{name}")).collect()
}

/// The module that a path leads to, starting from another module.
fn target(modules: &BTreeMap<Module, Source>, from: &Module, path: &str, hops: usize) -> Option<Module> {
    let mut at: Module = Vec::new();
    let mut parts = path.split("::").map(str::trim).peekable();
    match *parts.peek()? {
        "crate" => _ = parts.next(),
        "self" | "super" => {
            at.clone_from(from);
            while let Some(part) = parts.next_if(|part| *part == "self" || *part == "super") {
                if part == "super" {
                    at.pop()?;
                }
            }
        }
        first => {
            at.clone_from(from);
            at.push(first.to_owned());
            if !modules.contains_key(&at) {
                return None;
            }
            parts.next();
        }
    }
    let mut name = None;
    for part in parts {
        let mut inner = at.clone();
        inner.push(part.to_owned());
        if !modules.contains_key(&inner) {
            name = Some(part.to_owned());
            break;
        }
        at = inner;
    }
    // A re-exported name belongs to the module that declares it.
    let handed_on = name.filter(|_| hops > 0).and_then(|name| {
        let uses = modules.get(&at)?.text.split("use ").skip(1);
        let uses = uses.filter_map(|path| path.split(';').next());
        let from = uses.into_iter().find(|path| path.ends_with(&format!("::{name}")))?;
        target(modules, &at, from, hops - 1)
    });
    Some(handed_on.unwrap_or(at))
}

/// The modules that a module uses, except its parents and submodules.
fn arrows(modules: &BTreeMap<Module, Source>, from: &Module) -> BTreeSet<Module> {
    let text = &modules[from].text;
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let paths = text.split(|c| !is_path(c)).filter(|word| word.contains("::"));
    let found = paths.filter_map(|path| target(modules, from, path, 3));
    found.filter(|to| !to.starts_with(from) && !from.starts_with(to)).collect()
}

/// The modules that a module reaches, each with its predecessor on the path.
fn reach(arrows: &BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeMap<Module, Module> {
    let mut before = BTreeMap::new();
    let mut open = vec![from.clone()];
    while let Some(at) = open.pop() {
        for to in &arrows[&at] {
            if !before.contains_key(to) {
                before.insert(to.clone(), at.clone());
                open.push(to.clone());
            }
        }
    }
    before
}

#[test]
fn the_modules_of_a_crate_use_each_other_in_one_direction() {
    let mut circles = Vec::new();
    for modules in crates().values() {
        let arrows: BTreeMap<_, _> =
            modules.keys().map(|module| (module.clone(), arrows(modules, module))).collect();
        for module in modules.keys() {
            let before = reach(&arrows, module);
            if !before.contains_key(module) {
                continue;
            }
            let mut way = vec![modules[module].file.clone()];
            let mut at = &before[module];
            while at != module {
                way.push(modules[at].file.clone());
                at = &before[at];
            }
            way.reverse();
            circles.push(way.join(" -> "));
        }
    }
    assert!(circles.is_empty(), "these files use each other in a circle:\n{}", circles.join("\n"));
}

#[test]
fn a_name_of_a_type_means_one_thing_in_a_crate() {
    let mut twice = Vec::new();
    for modules in crates().values() {
        let mut types: BTreeMap<&str, &str> = BTreeMap::new();
        for source in modules.values() {
            for name in source.text.lines().filter_map(declared_type) {
                if let Some(other) = types.insert(name, &source.file) {
                    twice.push(format!("{name}: {other} and {}", source.file));
                }
            }
        }
    }
    assert!(twice.is_empty(), "two types of a crate have one name:\n{}", twice.join("\n"));
}

/// The type that a line of a module declares, outside of functions.
fn declared_type(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.trim_start_matches(|c| c != ' ').trim_start(),
        None => line,
    };
    let rest = ["struct ", "enum ", "trait ", "type "].iter().find_map(|word| line.strip_prefix(word))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

#[test]
fn declarations_are_spelled_out() {
    let text = "use crate::{a::{B, C}, d};\npub(crate) use super::e::F;\nlet reuse = 1;";
    let spelled = spell_out(text);
    for line in
        ["use crate::a::B;", "use crate::a::C;", "use crate::d;", "use super::e::F;", "let reuse = 1;"]
    {
        assert!(spelled.contains(line), "{line}: {spelled}");
    }
}
