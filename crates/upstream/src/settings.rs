//! The providers of the operator's file: `--upstreams FILE`.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use domain::outbound::Reach;
use serde::Deserialize;

use crate::address::{issuer_reach, parse_issuer};

/// Most providers of one file.
const PROVIDERS_MAX: usize = 16;
/// Maximum length of a name, in characters.
const NAME_CHARS_MAX: usize = 32;
/// Maximum length of a label, in characters.
const LABEL_CHARS_MAX: usize = 40;
/// Maximum size of the file, and of the file of a secret, in bytes.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// Most seconds of `timeoutSeconds`.
const TIMEOUT_S_MAX: u64 = 15;

/// What happens when a person comes from a provider for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Registration {
    /// An account is made.
    #[default]
    Automatic,
    /// The person is asked for the name of the channel, and confirms.
    Ask,
    /// No account is made. People link the provider on the page of their account.
    Closed,
}

/// The claims that are read beside the subject.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ClaimNames {
    /// The name of a new channel.
    pub name: String,
    /// The address of a picture.
    pub picture: String,
    /// The e-mail address. It counts only with `email_verified`.
    pub email: String,
}

impl Default for ClaimNames {
    fn default() -> Self {
        Self { name: "name".into(), picture: "picture".into(), email: "email".into() }
    }
}

/// The secret of this service at a provider. It does not print.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct UpstreamSecret(pub(crate) String);

impl fmt::Debug for UpstreamSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpstreamSecret")
    }
}

/// A provider. `Debug` shows no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderSettings {
    /// Its name in addresses, in the store and in metrics.
    pub name: String,
    /// What its button says, in Korean and in English.
    pub labels: [String; 2],
    /// Its issuer, byte for byte.
    pub issuer: String,
    /// The id of this service at the provider.
    pub client_id: String,
    /// The secret of this service at the provider; `None` for a public client.
    pub(crate) client_secret: Option<UpstreamSecret>,
    /// The requested scopes, without `openid`.
    pub scopes: Vec<String>,
    /// The claims that are read.
    pub claims: ClaimNames,
    /// What happens when a person comes for the first time.
    pub registration: Registration,
    /// Where the provider may be.
    pub reach: Reach,
    /// Deadline of each request to the provider.
    pub timeout: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UpstreamsFile {
    upstreams: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    name: String,
    label: Label,
    issuer: String,
    client_id: String,
    client_secret: Option<String>,
    client_secret_file: Option<String>,
    #[serde(default = "default_scopes")]
    scopes: Vec<String>,
    #[serde(default)]
    claims: ClaimNames,
    #[serde(default)]
    registration: Registration,
    #[serde(default)]
    private_network: bool,
    #[serde(default = "default_timeout")]
    timeout_seconds: u64,
}

/// One text for both languages, or one for each.
#[derive(Deserialize)]
#[serde(untagged)]
enum Label {
    Both(String),
    Each { ko: String, en: String },
}

fn default_scopes() -> Vec<String> {
    vec!["profile".into(), "email".into()]
}

const fn default_timeout() -> u64 {
    5
}

/// Reads the file. Paths in it are relative to its folder.
///
/// # Errors
/// A sentence for the operator that names the file and the field.
pub fn read_file(path: &Path) -> Result<Vec<ProviderSettings>, String> {
    let failed = |problem: String| format!("--upstreams {}: {problem}", path.display());
    let text = read_text(path).map_err(failed)?;
    read(&text, path.parent().unwrap_or(Path::new("."))).map_err(failed)
}

