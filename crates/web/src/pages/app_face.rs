//! How an application looks on the pages.

use domain::ClientId;
use domain::application::{Application, Presentation};
use domain::https_url::HttpsUrl;

use super::Lang;

/// The logo and the links of an application. Its developer chose them: they are untrusted.
#[derive(Debug, Clone, Default)]
pub struct AppFace<'a> {
    /// The address of its logo, on this origin.
    pub logo: Option<String>,
    /// Its home page.
    pub homepage: Option<&'a HttpsUrl>,
    /// Its terms of use.
    pub terms: Option<&'a HttpsUrl>,
    /// Its privacy policy.
    pub privacy: Option<&'a HttpsUrl>,
}

impl<'a> AppFace<'a> {
    /// The face of an application.
    pub fn of(application: &'a Application) -> Self {
        let Presentation { homepage, terms, privacy, logo_version } = &application.presentation;
        let address = |version: &String| logo_address(&application.client_id, version);
        Self {
            logo: logo_version.as_ref().map(address),
            homepage: homepage.as_ref(),
            terms: terms.as_ref(),
            privacy: privacy.as_ref(),
        }
    }

    /// The links: address and text.
    pub fn links(&self, lang: Lang) -> Vec<(&'a str, String)> {
        let named = [
            (self.terms, lang.pick("이용약관", "Terms")),
            (self.privacy, lang.pick("개인정보 처리방침", "Privacy")),
        ];
        let named = named.into_iter().filter_map(|(url, text)| Some((url?.as_str(), text.to_owned())));
        // Of the home page people see where it leads.
        let homepage = self.homepage.map(|url| (url.as_str(), url.host().to_owned()));
        homepage.into_iter().chain(named).collect()
    }
}

fn logo_address(client_id: &ClientId, version: &str) -> String {
    format!("/pictures/applications/{client_id}?v={version}")
}
