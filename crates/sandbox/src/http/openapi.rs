//! The sandbox API in the OpenAPI document of `stagedoor dev`. A test compares [`CALLS`] with the routes.

use std::sync::OnceLock;

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::answer::Problem;
use super::clock::{Change, ClockState, Next, Steered};
use super::codes::{CodeFields, IssuedCode};
use super::console_link::ConsoleLink;
use super::environment::Environment;
use super::expect::{Expectation, Fulfilled};
use super::faults::NewRule;
use super::hosts::ShownHosts;
use super::log::Excerpt;
use super::scenario_check::{CheckedSteps, Mistakes};
use super::sign_in::SignInAddress;
use super::tokens::{Issued, SignInFields};
use super::trigger;
use super::worlds::{Listed, NewWorldFields, RestoreFields, SnapshotFields};
use crate::explain::Explanation;
use crate::overview::Overview;
use crate::scenario_runs::ScenarioRun;
use crate::world_host::{SnapshotSummary, WorldSummary};

/// The path of the document.
pub(super) const PATH: &str = "/openapi.json";
const TAG: &str = "Sandbox";
const ABOUT: &str = "Only in a sandbox: its clock, its events, its log, its faults. Texts are English.";
/// The statuses of refusals, with their meaning.
const REFUSALS: [(&str, &str); 6] = [
    ("400", "A wrong value: the message names the field and its rule."),
    ("401", "The operator key is missing or wrong."),
    ("403", "A web page of another origin called."),
    ("404", "There is no such thing."),
    ("409", "It does not go now: there is no room for another one, or nothing that it could happen to."),
    ("503", "The sandbox still starts."),
];

/// A call of the sandbox API.
struct Call {
    method: &'static str,
    path: &'static str,
    /// The `operationId`.
    id: &'static str,
    /// What it does.
    summary: &'static str,
    /// The parameters of the query, each with its meaning.
    query: &'static [(&'static str, &'static str)],
    /// The schema of the body.
    body: Option<SchemaOf>,
    /// The schema of `content`.
    content: SchemaOf,
}

type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

impl Call {
    const fn new<T: JsonSchema>(
        method: &'static str,
        path: &'static str,
        id: &'static str,
        summary: &'static str,
    ) -> Self {
        Self { method, path, id, summary, query: &[], body: None, content: schema_of::<T> }
    }

    /// The same call with a body.
    const fn takes<T: JsonSchema>(self) -> Self {
        Self { body: Some(schema_of::<T>), ..self }
    }

    /// The same call with parameters in its query.
    const fn asks(self, query: &'static [(&'static str, &'static str)]) -> Self {
        Self { query, ..self }
    }
}

/// Any JSON object.
type Fields = Map<String, Value>;

