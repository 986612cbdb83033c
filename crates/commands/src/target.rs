//! The server that a command talks to: the one that the options name, or the sandbox that runs.

use std::time::Duration;

use clap::Args;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method};
use http_client::Answer;
use serde_json::Value;

use crate::client::{Call, Failure, Server};
use crate::failure::CommandFailure;
use crate::secrets::secret;
use crate::state_file::{self, RunningSandbox};

/// Which sandbox a command talks to. Without options it is the one that runs.
#[derive(Clone, Debug, Default, Args)]
pub struct TargetOptions {
    /// The base URL of the sandbox. Default: the sandbox that runs on this machine.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_SERVER", global = true)]
    pub server: Option<String>,

    /// The name of the sandbox, when several run: `stagedoor dev --name NAME`.
    #[arg(long, value_name = "NAME", env = "STAGEDOOR_SANDBOX", global = true)]
    pub sandbox: Option<String>,

    /// A world of the sandbox, by its id: `stagedoor world list` has them. Default: the world at the address
    /// of the sandbox, which is main.
    #[arg(long, value_name = "ID", env = "STAGEDOOR_WORLD_ID", global = true)]
    pub world: Option<String>,

    /// The operator key of --server. Default: that of the sandbox that runs. Better set by
    /// STAGEDOOR_OPERATOR_KEY or STAGEDOOR_OPERATOR_KEY_FILE, which keep it out of the list of processes.
    #[arg(long, value_name = "KEY", env = "STAGEDOOR_OPERATOR_KEY", hide_env_values = true, global = true)]
    pub operator_key: Option<String>,

    /// Prints JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

/// A sandbox and its key.
pub struct Target {
    server: Server,
    key: HeaderValue,
}

impl TargetOptions {
    /// Finds the sandbox, or the world of it.
    ///
    /// # Errors
    /// No sandbox runs, several run, it has no such world, or an option is wrong.
    pub async fn find(&self) -> Result<Target, CommandFailure> {
        let sandbox = self.find_among(state_file::running(&state_file::folder()))?;
        match &self.world {
            Some(id) => sandbox.world(id).await,
            None => Ok(sandbox),
        }
    }

    /// The same for the platform API, which may have a listener of its own.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub async fn find_platform(&self) -> Result<Target, CommandFailure> {
        let mut running = state_file::running(&state_file::folder());
        if self.server.is_none() && self.world.is_none() {
            running.iter_mut().for_each(|sandbox| sandbox.base_url.clone_from(&sandbox.platform_url));
            return self.find_among(running);
        }
        self.find().await
    }

    fn find_among(&self, running: Vec<RunningSandbox>) -> Result<Target, CommandFailure> {
        let given = secret("STAGEDOOR_OPERATOR_KEY", self.operator_key.as_deref());
        let given = given.map_err(CommandFailure::Usage)?;
        let (url, key) = match &self.server {
            Some(url) => {
                let of_url = |sandbox: &&RunningSandbox| sandbox.base_url == url.trim_end_matches('/');
                let known = running.iter().find(of_url).map(|sandbox| sandbox.operator_key.clone());
                (url.clone(), given.or(known).ok_or_else(|| CommandFailure::Usage(NO_KEY.to_owned()))?)
            }
            None => {
                let sandbox = self.choose(running)?;
                (sandbox.base_url, given.unwrap_or(sandbox.operator_key))
            }
        };
        Target::new(&url, &key)
    }

    fn choose(&self, running: Vec<RunningSandbox>) -> Result<RunningSandbox, CommandFailure> {
        let names = running.iter().map(|sandbox| sandbox.name.clone()).collect::<Vec<_>>().join(", ");
        match &self.sandbox {
            Some(name) => running.into_iter().find(|sandbox| sandbox.name == *name).ok_or_else(|| {
                let others = if names.is_empty() { String::new() } else { format!(" These run: {names}.") };
                CommandFailure::Unreachable(format!(
                    "no sandbox named {name} runs.{others} Start it with `stagedoor dev --name {name}`"
                ))
            }),
            None if running.len() > 1 => Err(CommandFailure::Usage(format!(
                "several sandboxes run: {names}. Choose one with --sandbox NAME"
            ))),
            None => {
                running.into_iter().next().ok_or_else(|| CommandFailure::Unreachable(NONE_RUNS.to_owned()))
            }
        }
    }
}

const NO_KEY: &str = "--server needs its operator key: give STAGEDOOR_OPERATOR_KEY or STAGEDOOR_OPERATOR_KEY_FILE. \
                      `stagedoor dev` prints it";
const NONE_RUNS: &str = "no sandbox runs on this machine. Start `stagedoor dev` in another terminal, or say with \
                         --server where it is";

