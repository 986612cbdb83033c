//! Gives the program the commit that it is built from: that of the environment, which packagers set, else
//! that of the working tree. Only a release looks at the working tree, so that a commit makes nothing else be
//! built anew.

use std::path::Path;
use std::process::Command;

/// The variable for packagers, and of the program.
const COMMIT: &str = "STAGEDOOR_COMMIT";
/// The repository of this crate. A folder without it may stand in a foreign one.
const REPOSITORY: &str = "../../.git";
/// What is not known.
const UNKNOWN: &str = "unknown";

fn main() {
    println!("cargo:rerun-if-env-changed={COMMIT}");
    let given = std::env::var(COMMIT).ok().filter(|commit| is_plain(commit));
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = given.or_else(|| if is_release { commit_of_tree() } else { None });
    println!("cargo:rustc-env={COMMIT}={}", commit.as_deref().unwrap_or(UNKNOWN));
}

/// The commit of the working tree, if this is one and git is installed.
fn commit_of_tree() -> Option<String> {
    if !Path::new(REPOSITORY).exists() {
        return None;
    }
    // Each commit, and each change of the branch, writes to this log.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo:rerun-if-changed={log}");
    git(&["rev-parse", "--short=12", "HEAD"]).filter(|commit| is_plain(commit))
}

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

fn is_plain(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}
