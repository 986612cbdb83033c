//! The REST interface and the platform API, call by call. A call returns the [`Response`] unchanged, so a
//! test can check every part. A call that only prepares a test panics if it is refused.

pub(crate) mod accounts;
pub(crate) mod builders;

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::{
    Application, Browser, Connection, Page, Person, Request, Response, Socket, Tokens, encode, query_value,
};

/// The address of a server, and the key of its platform API.
#[derive(Clone, Debug)]
pub struct Api {
    address: SocketAddr,
    operator_key: String,
    partial: bool,
}

impl Api {
    /// The server at `base_url`, as in `http://127.0.0.1:8080`.
    ///
    /// # Panics
    /// When the URL has another form.
    pub fn new(base_url: &str, operator_key: &str) -> Self {
        let address = base_url.strip_prefix("http://").and_then(|address| address.parse().ok());
        Self {
            address: address.unwrap_or_else(|| panic!("no http address: {base_url}")),
            operator_key: operator_key.to_owned(),
            partial: false,
        }
    }

    /// Marks the server as a listener of only some paths. Other paths may answer 404.
    pub fn of_a_part(&self) -> Self {
        Self { partial: true, ..self.clone() }
    }

    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a request on a new connection.
    pub async fn send(&self, request: Request) -> Response {
        let request = request.elsewhere(self.partial);
        // Boxed, because the future of a test contains a hundred such calls.
        Box::pin(async move { Connection::open(self.address).await.send(&request).await }).await
    }

    /// Sends a request with the operator's key.
    pub async fn operator(&self, request: Request) -> Response {
        self.send(request.bearer(&self.operator_key)).await
    }

    // ---- Preparing ---------------------------------------------------------------------------------------

    /// Signs in through the pages up to the redirect with the code, and exchanges the code for tokens.
    ///
    /// # Panics
    /// When a step fails.
    pub async fn sign_in(&self, app: &Application, person: &Person) -> Tokens {
        let code = self.consent(app, person, "state").await;
        Tokens::of(&self.exchange(app, &code, "state").await.content())
    }

    /// Signs in through the pages, and returns the code.
    ///
    /// # Panics
    /// When a step fails.
    pub async fn consent(&self, app: &Application, person: &Person, state: &str) -> String {
        let mut browser = Browser::new(self.address);
        let consent = self.sign_in_page(&mut browser, app, person, state).await;
        let redirect = browser.submit(&consent.form("decision").press("decision", "allow")).await;
        let location = redirect.location();
        assert_eq!(query_value(location, "state").as_deref(), Some(state));
        query_value(location, "code").expect("a code")
    }

    /// Signs in through the pages up to the consent page.
    ///
    /// # Panics
    /// When a step fails.
    pub async fn sign_in_page(
        &self,
        browser: &mut Browser,
        app: &Application,
        person: &Person,
        state: &str,
    ) -> Page {
        let page = browser.open(&sign_in_address(&app.client_id, &app.redirect_uri, state)).await;
        let form = page.form("login").fill("login", &person.login).fill("password", &person.password);
        let consent = browser.submit(&form).await;
        assert_eq!(consent.response.status, 200, "{}", consent.response.text());
        consent
    }

