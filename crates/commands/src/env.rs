//! `stagedoor env`: the settings of a bot, for its `.env` file or a shell.

use std::time::Duration;

use clap::{Args, ValueEnum};
use http::Method;
use serde_json::Value;

use crate::failure::CommandFailure;
use crate::user_options::UserOptions;

/// `stagedoor env`
#[derive(Debug, Args)]
pub struct EnvOptions {
    #[command(flatten)]
    of: UserOptions,

    /// How the settings are written.
    #[arg(long, value_enum, default_value = "dotenv")]
    format: Format,

    /// The beginning of each name: nothing, or letters, digits and underscores, and no digit first.
    #[arg(long, value_name = "PREFIX", default_value = "STAGEDOOR_", value_parser = name_prefix)]
    prefix: String,
}

/// `--format`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// NAME=value, for a .env file.
    Dotenv,
    /// export NAME=value, which a shell evaluates.
    Shell,
    /// One JSON object.
    Json,
}

/// The names of the settings, and the fields of the sandbox's answer.
const SETTINGS: [(&str, &str); 9] = [
    ("BASE_URL", "baseUrl"),
    ("AUTH_URL", "authUrl"),
    ("TOKEN_URL", "tokenUrl"),
    ("CLIENT_ID", "clientId"),
    ("CLIENT_SECRET", "clientSecret"),
    ("REDIRECT_URI", "redirectUri"),
    ("CHANNEL_ID", "channelId"),
    ("ACCESS_TOKEN", "accessToken"),
    ("REFRESH_TOKEN", "refreshToken"),
];

/// The end of the command's help.
pub const HELP: &str = "\
Settings, each with the prefix:
  BASE_URL                     the base URL of REST and sockets
  AUTH_URL                     the address of the sign-in page
  TOKEN_URL                    the address that exchanges codes and refresh tokens
  CLIENT_ID, CLIENT_SECRET     the application
  REDIRECT_URI                 its first redirect address
  CHANNEL_ID                   the user's channel
  ACCESS_TOKEN, REFRESH_TOKEN  new tokens of the user for the application

Examples:
  stagedoor env > .env
  stagedoor env --prefix BOT_ > .env    BOT_BASE_URL, BOT_CLIENT_ID, …
  eval \"$(stagedoor env --user bada --client drops --format shell)\"";

/// Runs the command, and returns its output.
///
/// # Errors
/// [`CommandFailure`].
pub async fn run(options: &EnvOptions) -> Result<String, CommandFailure> {
    let EnvOptions { of, format, prefix } = options;
    let format = if of.target.json { Format::Json } else { *format };
    let target = of.target.find().await?;
    let answer =
        target.call(Method::POST, "/sandbox/v1/environment", Some(&of.body()), Duration::ZERO).await?;
    let value = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
    let settings = SETTINGS.map(|(name, field)| (format!("{prefix}{name}"), value(field)));
    written(format, &settings).map_err(CommandFailure::Failed)
}

/// The settings in a format.
fn written(format: Format, settings: &[(String, String)]) -> Result<String, String> {
    let mut lines = String::new();
    for (name, value) in settings {
        let line = match format {
            Format::Json => continue,
            Format::Shell => format!("export {name}={}\n", shell_word(value)),
            Format::Dotenv => {
                let value = dotenv_value(value).ok_or_else(|| {
                    format!("{name} cannot be written as dotenv, because its value has every kind of quote: use --format json")
                })?;
                format!("{name}={value}\n")
            }
        };
        lines.push_str(&line);
    }
    if format == Format::Json {
        let object = settings.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
        return Ok(format!("{}\n", Value::Object(object.collect())));
    }
    Ok(lines)
}

/// Whether a value means itself in a shell and in a `.env` file.
fn is_plain(value: &str) -> bool {
    !value.is_empty()
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-:/@%+,".contains(&byte))
}

/// A word for a POSIX shell.
fn shell_word(value: &str) -> String {
    if is_plain(value) { value.to_owned() } else { format!("'{}'", value.replace('\'', r"'\''")) }
}

/// A value of a `.env` file. Readers take the text between single quotes as it is. Between double quotes they
/// disagree on `$` and backslashes. `None` if no quotes fit.
fn dotenv_value(value: &str) -> Option<String> {
    if is_plain(value) {
        return Some(value.to_owned());
    }
    if !value.contains('\'') {
        return Some(format!("'{value}'"));
    }
    let fits = !value.contains(['"', '$', '\\', '`']);
    fits.then(|| format!("\"{value}\""))
}

pub(crate) fn name_prefix(text: &str) -> Result<String, String> {
    let mut bytes = text.bytes();
    let begins = bytes.next().is_none_or(|first| first.is_ascii_alphabetic() || first == b'_');
    let fits = begins && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    fits.then(|| text.to_owned()).ok_or(
        "it must begin with a letter or an underscore, and go on with letters, digits and underscores"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_where_a_reader_would_change_them() {
        for (value, shell, dotenv) in [
            ("http://127.0.0.1:8080/a_b", "http://127.0.0.1:8080/a_b", Some("http://127.0.0.1:8080/a_b")),
            ("", "''", Some("''")),
            ("a b#c", "'a b#c'", Some("'a b#c'")),
            ("$HOME `x` \"y\"", "'$HOME `x` \"y\"'", Some("'$HOME `x` \"y\"'")),
            ("it's", r"'it'\''s'", Some("\"it's\"")),
            ("it's $x", r"'it'\''s $x'", None),
            ("하늘", "'하늘'", Some("'하늘'")),
        ] {
            assert_eq!((shell_word(value).as_str(), dotenv_value(value).as_deref()), (shell, dotenv));
        }
    }

    #[test]
    fn each_format_has_every_setting() {
        let settings = [("A".to_owned(), "1 2".to_owned()), ("B".to_owned(), "x".to_owned())];
        for (format, expected) in [
            (Format::Dotenv, "A='1 2'\nB=x\n"),
            (Format::Shell, "export A='1 2'\nexport B=x\n"),
            (Format::Json, "{\"A\":\"1 2\",\"B\":\"x\"}\n"),
        ] {
            assert_eq!(written(format, &settings).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn a_prefix_begins_a_name() {
        for (text, fits) in
            [("", true), ("BOT_", true), ("_1", true), ("1", false), ("A-", false), ("A=", false)]
        {
            assert_eq!(name_prefix(text).is_ok(), fits, "{text}");
        }
    }
}
