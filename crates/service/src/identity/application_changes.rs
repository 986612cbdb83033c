//! The parts of an application that a change changed, for the audit log (`docs/audit-log.md`).

use domain::Scope;
use domain::application::{Application, RedirectUri};
use serde_json::{Map, Value, json};

/// The details of a change: its name, the fields with another value, another owner, and the redirect
/// addresses that were added and removed. `before` is `None` for a new application.
pub(crate) fn details(
    before: Option<(&Application, &[String])>,
    after: &Application,
    redirect_uris: &[RedirectUri],
) -> Map<String, Value> {
    let mut details = Map::from_iter([("name".to_owned(), json!(after.name))]);
    let Some((before, former)) = before else { return details };
    let organization = |of: &Application| of.organization.as_ref().map(|one| one.organization_id.clone());
    let (face, new_face) = (&before.presentation, &after.presentation);
    let has_other_owner = before.owner != after.owner;
    let changed = [
        ("name", before.name != after.name),
        ("ownerChannelId", has_other_owner),
        ("organizationId", organization(before) != organization(after)),
        ("scopes", before.scopes != after.scopes),
        ("profile", before.profile != after.profile),
        ("homepageUrl", face.homepage != new_face.homepage),
        ("termsUrl", face.terms != new_face.terms),
        ("privacyUrl", face.privacy != new_face.privacy),
    ];
    let changed: Vec<_> = changed.into_iter().filter_map(|(field, is)| is.then_some(field)).collect();
    let uris: Vec<_> = redirect_uris.iter().map(RedirectUri::as_str).collect();
    let added: Vec<_> = uris.iter().filter(|uri| !former.iter().any(|one| one == *uri)).collect();
    let removed: Vec<_> = former.iter().filter(|uri| !uris.contains(&uri.as_str())).collect();
    details.insert("changed".to_owned(), json!(changed));
    details.insert("addedRedirectUris".to_owned(), json!(added));
    details.insert("removedRedirectUris".to_owned(), json!(removed));
    if has_other_owner {
        details.insert("ownerChannelId".to_owned(), json!(after.owner));
    }
    details
}

/// The keys of the scopes of an application.
pub(crate) fn scope_keys(application: &Application) -> Vec<&'static str> {
    application.scopes.iter().map(Scope::key).collect()
}

#[cfg(test)]
mod tests {
    use domain::quota::QuotaShare;
    use domain::{ChannelId, ClientId, ScopeSet};

    use super::*;

    #[test]
    fn only_what_has_another_value_is_named() {
        let before = Application {
            client_id: ClientId::stored("bot".to_owned()),
            name: "bot".to_owned(),
            organization: None,
            owner: None,
            scopes: ScopeSet::EMPTY,
            profile: None,
            quota: QuotaShare::FULL,
            presentation: Default::default(),
        };
        let former = ["https://a.example/".to_owned()];
        let uris = |all: &[&str]| -> Vec<RedirectUri> {
            all.iter().map(|uri| RedirectUri::parse(uri).expect("an address")).collect()
        };
        let same = details(Some((&before, &former)), &before, &uris(&["https://a.example/"]));
        let expected = json!({
            "name": "bot", "changed": [], "addedRedirectUris": [], "removedRedirectUris": [],
        });
        assert_eq!(Value::Object(same), expected);
        let owner = Some(ChannelId::stored("byeol".to_owned()));
        let other = Application { owner, name: "other".to_owned(), ..before.clone() };
        let changed = details(Some((&before, &former)), &other, &uris(&["https://b.example/"]));
        let expected = json!({
            "name": "other", "changed": ["name", "ownerChannelId"], "ownerChannelId": "byeol",
            "addedRedirectUris": ["https://b.example/"], "removedRedirectUris": ["https://a.example/"],
        });
        assert_eq!(Value::Object(changed), expected);
        assert_eq!(Value::Object(details(None, &other, &[])), json!({ "name": "other" }));
    }
}
