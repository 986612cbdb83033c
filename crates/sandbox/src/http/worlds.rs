//! `/sandbox/v1/worlds`: further worlds in this process, and snapshots of them.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{FromRequestParts, RawQuery, Request, State};
use axum::response::{IntoResponse, Response};
use domain::Timestamp;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{Answer, Content, Problem};
use super::body;
use crate::sandbox::Sandbox;
use crate::world_file::{WorldFile, WorldFileError};
use crate::world_host::{NewWorld, SnapshotSummary, WorldError, WorldHost, WorldSummary};

/// Maximum length of a body with a world file, in bytes.
const WORLD_FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The place of the id or the name among the parts of a path, from 0.
const NAME_PLACE: usize = 4;
/// Maximum length of an exported world, in bytes.
const EXPORT_BYTES_MAX: usize = 128 * 1024 * 1024;

/// The id of a world, or the name of a snapshot, in the path: the part after `worlds` or `snapshots`. Neither
/// has characters that are encoded in a path.
pub(super) struct PathName(String);

impl<S: Sync> FromRequestParts<S> for PathName {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.uri.path().split('/').nth(NAME_PLACE).unwrap_or_default().to_owned()))
    }
}

/// A new world.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewWorldFields {
    /// The id: 1 to 32 letters, digits, `-` and `_`. Default: `world-1` and so on.
    name: Option<String>,
    /// The seed of ids, secrets and tokens.
    seed: Option<u64>,
    /// The time (RFC 3339) at which the clock stands still. Default: the system's time, and the clock runs.
    clock: Option<String>,
    /// A world file as JSON. Default: the world of `stagedoor dev`.
    world: Option<Value>,
    /// A snapshot or a world whose state the new world begins with.
    from: Option<String>,
}

/// A new snapshot.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SnapshotFields {
    /// The name: 1 to 32 letters, digits, `-` and `_`.
    name: String,
}

/// The snapshot to go back to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RestoreFields {
    /// Its name.
    snapshot: String,
}

/// All of a kind.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Listed<T> {
    /// The list.
    data: Vec<T>,
}

/// `GET /sandbox/v1/worlds`.
pub(super) async fn list(State(sandbox): State<Sandbox>) -> Answer<Listed<WorldSummary>> {
    Ok(Content(Listed { data: host(&sandbox)?.list().await }))
}

/// `POST /sandbox/v1/worlds`: starts a world on a port of its own.
pub(super) async fn create(State(sandbox): State<Sandbox>, request: Request) -> Answer<Value> {
    let fields: NewWorldFields = body::read(&whole(request, WORLD_FILE_BYTES_MAX).await?)?;
    let clock = fields.clock.as_deref().map(time);
    let world = fields.world.map(WorldFile::from_json).transpose();
    let world = world.map_err(|error| mistake("world", &error))?;
    let new = NewWorld {
        name: fields.name,
        seed: fields.seed,
        clock: clock.transpose()?,
        world,
        from: fields.from,
    };
    Ok(Content(host(&sandbox)?.create(new).await?))
}

/// `DELETE /sandbox/v1/worlds/{worldId}`.
pub(super) async fn delete(State(sandbox): State<Sandbox>, PathName(id): PathName) -> Answer<()> {
    Ok(Content(host(&sandbox)?.delete(id).await?))
}

/// `POST /sandbox/v1/worlds/{worldId}/reset`: puts a world back to its beginning.
pub(super) async fn reset(State(sandbox): State<Sandbox>, PathName(id): PathName) -> Answer<Value> {
    Ok(Content(host(&sandbox)?.reset(id).await?))
}

/// `POST /sandbox/v1/worlds/{worldId}/snapshots`.
pub(super) async fn snapshot(
    State(sandbox): State<Sandbox>,
    PathName(id): PathName,
    body::JsonBody(fields): body::JsonBody<SnapshotFields>,
) -> Answer<SnapshotSummary> {
    Ok(Content(host(&sandbox)?.snapshot(id, fields.name).await?))
}

/// `POST /sandbox/v1/worlds/{worldId}/restore`: puts a world into the state of a snapshot.
pub(super) async fn restore(
    State(sandbox): State<Sandbox>,
    PathName(id): PathName,
    body::JsonBody(fields): body::JsonBody<RestoreFields>,
) -> Answer<Value> {
    Ok(Content(host(&sandbox)?.restore(id, fields.snapshot).await?))
}

/// `GET /sandbox/v1/snapshots`.
pub(super) async fn snapshots(State(sandbox): State<Sandbox>) -> Answer<Listed<SnapshotSummary>> {
    Ok(Content(Listed { data: host(&sandbox)?.snapshots() }))
}

