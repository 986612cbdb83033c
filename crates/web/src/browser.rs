//! A browser: the token that its forms are bound to, and the person who is signed in with it.

use std::sync::{Arc, OnceLock};

use domain::ChannelId;
use domain::operator_key::OperatorRole;
use domain::secret::BrowserToken;
use http::{HeaderMap, HeaderValue, header};
use service::Purpose;

use crate::Web;
use crate::account_forms::charge_page;
use crate::cookies::{browser_token, sign_in_cookie};
use crate::page_request::PageRequest;
use crate::quota::block;

/// A browser.
#[derive(Clone, Debug)]
pub(crate) struct Browser {
    /// The token.
    pub token: BrowserToken,
    /// Whether the browser still has to receive its token.
    pub new: bool,
    /// The person, with the name of the channel.
    pub person: Option<(ChannelId, String)>,
    /// What the person may do on the operator pages.
    pub operator_role: Option<OperatorRole>,
}

impl Browser {
    /// The browser that the cookie names, or a new one. Each request for a page, and each form, is charged
    /// here.
    ///
    /// # Errors
    /// [`Refusal::TooManyRequests`](domain::Refusal::TooManyRequests), or when the store fails.
    pub async fn of(web: &Web, request: &PageRequest) -> Result<Self, service::Error> {
        let browser = match browser_token(&request.headers, request.https) {
            Some(token) => Self::with(web, request, token, false).await?,
            None => Self::fresh(web),
        };
        charge_page(web, request, browser.person.as_ref().map(|(person, _)| person))?;
        Ok(browser)
    }

    /// The browser with this token.
    pub async fn with(
        web: &Web,
        request: &PageRequest,
        token: BrowserToken,
        new: bool,
    ) -> Result<Self, service::Error> {
        let person = web.service().signed_in(&token).await?;
        if let Some(person) = &person {
            let user_agent = request.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
            let (user_agent, address) = (user_agent.unwrap_or_default(), block(request.client));
            web.service().note_browser_use(&token, person, user_agent, address).await;
        }
        let operator_role = person.as_ref().and_then(|person| person.operator_role);
        let person = person.map(|person| (person.channel_id, person.channel_name));
        Ok(Self { token, new, person, operator_role })
    }

    /// A browser with a new token, without a person.
    pub fn fresh(web: &Web) -> Self {
        let token = BrowserToken::generate(web.service().entropy().bytes(Purpose::Browser));
        Self { token, new: true, person: None, operator_role: None }
    }

    /// The token, if the browser still has to receive it.
    pub fn new_token(&self) -> Option<&BrowserToken> {
        self.new.then_some(&self.token)
    }
}

/// The token that a browser gets in place of its former one, and whether its origin is `https`. `finish` adds
/// this to every request, so that every answer has the cookie, also that of a failure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Renewed(Arc<OnceLock<(BrowserToken, bool)>>);

impl Renewed {
    /// The new token, if the browser gets one.
    pub fn token(&self) -> Option<&BrowserToken> {
        self.0.get().map(|(token, _)| token)
    }

    /// Gives the browser this token.
    pub fn set(&self, token: BrowserToken, https: bool) {
        // A request proves once to own the account.
        let _ = self.0.set((token, https));
    }

    /// Writes the cookie, if the browser gets a new token.
    pub fn describe(&self, headers: &mut HeaderMap) {
        let cookie = self.0.get().map(|(token, https)| sign_in_cookie(token, *https));
        let cookie = cookie.and_then(|cookie| HeaderValue::try_from(cookie).ok());
        headers.extend(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
    }
}
