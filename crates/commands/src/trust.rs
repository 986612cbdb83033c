//! Files and variables that make a program trust the local authority of a sandbox.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_client::system_certificates;

/// The file of the authority's certificate.
pub const AUTHORITY_FILE: &str = "authority.pem";
/// The file of the system's authorities and the local one.
const BUNDLE_FILE: &str = "bundle.pem";
/// The file of the same authorities for Java, which `keytool` makes.
const TRUSTSTORE_FILE: &str = "truststore.p12";
/// The usual password of a truststore. It protects nothing: certificates are no secrets.
const TRUSTSTORE_PASSWORD: &str = "changeit";
/// Number of characters in a line of PEM.
const PEM_LINE_CHARS: usize = 64;

/// The files that programs read their trusted authorities from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustFiles {
    /// The local authority.
    pub authority: PathBuf,
    /// The system's authorities and the local one.
    pub bundle: PathBuf,
    truststore: PathBuf,
}

impl TrustFiles {
    /// Writes the files of an authority into a folder.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn write(folder: &Path, authority: &str) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let files = Self::in_folder(folder);
        replace(&files.authority, authority)?;
        replace(&files.bundle, &bundle(authority))?;
        Ok(files)
    }

    fn in_folder(folder: &Path) -> Self {
        let file = |name| folder.join(name);
        let (authority, bundle, truststore) =
            (file(AUTHORITY_FILE), file(BUNDLE_FILE), file(TRUSTSTORE_FILE));
        Self { authority, bundle, truststore }
    }

    /// The variables of the environment, by name. The bundle is for programs that replace the system's
    /// authorities, the single certificate for those that add to them.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let path = |path: &Path| path.display().to_string();
        let (authority, bundle) = (path(&self.authority), path(&self.bundle));
        vec![
            ("SSL_CERT_FILE", bundle.clone()),
            ("REQUESTS_CA_BUNDLE", bundle.clone()),
            ("CURL_CA_BUNDLE", bundle),
            ("NODE_EXTRA_CA_CERTS", authority.clone()),
            ("DENO_CERT", authority),
        ]
    }

    /// The command that makes the truststore for Java, once. Words are quoted for a shell where necessary.
    pub fn keytool(&self) -> String {
        format!(
            "keytool -importcert -noprompt -alias stagedoor -file {} -keystore {} -storetype PKCS12 -storepass \
             {TRUSTSTORE_PASSWORD}",
            quoted(&self.authority.display().to_string()),
            quoted(&self.truststore.display().to_string()),
        )
    }

    /// The options of Java that name the truststore.
    pub fn java_options(&self) -> String {
        format!(
            "-Djavax.net.ssl.trustStore={} -Djavax.net.ssl.trustStorePassword={TRUSTSTORE_PASSWORD}",
            self.truststore.display()
        )
    }

    /// The same as a variable, if `keytool` has made the truststore of this authority in a folder.
    pub fn java_variable_in(folder: &Path, authority: &str) -> Option<(&'static str, String)> {
        let files = Self::in_folder(folder);
        let is_same = fs::read(&files.authority).is_ok_and(|text| text == authority.as_bytes());
        (is_same && files.truststore.exists()).then(|| ("JAVA_TOOL_OPTIONS", files.java_options()))
    }
}

/// The folder of the local authority in the user's data folder; `None` without a home folder.
pub fn default_folder() -> Option<PathBuf> {
    let given = |name| std::env::var_os(name).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let data = given("XDG_DATA_HOME").or_else(|| Some(given("HOME")?.join(".local/share")))?;
    Some(data.join("stagedoor/tls"))
}

/// Bytes in the text format of certificates and keys.
pub fn pem(label: &str, bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(PEM_LINE_CHARS));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out + &format!("-----END {label}-----\n")
}

/// The local authority, and every authority of the system.
fn bundle(authority: &str) -> String {
    let mut out = authority.to_owned();
    for certificate in system_certificates() {
        let text = pem("CERTIFICATE", &certificate);
        // SSL_CERT_FILE may name an earlier bundle.
        if text != authority {
            out.push_str(&text);
        }
    }
    out
}

/// Moves a new file into place, unless the file has this content.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    if fs::read(path).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(());
    }
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&temporary, path)
}

/// A word, quoted for a POSIX shell where necessary.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%,:=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundle_begins_with_the_authority_and_has_those_of_the_system() {
        let root = tempfile::tempdir().expect("a folder");
        let authority = pem("CERTIFICATE", &[7; 100]);
        let files = TrustFiles::write(&root.path().join("tls"), &authority).expect("written");
        let bundle = fs::read_to_string(&files.bundle).expect("a bundle");
        assert!(bundle.starts_with(&authority));
        assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), 1 + system_certificates().len());
        assert_eq!(fs::read_to_string(&files.authority).expect("a file"), authority);
        assert_eq!(TrustFiles::write(&root.path().join("tls"), &authority).expect("again"), files);
        assert_eq!(fs::read_dir(root.path().join("tls")).expect("a folder").count(), 2);
    }

    #[test]
    fn pem_has_lines_of_64_characters() {
        assert_eq!(pem("X", b""), "-----BEGIN X-----\n-----END X-----\n");
        let text = pem("X", &[0; 50]);
        assert_eq!(text.lines().map(str::len).collect::<Vec<_>>(), [17, 64, 4, 15]);
    }

    #[test]
    fn java_gets_its_variable_when_there_is_a_truststore() {
        let root = tempfile::tempdir().expect("a folder");
        let files = TrustFiles::in_folder(&root.path().join("a b"));
        assert!(files.keytool().contains("a b/truststore.p12'"), "{}", files.keytool());
        let variable = |authority| TrustFiles::java_variable_in(root.path(), authority);
        fs::write(root.path().join(AUTHORITY_FILE), "ours").expect("written");
        assert_eq!(variable("ours"), None);
        fs::write(root.path().join(TRUSTSTORE_FILE), "").expect("written");
        assert_eq!(variable("ours").expect("a variable").0, "JAVA_TOOL_OPTIONS");
        assert_eq!(variable("another"), None);
    }
}