fn read_text(path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > FILE_BYTES_MAX {
        return Err(format!("must have at most {} KiB", FILE_BYTES_MAX / 1024));
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

/// Reads the text of the file.
pub(crate) fn read(text: &str, folder: &Path) -> Result<Vec<ProviderSettings>, String> {
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    let file: UpstreamsFile =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())?;
    if file.upstreams.is_empty() || file.upstreams.len() > PROVIDERS_MAX {
        return Err(format!("upstreams must list 1 to {PROVIDERS_MAX} providers"));
    }
    let mut names = HashSet::new();
    let mut providers = Vec::new();
    for (n, entry) in file.upstreams.into_iter().enumerate() {
        let place = format!("upstreams[{n}]");
        let provider = entry.check(folder).map_err(|problem| format!("{place}.{problem}"))?;
        if !names.insert(provider.name.clone()) {
            return Err(format!("{place}.name: {} occurs twice", provider.name));
        }
        providers.push(provider);
    }
    Ok(providers)
}

impl Entry {
    fn check(self, folder: &Path) -> Result<ProviderSettings, String> {
        let client_secret = self.secret(folder)?;
        if !is_name(&self.name) {
            return Err(format!(
                "name: must be 1 to {NAME_CHARS_MAX} small letters, digits and '-', beginning with a letter"
            ));
        }
        let (ko, en) = match self.label {
            Label::Both(text) => (text.clone(), text),
            Label::Each { ko, en } => (ko, en),
        };
        let labels = [check_label(&ko)?, check_label(&en)?];
        let issuer = parse_issuer(&self.issuer).map_err(|problem| format!("issuer: {problem}"))?;
        if !is_printable(&self.client_id, 512) {
            return Err("clientId: must be 1 to 512 printable ASCII characters".into());
        }
        let claims = [&self.claims.name, &self.claims.picture, &self.claims.email];
        if claims.into_iter().any(|claim| !is_printable(claim, 128)) {
            return Err("claims: each must be 1 to 128 printable ASCII characters".into());
        }
        let is_scope = |scope: &String| is_printable(scope, 128) && !scope.contains([' ', '"', '\\']);
        if self.scopes.len() > 32 || !self.scopes.iter().all(is_scope) {
            return Err("scopes: at most 32 words of OAuth, as in [profile, email]".into());
        }
        if !(1..=TIMEOUT_S_MAX).contains(&self.timeout_seconds) {
            return Err(format!("timeoutSeconds: must be 1 to {TIMEOUT_S_MAX}"));
        }
        Ok(ProviderSettings {
            name: self.name,
            labels,
            reach: issuer_reach(&issuer, self.private_network),
            issuer: self.issuer,
            client_id: self.client_id,
            client_secret,
            scopes: self.scopes.into_iter().filter(|scope| scope != "openid").collect(),
            claims: self.claims,
            registration: self.registration,
            timeout: Duration::from_secs(self.timeout_seconds),
        })
    }

    fn secret(&self, folder: &Path) -> Result<Option<UpstreamSecret>, String> {
        let (field, secret) = match (&self.client_secret, &self.client_secret_file) {
            (Some(_), Some(_)) => {
                return Err("clientSecret: give either clientSecret or clientSecretFile, not both".into());
            }
            (None, None) => return Ok(None),
            (Some(secret), None) => ("clientSecret", secret.clone()),
            (None, Some(file)) => {
                let path = folder.join(file);
                let text = read_text(&path)
                    .map_err(|error| format!("clientSecretFile: {}: {error}", path.display()))?;
                ("clientSecretFile", text.trim_end_matches(['\r', '\n']).to_owned())
            }
        };
        match is_printable(&secret, 1024) {
            true => Ok(Some(UpstreamSecret(secret))),
            false => Err(format!("{field}: must be 1 to 1024 printable ASCII characters")),
        }
    }
}

/// Small letters, digits and hyphens, with a letter first.
fn is_name(name: &str) -> bool {
    let first = name.bytes().next();
    name.len() <= NAME_CHARS_MAX
        && first.is_some_and(|byte| byte.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn is_printable(text: &str, bytes_max: usize) -> bool {
    (1..=bytes_max).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn check_label(label: &str) -> Result<String, String> {
    let label = label.trim();
    let is_good = (1..=LABEL_CHARS_MAX).contains(&label.chars().count()) && !label.contains(char::is_control);
    match is_good {
        true => Ok(label.to_owned()),
        false => Err(format!("label: must be 1 to {LABEL_CHARS_MAX} characters")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "
upstreams:
  - name: company
    label: { ko: 회사 계정, en: Company account }
    issuer: https://id.example.com/realms/main
    clientId: stagedoor
    clientSecret: hush
";

    fn one(text: &str) -> Result<ProviderSettings, String> {
        read(text, Path::new("/nowhere")).map(|mut providers| providers.remove(0))
    }

    #[test]
    fn a_short_entry_has_the_usual_defaults() {
        let provider = one(GOOD).expect("good");
        assert_eq!(provider.labels, ["회사 계정", "Company account"]);
        assert_eq!(provider.issuer, "https://id.example.com/realms/main");
        assert_eq!(provider.scopes, ["profile", "email"]);
        assert_eq!((provider.registration, provider.timeout.as_secs()), (Registration::Automatic, 5));
        assert_eq!(provider.reach, Reach::PUBLIC);
        assert!(!format!("{provider:?}").contains("hush"), "a secret is not printed");
        let one_label = GOOD.replace("{ ko: 회사 계정, en: Company account }", "Sky");
        assert_eq!(one(&one_label).expect("good").labels, ["Sky", "Sky"]);
    }

    #[test]
    fn the_reach_follows_the_issuer_and_the_private_network() {
        let with = |issuer: &str| one(&GOOD.replace("https://id.example.com/realms/main", issuer));
        let reach = |loopback, private| Reach { loopback, private };
        for (issuer, expected) in [
            ("http://127.0.0.1:9000", reach(true, false)),
            ("http://localhost:9000/x", reach(true, false)),
            ("https://10.1.2.3", reach(false, true)),
            ("https://id.internal", reach(false, true)),
            ("https://id.example.com", Reach::PUBLIC),
        ] {
            assert_eq!(with(issuer).expect("good").reach, expected, "{issuer}");
        }
        let private = format!("{GOOD}    privateNetwork: true\n");
        assert_eq!(one(&private).expect("good").reach, reach(false, true));
        for issuer in [
            "http://id.example.com",
            "http://10.1.2.3",
            "https://id.example.com?x=1",
            "https://169.254.169.254",
            "https://a:b@id.example.com",
            "id.example.com",
        ] {
            assert!(with(issuer).is_err_and(|text| text.contains("issuer")), "{issuer}");
        }
    }

    #[test]
    fn wrong_entries_are_refused_by_the_name_of_their_field() {
        for (from, to, field) in [
            ("name: company", "name: Company", "name"),
            ("name: company", "name: 1a", "name"),
            ("name: company", &format!("name: {}", "a".repeat(33)), "name"),
            ("ko: 회사 계정", "ko: ''", "label"),
            ("clientId: stagedoor", "clientId: ''", "clientId"),
            ("clientSecret: hush", "clientSecret: 비밀", "clientSecret"),
            ("clientSecret: hush", "clientSecretFile: missing", "clientSecretFile"),
            ("clientSecret: hush", "clientSecret: a\n    clientSecretFile: b", "clientSecret"),
            ("clientSecret: hush", "timeoutSeconds: 0", "timeoutSeconds"),
            ("clientSecret: hush", "scopes: ['a b']", "scopes"),
            ("clientSecret: hush", "claims: { name: '' }", "claims"),
            ("clientSecret: hush", "registration: maybe", "automatic, ask, closed"),
            ("clientSecret: hush", "tenant: x", "tenant"),
        ] {
            let error = one(&GOOD.replace(from, to)).expect_err(to);
            assert!(error.contains(field) && !error.contains("hush"), "{to}: {error}");
        }
        assert!(one("upstreams: []").is_err());
        let twice = format!("{GOOD}{}", GOOD.replace("\nupstreams:\n", ""));
        assert!(one(&twice).is_err_and(|text| text.contains("twice")));
    }
}