    /// Opens a session with a user token and waits for its SYSTEM `connected`.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn open_user_session(&self, token: &str) -> Socket {
        Socket::open(&url_of(&self.user_session_url(token).await)).await
    }

    /// Opens a session in client mode and waits for its SYSTEM `connected`.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn open_client_session(&self, app: &Application) -> Socket {
        Socket::open(&url_of(&self.client_session_url(app).await)).await
    }

    // ---- 4.1 Authorization and tokens --------------------------------------------------------------------

    /// `POST /auth/v1/token` with any body.
    pub async fn token(&self, body: Value) -> Response {
        self.send(Request::post("/auth/v1/token").json(&body)).await
    }

    /// The grant `authorization_code`.
    pub async fn exchange(&self, app: &Application, code: &str, state: &str) -> Response {
        self.token(json!({
            "grantType": "authorization_code", "clientId": app.client_id, "clientSecret": app.client_secret,
            "code": code, "state": state,
        }))
        .await
    }

    /// The grant `refresh_token`.
    pub async fn refresh(&self, app: &Application, refresh_token: &str) -> Response {
        self.token(json!({
            "grantType": "refresh_token", "clientId": app.client_id, "clientSecret": app.client_secret,
            "refreshToken": refresh_token,
        }))
        .await
    }

    /// `POST /auth/v1/token/revoke`
    pub async fn revoke(&self, app: &Application, token: &str) -> Response {
        let body = json!({ "clientId": app.client_id, "clientSecret": app.client_secret, "token": token });
        self.send(Request::post("/auth/v1/token/revoke").json(&body)).await
    }

    // ---- 4.2 User and channel ----------------------------------------------------------------------------

    /// `GET /open/v1/users/me`
    pub async fn me(&self, token: &str) -> Response {
        self.send(Request::get("/open/v1/users/me").bearer(token)).await
    }

    /// `GET /open/v1/channels` with a raw query.
    pub async fn channels(&self, app: &Application, query: &str) -> Response {
        self.as_client(app, Request::get(format!("/open/v1/channels?{query}"))).await
    }

    // ---- 4.3 Category and live ---------------------------------------------------------------------------

    /// `GET /open/v1/categories/search` with a raw query.
    pub async fn categories(&self, app: &Application, query: &str) -> Response {
        self.as_client(app, Request::get(format!("/open/v1/categories/search?{query}"))).await
    }

    /// `GET /open/v1/lives` with a raw query.
    pub async fn lives(&self, app: &Application, query: &str) -> Response {
        self.as_client(app, Request::get(format!("/open/v1/lives?{query}"))).await
    }

    /// `GET /open/v1/lives/setting`
    pub async fn live_setting(&self, token: &str) -> Response {
        self.send(Request::get("/open/v1/lives/setting").bearer(token)).await
    }

    /// `PATCH /open/v1/lives/setting`
    pub async fn patch_live_setting(&self, token: &str, body: &Value) -> Response {
        self.send(Request::patch("/open/v1/lives/setting").bearer(token).json(body)).await
    }

    /// `GET /open/v1/streams/key`
    pub async fn stream_key(&self, token: &str) -> Response {
        self.send(Request::get("/open/v1/streams/key").bearer(token)).await
    }

    // ---- 4.4 Chat ----------------------------------------------------------------------------------------

    /// `POST /open/v1/chats/send`
    pub async fn send_chat(&self, token: &str, message: &str) -> Response {
        let request = Request::post("/open/v1/chats/send").bearer(token);
        self.send(request.json(&json!({ "message": message }))).await
    }

    /// `POST /open/v1/chats/notice`
    pub async fn put_notice(&self, token: &str, body: &Value) -> Response {
        self.send(Request::post("/open/v1/chats/notice").bearer(token).json(body)).await
    }

    /// `GET /open/v1/chats/settings`
    pub async fn chat_settings(&self, token: &str) -> Response {
        self.send(Request::get("/open/v1/chats/settings").bearer(token)).await
    }

    /// `PUT /open/v1/chats/settings`
    pub async fn change_chat_settings(&self, token: &str, body: &Value) -> Response {
        self.send(Request::put("/open/v1/chats/settings").bearer(token).json(body)).await
    }

    /// `POST /open/v1/chats/blind-message`
    pub async fn blind_message(&self, token: &str, chat: &str, time: i64, sender: &str) -> Response {
        let body = json!({ "chatChannelId": chat, "messageTime": time, "senderChannelId": sender });
        self.send(Request::post("/open/v1/chats/blind-message").bearer(token).json(&body)).await
    }

    // ---- 4.5 Sessions ------------------------------------------------------------------------------------

    /// `GET /open/v1/sessions/auth`
    pub async fn user_session_url(&self, token: &str) -> Response {
        self.send(Request::get("/open/v1/sessions/auth").bearer(token)).await
    }

    /// `GET /open/v1/sessions/auth/client`
    pub async fn client_session_url(&self, app: &Application) -> Response {
        self.as_client(app, Request::get("/open/v1/sessions/auth/client")).await
    }

    /// `GET /open/v1/sessions` with a raw query.
    pub async fn user_sessions(&self, token: &str, query: &str) -> Response {
        self.send(Request::get(format!("/open/v1/sessions?{query}")).bearer(token)).await
    }

    /// `GET /open/v1/sessions/client` with a raw query.
    pub async fn client_sessions(&self, app: &Application, query: &str) -> Response {
        self.as_client(app, Request::get(format!("/open/v1/sessions/client?{query}"))).await
    }

    /// `POST /open/v1/sessions/events/subscribe/{event}`
    pub async fn subscribe(&self, token: &str, event: &str, session_key: &str) -> Response {
        self.session_event("subscribe", token, event, session_key).await
    }

    /// `POST /open/v1/sessions/events/unsubscribe/{event}`
    pub async fn unsubscribe(&self, token: &str, event: &str, session_key: &str) -> Response {
        self.session_event("unsubscribe", token, event, session_key).await
    }

    async fn session_event(&self, what: &str, token: &str, event: &str, session_key: &str) -> Response {
        let key = encode(session_key);
        let target = format!("/open/v1/sessions/events/{what}/{event}?sessionKey={key}");
        self.send(Request::post(target).bearer(token)).await
    }

    // ---- 4.6 Drops ---------------------------------------------------------------------------------------

    /// `GET /open/v1/drops/reward-claims` with a raw query.
    pub async fn reward_claims(&self, app: &Application, query: &str) -> Response {
        self.as_client(app, Request::get(format!("/open/v1/drops/reward-claims?{query}"))).await
    }

    /// `PUT /open/v1/drops/reward-claims` with any body.
    pub async fn update_claims(&self, app: &Application, body: &Value) -> Response {
        self.as_client(app, Request::put("/open/v1/drops/reward-claims").json(body)).await
    }

    // ---- 4.7 Restriction ---------------------------------------------------------------------------------

    /// `POST` or `DELETE /open/v1/restrict-channels`
    pub async fn restriction(&self, method: &str, token: &str, target: &str) -> Response {
        let body = json!({ "targetChannelId": target });
        self.send(Request::new(method, "/open/v1/restrict-channels").bearer(token).json(&body)).await
    }

    /// `GET /open/v1/restrict-channels` with a raw query.
    pub async fn restricted(&self, token: &str, query: &str) -> Response {
        self.send(Request::get(format!("/open/v1/restrict-channels?{query}")).bearer(token)).await
    }

    /// `POST` or `DELETE /open/v1/temporary-restrict-channels`
    pub async fn temporary_restriction(
        &self,
        method: &str,
        token: &str,
        target: &str,
        chat: &str,
    ) -> Response {
        let body = json!({ "targetChannelId": target, "chatChannelId": chat });
        self.send(Request::new(method, "/open/v1/temporary-restrict-channels").bearer(token).json(&body))
            .await
    }

    // ---- The platform API --------------------------------------------------------------------------------

    /// A viewer's chat message in the chat of a channel, reported by the platform.
    pub async fn say(&self, channel: &str, sender: &str, message: &str) -> Response {
        self.happen(channel, "chats", &json!({ "senderChannelId": sender, "message": message })).await
    }

    /// `POST /platform/v1/channels/{channelId}/{chats|donations|subscriptions}`
    pub async fn happen(&self, channel: &str, kind: &str, body: &Value) -> Response {
        self.operator(Request::post(format!("/platform/v1/channels/{channel}/{kind}")).json(body)).await
    }

    /// `PUT /platform/v1/drops/campaigns/{campaignId}` with any body.
    pub async fn put_campaign(&self, campaign_id: &str, body: &Value) -> Response {
        self.operator(Request::put(format!("/platform/v1/drops/campaigns/{campaign_id}")).json(body)).await
    }

    /// `POST /platform/v1/drops/claims` with any body.
    pub async fn claim(&self, body: &Value) -> Response {
        self.operator(Request::post("/platform/v1/drops/claims").json(body)).await
    }

    /// `PUT /platform/v1/categories/{categoryId}`
    pub async fn put_category(&self, id: &str, body: &Value) -> Response {
        self.operator(Request::put(format!("/platform/v1/categories/{id}")).json(body)).await
    }

    /// `PUT /platform/v1/channels/{channelId}/live`
    pub async fn put_live(&self, channel: &str, body: &Value) -> Response {
        self.operator(Request::put(format!("/platform/v1/channels/{channel}/live")).json(body)).await
    }

    /// `DELETE /platform/v1/channels/{channelId}/live`
    pub async fn end_live(&self, channel: &str) -> Response {
        self.operator(Request::delete(format!("/platform/v1/channels/{channel}/live"))).await
    }

    async fn as_client(&self, app: &Application, request: Request) -> Response {
        self.send(request.client(&app.client_id, &app.client_secret)).await
    }
}

/// The authorization address, on this origin.
pub(crate) fn sign_in_address(client_id: &str, redirect_uri: &str, state: &str) -> String {
    let [client_id, redirect_uri, state] = [client_id, redirect_uri, state].map(encode);
    format!("/account-interlock?clientId={client_id}&redirectUri={redirect_uri}&state={state}")
}

fn url_of(answer: &Response) -> String {
    answer.content()["url"].as_str().expect("url is a text").to_owned()
}
