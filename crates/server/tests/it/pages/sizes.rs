//! 64 KiB in each field of each form, and a long text in each parameter of each page, in many shapes. No
//! request may hold the runtime for long: others wait meanwhile. The fields and parameters are those of the
//! pages, so new ones are covered.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use domain::limits::BODY_BYTES_MAX;
use testkit::{Browser, Engine, Form, Request, Setup, World, both, encode};

use super::attacks::Scene;
use super::proven;

/// Bytes of a value in a form.
const VALUE_BYTES: usize = BODY_BYTES_MAX - 4 * 1024;
/// Bytes of a value in a query. A head has 16 KiB.
const PARAMETER_BYTES: usize = 12 * 1024;
/// The longest time of a request.
const HELD_MAX: Duration = Duration::from_millis(20);
/// A build without optimisation on a busy machine is slow. There a request may take this many times as long
/// as the one in the middle. Comparing the lines of a form with each other takes more than ten times as long.
const OF_MEDIAN_MAX: u32 = 8;
/// A request that took too long is sent again, at most so often: the machine may have done something else.
const TRIES: usize = 5;
/// Parameters that no page has as a field.
const PARAMETERS: [&str; 8] = ["next", "lang", "error", "state", "token", "clientId", "redirectUri", "page"];

/// Many values of one kind, up to a size.
fn filled(bytes: usize, item: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for n in 0.. {
        let item = item(n);
        if text.len() + item.len() > bytes {
            break;
        }
        text.push_str(&item);
    }
    text
}

/// Texts of this size, with their kinds.
fn texts(bytes: usize) -> Vec<(&'static str, String)> {
    vec![
        ("lines", filled(bytes, |n| format!("https://{n}\r\n"))),
        ("words", filled(bytes, |n| format!("w{n} "))),
        ("list", filled(bytes, |n| format!("{n},"))),
        ("one line", "a".repeat(bytes)),
        ("one address", format!("https://{}", "a".repeat(bytes - 8))),
        ("digits", "9".repeat(bytes)),
        ("spaces", " ".repeat(bytes)),
        ("markup", filled(bytes, |_| "<b>[[(\"'&".to_owned())),
        ("syllables", "가".repeat(bytes / 3)),
    ]
}

/// The body of a form without files.
fn encoded(fields: &[(String, String)], bytes: usize) -> Vec<u8> {
    let pairs = fields.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    let mut body = pairs.collect::<Vec<_>>().join("&");
    if body.len() > bytes {
        // Between two escapes.
        let mut end = bytes;
        while body[end - 2..end].contains('%') {
            end -= 1;
        }
        body.truncate(end);
    }
    body.into_bytes()
}

const BOUNDARY: &str = "a-boundary";

