//! Creates the people and applications of a run like an operator and a browser: with the platform API and the
//! sign-in pages.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::clock::Clock;
use crate::crowd::each;
use crate::forms;
use crate::http::{Answer, Body, Call, Client, Origin};
use crate::plan::{SessionPlan, applications, pairs};
use crate::shared::Application;
use crate::world::World;

/// Concurrent calls. The server's password hashing and commits take most of the time.
const CONNECTIONS: usize = 16;
/// The redirect address of the applications. No server listens there.
const REDIRECT_URI: &str = "http://127.0.0.1:9999/callback";
/// The state of every sign-in.
const STATE: &str = "load";
/// The password of every streamer. The streamers exist only for the run.
const PASSWORD: &str = "for the load only";
/// The scopes that the load needs, by their names in the specification: read and write chat, read donations,
/// read subscriptions.
const SCOPES: [&str; 4] = ["채팅 메시지 조회", "채팅 메시지 쓰기", "후원 조회", "구독 조회"];

/// The created people and applications. It has no `Debug`, because it contains secrets.
pub(crate) struct Population {
    pub(crate) applications: Vec<Application>,
    /// The ids of the channels.
    pub(crate) channels: Vec<String>,
    /// The channel that sends viewers' messages.
    pub(crate) viewer: String,
    /// Access tokens, by application and channel.
    pub(crate) tokens: HashMap<(u32, u32), String>,
}

/// The progress of the set-up.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) done: std::cell::Cell<usize>,
    pub(crate) of: std::cell::Cell<usize>,
}

/// Creates all of them.
///
/// # Errors
/// The first failed call.
pub(crate) async fn populate(
    world: &Rc<World>,
    clock: Clock,
    plans: &[SessionPlan],
    (channels, each_to): (u32, u32),
    progress: Rc<Progress>,
) -> Result<Population, String> {
    let run = format!("load-{:x}", Clock::unix_millis());
    let setup = Rc::new(Setup { world: world.clone(), clock, run, progress });
    let count = applications(u32::try_from(plans.len()).unwrap_or(u32::MAX));
    let pairs = pairs(plans, each_to, channels);
    let channels = if each_to > 0 { channels } else { 0 };
    setup.progress.of.set(1 + 2 * channels as usize + count as usize + pairs.len());

    let viewer = format!("{}-viewer", setup.run);
    setup
        .all(vec![viewer.clone()], async |setup, clients, id| setup.put_channel(clients, &id, None).await)
        .await?;
    let ids: Vec<_> = (0..channels).map(|number| format!("{}-{number}", setup.run)).collect();
    let put = async |setup: &Setup, clients: &mut Clients, id: String| {
        setup.put_channel(clients, &id, Some(&id)).await
    };
    setup.all(ids.clone(), put).await?;
    let put =
        async |setup: &Setup, clients: &mut Clients, number| setup.put_application(clients, number).await;
    let applications = Rc::new(setup.all((0..count).collect(), put).await?);

    // Each streamer signs in once, for the first application that needs the channel. For the other
    // applications the streamer only consents.
    let mut first: Vec<(u32, u32)> = pairs.clone();
    first.sort_unstable_by_key(|(application, channel)| (*channel, *application));
    first.dedup_by_key(|(_, channel)| *channel);
    let (known, names) = (applications.clone(), ids.clone());
    let sign_in = async move |setup: &Setup, clients: &mut Clients, (application, channel): (u32, u32)| {
        let cookie = setup.sign_in(clients, &known[application as usize], &names[channel as usize]).await?;
        Ok((channel, cookie))
    };
    let cookies: HashMap<u32, String> = setup.all_over(SIGN_INS, first, sign_in).await?.into_iter().collect();
    let known = applications.clone();
    let consent = async move |setup: &Setup, clients: &mut Clients, pair: (u32, u32)| {
        let cookie = cookies.get(&pair.1).map(String::as_str).unwrap_or_default();
        let application = &known[pair.0 as usize];
        let code = setup.consent(clients, application, cookie).await?;
        Ok((pair, setup.token(clients, application, &code).await?))
    };
    let tokens = setup.all(pairs, consent).await?.into_iter().collect();
    let applications = Rc::into_inner(applications).ok_or("setup: applications are still in use")?;
    Ok(Population { applications, channels: ids, viewer, tokens })
}

