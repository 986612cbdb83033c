//! The providers at which people can sign in, as the pages show them.

use domain::secret::{BrowserToken, SecretHash};
use domain::upstream::provider_path;

use crate::Web;
use crate::pages::{Lang, ProviderButton};

/// The proof that a form was made for this browser and this address. Only a browser with the cookie can have
/// it.
pub(crate) fn proof(token: &BrowserToken, path: &str) -> SecretHash {
    SecretHash::of(&format!("{}\nform\n{path}", token.hash().as_str()))
}

/// The buttons of the providers, for this browser.
pub(crate) fn provider_buttons<'a>(
    web: &'a Web,
    lang: Lang,
    token: &BrowserToken,
) -> Vec<ProviderButton<'a>> {
    let providers = web.config().providers.iter().map(|provider| {
        let [ko, en] = &provider.labels;
        let action = provider_path(&provider.name);
        let csrf = proof(token, &action).as_str().to_owned();
        let label = match lang {
            Lang::Ko => ko,
            Lang::En => en,
        };
        ProviderButton { label, action, csrf }
    });
    providers.collect()
}
