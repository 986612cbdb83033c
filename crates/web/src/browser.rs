//! A browser: the token that its forms are bound to, and the person who is signed in with it.

use domain::ChannelId;
use domain::secret::BrowserToken;
use service::Purpose;

use crate::Web;
use crate::cookies::browser_token;
use crate::page_request::PageRequest;

/// A browser.
#[derive(Clone, Debug)]
pub(crate) struct Browser {
    /// The token.
    pub token: BrowserToken,
    /// Whether the browser still has to receive its token.
    pub new: bool,
    /// The person, with the name of the channel.
    pub person: Option<(ChannelId, String)>,
}

impl Browser {
    /// The browser that the cookie names, or a new one.
    pub async fn of(web: &Web, request: &PageRequest) -> Result<Self, service::Error> {
        match browser_token(&request.headers, request.https) {
            Some(token) => Self::with(web, token, false).await,
            None => Ok(Self::fresh(web)),
        }
    }

    /// The browser with this token.
    pub async fn with(web: &Web, token: BrowserToken, new: bool) -> Result<Self, service::Error> {
        let person = web.service().signed_in(&token).await?;
        Ok(Self { token, new, person: person.map(|person| (person.channel_id, person.channel_name)) })
    }

    /// A browser with a new token, without a person.
    pub fn fresh(web: &Web) -> Self {
        let token = BrowserToken::generate(web.service().entropy().bytes(Purpose::Browser));
        Self { token, new: true, person: None }
    }

    /// The token, if the browser still has to receive it.
    pub fn new_token(&self) -> Option<&BrowserToken> {
        self.new.then_some(&self.token)
    }
}
