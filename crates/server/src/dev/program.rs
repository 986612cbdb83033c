//! The command that starts this program from a shell, as the overview prints it.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use commands::trust::quoted;

/// `stagedoor` if the shell's search path leads to this program, else the path of the program.
pub(super) fn command() -> String {
    let Ok(executable) = std::env::current_exe() else { return NAME.to_owned() };
    let path = std::env::var_os("PATH").unwrap_or_default();
    command_for(&executable, std::env::split_paths(&path))
}

const NAME: &str = "stagedoor";

fn command_for(executable: &Path, mut search_path: impl Iterator<Item = PathBuf>) -> String {
    let found = search_path.find_map(|folder| file_id(&folder.join(NAME)));
    if found.is_some() && found == file_id(executable) {
        return NAME.to_owned();
    }
    quoted(&executable.to_string_lossy())
}

/// Device and inode of an executable file.
fn file_id(path: &Path) -> Option<(u64, u64)> {
    let file = std::fs::metadata(path).ok()?;
    let executable = file.is_file() && file.permissions().mode() & 0o111 != 0;
    executable.then(|| (file.dev(), file.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::*;

    fn program(folder: &Path, mode: u32) -> PathBuf {
        fs::create_dir_all(folder).expect("a folder");
        let path = folder.join(NAME);
        fs::write(&path, "").expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("its mode");
        path
    }

    #[test]
    fn the_name_is_enough_where_the_search_path_leads_to_this_file() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = |name: &str| root.path().join(name);
        let this = program(&folder("this"), 0o755);
        program(&folder("other"), 0o755);
        program(&folder("not executable"), 0o644);
        fs::create_dir_all(folder("a folder/stagedoor")).expect("a folder");
        fs::create_dir(folder("linked")).expect("a folder");
        std::os::unix::fs::symlink(&this, folder("linked/stagedoor")).expect("a link");
        let path = this.display().to_string();
        for (search_path, expected) in [
            (vec!["this"], NAME),
            (vec!["linked"], NAME),
            (vec!["missing", "not executable", "a folder", "this", "other"], NAME),
            (vec![], &path),
            (vec!["missing"], &path),
            (vec!["other", "this"], &path),
        ] {
            let folders = search_path.iter().map(|name| folder(name));
            assert_eq!(command_for(&this, folders), expected, "{search_path:?}");
        }
    }

    #[test]
    fn a_path_is_quoted_where_a_shell_would_take_it_apart() {
        for (path, expected) in [
            ("/srv/target/release/stagedoor", "/srv/target/release/stagedoor"),
            ("/home/a b/stagedoor", "'/home/a b/stagedoor'"),
            ("/home/it's/$x/stagedoor", r"'/home/it'\''s/$x/stagedoor'"),
            ("/home/하늘/stagedoor", "'/home/하늘/stagedoor'"),
        ] {
            assert_eq!(quoted(path), expected);
        }
    }
}
