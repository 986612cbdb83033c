//! The modules of a crate use each other in one direction. An arrow goes from a file to the file that
//! declares a name that the file uses. A re-export with `pub use` is no arrow. Parents and roots count like
//! any other file.

use std::collections::{BTreeMap, BTreeSet};

use super::tidy::sources;

/// A re-export is followed through as many files.
const HOPS_MAX: usize = 4;

/// A module's path within its crate: `["fanout", "shard"]`. That of the crate's root is empty.
type Module = Vec<String>;

/// A module of a crate: its file, and its text without tests and comments.
struct Source {
    file: String,
    text: String,
}

type Modules = BTreeMap<Module, Source>;

/// The modules of each crate.
fn crates() -> BTreeMap<String, Modules> {
    let mut crates: BTreeMap<_, Modules> = BTreeMap::new();
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

/// The text without its tests, comments and the brackets of its `use` declarations. An inline module
/// counts as a part of its file.
fn code(text: &str) -> String {
    let (mut lines, mut inner, mut is_test) = (Vec::new(), None, false);
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let indent = &line[..line.len() - line.trim_start().len()];
        match inner {
            None if line.trim_start().starts_with("mod ") && line.ends_with('{') => inner = Some(indent),
            None => lines.push(line.to_owned()),
            Some(outer) if indent == outer && line.ends_with('}') => inner = None,
            Some(_) if is_test => {}
            Some(_) => {
                let outer = line.replace("super::super::", "self::outer::");
                lines.push(outer.replace("super::", "self::").replace("outer::", "super::"));
            }
        }
        if inner.is_none() {
            is_test = line.trim() == "#[cfg(test)]";
        }
    }
    spell_out(&lines.join("\n"))
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
                let visibility = out[out.rfind('\n').map_or(0, |at| at + 1)..].to_owned();
                for (nth, name) in names(&from["use ".len()..end]).into_iter().enumerate() {
                    let visibility = if nth == 0 { "" } else { &visibility };
                    out.push_str(&format!("{visibility}use {name};\n"));
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
    let whole = |name: String| format!("{prefix}{name}").trim_end_matches("::self").to_owned();
    parts.flat_map(|part| names(part)).map(whole).collect()
}

/// The module that a path leads to, starting from another module: the one that declares the name at its end.
/// `None` for a path that leads out of the crate.
fn target(modules: &Modules, from: &Module, path: &str, hops: usize) -> Option<Module> {
    let parts: Vec<&str> = path.split("::").map(str::trim).filter(|part| !part.is_empty()).collect();
    let ups = parts.iter().take_while(|part| ["self", "super"].contains(part)).count();
    let supers = parts[..ups].iter().filter(|part| **part == "super").count();
    let (mut at, rest) = match *parts.first()? {
        "crate" => (Module::new(), &parts[1..]),
        "self" | "super" => (from[..from.len().checked_sub(supers)?].to_vec(), &parts[ups..]),
        first => {
            let inner = within(from, first);
            if modules.contains_key(&inner) {
                (inner, &parts[1..])
            } else {
                let import = imports(&modules[from].text).find(|path| name_of(path) == first)?;
                (target(modules, from, import, hops.checked_sub(1)?)?, &parts[1..])
            }
        }
    };
    for part in rest {
        let inner = within(&at, part);
        if !modules.contains_key(&inner) {
            // A re-exported name belongs to the module that declares it.
            let import = imports(&modules.get(&at)?.text).find(|path| name_of(path) == *part);
            return match (import, hops.checked_sub(1)) {
                (Some(import), Some(hops)) => target(modules, &at, import, hops),
                _ => Some(at),
            };
        }
        at = inner;
    }
    Some(at)
}

/// The path of a module inside another.
fn within(module: &Module, name: &str) -> Module {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// The paths of the `use` declarations of a text.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let at =
            line.find("use ").filter(|at| line[..*at].is_empty() || line[..*at].ends_with([' ', ')']))?;
        line[at + "use ".len()..].strip_suffix(';')
    })
}

/// The name that a `use` declaration gives to the end of its path.
fn name_of(import: &str) -> &str {
    import.rsplit([':', ' ']).next().unwrap_or_default()
}

/// The modules that a module uses.
fn arrows(modules: &Modules, from: &Module) -> BTreeSet<Module> {
    let text = &modules[from].text;
    let is_reexport = |line: &&str| line.trim_start().starts_with("pub") && imports(line).next().is_some();
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let lines = text.lines().filter(|line| !is_reexport(line));
    let paths = lines.flat_map(|line| line.split(move |c| !is_path(c))).filter(|word| word.contains("::"));
    let found = paths.filter_map(|path| target(modules, from, path, HOPS_MAX));
    found.filter(|to| to != from && modules.contains_key(to)).collect()
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
fn a_type_name_is_unique_in_a_crate() {
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
fn use_declarations_are_expanded() {
    let text = "use crate::{a::{self, B, C}, d};\npub(crate) use super::{e::F, G};\nlet reuse = 1;";
    let spelled = spell_out(text);
    for line in [
        "use crate::a;",
        "use crate::a::B;",
        "use crate::a::C;",
        "use crate::d;",
        "pub(crate) use super::e::F;",
        "pub(crate) use super::G;",
        "let reuse = 1;",
    ] {
        assert!(spelled.contains(line), "{line}: {spelled}");
    }
}

#[test]
fn arrows_lead_to_the_file_that_declares_a_name() {
    let files = [
        ("", "mod a;\nmod b;\npub use a::{inner::Deep, Own};\npub struct Root;"),
        ("a", "mod inner;\npub use inner::Deep;\npub struct Own;"),
        ("a::inner", "pub struct Deep;\n#[cfg(test)]\nmod tests {\n    use crate::Root;\n}"),
        ("b", "use crate::a;\nuse crate::{Deep, Own};\nfn f() -> std::io::Result<a::Deep> {}"),
        ("c", "use crate::Root;\nmod d {\n    use super::super::a::Own;\n}"),
    ];
    let path = |name: &str| name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
    let modules: Modules = files
        .into_iter()
        .map(|(name, text)| (path(name), Source { file: name.to_owned(), text: code(text) }))
        .collect();
    for (from, expected) in
        [("", &[][..]), ("a", &[]), ("a::inner", &[]), ("b", &["a", "a::inner"]), ("c", &["", "a"])]
    {
        let expected: BTreeSet<Module> = expected.iter().map(|name| path(name)).collect();
        assert_eq!(arrows(&modules, &path(from)), expected, "{from}");
    }
}
