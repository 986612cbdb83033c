//! `stagedoor world`: further worlds in a sandbox, snapshots, world files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Map, Value, json};

use crate::client::Call;
use crate::failure::CommandFailure;
use crate::state_file;
use crate::target::{Target, TargetOptions};

/// `stagedoor world`
#[derive(Debug, Args)]
pub struct WorldOptions {
    #[command(flatten)]
    target: TargetOptions,

    #[command(subcommand)]
    action: WorldAction,
}

/// The actions of `stagedoor world`.
#[derive(Debug, Subcommand)]
enum WorldAction {
    /// Lists the worlds, and the snapshots.
    List,
    /// Starts a world on a port of its own.
    New {
        /// Its id. Default: world-1 and so on.
        name: Option<String>,
        /// Makes its ids, secrets and tokens the same at every start.
        #[arg(long, value_name = "N")]
        seed: Option<u64>,
        /// Lets its clock stand still at this time, as in 2027-01-01T00:00:00Z.
        #[arg(long, value_name = "TIME")]
        clock: Option<String>,
        /// Its content: a world file. Default: that of `stagedoor dev`.
        #[arg(long, value_name = "FILE", conflicts_with = "from")]
        file: Option<PathBuf>,
        /// Begins with the state of a snapshot or a world.
        #[arg(long, value_name = "NAME")]
        from: Option<String>,
    },
    /// Ends a world and deletes its data.
    Delete {
        /// Its id.
        id: String,
    },
    /// Puts a world back to its beginning. Its sockets end.
    Reset {
        /// Its id.
        #[arg(default_value = MAIN)]
        id: String,
    },
    /// Takes a snapshot of a world. It replaces one of the same name.
    Snapshot {
        /// The name of the snapshot.
        name: String,
        /// The id of the world.
        #[arg(long = "of", value_name = "ID", default_value = MAIN)]
        id: String,
    },
    /// Puts a world into the state of a snapshot. Its sockets end.
    Restore {
        /// The name of the snapshot.
        name: String,
        /// The id of the world.
        #[arg(long = "to", value_name = "ID", default_value = MAIN)]
        id: String,
    },
    /// Writes a world as a world file, or all of it for a bug report.
    Export {
        /// Its id.
        #[arg(default_value = MAIN)]
        id: String,
        /// Writes to this file instead of stdout.
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Writes all of the world into one file: its database, its clock, its seed and its secrets.
        #[arg(long)]
        full: bool,
    },
    /// Starts a world from a file that `export` wrote, with or without --full.
    Import {
        /// The file.
        file: PathBuf,
        /// The id of the world. Default: world-1 and so on.
        #[arg(long)]
        name: Option<String>,
    },
    /// Prints the JSON Schema of world files.
    Schema,
}

/// The id of the world that `stagedoor dev` started.
const MAIN: &str = "main";
/// How long a world may take besides the usual deadline. A large world file takes a while.
const PATIENCE: Duration = Duration::from_secs(120);

/// The end of the command's help.
pub const HELP: &str = "\
Examples:
  stagedoor world new --seed 7 --clock 2027-01-01T00:00:00Z --json
  stagedoor world snapshot before
  stagedoor world restore before
  stagedoor world new --from before
  stagedoor world export --output world.yaml
  stagedoor dev --world world.yaml
  stagedoor world export --full --output bug-report.json
  stagedoor world import bug-report.json";

/// Runs the command, and returns its output. `schema` is the schema of world files.
///
/// # Errors
/// [`CommandFailure`].
pub async fn run(options: &WorldOptions, schema: impl FnOnce() -> Value) -> Result<String, CommandFailure> {
    let WorldOptions { target: chosen, action } = options;
    if let WorldAction::Schema = action {
        return Ok(format!("{:#}\n", schema()));
    }
    let target = chosen.find().await?;
    if let WorldAction::Export { id, output, full } = action {
        return export(&target, id, output.as_deref(), *full, chosen.json).await;
    }
    let answer = match action {
        WorldAction::List => list(&target).await?,
        WorldAction::New { name, seed, clock, file, from } => match file {
            Some(file) => {
                let seed = seed.map(|seed| seed.to_string());
                let query = [("name", name.as_ref()), ("seed", seed.as_ref()), ("clock", clock.as_ref())];
                import(&target, file, &query).await?
            }
            None => {
                let given = [
                    ("name", json!(name)),
                    ("seed", json!(seed)),
                    ("clock", json!(clock)),
                    ("from", json!(from)),
                ];
                let given = given.into_iter().filter(|(_, value)| !value.is_null());
                let body: Map<_, _> = given.map(|(name, value)| (name.to_owned(), value)).collect();
                call(&target, Method::POST, "", Some(Value::Object(body))).await?
            }
        },
        WorldAction::Delete { id } => call(&target, Method::DELETE, &path(id, "")?, None).await?,
        WorldAction::Reset { id } => call(&target, Method::POST, &path(id, "/reset")?, None).await?,
        WorldAction::Snapshot { name, id } => {
            call(&target, Method::POST, &path(id, "/snapshots")?, Some(json!({ "name": name }))).await?
        }
        WorldAction::Restore { name, id } => {
            call(&target, Method::POST, &path(id, "/restore")?, Some(json!({ "snapshot": name }))).await?
        }
        WorldAction::Import { file, name } => import(&target, file, &[("name", name.as_ref())]).await?,
        WorldAction::Export { .. } | WorldAction::Schema => Value::Null,
    };
    Ok(if chosen.json { format!("{answer}\n") } else { text(action, &answer) })
}