/// Sign-ins at once. The server lets four checks of passwords of one address wait.
const SIGN_INS: usize = 4;

/// One client for each part of the service.
struct Clients {
    platform: Client,
    auth: Client,
    base: Client,
}

impl Clients {
    fn new(world: &World, clock: Clock) -> Self {
        let client = |origin: &Origin| Client::new(origin.clone(), clock);
        Self { platform: client(&world.platform), auth: client(&world.auth), base: client(&world.base) }
    }
}

struct Setup {
    world: Rc<World>,
    clock: Clock,
    /// The prefix of every id, unique to this run.
    run: String,
    progress: Rc<Progress>,
}

impl Setup {
    /// Runs `work` for each job, in any order, and returns the results in the order of the jobs, or the first
    /// failure.
    async fn all<T: 'static, R: 'static>(
        self: &Rc<Self>,
        jobs: Vec<T>,
        work: impl AsyncFn(&Self, &mut Clients, T) -> Result<R, String> + 'static,
    ) -> Result<Vec<R>, String> {
        self.all_over(CONNECTIONS, jobs, work).await
    }

    /// As [`all`](Self::all), over this many connections.
    async fn all_over<T: 'static, R: 'static>(
        self: &Rc<Self>,
        connections: usize,
        jobs: Vec<T>,
        work: impl AsyncFn(&Self, &mut Clients, T) -> Result<R, String> + 'static,
    ) -> Result<Vec<R>, String> {
        let results = Rc::new(RefCell::new(Vec::with_capacity(jobs.len())));
        let problem = Rc::new(RefCell::new(None));
        let clients = || Clients::new(&self.world, self.clock);
        let (setup, found, failed) = (self.clone(), results.clone(), problem.clone());
        let work = async move |clients: &mut Clients, (index, job): (usize, T)| {
            if failed.borrow().is_some() {
                return;
            }
            match work(&setup, clients, job).await {
                Ok(result) => found.borrow_mut().push((index, result)),
                Err(kind) => drop(failed.borrow_mut().get_or_insert(kind)),
            }
            setup.progress.done.update(|done| done + 1);
        };
        each(jobs.into_iter().enumerate().collect(), connections, clients, work).await;
        if let Some(kind) = problem.take() {
            return Err(format!("setup: {kind}"));
        }
        let mut results = results.take();
        results.sort_unstable_by_key(|(index, _)| *index);
        Ok(results.into_iter().map(|(_, result)| result).collect())
    }

    async fn put(&self, clients: &mut Clients, path: &str, body: &Value) -> Result<Value, String> {
        let authorization = format!("Bearer {}", self.world.operator_key);
        let headers = [("Authorization", authorization.as_str())];
        let body = body.to_string();
        let client = &mut clients.platform;
        let answer =
            client.call(&Call { method: "PUT", path, headers: &headers, body: Body::Json(&body) }).await;
        answer.map_err(|broken| broken.kind().to_owned()).and_then(|answer| answer.content())
    }

    async fn put_channel(&self, clients: &mut Clients, id: &str, login: Option<&str>) -> Result<(), String> {
        let mut body = json!({ "channelName": id });
        if let Some(login) = login {
            body["login"] = login.into();
            body["password"] = PASSWORD.into();
        }
        let put = self.put(clients, &format!("/platform/v1/channels/{id}"), &body).await;
        put.map(drop).map_err(|kind| format!("a channel was not made: {kind}"))
    }

    async fn put_application(&self, clients: &mut Clients, number: u32) -> Result<Application, String> {
        let client_id = format!("{}-app-{number}", self.run);
        let body = json!({ "name": client_id, "redirectUris": [REDIRECT_URI], "scopes": SCOPES });
        let put = self.put(clients, &format!("/platform/v1/applications/{client_id}"), &body).await;
        let content = put.map_err(|kind| format!("an application was not made: {kind}"))?;
        let client_secret =
            text(&content, "clientSecret").map_err(|kind| format!("an application has {kind}"))?;
        Ok(Application { client_id, client_secret })
    }

