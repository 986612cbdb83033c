//! People who come from an OpenID Connect provider of the operator (`docs/upstream.md`).

use serde::{Deserialize, Serialize};

use crate::limits::NAME_CHARS_MAX;

/// A person as a provider names them. Issuer and subject name the person for ever. Everything else may change
/// there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamIdentity {
    /// The name of the provider in the configuration.
    pub provider: String,
    /// The issuer.
    pub issuer: String,
    /// The person's id at the issuer.
    pub subject: String,
    /// The person's name.
    pub name: Option<String>,
    /// The address of a picture.
    pub picture: Option<String>,
    /// An e-mail address that the provider has verified.
    pub email: Option<String>,
}

impl UpstreamIdentity {
    /// The name of a new channel: that of the person without control characters, as long as a name may be.
    pub fn channel_name(&self) -> Option<String> {
        let name: String = self.name.as_ref()?.chars().filter(|c| !c.is_control()).collect();
        let name: String = name.trim().chars().take(NAME_CHARS_MAX).collect();
        let name = name.trim_end();
        (!name.is_empty()).then(|| name.to_owned())
    }
}

/// The path of the form that leads a browser to a provider. The callback is below it.
pub fn provider_path(name: &str) -> String {
    format!("/sign-in/upstream/{name}")
}

/// The redirect address that is registered at a provider.
pub fn redirect_address(base_url: &str, name: &str) -> String {
    format!("{base_url}{}/callback", provider_path(name))
}

/// Whether a provider may be unlinked: the person must have another way to sign in.
pub fn may_unlink(has_password: bool, other_providers: usize) -> bool {
    has_password || other_providers > 0
}

/// The login of an account that is made for a person of a provider: unique, because of its random part.
pub fn generated_login(provider: &str, random: [u8; 8]) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let tail: String = random.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
    format!("{}-{tail}", &provider[..provider.len().min(20)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::check_login;

    fn named(name: &str) -> UpstreamIdentity {
        UpstreamIdentity {
            provider: "company".into(),
            issuer: "https://id.example.com".into(),
            subject: "1".into(),
            name: Some(name.into()),
            picture: None,
            email: None,
        }
    }

    #[test]
    fn the_name_of_a_channel_fits() {
        for (name, expected) in [
            ("하늘", Some("하늘")),
            ("  a\n b ", Some("a b")),
            ("\u{0}\u{7}", None),
            ("   ", None),
            (&"가".repeat(NAME_CHARS_MAX + 5), Some("가".repeat(NAME_CHARS_MAX).as_str())),
        ] {
            assert_eq!(named(name).channel_name().as_deref(), expected, "{name:?}");
        }
        assert_eq!(UpstreamIdentity { name: None, ..named("") }.channel_name(), None);
    }

    #[test]
    fn the_last_way_in_stays() {
        for (has_password, others, may) in [(false, 0, false), (true, 0, true), (false, 1, true)] {
            assert_eq!(may_unlink(has_password, others), may);
        }
    }

    #[test]
    fn a_generated_login_is_a_login() {
        for provider in ["a", "company", &"b".repeat(32)] {
            assert_eq!(check_login(&generated_login(provider, [255; 8])), Ok(()));
        }
        assert_ne!(generated_login("a", [0; 8]), generated_login("a", [1; 8]));
    }
}