async fn call(
    target: &Target,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> Result<Value, CommandFailure> {
    target.call(method, &format!("/sandbox/v1/worlds{path}"), body.as_ref(), PATIENCE).await
}

/// The path of a world below `/sandbox/v1/worlds`.
fn path(id: &str, rest: &str) -> Result<String, CommandFailure> {
    match state_file::is_name(id) {
        true => Ok(format!("/{id}{rest}")),
        false => {
            Err(CommandFailure::Usage(format!("{id} is no id of a world: `stagedoor world list` has them")))
        }
    }
}

async fn list(target: &Target) -> Result<Value, CommandFailure> {
    let worlds = call(target, Method::GET, "", None).await?;
    let snapshots = target.call(Method::GET, "/sandbox/v1/snapshots", None, PATIENCE).await?;
    Ok(json!({ "worlds": worlds["data"], "snapshots": snapshots["data"] }))
}

async fn import(
    target: &Target,
    file: &Path,
    query: &[(&str, Option<&String>)],
) -> Result<Value, CommandFailure> {
    let bytes =
        std::fs::read(file).map_err(|error| CommandFailure::Usage(format!("{}: {error}", file.display())))?;
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    for (name, value) in query {
        if let Some(value) = value {
            pairs.append_pair(name, value);
        }
    }
    let path = format!("/sandbox/v1/worlds/import?{}", pairs.finish());
    let answer = target
        .ask(Call { body: Bytes::from(bytes), patience: PATIENCE, ..Call::new(Method::POST, &path) })
        .await;
    let answer = answer.and_then(|answer| target.server().read(&answer));
    answer.map_err(|failure| target.explained(failure))
}

async fn export(
    target: &Target,
    id: &str,
    output: Option<&Path>,
    full: bool,
    json: bool,
) -> Result<String, CommandFailure> {
    let content = match (full, json) {
        (true, _) => format!("{}\n", call(target, Method::GET, &path(id, "/export")?, None).await?),
        (false, true) => {
            format!("{}\n", call(target, Method::GET, &path(id, "/export?as=json")?, None).await?)
        }
        (false, false) => {
            let path = format!("/sandbox/v1/worlds{}", path(id, "/export?as=yaml")?);
            let answer = target.ask(Call { patience: PATIENCE, ..Call::new(Method::GET, &path) }).await;
            let answer = answer.map_err(|failure| target.explained(failure))?;
            if !answer.status.is_success() {
                return Err(target.explained(target.server().refusal(&answer)));
            }
            String::from_utf8_lossy(&answer.beginning).into_owned()
        }
    };
    let Some(output) = output else { return Ok(content) };
    std::fs::write(output, content)
        .map_err(|error| CommandFailure::Usage(format!("{}: {error}", output.display())))?;
    Ok(String::new())
}

fn text(action: &WorldAction, answer: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let world = |world: &Value| {
        let seed = world["seed"].as_u64().map(|seed| format!("  seed {seed}")).unwrap_or_default();
        let (id, url, key) = (word(&world["worldId"]), word(&world["baseUrl"]), word(&world["operatorKey"]));
        format!("{id:<12}  {url}  operator key {key}{seed}\n")
    };
    match action {
        WorldAction::List => {
            let items = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
            let mut text: String = items("worlds").iter().map(world).collect();
            for snapshot in items("snapshots") {
                let (name, of) = (word(&snapshot["name"]), word(&snapshot["worldId"]));
                text.push_str(&format!("snapshot {name} of {of}, {}\n", word(&snapshot["at"])));
            }
            text
        }
        WorldAction::Delete { id } => format!("deleted {id}\n"),
        WorldAction::Snapshot { name, id } => format!("snapshot {name} of {id}, {}\n", word(&answer["at"])),
        _ => world(answer),
    }
}
