//! The page that catches redirects, as a redirect address of applications.

use domain::application::RedirectUri;
use service::{Error, Service};

/// The path of the page.
pub(crate) const CATCH_PATH: &str = "/sandbox/catch";

/// The address of the page of the sandbox at `base_url`; `None` if no application may have it, because
/// browsers reach the sandbox by http from other machines.
pub fn catch_address(base_url: &str) -> Option<RedirectUri> {
    RedirectUri::parse(&format!("{base_url}{CATCH_PATH}")).ok()
}

/// Gives applications the page of this sandbox in place of the page of an earlier start, or of the world that
/// this world was copied from.
///
/// # Errors
/// The service failed.
pub async fn move_catch_addresses(service: &Service, base_url: &str) -> Result<(), Error> {
    let Some(own) = catch_address(base_url) else { return Ok(()) };
    let listed = service.applications_by_age().await?;
    for life in listed.into_iter().filter(|life| life.deleted_at.is_none()) {
        let client_id = life.application.client_id;
        let uris = service.application_details(&client_id).await?.redirect_uris;
        if uris.iter().any(|uri| is_catch(uri) && uri != own.as_str()) {
            service.put_redirect_uris(client_id, with_own(&uris, own.clone())).await?;
        }
    }
    Ok(())
}

/// The addresses with the page of this sandbox, in place of that of another one.
pub(crate) fn with_own(uris: &[String], own: RedirectUri) -> Vec<RedirectUri> {
    let others = uris.iter().filter(|uri| !is_catch(uri)).filter_map(|uri| RedirectUri::parse(uri).ok());
    others.chain([own]).collect()
}

/// Whether a redirect address is the page of a sandbox.
pub(crate) fn is_catch(uri: &str) -> bool {
    uri.ends_with(CATCH_PATH)
}

/// The redirect address for a program: the first that is not the page.
pub fn for_program(uris: &[String]) -> Option<&String> {
    uris.iter().find(|uri| !is_catch(uri)).or(uris.first())
}

/// The redirect address for a person with a browser: the page if it is registered, because it always answers.
pub fn for_browser(uris: &[String]) -> Option<&String> {
    uris.iter().find(|uri| is_catch(uri)).or(uris.first())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_get_their_own_address_and_people_get_the_page() {
        let page = "http://127.0.0.1:8080/sandbox/catch";
        for (uris, program, browser) in [
            (vec![], None, None),
            (vec!["http://localhost:9999/callback"], Some(0), Some(0)),
            (vec![page], Some(0), Some(0)),
            (vec![page, "http://localhost:9999/callback"], Some(1), Some(0)),
            (vec!["http://localhost:1/", page], Some(0), Some(1)),
        ] {
            let uris: Vec<String> = uris.into_iter().map(str::to_owned).collect();
            let place = |found: Option<&String>| found.and_then(|uri| uris.iter().position(|one| one == uri));
            assert_eq!(
                (place(for_program(&uris)), place(for_browser(&uris))),
                (program, browser),
                "{uris:?}"
            );
        }
    }

    #[test]
    fn the_page_of_another_sandbox_is_replaced() {
        let uris = ["http://localhost:1/sandbox/catch", "http://localhost:9999/callback"].map(str::to_owned);
        let own = catch_address("http://127.0.0.1:8080").expect("an address");
        let found: Vec<_> = with_own(&uris, own).iter().map(|uri| uri.as_str().to_owned()).collect();
        assert_eq!(found, ["http://localhost:9999/callback", "http://127.0.0.1:8080/sandbox/catch"]);
        assert!(catch_address("http://sandbox.example").is_none(), "http is only for this machine");
    }
}
