//! Registers applications and people through the platform API.

use domain::{Scope, ScopeSet};
use serde_json::{Value, json};

use super::accounts::{Application, Person};
use crate::{Api, Request};

impl Api {
    /// An application to be registered.
    pub fn application(&self, client_id: &str) -> NewApplication<'_> {
        NewApplication::new(self, client_id)
    }

    /// A channel to be created, whose person can sign in.
    pub fn person(&self, channel_id: &str) -> NewPerson<'_> {
        NewPerson::new(self, channel_id)
    }
}

/// An application to be registered. By default it has every user scope and one redirect address.
#[derive(Debug)]
pub struct NewApplication<'a> {
    api: &'a Api,
    client_id: String,
    scopes: Vec<Scope>,
    redirect_uris: Vec<String>,
    more: Vec<(&'static str, Value)>,
}

impl<'a> NewApplication<'a> {
    fn new(api: &'a Api, client_id: &str) -> Self {
        Self {
            api,
            client_id: client_id.to_owned(),
            scopes: ScopeSet::of_users().iter().collect(),
            redirect_uris: vec!["http://127.0.0.1:9999/callback".to_owned()],
            more: Vec::new(),
        }
    }

    /// Only these scopes.
    pub fn scopes(mut self, scopes: &[Scope]) -> Self {
        self.scopes = scopes.to_vec();
        self
    }

    /// Only these redirect addresses.
    pub fn redirect_uris(mut self, uris: &[&str]) -> Self {
        self.redirect_uris = uris.iter().map(|uri| (*uri).to_owned()).collect();
        self
    }

    /// Any other field of the platform API's body.
    pub fn with(mut self, field: &'static str, value: impl Into<Value>) -> Self {
        self.more.push((field, value.into()));
        self
    }

    /// Registers it.
    ///
    /// # Panics
    /// When it is refused, or existed before: then there is no secret in the answer.
    pub async fn create(self) -> Application {
        let content = self.put().await;
        Application {
            client_secret: content["clientSecret"].as_str().expect("a new application's secret").to_owned(),
            client_id: self.client_id,
            redirect_uri: self.redirect_uris[0].clone(),
        }
    }

    /// Changes an existing application.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn replace(self) {
        self.put().await;
    }

    async fn put(&self) -> Value {
        let scopes: Vec<_> = self.scopes.iter().map(|scope| scope.name()).collect();
        let mut body =
            json!({ "name": self.client_id, "redirectUris": self.redirect_uris, "scopes": scopes });
        for (field, value) in &self.more {
            body[*field] = value.clone();
        }
        let target = format!("/platform/v1/applications/{}", self.client_id);
        self.api.operator(Request::put(target).json(&body)).await.content()
    }
}

/// A channel to be created, whose person can sign in.
#[derive(Debug)]
pub struct NewPerson<'a> {
    api: &'a Api,
    person: Person,
    more: Vec<(&'static str, Value)>,
}

impl<'a> NewPerson<'a> {
    fn new(api: &'a Api, channel_id: &str) -> Self {
        let person = Person {
            channel_id: channel_id.to_owned(),
            name: channel_id.to_owned(),
            login: format!("{channel_id}@login"),
            password: format!("password of {channel_id}"),
        };
        Self { api, person, more: Vec::new() }
    }

    /// Sets the channel's name, which is its id by default.
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.person.name);
        self
    }

    /// Any other field of the platform API's body.
    pub fn with(mut self, field: &'static str, value: impl Into<Value>) -> Self {
        self.more.push((field, value.into()));
        self
    }

    /// Creates the channel.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn create(self) -> Person {
        let Person { channel_id, name, login, password } = &self.person;
        let mut body = json!({ "channelName": name, "login": login, "password": password });
        for (field, value) in &self.more {
            body[*field] = value.clone();
        }
        let target = format!("/platform/v1/channels/{channel_id}");
        assert_eq!(self.api.operator(Request::put(target).json(&body)).await.content(), Value::Null);
        self.person
    }
}
