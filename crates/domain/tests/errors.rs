//! `docs/errors.md` explains every reason, quota, cap and scope.

use domain::quota::QuotaName;
use domain::refusal::{Cap, Resource};
use domain::{Scope, Word};

const PAGE: &str = include_str!("../../../docs/errors.md");

/// The first cells, in backquotes, of the tables between two headings.
fn listed(from: &str, to: &str) -> Vec<&'static str> {
    let (_, rest) = PAGE.split_once(from).expect("the first heading");
    let (part, _) = rest.split_once(to).expect("the second heading");
    let name = |line: &'static str| line.strip_prefix("| `")?.split('`').next();
    part.lines().filter_map(name).collect()
}

fn sorted(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_unstable();
    names
}

#[test]
fn the_page_lists_every_word_once() {
    let words = Word::ALL.iter().map(|word| word.name()).collect();
    assert_eq!(sorted(listed("\n## Reasons\n", "\n## Quotas\n")), sorted(words));
}

#[test]
fn the_page_lists_every_quota_cap_and_scope() {
    let quotas = QuotaName::ALL.map(QuotaName::name).to_vec();
    assert_eq!(sorted(listed("\n## Quotas\n", "\n## Caps\n")), sorted(quotas));
    let caps = Cap::ALL.map(Cap::name).to_vec();
    assert_eq!(sorted(listed("\n## Caps\n", "\n## Tokens\n")), sorted(caps));
    for scope in Scope::ALL {
        let row = format!("| `{}` | {} |\n", scope.key(), scope.name());
        assert!(PAGE.contains(&row), "{row}");
    }
    let what = PAGE.lines().find(|line| line.starts_with("| `not-found`")).expect("its row");
    for resource in Resource::ALL {
        assert!(what.contains(&format!("`{}`", resource.name())), "{resource:?}");
    }
}
