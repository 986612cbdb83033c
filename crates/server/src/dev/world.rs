//! The output of `stagedoor dev`: text for a developer, or one JSON object for a program.

use std::collections::BTreeMap;
use std::fmt::Write;

use commands::state_file::{self, RunningSandbox, StateFile};
use domain::{ChannelId, ClientId};
use serde::Serialize;
use service::sign_in::SignInRequest;
use service::tokens::IssuedTokens;
use service::{Error, Service};

use super::applications::{APPLICATIONS, SeededApplication};
use super::notes::Notes;
use super::seed::{CAMPAIGN, PASSWORD, PEOPLE, REWARDS};
use crate::Node;
use crate::hosts::exposure;

/// The description of a world: its addresses and every secret. Only a sandbox may be described.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct World {
    /// A warning, if the address is not loopback.
    #[serde(skip)]
    exposure: Option<String>,
    base_url: String,
    auth_url: String,
    platform_url: String,
    operator_key: String,
    applications: Vec<ApplicationEntry>,
    users: Vec<UserEntry>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApplicationEntry {
    name: String,
    client_id: String,
    client_secret: String,
    redirect_uris: Vec<String>,
    scopes: Vec<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UserEntry {
    channel_id: String,
    channel_name: String,
    login: String,
    password: String,
    tokens: BTreeMap<String, TokenEntry>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenEntry {
    access_token: String,
    refresh_token: String,
}

impl World {
    /// Creates new tokens of every person for every application, and collects the description.
    pub(super) async fn describe(node: &Node, notes: &Notes) -> Result<Self, Error> {
        let mut users = Vec::new();
        for person in &PEOPLE {
            let channel_id = ChannelId::stored(person.channel_id.to_owned());
            let mut tokens = BTreeMap::new();
            for application in &APPLICATIONS {
                let issued = sign_in(node.service(), application, &channel_id).await?;
                tokens.insert(
                    application.client_id.to_owned(),
                    TokenEntry {
                        access_token: issued.access.expose().to_owned(),
                        refresh_token: issued.refresh.expose().to_owned(),
                    },
                );
            }
            users.push(UserEntry {
                channel_name: node.service().channel(&channel_id).await?.name,
                channel_id: channel_id.to_string(),
                login: person.channel_id.to_owned(),
                password: PASSWORD.to_owned(),
                tokens,
            });
        }
        Ok(Self {
            exposure: exposure(node.address()),
            base_url: node.base_url().to_owned(),
            auth_url: node.base_url().to_owned(),
            platform_url: node.platform_url(),
            operator_key: notes.operator_key.clone(),
            applications: APPLICATIONS.iter().map(|application| entry(application, notes)).collect(),
            users,
        })
    }

    /// Writes the state file, by which commands find the sandbox. It is removed when the returned value is
    /// dropped.
    pub fn announce(&self, name: &str) -> Option<StateFile> {
        let running = RunningSandbox {
            name: name.to_owned(),
            pid: std::process::id(),
            base_url: self.base_url.clone(),
            platform_url: self.platform_url.clone(),
            operator_key: self.operator_key.clone(),
        };
        let failed = |error: &std::io::Error| {
            tracing::warn!(%error, "failed to write the state file: commands need --server and the operator key");
        };
        state_file::write(&state_file::folder(), &running).inspect_err(failed).ok()
    }

    /// The description as one line of JSON.
    pub fn json(&self) -> String {
        // A struct of texts can always be serialized.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The description as text, with five commands to try at its end.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing into a String cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "Stagedoor is a world on your laptop now. Ctrl-C ends it.\n")?;
        if let Some(exposure) = &self.exposure {
            writeln!(out, "  WARNING: {exposure}.\n")?;
        }
        writeln!(out, "  REST and sockets  {}", self.base_url)?;
        writeln!(
            out,
            "  sign-in           {}/account-interlock?clientId=…&redirectUri=…&state=…",
            self.auth_url
        )?;
        writeln!(
            out,
            "  platform API      {}/platform/v1   operator key {}\n",
            self.platform_url, self.operator_key
        )?;
        for application in &self.applications {
            writeln!(out, "  application {:<6} secret {}", application.client_id, application.client_secret)?;
        }
        writeln!(out, "  redirect address  {}\n", self.applications[0].redirect_uris.join(" or "))?;
        writeln!(out, "  people (password {PASSWORD}), with an access token of demo:")?;
        for user in &self.users {
            let token = user.tokens.get("demo").map_or("", |tokens| tokens.access_token.as_str());
            writeln!(out, "    {:<16} {token}  {}", user.login, user.channel_name)?;
        }
        self.write_what_to_try(out)
    }

    /// Commands that can be pasted into a shell. Their secrets come from the environment, because other users
    /// of the machine can read the command line of every process.
    fn write_what_to_try(&self, out: &mut String) -> std::fmt::Result {
        let Self { base_url, platform_url, operator_key, users, .. } = self;
        let (streamer, viewer) = (&users[0].channel_id, &users[users.len() - 1].channel_id);
        let token = users[0].tokens.get("demo").map_or("", |tokens| tokens.access_token.as_str());
        let publisher = &self.applications[self.applications.len() - 1];
        let (client_id, client_secret) = (&publisher.client_id, &publisher.client_secret);
        let (reward, _, minutes) = REWARDS[REWARDS.len() - 1];
        let stagedoor = super::program::command();
        let receive = socket_recipe(base_url);
        writeln!(
            out,
            "
Five things to try. Type this into another terminal first:

  export TOKEN={token}
  export STAGEDOOR_OPERATOR_KEY={operator_key}
  export STAGEDOOR_CLIENT_ID={client_id} STAGEDOOR_CLIENT_SECRET={client_secret}

1. Who am I?

  echo \"Authorization: Bearer $TOKEN\" | curl -s -H @- {base_url}/open/v1/users/me

2. Receive chat (needs Node.js 18, and once: npm install socket.io-client@2.0.3). `kill %1` ends it:

  node -e '{receive}' &

3. Make a viewer say hello:

  echo \"Authorization: Bearer $STAGEDOOR_OPERATOR_KEY\" |
    curl -s -H @- {platform_url}/platform/v1/channels/{streamer}/chats \\
      -H 'Content-Type: application/json' -d '{{\"senderChannelId\":\"{viewer}\",\"message\":\"안녕하세요 👋\"}}'

4. Let the viewer watch until the reward {reward} of {CAMPAIGN} can be claimed:

  {stagedoor} drops watch --server {platform_url} --channel {streamer} --viewer {viewer} --minutes {minutes}

5. Receive a publisher's webhook (any program at that address will do), and claim the reward in a third terminal:

  {stagedoor} webhook listen --server {base_url} --forward-to http://127.0.0.1:9999/webhook

  export STAGEDOOR_OPERATOR_KEY={operator_key}
  {stagedoor} drops claim --server {platform_url} --campaign {CAMPAIGN} --reward {reward} --viewer {viewer}"
        )
    }
}

/// The official recipe in one line, for `node -e`. It contains no single quote.
fn socket_recipe(base_url: &str) -> String {
    format!(
        "const io=require(\"socket.io-client\"),h={{headers:{{Authorization:\"Bearer \"+process.env.TOKEN}}}},\
         b=\"{base_url}/open/v1/sessions\";\
         fetch(b+\"/auth\",h).then(r=>r.json()).then(r=>{{const s=io.connect(r.content.url,{{reconnection:false,\
         \"force new connection\":true,\"connect timeout\":3000,transports:[\"websocket\"]}});\
         s.on(\"SYSTEM\",m=>{{console.log(\"SYSTEM\",m);const d=JSON.parse(m);if(d.type===\"connected\")\
         fetch(b+\"/events/subscribe/chat?sessionKey=\"+d.data.sessionKey,{{method:\"POST\",...h}})}});\
         s.on(\"CHAT\",m=>console.log(\"CHAT\",m))}})"
    )
}

fn entry(application: &SeededApplication, notes: &Notes) -> ApplicationEntry {
    ApplicationEntry {
        name: application.client_id.to_owned(),
        client_id: application.client_id.to_owned(),
        client_secret: notes.client_secrets.get(application.client_id).cloned().unwrap_or_default(),
        redirect_uris: application.redirect_uris().iter().map(|uri| (*uri).to_owned()).collect(),
        scopes: application.scopes().iter().map(domain::Scope::name).collect(),
    }
}

/// Performs a whole sign-in without its pages.
async fn sign_in(
    service: &Service,
    application: &SeededApplication,
    user: &ChannelId,
) -> Result<IssuedTokens, Error> {
    const STATE: &str = "sandbox";
    let client_id = ClientId::stored(application.client_id.to_owned());
    let application_now = service
        .application(&client_id)
        .await?
        .ok_or(Error::Internal("the application of the sandbox is gone"))?;
    let redirect_uri = application.redirect_uris()[0].to_owned();
    let asked = SignInRequest { application: application_now, redirect_uri, state: STATE.to_owned() };
    let code = service.consent(&asked, user).await?;
    service.exchange_code(&asked.application, code.expose(), STATE).await
}