fn in_parts(fields: &[(String, String)]) -> Vec<u8> {
    let part = |(name, value): &(String, String)| {
        format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let parts: String = fields.iter().map(part).collect();
    format!("{parts}--{BOUNDARY}--\r\n").into_bytes()
}

/// The values of an attribute in a piece of HTML.
fn attributes<'h>(html: &'h str, name: &'static str) -> impl Iterator<Item = &'h str> {
    html.split(name).skip(1).filter_map(|rest| rest.strip_prefix("=\"")?.split('"').next())
}

/// The forms of a page by their addresses, with the names of all their fields, areas and choices.
fn forms(html: &str) -> Vec<(String, BTreeSet<String>)> {
    let forms = html.split("<form").skip(1).filter_map(|rest| rest.split("</form>").next());
    let form = |form: &str| {
        let head = form.split('>').next()?;
        let action = attributes(head, "action").next()?.replace("&#38;", "&").replace("&amp;", "&");
        Some((action, attributes(form, " name").map(str::to_owned).collect()))
    };
    forms.filter_map(form).collect()
}

#[allow(clippy::disallowed_methods, reason = "a stranger measures in real time")]
fn now() -> Instant {
    Instant::now()
}

/// What each request took, by its label.
#[derive(Default)]
struct Took(Vec<(String, Duration, Browser, Request)>);

impl Took {
    async fn send(&mut self, label: String, browser: &Browser, request: Request) {
        let took = time(browser, &request, &label).await;
        self.0.push((label, took, browser.clone(), request));
    }

    /// # Panics
    /// When a request takes too long, also when it is sent again.
    async fn check(mut self) {
        self.0.sort_by_key(|(_, took, ..)| *took);
        let median = self.0[self.0.len() / 2].1;
        let max = HELD_MAX.max(median * OF_MEDIAN_MAX);
        let mut slow = Vec::new();
        for (label, took, browser, request) in &self.0 {
            let mut fastest = *took;
            for _ in 0..TRIES {
                if fastest <= max {
                    break;
                }
                fastest = fastest.min(time(browser, request, label).await);
            }
            if fastest > max {
                slow.push(format!("{label}: {fastest:?}"));
            }
        }
        assert!(slow.is_empty(), "of {} requests, median {median:?}: {slow:#?}", self.0.len());
    }
}

async fn time(browser: &Browser, request: &Request, label: &str) -> Duration {
    let began = now();
    let page = browser.clone().send(request.clone()).await;
    assert_ne!(page.response.status, 500, "{label}");
    began.elapsed()
}

/// The forms of all pages with their fields, and the parameters of the pages.
async fn found(scene: &Scene, visitor: &Browser) -> (BTreeMap<String, BTreeSet<String>>, BTreeSet<String>) {
    let mut of_forms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut parameters: BTreeSet<String> = PARAMETERS.iter().map(|name| (*name).to_owned()).collect();
    let consent = scene.consent.clone();
    for path in scene.rows("GET").map(|(path, _)| path).chain([consent]).collect::<Vec<_>>() {
        for mut browser in [scene.owner.clone(), visitor.clone()] {
            let page = browser.open(&path).await;
            let html = page.response.text();
            for (action, names) in forms(html) {
                let posts = page.forms.iter().any(|form| form.action == action && form.method == "post");
                match posts {
                    true => of_forms.entry(action).or_default().extend(names),
                    false => parameters.extend(names),
                }
            }
            for address in attributes(html, "href").filter_map(|address| address.split_once('?')) {
                let names = address.1.split('&').filter_map(|pair| pair.split('=').next());
                parameters.extend(names.map(|name| name.trim_start_matches("#38;").to_owned()));
            }
        }
    }
    (of_forms, parameters)
}

async fn post_each_field(
    took: &mut Took,
    forms: BTreeMap<String, BTreeSet<String>>,
    scene: &Scene,
    visitor: &Browser,
) {
    for (action, names) in forms {
        let of_visitors = ["/sign-in", "/register", "/reset-password"];
        let is_visitors = of_visitors.iter().any(|path| action.starts_with(path)) || names.contains("login");
        let browser = if is_visitors { visitor } else { &scene.owner };
        let others: Vec<_> =
            names.iter().filter(|name| *name != "csrf").map(|name| (name.clone(), "1".to_owned())).collect();
        let form =
            Form { action: action.split('?').next().unwrap_or_default().to_owned(), ..Form::default() };
        let csrf = proven(browser, form).fields;
        for name in names.iter().filter(|name| *name != "csrf") {
            let with = |value: String| {
                let others = others.iter().filter(|(other, _)| other != name).cloned();
                csrf.iter().cloned().chain(others).chain([(name.clone(), value)]).collect::<Vec<_>>()
            };
            for (kind, text) in texts(VALUE_BYTES) {
                let fields = with(text);
                let request =
                    Request::post(&action).header("Content-Type", "application/x-www-form-urlencoded");
                took.send(
                    format!("{action} {name} {kind}"),
                    browser,
                    request.body(encoded(&fields, VALUE_BYTES)),
                )
                .await;
                if ["lines", "words", "list"].contains(&kind) {
                    let kind_of = format!("multipart/form-data; boundary={BOUNDARY}");
                    let request =
                        Request::post(&action).header("Content-Type", kind_of).body(in_parts(&fields));
                    took.send(format!("{action} {name} {kind} in parts"), browser, request).await;
                }
            }
            let pairs = (0..VALUE_BYTES / (name.len() + 8)).map(|n| (name.clone(), n.to_string()));
            let fields: Vec<_> = csrf.iter().cloned().chain(pairs).collect();
            let request = Request::post(&action).header("Content-Type", "application/x-www-form-urlencoded");
            took.send(format!("{action} {name} pairs"), browser, request.body(encoded(&fields, VALUE_BYTES)))
                .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_field_of_a_form_holds_the_runtime_whatever_its_size() {
    both(Setup { reviews_scopes: true, ..Setup::default() }, |world| async move {
        // What is measured does not depend on the store.
        if world.engine() != Engine::Sqlite {
            return;
        }
        let scene = Scene::set_up(&world, "이름").await;
        let visitor = visitor(&world).await;
        let (forms, _) = found(&scene, &visitor).await;
        let fields: usize = forms.values().map(BTreeSet::len).sum();
        assert!(forms.len() > 40 && fields > 80, "{forms:?}");
        for (action, name) in [
            ("/developers/register", "redirectUris"),
            ("/register", "login"),
            ("/studio/broadcast", "tags"),
            ("/account-interlock", "decision"),
            ("/account-interlock", "password"),
        ] {
            let mut of_action = forms.iter().filter(|(address, _)| address.split('?').next() == Some(action));
            assert!(of_action.any(|(_, names)| names.contains(name)), "{name} of {action}: {forms:?}");
        }
        let mut took = Took::default();
        post_each_field(&mut took, forms, &scene, &visitor).await;
        took.check().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_parameter_of_a_page_holds_the_runtime_whatever_its_size() {
    both(Setup { reviews_scopes: true, ..Setup::default() }, |world| async move {
        if world.engine() != Engine::Sqlite {
            return;
        }
        let scene = Scene::set_up(&world, "이름").await;
        let visitor = visitor(&world).await;
        let (_, parameters) = found(&scene, &visitor).await;
        assert!(parameters.contains("q") && parameters.len() > PARAMETERS.len() + 3, "{parameters:?}");
        let mut took = Took::default();
        let pages = scene.rows("GET").map(|(path, _)| path).chain(["/docs".to_owned()]);
        for (number, path) in pages.enumerate() {
            for name in &parameters {
                // Each page with each parameter, in turns of the kinds.
                let texts = texts(PARAMETER_BYTES);
                let kinds = texts.iter().cycle().skip(number).take(if name == "q" { texts.len() } else { 1 });
                for (kind, text) in kinds {
                    let query = encoded(&[(name.clone(), text.clone())], PARAMETER_BYTES);
                    let target = format!("{path}?{}", String::from_utf8(query).expect("ASCII"));
                    let label = format!("{path} {name} {kind}");
                    took.send(label, &scene.owner, Request::get(&target).header("Accept", "text/html")).await;
                }
            }
            let pairs: Vec<_> = (0..PARAMETER_BYTES / 8).map(|n| ("q".to_owned(), n.to_string())).collect();
            let query = String::from_utf8(encoded(&pairs, PARAMETER_BYTES)).expect("ASCII");
            took.send(format!("{path} pairs"), &scene.owner, Request::get(format!("{path}?{query}"))).await;
        }
        took.check().await;
    })
    .await;
}

/// A browser where nobody is signed in.
async fn visitor(world: &World) -> Browser {
    let mut browser = world.browser();
    browser.open("/sign-in").await;
    browser
}