/// Every call.
const CALLS: &[Call] = &[
    Call::new::<ClockState>("get", "/sandbox/v1/clock", "sandboxClock", "Shows the clock"),
    Call::new::<Steered>("post", "/sandbox/v1/clock", "steerSandboxClock", "Moves the clock, or lets it run")
        .takes::<Change>(),
    Call::new::<Next>("get", "/sandbox/v1/clock/next", "nextDue", "Lists what becomes due next"),
    Call::new::<ShownHosts>("get", "/sandbox/v1/hosts", "fixedHosts", "Shows the fixed hosts of TLS"),
    Call::new::<Excerpt>("get", "/sandbox/v1/log", "sandboxLog", "Reads the log, or streams it").asks(&[
        ("after", "Only records after this mark."),
        ("limit", "Maximum number of records, from 1 to 200."),
        ("within", "How long to wait for a record, as in 5s."),
        ("kind", "Only records of this kind. Further parameters are conditions on fields."),
    ]),
    Call::new::<Fulfilled>("post", "/sandbox/v1/expect", "expectRecords", "Waits until enough records match")
        .takes::<Expectation>(),
    Call::new::<Explanation>("get", "/sandbox/v1/explain", "explain", "Explains an id or a word")
        .asks(&[("what", "The id or the word.")]),
    Call::new::<Value>("get", "/sandbox/v1/faults", "faultRules", "Lists the fault rules"),
    Call::new::<Value>("post", "/sandbox/v1/faults", "addFaultRule", "Adds a fault rule").takes::<NewRule>(),
    Call::new::<Option<()>>("delete", "/sandbox/v1/faults", "removeFaultRules", "Removes every fault rule"),
    Call::new::<Value>("get", "/sandbox/v1/faults/profiles", "networkProfiles", "Lists the network profiles"),
    Call::new::<Option<()>>("delete", "/sandbox/v1/faults/{id}", "removeFaultRule", "Removes a fault rule"),
    Call::new::<Value>("get", "/sandbox/v1/trigger", "triggerKinds", "Lists the kinds of triggers"),
    Call::new::<Fields>("post", "/sandbox/v1/trigger/{kind}", "trigger", "Lets something happen")
        .takes::<Fields>(),
    Call::new::<Overview>("get", "/sandbox/v1/state", "sandboxState", "Shows what the sandbox holds"),
    Call::new::<Value>("get", "/sandbox/v1/runs", "scenarioRuns", "Lists the runs of scenarios"),
    Call::new::<ScenarioRun>("post", "/sandbox/v1/runs", "reportScenarioRun", "Reports a run of a scenario")
        .takes::<ScenarioRun>(),
    Call::new::<Issued>("post", "/sandbox/v1/tokens", "issueTokens", "Signs a user in without the pages")
        .takes::<SignInFields>(),
    Call::new::<IssuedCode>(
        "post",
        "/sandbox/v1/codes",
        "issueCode",
        "Makes an authorization code without the pages",
    )
    .takes::<CodeFields>(),
    Call::new::<Mistakes>(
        "post",
        "/sandbox/v1/scenario-check",
        "checkScenario",
        "Says what is wrong with the steps of a scenario",
    )
    .takes::<CheckedSteps>(),
    Call::new::<ConsoleLink>(
        "post",
        "/sandbox/v1/console-link",
        "openConsole",
        "Makes an address that opens the console once",
    ),
    Call::new::<Environment>(
        "post",
        "/sandbox/v1/environment",
        "botEnvironment",
        "Collects the settings of a bot",
    )
    .takes::<SignInFields>(),
    Call::new::<SignInAddress>("get", "/sandbox/v1/sign-in", "signInAddress", "The address of a sign-in")
        .asks(&[("client", "The application, by id or name. Default: the oldest one.")]),
    Call::new::<Listed<WorldSummary>>("get", "/sandbox/v1/worlds", "worlds", "Lists the worlds"),
    Call::new::<Fields>("post", "/sandbox/v1/worlds", "startWorld", "Starts a world on a port of its own")
        .takes::<NewWorldFields>(),
    Call::new::<Fields>("post", "/sandbox/v1/worlds/import", "importWorld", "Starts a world from a file")
        .takes::<Fields>()
        .asks(&[
            ("name", "The id of the world."),
            ("seed", "Its seed, if the file is a world file."),
            ("clock", "The time at which its clock stands still, if the file is a world file."),
        ]),
    Call::new::<Option<()>>("delete", "/sandbox/v1/worlds/{id}", "endWorld", "Ends a world"),
    Call::new::<Fields>(
        "post",
        "/sandbox/v1/worlds/{id}/reset",
        "resetWorld",
        "Puts a world back to its beginning",
    ),
    Call::new::<SnapshotSummary>(
        "post",
        "/sandbox/v1/worlds/{id}/snapshots",
        "takeSnapshot",
        "Takes a snapshot of a world",
    )
    .takes::<SnapshotFields>(),
    Call::new::<Fields>(
        "post",
        "/sandbox/v1/worlds/{id}/restore",
        "restoreWorld",
        "Puts a world into the state of a snapshot",
    )
    .takes::<RestoreFields>(),
    Call::new::<Fields>(
        "get",
        "/sandbox/v1/worlds/{id}/export",
        "exportWorld",
        "Writes a world as one object, or as a world file",
    )
    .asks(&[("as", "yaml or json: a world file.")]),
    Call::new::<Listed<SnapshotSummary>>("get", "/sandbox/v1/snapshots", "snapshots", "Lists the snapshots"),
    Call::new::<Option<()>>("delete", "/sandbox/v1/snapshots/{name}", "deleteSnapshot", "Deletes a snapshot"),
];

/// The route of the document: that of the service, with the sandbox API added when it is first asked for.
pub(super) fn route(of_service: fn() -> Value) -> Router {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let answer = move || async move {
        let text = || serde_json::to_string_pretty(&with_calls(of_service())).unwrap_or_default().into();
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ];
        (headers, TEXT.get_or_init(text).clone())
    };
    let refused = || async { Problem::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED") };
    Router::new().route(PATH, get(answer)).method_not_allowed_fallback(refused)
}

/// The document with the sandbox API.
fn with_calls(mut document: Value) -> Value {
    if let Some(tags) = document["tags"].as_array_mut() {
        tags.push(json!({ "name": TAG, "description": ABOUT, "x-name-ko": "샌드박스" }));
    }
    for call in CALLS {
        document["paths"][call.path][call.method] = described(call);
    }
    document
}