/// `DELETE /sandbox/v1/snapshots/{name}`.
pub(super) async fn delete_snapshot(State(sandbox): State<Sandbox>, PathName(name): PathName) -> Answer<()> {
    Ok(Content(host(&sandbox)?.delete_snapshot(&name)?))
}

/// `GET /sandbox/v1/worlds/{worldId}/export`: the world as one object. With `?as=yaml` or `?as=json` it is a
/// world file.
pub(super) async fn export(
    State(sandbox): State<Sandbox>,
    PathName(id): PathName,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let host = host(&sandbox)?;
    let mut kind = None;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match (&*name, &*value) {
            ("as", "yaml" | "json") => kind = Some(value.into_owned()),
            ("as", _) => return Err(Problem::invalid("as", "must be yaml or json")),
            (other, _) => return Err(Problem::invalid(other, "is unknown")),
        }
    }
    let Some(kind) = kind else { return Ok(Content(host.export(id).await?).into_response()) };
    let file = host.world_file(id).await?;
    if kind == "json" {
        return Ok(Content(file).into_response());
    }
    let failed = |error: String| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error);
    let yaml = file.to_yaml().map_err(failed)?;
    let content_type = (header::CONTENT_TYPE, HeaderValue::from_static("application/yaml"));
    Ok(([content_type, (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], yaml).into_response())
}

/// `POST /sandbox/v1/worlds/import`: starts a world from what `export` answered, or from a world file. The
/// query may have the `name` of the world, and for a world file a `seed` and a `clock`.
pub(super) async fn import(
    State(sandbox): State<Sandbox>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Answer<Value> {
    let host = host(&sandbox)?;
    let mut new = NewWorld::default();
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "name" => new.name = Some(value.into_owned()),
            "seed" => {
                let seed =
                    value.parse().map_err(|_| Problem::invalid("seed", "must be an integer from 0"))?;
                new.seed = Some(seed);
            }
            "clock" => new.clock = Some(time(&value)?),
            other => return Err(Problem::invalid(other, "is unknown")),
        }
    }
    let bytes = whole(request, EXPORT_BYTES_MAX).await?;
    let json = serde_json::from_slice::<Value>(&bytes).ok();
    // What `export` answered may be sent as it is, in its envelope.
    let json = json.map(|mut json| match json.get_mut("content").filter(|content| content.is_object()) {
        Some(content) => content.take(),
        None => json,
    });
    if let Some(file) = json.as_ref().filter(|json| json.get("format").is_some()) {
        if new.seed.is_some() || new.clock.is_some() {
            return Err(Problem::invalid("body", "must be a world file, as the query has a seed or a clock"));
        }
        return Ok(Content(host.import(new.name, file.clone()).await?));
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| Problem::invalid("body", "must be UTF-8"))?;
    let world = match json {
        Some(json) => WorldFile::from_json(json),
        None => WorldFile::parse(text),
    };
    let world = Some(world.map_err(|error| mistake("body", &error))?);
    Ok(Content(host.create(NewWorld { world, ..new }).await?))
}

fn time(text: &str) -> Result<Timestamp, Problem> {
    let wrong = || Problem::invalid("clock", "must be a time as in 2027-01-01T00:00:00Z");
    Timestamp::parse_rfc3339(text).ok_or_else(wrong)
}

fn host(sandbox: &Sandbox) -> Result<Arc<dyn WorldHost>, Problem> {
    let starting = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the sandbox still starts: try again");
    sandbox.world_host().ok_or_else(starting)
}

/// The whole body of a request, up to `max` bytes.
async fn whole(request: Request, max: usize) -> Result<axum::body::Bytes, Problem> {
    let rule = format!("must be at most {} MiB", max / 1024 / 1024);
    to_bytes(request.into_body(), max).await.map_err(|_| Problem::invalid("body", rule))
}

/// A mistake in a world file, which is the field `field` of the body.
fn mistake(field: &str, error: &WorldFileError) -> Problem {
    match (&error.path, error.position) {
        (path, None) if !path.is_empty() => Problem::invalid(&format!("{field}.{path}"), &error.rule),
        _ => Problem::invalid(field, error),
    }
}

impl From<WorldError> for Problem {
    fn from(error: WorldError) -> Self {
        match error {
            WorldError::Unknown { field, rule } => {
                Self::new(StatusCode::NOT_FOUND, format!("{field}: {rule}"))
            }
            WorldError::Invalid { field, rule } => Self::invalid(&field, rule),
            WorldError::Full(message) => Self::new(StatusCode::CONFLICT, message),
            WorldError::Failed(message) => {
                tracing::error!(message, "a world failed");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
            }
        }
    }
}
