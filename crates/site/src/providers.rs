//! What the pages about providers have in common.

use domain::Refusal;
use domain::refusal::Resource;
use upstream::{Provider, Upstreams};
use web::pages::Lang;

/// The provider with this name.
///
/// # Errors
/// [`Refusal::NotFound`].
pub(crate) fn find<'u>(upstreams: &'u Upstreams, name: &str) -> Result<&'u Provider, Refusal> {
    upstreams.get(name).ok_or(Refusal::NotFound(Resource::Path))
}

/// The label of a provider.
pub(crate) fn label(provider: &Provider, lang: Lang) -> &str {
    let [ko, en] = &provider.settings().labels;
    match lang {
        Lang::Ko => ko,
        Lang::En => en,
    }
}

/// The path of the form that links a provider.
pub(crate) fn link_path(name: &str) -> String {
    format!("/account/upstream/{name}/link")
}

/// The path of the form that unlinks a provider.
pub(crate) fn unlink_path(name: &str) -> String {
    format!("/account/upstream/{name}/unlink")
}
