//! `POST /sandbox/console/act?call=METHOD PATH`: the call of the API that a form stands for.

use askama::Template;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderName, Method, StatusCode};
use serde_json::Value;

use super::form;
use super::handle::{Console, FORM_BYTES_MAX, field, read_form};
use super::html::{html_answer, write};
use super::page::Page;
use super::record::plain;
use super::texts::Texts;
use super::view::View;
use crate::http::answer::Problem;

/// Asks for the result alone, without the page around it.
const FRAGMENT: HeaderName = HeaderName::from_static("console-fragment");
/// The call whose body is a file. Its other fields are in the query.
const IMPORT: &str = "/sandbox/v1/worlds/import";
/// The field with that file.
const BODY: &str = "_body";
/// Maximum length of a form with a file, in bytes.
const IMPORT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The part of every path that a form may call.
const CALLABLE: &str = "/sandbox/v1/";
/// Maximum number of shown happenings of a move of the clock.
const LINES_MAX: usize = 50;
/// The values that have a button to copy them.
const COPIED: [&str; 8] =
    ["accessToken", "refreshToken", "clientId", "clientSecret", "code", "baseUrl", "operatorKey", "snapshot"];

/// What came of a form.
#[derive(Template)]
#[template(path = "console/result.html")]
struct FormResult {
    t: &'static Texts,
    is_good: bool,
    title: String,
    /// Why it failed, or what came of it in one sentence.
    message: String,
    /// Names and values to copy.
    copied: Vec<(&'static str, String)>,
    lines: Vec<String>,
    /// The content of the answer.
    json: String,
}

/// Makes the call, and answers with its result: in the page, or alone for the script.
pub(super) async fn act(State(console): State<Console>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    console.check(&parts.method, &parts.headers)?;
    let query = parts.uri.query().unwrap_or_default();
    let (method, path) = callable(query)?;
    let bytes_max = if path == IMPORT { IMPORT_BYTES_MAX } else { FORM_BYTES_MAX };
    let fields = read_form(body, bytes_max).await?;
    let (path, body) = match path == IMPORT {
        true => (form::with_query(&path, &fields), field(&fields, BODY).to_owned()),
        false => (path, Value::Object(form::to_json(&fields)).to_string()),
    };
    let (status, answer) = console.call(method, &path, body).await;
    console.note_form();
    let view = View::of(query, &parts.headers);
    let title = Some(field(&fields, "_title")).filter(|title| !title.is_empty()).unwrap_or(&path).to_owned();
    let html = write(&FormResult::of(Texts::of(view.language), title, status, answer))?;
    let status = if status.is_success() { StatusCode::OK } else { status };
    if parts.headers.contains_key(FRAGMENT) {
        return Ok(html_answer(status, html));
    }
    // A world that went back to an earlier state has another node, which answers from now on.
    if status.is_success() && is_replacement(&path) {
        return Ok(Redirect::to("/#worlds").into_response());
    }
    let mut page = Page::answer(&console, &view, Some(html)).await;
    *page.status_mut() = status;
    Ok(page)
}

/// The method and the path that a form names.
fn callable(query: &str) -> Result<(Method, String), Problem> {
    let named = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "call");
    let named = named.map(|(_, call)| call.into_owned()).unwrap_or_default();
    let (method, path) = named.split_once(' ').unwrap_or_default();
    let method = [Method::POST, Method::DELETE].into_iter().find(|known| known.as_str() == method);
    let method = method.filter(|_| path.starts_with(CALLABLE));
    let rule = "must be POST or DELETE, and a path of the sandbox API";
    Ok((method.ok_or_else(|| Problem::invalid("call", rule))?, path.to_owned()))
}

/// Whether a call replaces the node of a world, which may be that of the page.
fn is_replacement(path: &str) -> bool {
    path.starts_with("/sandbox/v1/worlds/") && (path.ends_with("/reset") || path.ends_with("/restore"))
}

impl FormResult {
    fn of(t: &'static Texts, title: String, status: StatusCode, answer: Value) -> Self {
        let is_good = status.is_success();
        let content = &answer["content"];
        let delivered = content.get("delivered").map(|sessions| format!("{}: {sessions}", t.delivered_to));
        let message = match is_good {
            true => delivered.unwrap_or_default(),
            false => {
                let message = answer["message"].as_str().unwrap_or(t.failed);
                format!("{} {message}", t.refused_lead).trim().to_owned()
            }
        };
        let found = COPIED.iter().filter_map(|name| Some((*name, content.get(name)?.as_str()?.to_owned())));
        let happened = content["happened"].as_array().map(Vec::as_slice).unwrap_or_default();
        let json = if content.is_null() { String::new() } else { format!("{content:#}") };
        Self {
            t,
            is_good,
            title,
            message,
            copied: found.collect(),
            lines: happened.iter().take(LINES_MAX).map(line).collect(),
            json,
        }
    }
}

/// What happened in a move of the clock, on one line.
fn line(happened: &Value) -> String {
    let Value::Object(fields) = happened else { return String::new() };
    let ids = fields.iter().filter(|(name, _)| !matches!(name.as_str(), "at" | "what"));
    let ids: Vec<String> = ids.map(|(_, id)| plain(id)).collect();
    format!("{}  {}  {}", plain(&happened["at"]), plain(&happened["what"]), ids.join(" "))
}