fn described(call: &Call) -> Value {
    let mut responses = Map::new();
    let content = inlined(call.content, SchemaSettings::for_serialize);
    responses.insert("200".to_owned(), response("Done.", envelope(json!(content), true)));
    for (status, meaning) in REFUSALS {
        responses.insert(status.to_owned(), response(meaning, envelope(json!({}), false)));
    }
    let mut described = json!({
        "tags": [TAG],
        "operationId": call.id,
        "summary": call.summary,
        "description": "The operator's key, or the cookie of the sandbox's own page.",
        "security": [{ "OperatorKey": [] }],
        "parameters": parameters(call),
        "responses": responses,
    });
    if let Some(body) = call.body {
        let schema = inlined(body, SchemaSettings::for_deserialize);
        let content = json!({ "application/json": { "schema": schema } });
        described["requestBody"] = json!({ "required": false, "content": content });
    }
    described
}

/// A schema without references, so that it adds no names to the document.
fn inlined(schema: SchemaOf, contract: fn(SchemaSettings) -> SchemaSettings) -> Schema {
    let settings = contract(SchemaSettings::draft2020_12()).with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    schema(&mut settings.into_generator())
}

fn envelope(content: Value, is_success: bool) -> Value {
    let message = if is_success { json!({ "type": "null" }) } else { json!({ "type": "string" }) };
    let required =
        if is_success { json!(["code", "message", "content"]) } else { json!(["code", "message"]) };
    json!({
        "type": "object",
        "required": required,
        "properties": { "code": { "type": "integer" }, "message": message, "content": content },
    })
}

fn response(description: &str, schema: Value) -> Value {
    json!({ "description": description, "content": { "application/json": { "schema": schema } } })
}

fn parameters(call: &Call) -> Vec<Value> {
    let names = call.path.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let in_path = names.map(|(name, _)| {
        let mut schema = json!({ "type": "string" });
        if name == "kind" {
            schema["enum"] = json!(trigger::names());
        }
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    });
    let in_query = call.query.iter().map(|(name, about)| {
        json!({ "name": name, "in": "query", "required": false, "description": about, "schema": { "type": "string" } })
    });
    in_path.chain(in_query).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Methods and paths of the routes in the source of the API.
    fn routes() -> BTreeSet<(String, String)> {
        let source: String = include_str!("../http.rs").split_whitespace().collect();
        let mut routes = BTreeSet::new();
        for route in source.split(".route(\"").skip(1) {
            let (path, rest) = route.split_once('"').expect("a path");
            let handlers = rest.split(".route(").next().expect("handlers");
            let handlers = handlers.split(".fallback(").next().expect("handlers");
            for method in ["get", "post", "put", "patch", "delete"] {
                let begins = [format!(",{method}("), format!(").{method}(")];
                if begins.iter().any(|begin| handlers.contains(begin)) {
                    routes.insert((method.to_owned(), path.to_owned()));
                }
            }
        }
        routes
    }

    #[test]
    fn every_route_is_described_and_every_description_has_a_route() {
        let described: BTreeSet<_> =
            CALLS.iter().map(|call| (call.method.to_owned(), call.path.to_owned())).collect();
        assert_eq!(described.len(), CALLS.len(), "a call is described twice");
        let routes = routes();
        assert!(routes.len() > 10, "{routes:?}");
        let missing: Vec<_> = routes.difference(&described).collect();
        assert!(missing.is_empty(), "add to CALLS in http/openapi.rs: {missing:?}");
        let stale: Vec<_> = described.difference(&routes).collect();
        assert!(stale.is_empty(), "no route: {stale:?}");
    }

    #[test]
    fn the_calls_are_added_to_the_document() {
        let document = with_calls(json!({ "tags": [], "paths": { "/a": {} } }));
        assert!(document["paths"]["/a"].is_object());
        let clock = &document["paths"]["/sandbox/v1/clock"]["post"];
        let advance = &clock["requestBody"]["content"]["application/json"]["schema"]["properties"]["advance"];
        assert!(advance["description"].as_str().is_some_and(|about| about.contains("90s")), "{clock}");
        let kinds =
            &document["paths"]["/sandbox/v1/trigger/{kind}"]["post"]["parameters"][0]["schema"]["enum"];
        assert!(kinds.as_array().is_some_and(|kinds| kinds.contains(&json!("chat"))), "{kinds}");
        assert!(!document.to_string().contains("$ref"), "schemas are inlined");
        let ids: BTreeSet<_> = CALLS.iter().map(|call| call.id).collect();
        assert_eq!(ids.len(), CALLS.len());
    }
}