    /// Signs a streamer in, and returns the cookie of the browser.
    async fn sign_in(
        &self,
        clients: &mut Clients,
        application: &Application,
        login: &str,
    ) -> Result<String, String> {
        let problem = |kind: String| format!("a streamer could not sign in: {kind}");
        let mut browser = Browser::new(&mut clients.auth, application, "");
        browser.get().await.map_err(problem)?;
        let before = browser.cookie.clone();
        browser.post(&[("login", login), ("password", PASSWORD)]).await.map_err(problem)?;
        // A successful sign-in changes the cookie.
        if browser.cookie == before { Err(problem("no new cookie".to_owned())) } else { Ok(browser.cookie) }
    }

    /// Allows the application, and returns the code.
    async fn consent(
        &self,
        clients: &mut Clients,
        application: &Application,
        cookie: &str,
    ) -> Result<String, String> {
        let problem = |kind: String| format!("a streamer could not consent: {kind}");
        let mut browser = Browser::new(&mut clients.auth, application, cookie);
        browser.get().await.map_err(problem)?;
        let answer = browser.post(&[("decision", "allow")]).await.map_err(problem)?;
        let location = answer.head.header("location").unwrap_or_default();
        let same_state = forms::query_value(location, "state").as_deref() == Some(STATE);
        let code =
            forms::query_value(location, "code").filter(|_| same_state && location.starts_with(REDIRECT_URI));
        code.ok_or_else(|| problem(format!("HTTP {} without a code", answer.head.status)))
    }

    async fn token(
        &self,
        clients: &mut Clients,
        application: &Application,
        code: &str,
    ) -> Result<String, String> {
        let body = json!({
            "grantType": "authorization_code", "clientId": application.client_id,
            "clientSecret": application.client_secret, "code": code, "state": STATE,
        });
        let body = body.to_string();
        let call = Call { method: "POST", path: "/auth/v1/token", headers: &[], body: Body::Json(&body) };
        let answer = clients.base.call(&call).await;
        let content = answer.map_err(|broken| broken.kind().to_owned()).and_then(|answer| answer.content());
        content
            .and_then(|content| text(&content, "accessToken"))
            .map_err(|kind| format!("a token was not issued: {kind}"))
    }
}

fn text(content: &Value, name: &str) -> Result<String, String> {
    content.get(name).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| format!("no {name}"))
}

/// A browser on the sign-in page of one application.
struct Browser<'a> {
    client: &'a mut Client,
    path: String,
    /// `name=value`, or empty.
    cookie: String,
    /// The hidden fields of the form on the page.
    hidden: Vec<(String, String)>,
}

impl<'a> Browser<'a> {
    fn new(client: &'a mut Client, application: &Application, cookie: &str) -> Self {
        let query =
            [("clientId", application.client_id.as_str()), ("redirectUri", REDIRECT_URI), ("state", STATE)];
        let path = format!("/account-interlock?{}", forms::encode(&query));
        Self { client, path, cookie: cookie.to_owned(), hidden: Vec::new() }
    }

    /// Opens the page.
    async fn get(&mut self) -> Result<(), String> {
        let answer = self.call("GET", Body::Nothing).await?;
        self.hidden = forms::hidden_inputs(&String::from_utf8_lossy(&answer.body));
        if answer.head.status == 200 { Ok(()) } else { Err(format!("HTTP {}", answer.head.status)) }
    }

    /// Posts the page's form.
    async fn post(&mut self, fields: &[(&str, &str)]) -> Result<Answer, String> {
        let hidden = self.hidden.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let body = forms::encode(&hidden.chain(fields.iter().copied()).collect::<Vec<_>>());
        self.call("POST", Body::Form(&body)).await
    }

    async fn call(&mut self, method: &str, body: Body<'_>) -> Result<Answer, String> {
        let cookie = [("Cookie", self.cookie.as_str())];
        let headers = if self.cookie.is_empty() { &[][..] } else { &cookie[..] };
        let answer = self.client.call(&Call { method, path: &self.path, headers, body }).await;
        let answer = answer.map_err(|broken| broken.kind().to_owned())?;
        if let Some(cookie) = answer.head.header("set-cookie") {
            self.cookie = forms::cookie(cookie).to_owned();
        }
        Ok(answer)
    }
}
