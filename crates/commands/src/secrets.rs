//! Secrets of the command line: from an option, the environment, or a file.

use std::path::PathBuf;

/// The given secret, or the content of the file that `{variable}_FILE` names.
///
/// # Errors
/// A sentence: both are given, or the file cannot be read.
pub fn secret(variable: &str, given: Option<&str>) -> Result<Option<String>, String> {
    let file_variable = format!("{variable}_FILE");
    match (given, secret_file(variable)) {
        (Some(_), Some(_)) => Err(format!("give either {variable} or {file_variable}, not both")),
        (Some(secret), None) => Ok(Some(secret.to_owned())),
        (None, Some(path)) => std::fs::read_to_string(&path)
            .map(|secret| Some(secret.trim_end_matches(['\r', '\n']).to_owned()))
            .map_err(|error| format!("{file_variable}: {}: {error}", path.display())),
        (None, None) => Ok(None),
    }
}

/// The file that `{variable}_FILE` names.
pub fn secret_file(variable: &str) -> Option<PathBuf> {
    std::env::var_os(format!("{variable}_FILE")).filter(|path| !path.is_empty()).map(PathBuf::from)
}
