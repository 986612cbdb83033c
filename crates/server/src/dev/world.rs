//! The output of `stagedoor dev`: text for a developer, or one JSON object for a program.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use commands::state_file::{self, RunningSandbox, StateFile};
use domain::{ChannelId, ClientId};
use serde::Serialize;
use service::sign_in::SignInRequest;
use service::tokens::IssuedTokens;
use service::{Error, Service};

use super::applications::{APPLICATIONS, SeededApplication};
use super::notes::Notes;
use super::seed::{PASSWORD, PEOPLE};
use super::tls_entry::TlsEntry;
use crate::Node;
use crate::hosts::exposure;

/// How a sandbox was started.
pub struct Start<'a> {
    /// The name of the sandbox.
    pub name: &'a str,
    /// The folder in which its world is kept.
    pub kept: Option<&'a Path>,
    /// Whether it has the sandbox API, which the commands need.
    pub has_api: bool,
}

/// Number of people in a row of the overview.
const PEOPLE_IN_A_ROW: usize = 4;

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
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<TlsEntry>,
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
            tls: TlsEntry::of(node),
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
        writeln!(out, "  Console        {base_url}/")?;
        writeln!(out, "  Documentation  {base_url}/docs")?;
        writeln!(out, "  Sign in        {}", self.sign_in_url())?;
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
        writeln!(out, "                 password {PASSWORD}\n")?;
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

    /// An address that begins a sign-in to the first application.
    fn sign_in_url(&self) -> String {
        let Some(application) = self.applications.first() else { return String::new() };
        let redirect_uri = application.redirect_uris.last().map_or("", String::as_str);
        let ApplicationEntry { client_id, .. } = application;
        format!("{}/account-interlock?clientId={client_id}&redirectUri={redirect_uri}&state=1", self.auth_url)
    }
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
