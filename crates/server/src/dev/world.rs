//! The output of `stagedoor dev`: text for a developer, or one JSON object for a program.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;

use commands::state_file::{self, Claim, RunningSandbox};
use domain::application::Application;
use domain::{ChannelId, ClientId};
use http_server::hosts::exposure;
use sandbox::{KnownSecrets, PASSWORD, TokenPair, WorldFile, for_browser, for_program};
use serde::{Deserialize, Serialize};
use service::sign_in::SignInRequest;
use service::tokens::IssuedTokens;
use service::{Error, Service};

use super::tls_entry::TlsEntry;
use crate::Node;

/// How a sandbox was started.
pub struct Start<'a> {
    /// The name of the sandbox.
    pub name: &'a str,
    /// The folder in which its world is kept.
    pub kept: Option<&'a Path>,
    /// Whether it has the sandbox API, which the commands need.
    pub has_api: bool,
    /// An address that opens the console once.
    pub console: Option<String>,
}

/// Number of people in a row of the overview.
const PEOPLE_IN_A_ROW: usize = 4;
/// Maximum number of people that are described and get tokens, besides those with tokens in the world file.
const PEOPLE_MAX: usize = 100;

/// The description of a world: its addresses and every secret. Only a sandbox may be described.
#[derive(Clone, Serialize, Deserialize)]
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
    /// The address that begins a sign-in to the first application.
    #[serde(skip)]
    sign_in_url: String,
    /// The login of the first person who may use the operator pages.
    #[serde(skip)]
    operator: Option<String>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    tls: Option<TlsEntry>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "World({})", self.base_url)
    }
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApplicationEntry {
    name: String,
    client_id: String,
    client_secret: String,
    redirect_uris: Vec<String>,
    scopes: Vec<String>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UserEntry {
    channel_id: String,
    channel_name: String,
    login: String,
    /// `None` if the world file has only its hash, or no login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    password: Option<String>,
    tokens: BTreeMap<String, TokenEntry>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenEntry {
    access_token: String,
    refresh_token: String,
}

impl TokenEntry {
    fn of_file(pair: &TokenPair) -> Self {
        Self { access_token: pair.access_token.clone(), refresh_token: pair.refresh_token.clone() }
    }
}

impl World {
    /// Creates tokens of every person for every application, and collects the description. `secrets` are the
    /// client secrets by client id.
    pub(super) async fn describe(
        node: &Node,
        file: &WorldFile,
        operator_key: &str,
        secrets: &BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        let service = node.service();
        let mut applications = Vec::new();
        for entry in &file.applications {
            // A kept world may have lost an application or a person.
            let client_id = ClientId::stored(entry.client_id.clone());
            if let Some(application) = service.application(&client_id).await? {
                let addresses = service.application_details(&client_id).await?.redirect_uris;
                applications.push(Described { entry, application, addresses });
            }
        }
        let sign_in_url = applications.first().map(|first| first.sign_in_url(node.base_url()));
        let pairs = file.tokens.iter().rev().map(|pair| ((&*pair.channel_id, &*pair.client_id), pair));
        let pairs: HashMap<_, _> = pairs.collect();
        let with_tokens: HashSet<_> = file.tokens.iter().map(|pair| &*pair.channel_id).collect();
        let mut users = Vec::new();
        for (place, person) in file.people.iter().enumerate() {
            if place >= PEOPLE_MAX && !with_tokens.contains(&*person.channel_id) {
                continue;
            }
            let channel_id = ChannelId::stored(person.channel_id.clone());
            let Ok(channel) = service.channel(&channel_id).await else { continue };
            let mut tokens = BTreeMap::new();
            for application in &applications {
                let pair = match pairs.get(&(&*person.channel_id, &*application.entry.client_id)) {
                    Some(pair) => Some(TokenEntry::of_file(pair)),
                    None if file.further_tokens => application.issued_pair(service, &channel_id).await?,
                    None => None,
                };
                tokens.extend(pair.map(|pair| (application.entry.client_id.clone(), pair)));
            }
            users.push(UserEntry {
                channel_name: channel.name,
                channel_id: person.channel_id.clone(),
                login: person.login().to_owned(),
                password: person.password().map(str::to_owned),
                tokens,
            });
        }
        let entry = |Described { entry, application, .. }: &Described<'_>| ApplicationEntry {
            name: application.name.clone(),
            client_id: entry.client_id.clone(),
            client_secret: secrets.get(&entry.client_id).cloned().unwrap_or_default(),
            // Those of the file, which a program can listen at. They are the same at every start.
            redirect_uris: entry.redirect_uris.clone(),
            scopes: application.scopes.iter().map(|scope| scope.name().to_owned()).collect(),
        };
        let applications = applications.iter().map(entry).collect();
        let operator = file.people.iter().find(|person| person.operator_role.is_some());
        Ok(Self {
            exposure: exposure(node.address()),
            base_url: node.base_url().to_owned(),
            auth_url: node.base_url().to_owned(),
            platform_url: node.platform_url(),
            operator_key: operator_key.to_owned(),
            applications,
            users,
            sign_in_url: sign_in_url.unwrap_or_default(),
            operator: operator.map(|person| person.login().to_owned()),
            tls: TlsEntry::of(node),
        })
    }

    /// A warning, if the address is not loopback.
    pub fn exposure(&self) -> Option<&str> {
        self.exposure.as_deref()
    }

    /// The URL of the sandbox for clients.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The same world behind a node, with its operator key.
    pub(super) fn behind(&self, node: &Node, operator_key: &str) -> Self {
        Self {
            exposure: exposure(node.address()),
            base_url: node.base_url().to_owned(),
            auth_url: node.base_url().to_owned(),
            platform_url: node.platform_url(),
            operator_key: operator_key.to_owned(),
            tls: TlsEntry::of(node),
            ..self.clone()
        }
    }

    /// The secrets of the world that its service has only as hashes.
    pub(super) fn known_secrets(&self, client_secrets: BTreeMap<String, String>) -> KnownSecrets {
        let passwords =
            self.users.iter().filter_map(|user| Some((user.channel_id.clone(), user.password.clone()?)));
        let pairs = self.users.iter().flat_map(|user| {
            user.tokens.iter().map(|(client_id, tokens)| TokenPair {
                channel_id: user.channel_id.clone(),
                client_id: client_id.clone(),
                access_token: tokens.access_token.clone(),
                refresh_token: tokens.refresh_token.clone(),
            })
        });
        KnownSecrets { passwords: passwords.collect(), client_secrets, tokens: pairs.collect() }
    }

    /// Writes the state file, by which commands find the sandbox.
    pub fn announce(&self, claim: &mut Claim) {
        let running = RunningSandbox {
            name: claim.name().to_owned(),
            pid: std::process::id(),
            base_url: self.base_url.clone(),
            platform_url: self.platform_url.clone(),
            operator_key: self.operator_key.clone(),
        };
        if let Err(error) = claim.announce(&running) {
            tracing::warn!(%error, "failed to write the state file: commands need --server and the operator key");
        }
    }

    /// The description as one line of JSON.
    pub fn json(&self) -> String {
        // A struct of texts can always be serialized.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The description as text that fits on one screen, with three commands to try at its end.
    pub fn text(&self, start: &Start<'_>) -> String {
        let mut out = String::new();
        // Writing into a String cannot fail.
        let _ = self.write(&mut out, start);
        if let Some(tls) = &self.tls {
            out.push_str(&tls.text());
        }
        out
    }

    fn write(&self, out: &mut String, start: &Start<'_>) -> std::fmt::Result {
        let Self { base_url, platform_url, operator_key, .. } = self;
        writeln!(out, "Stagedoor runs a sandbox: the whole service, with a small world. Ctrl-C ends it.\n")?;
        if let Some(exposure) = &self.exposure {
            writeln!(out, "  WARNING: {exposure}.\n")?;
        }
        if let Some(console) = &start.console {
            writeln!(out, "  Console        {console}")?;
            writeln!(out, "                 it opens once; `stagedoor open` makes another address")?;
        }
        writeln!(out, "  Documentation  {base_url}/docs")?;
        writeln!(out, "  Sign in        {}", self.sign_in_url)?;
        writeln!(out, "  API            {base_url}/open/v1, {platform_url}/platform/v1")?;
        writeln!(out, "  Operator key   {operator_key}")?;
        for ApplicationEntry { client_id, client_secret, .. } in &self.applications {
            writeln!(out, "  Application    {client_id:<6} secret {client_secret}")?;
        }
        for (row, users) in self.users.chunks(PEOPLE_IN_A_ROW).enumerate() {
            let label = if row == 0 { "People" } else { "" };
            let logins: Vec<&str> = users.iter().map(|user| user.login.as_str()).collect();
            writeln!(out, "  {label:<13}  {}", logins.join("  "))?;
        }
        writeln!(out, "                 password {PASSWORD}")?;
        if let Some(operator) = &self.operator {
            writeln!(out, "  Operation      {base_url}/operator, for {operator}")?;
        }
        writeln!(out)?;
        match start.kept {
            Some(folder) => writeln!(out, "  The world is kept in {}.\n", folder.display())?,
            None => writeln!(
                out,
                "  The world is deleted at the end. With `--data FOLDER` it is kept, with its keys.\n"
            )?,
        }
        if start.has_api { self.write_what_to_try(out, start.name) } else { Ok(()) }
    }

    /// Commands that can be typed as they stand in another terminal. They find the sandbox by its state file.
    fn write_what_to_try(&self, out: &mut String, name: &str) -> std::fmt::Result {
        let others = state_file::running(&state_file::folder()).iter().any(|sandbox| sandbox.name != name);
        let sandbox = match name {
            state_file::DEFAULT_NAME if !others => String::new(),
            _ => format!(" --sandbox {name}"),
        };
        let program = super::program::command();
        let user = self.users.first().map_or("", |user| user.login.as_str());
        writeln!(out, "Try this in a second and a third terminal:\n")?;
        for (arguments, what) in [
            (format!("env --user {user}"), "the settings of a bot"),
            (format!("listen --user {user}"), "what a bot receives, until Ctrl-C"),
            (format!("trigger donation --to {user}"), "something to receive"),
        ] {
            writeln!(out, "  {program} {arguments}{sandbox}  # {what}")?;
        }
        Ok(())
    }
}

/// An application while its world is described.
struct Described<'a> {
    entry: &'a sandbox::ApplicationItem,
    application: Application,
    /// Its redirect addresses.
    addresses: Vec<String>,
}

impl Described<'_> {
    /// New tokens of a person. An application without a redirect address gets none.
    async fn issued_pair(
        &self,
        service: &Service,
        channel_id: &ChannelId,
    ) -> Result<Option<TokenEntry>, Error> {
        let Some(redirect_uri) = for_program(&self.addresses) else { return Ok(None) };
        let issued = sign_in(service, self.application.clone(), redirect_uri.clone(), channel_id).await?;
        Ok(Some(TokenEntry {
            access_token: issued.access.expose().to_owned(),
            refresh_token: issued.refresh.expose().to_owned(),
        }))
    }

    /// The address that begins a sign-in of a person with a browser.
    fn sign_in_url(&self, base_url: &str) -> String {
        let (client_id, redirect_uri) = (&self.entry.client_id, for_browser(&self.addresses));
        let redirect_uri = redirect_uri.map_or("", String::as_str);
        format!("{base_url}/account-interlock?clientId={client_id}&redirectUri={redirect_uri}&state=1")
    }
}

/// Performs a whole sign-in without its pages.
async fn sign_in(
    service: &Service,
    application: Application,
    redirect_uri: String,
    user: &ChannelId,
) -> Result<IssuedTokens, Error> {
    const STATE: &str = "sandbox";
    let asked = SignInRequest { application, redirect_uri, state: STATE.to_owned() };
    let code = service.consent(&asked, user).await?;
    service.exchange_code(&asked.application, code.expose(), STATE).await
}