impl Target {
    /// The sandbox at a base URL, with its key.
    ///
    /// # Errors
    /// One of them is wrong.
    pub fn new(url: &str, key: &str) -> Result<Self, CommandFailure> {
        let server = Server::parse(url).map_err(CommandFailure::Usage)?;
        let mut key = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| {
            CommandFailure::Usage("the operator key holds characters that no key has".to_owned())
        })?;
        key.set_sensitive(true);
        Ok(Self { server, key })
    }

    /// A world of the sandbox, with the address and the key that the sandbox names.
    async fn world(&self, id: &str) -> Result<Self, CommandFailure> {
        let listed = self.call(Method::GET, "/sandbox/v1/worlds", None, Duration::ZERO).await?;
        let worlds = listed["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = |world: &Value, name: &str| world[name].as_str().unwrap_or_default().to_owned();
        match worlds.iter().find(|world| world["worldId"] == id) {
            Some(world) => Self::new(&text(world, "baseUrl"), &text(world, "operatorKey")),
            None => {
                let ids = worlds.iter().map(|world| text(world, "worldId")).collect::<Vec<_>>().join(", ");
                Err(CommandFailure::Unreachable(format!(
                    "no world {id} runs at {}. These run: {ids}. Start it with `stagedoor world new {id}`",
                    self.server.base()
                )))
            }
        }
    }

    /// The key of the sandbox.
    pub fn operator_key(&self) -> &str {
        let bearer = self.key.to_str().unwrap_or_default();
        bearer.strip_prefix("Bearer ").unwrap_or_default()
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Calls the sandbox API or the platform API, and returns the content of the answer. `patience` extends
    /// the deadline.
    ///
    /// # Errors
    /// The refusal, or why there is no answer.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        patience: Duration,
    ) -> Result<Value, CommandFailure> {
        let answered = self.attempt(method, path, body, patience).await;
        answered.map_err(|failure| self.explained(failure))
    }

    /// The same with the refusal as it came.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn attempt(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        patience: Duration,
    ) -> Result<Value, Failure> {
        let headers = HeaderMap::from_iter([(AUTHORIZATION, self.key.clone())]);
        self.server.call(method, path, headers, body, patience).await
    }

    /// Makes a request with the key, and returns its whole answer.
    ///
    /// # Errors
    /// [`Failure::Unreachable`].
    pub async fn ask(&self, call: Call<'_>) -> Result<Answer, Failure> {
        let mut call = call;
        call.headers.insert(AUTHORIZATION, self.key.clone());
        self.server.ask(call).await
    }

    /// The failure and its remedy.
    pub fn explained(&self, failure: Failure) -> CommandFailure {
        let base = self.server.base();
        match &failure {
            Failure::Unreachable(why) => CommandFailure::Unreachable(format!("{why}\n{NONE_RUNS}")),
            Failure::Refused { status: 401, .. } => CommandFailure::Failed(format!(
                "{failure}\nthe operator key is wrong for {base}: `stagedoor dev` prints it"
            )),
            failure if failure.is_unknown_path() => CommandFailure::Failed(format!(
                "{failure}\n{base} is not a sandbox: only `stagedoor dev` answers this command"
            )),
            // What a call holds comes from the command line.
            Failure::Refused { status: 400, .. } => CommandFailure::Usage(failure.to_string()),
            Failure::Refused { .. } => failure.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox(name: &str, port: u16) -> RunningSandbox {
        let base_url = format!("http://127.0.0.1:{port}");
        RunningSandbox {
            name: name.to_owned(),
            pid: 1,
            platform_url: base_url.clone(),
            base_url,
            operator_key: format!("key-of-{name}"),
        }
    }

    #[test]
    fn the_options_or_the_running_sandboxes_choose_the_server() {
        let check =
            |server: Option<&str>, name: Option<&str>, running: &[&str], expected: Result<&str, &str>| {
                let options = TargetOptions {
                    server: server.map(str::to_owned),
                    sandbox: name.map(str::to_owned),
                    ..TargetOptions::default()
                };
                let running = (1..).zip(running).map(|(port, name)| sandbox(name, port)).collect();
                let found = options.find_among(running).map(|target| {
                    format!("{} {}", target.server().base(), target.key.to_str().expect("ASCII"))
                });
                match (found, expected) {
                    (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                    (Err(failure), Err(part)) => assert!(failure.to_string().contains(part), "{failure}"),
                    (found, expected) => panic!("{found:?} instead of {expected:?}"),
                }
            };
        check(None, None, &["default"], Ok("http://127.0.0.1:1 Bearer key-of-default"));
        check(None, Some("two"), &["one", "two"], Ok("http://127.0.0.1:2 Bearer key-of-two"));
        check(Some("http://127.0.0.1:2/"), None, &["one", "two"], Ok("http://127.0.0.1:2 Bearer key-of-two"));
        check(None, None, &["one", "two"], Err("one, two"));
        check(None, None, &[], Err("Start `stagedoor dev`"));
        check(None, Some("three"), &["one"], Err("--name three"));
        check(Some("http://127.0.0.1:9"), None, &["one"], Err("STAGEDOOR_OPERATOR_KEY"));
    }
}
