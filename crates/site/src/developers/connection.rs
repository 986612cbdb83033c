//! `/developers/applications/{clientId}/connection`: a test of the connections that an application needs.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use domain::member::MemberRole;
use domain::outbound::{Reach, WebhookUrl};
use domain::probe::{ProbeRequest, ProbeTarget, Probed};
use domain::refusal::Resource;
use domain::{Invalid, Refusal, Rule};
use service::connection_tests::Prober;
use service::owned_applications::DeveloperApplication;
use web::pages::{Area, Lang, Shell, filters};
use web::{FormTarget, PageAnswer, PathId, Person, PostedBy, Visitor};

use super::access::living_application;
use super::connection_texts::{ConnectionTexts, texts};
use super::connection_words::{
    StepRow, Verdict, redirect_verdict, right_verdict, socket_verdict, step_row, wrong_verdict,
};
use super::frame::{AppFrame, AppTab, address};
use crate::webhook_words::without_query;

/// The end of the page's path.
const END: &str = "/connection";
/// Redirect addresses that one test covers, the first ones.
const REDIRECTS_MAX: usize = 5;
/// The port of https.
const HTTPS_PORT: u16 = 443;
/// What a socket answers to a request without a session.
const SOCKET_PATH: &str = "/socket.io/?EIO=3&transport=polling";

/// What is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Webhook,
    Redirect,
    Socket,
}

/// An address that is tested, or why it is not.
struct Subject {
    part: Part,
    shown: String,
    target: Result<ProbeTarget, Untested>,
}

/// Why an address is not tested.
enum Untested {
    /// For the reason in these words.
    Because(&'static str),
    /// It was judged, without any connection.
    Judged(Probed),
}

/// One request of a part.
struct RequestView {
    name: &'static str,
    steps: Vec<StepRow>,
    verdict: Verdict,
}

/// A tested part.
struct PartView {
    id: String,
    heading: &'static str,
    shown: String,
    note: Option<&'static str>,
    requests: Vec<RequestView>,
}

#[derive(Template)]
#[template(path = "site/developers/connection.html")]
struct ConnectionPage<'a> {
    shell: Shell<'a>,
    frame: AppFrame<'a>,
    t: &'static ConnectionTexts,
    form: FormTarget,
    subjects: Vec<(&'static str, String)>,
    parts: Vec<PartView>,
    is_busy: bool,
}

impl ConnectionPage<'_> {
    fn title(&self) -> &'static str {
        self.t.heading
    }
}

impl<'a> ConnectionPage<'a> {
    fn new(person: &'a Person, application: &'a DeveloperApplication, subjects: &[Subject]) -> Self {
        let visitor = &person.visitor;
        let client_id = application.details.life.application.client_id.as_str();
        let t = texts(visitor.lang());
        let subject = |subject: &Subject| (heading(subject.part, t), subject.shown.clone());
        Self {
            shell: visitor.shell(Area::Developers),
            frame: AppFrame::new(visitor, application, AppTab::Connection),
            t,
            form: visitor.form(address(client_id, END)),
            subjects: subjects.iter().map(subject).collect(),
            parts: Vec::new(),
            is_busy: false,
        }
    }
}

const fn heading(part: Part, t: &ConnectionTexts) -> &'static str {
    match part {
        Part::Webhook => t.webhook,
        Part::Redirect => t.redirect,
        Part::Socket => t.socket,
    }
}

/// `GET …/connection`.
pub(super) async fn show(PathId(id): PathId, person: Person) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let subjects = subjects(&person.visitor, &application).await?;
    person.visitor.page(&ConnectionPage::new(&person, &application, &subjects))
}

/// `POST …/connection`: makes the test, and shows its results.
pub(super) async fn run(
    PathId(id): PathId,
    Extension(prober): Extension<Arc<dyn Prober>>,
    PostedBy { person, .. }: PostedBy,
) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let visitor = &person.visitor;
    let subjects = subjects(visitor, &application).await?;
    let page = ConnectionPage::new(&person, &application, &subjects);
    let client_id = &application.details.life.application.client_id;
    let targets = subjects.iter().filter_map(|subject| subject.target.as_ref().ok().cloned()).collect();
    let Ok(results) = prober.test(&person.channel_id, client_id, targets).await else {
        return visitor.form_again(&ConnectionPage { is_busy: true, ..page });
    };
    let parts = views(subjects, results, visitor.lang());
    visitor.page(&ConnectionPage { parts, ..page })
}

/// Everything that the test of an application covers.
async fn subjects(
    visitor: &Visitor,
    application: &DeveloperApplication,
) -> Result<Vec<Subject>, service::Error> {
    let t = texts(visitor.lang());
    let webhook = webhook(visitor, application, t).await?;
    let webhook_port = webhook.target.as_ref().ok().map(|target| target.url.port());
    let mut subjects = vec![webhook];
    let redirects = application.details.redirect_uris.iter().take(REDIRECTS_MAX);
    subjects.extend(redirects.map(|uri| redirect(visitor, uri, webhook_port, t)));
    subjects.push(socket(visitor, t).await?);
    Ok(subjects)
}

async fn webhook(
    visitor: &Visitor,
    application: &DeveloperApplication,
    t: &ConnectionTexts,
) -> Result<Subject, service::Error> {
    let service = visitor.web().service();
    let target = service.webhook_probe(&application.details.life.application.client_id).await;
    let (shown, target) = match target {
        Ok(Some(target)) => (without_query(target.url.as_str()).to_owned(), Ok(target)),
        Ok(None) => (String::new(), Err(Untested::Because(t.no_webhook_address))),
        Err(error) => match error.refusal() {
            Refusal::NotFound(Resource::Webhook) => (String::new(), Err(Untested::Because(t.no_webhook))),
            Refusal::Invalid(invalid) => (String::new(), Err(judged(invalid, t))),
            _ => return Err(error),
        },
    };
    Ok(Subject { part: Part::Webhook, shown, target })
}

/// A redirect address. Of public hosts only the usual port is tested, and that of the webhook, whose receiver
/// proves itself: otherwise a test would tell which ports of any host are open.
fn redirect(visitor: &Visitor, uri: &str, webhook_port: Option<u16>, t: &ConnectionTexts) -> Subject {
    let reach = visitor.web().service().webhook_settings().reach;
    let shown = without_query(uri).to_owned();
    let target = match WebhookUrl::parse(uri, reach) {
        Ok(url) if reach == Reach::PUBLIC && url.port() != HTTPS_PORT && webhook_port != Some(url.port()) => {
            Err(Untested::Because(t.other_port))
        }
        Ok(url) => Ok(get(url)),
        // Registration allows http on loopback only.
        Err(_) if uri.starts_with("http://") => Err(Untested::Because(t.loopback)),
        Err(invalid) => Err(judged(invalid, t)),
    };
    Subject { part: Part::Redirect, shown, target }
}

async fn socket(visitor: &Visitor, t: &ConnectionTexts) -> Result<Subject, service::Error> {
    let service = visitor.web().service();
    let base = match service.session_base().await {
        Ok(base) => base,
        Err(error) if matches!(error.refusal(), Refusal::Busy { .. }) => {
            let target = Err(Untested::Because(t.no_socket));
            return Ok(Subject { part: Part::Socket, shown: String::new(), target });
        }
        Err(error) => return Err(error),
    };
    let base = base.trim_end_matches('/');
    let address =
        format!("{}{SOCKET_PATH}", base.replacen("ws", "http", usize::from(base.starts_with("ws"))));
    let target = match WebhookUrl::parse(&address, service.webhook_settings().reach) {
        Ok(url) => Ok(get(url)),
        Err(_) => Err(Untested::Because(t.inner_socket)),
    };
    Ok(Subject { part: Part::Socket, shown: base.to_owned(), target })
}

fn get(url: WebhookUrl) -> ProbeTarget {
    ProbeTarget { url, requests: vec![ProbeRequest::Get] }
}

fn judged(invalid: Invalid, t: &ConnectionTexts) -> Untested {
    match invalid.rule {
        Rule::WebhookAddress(fault) => Untested::Judged(Probed::judged(fault)),
        _ => Untested::Because(t.too_long),
    }
}

/// The results as they are shown.
fn views(subjects: Vec<Subject>, results: Vec<Vec<Probed>>, lang: Lang) -> Vec<PartView> {
    let t = texts(lang);
    let mut results = results.into_iter();
    let view = |(index, subject): (usize, Subject)| {
        let (note, probed) = match subject.target {
            Ok(_) => (None, results.next().unwrap_or_default()),
            Err(Untested::Because(text)) => (Some(text), Vec::new()),
            Err(Untested::Judged(probed)) => (None, vec![probed]),
        };
        let requests = probed.iter().enumerate();
        let right_accepted = probed.first().is_some_and(Probed::is_accepted);
        PartView {
            id: format!("part-{index}"),
            heading: heading(subject.part, t),
            shown: subject.shown,
            note,
            requests: requests
                .map(|(place, probed)| request_view((subject.part, place), probed, right_accepted, lang))
                .collect(),
        }
    };
    subjects.into_iter().enumerate().map(view).collect()
}

/// `right_accepted`: whether the first request, a webhook message with a right signature, was accepted.
fn request_view(
    (part, place): (Part, usize),
    probed: &Probed,
    right_accepted: bool,
    lang: Lang,
) -> RequestView {
    let t = texts(lang);
    let (name, verdict) = match (part, place) {
        (Part::Webhook, 0) => (t.good_message, right_verdict(probed, lang)),
        (Part::Webhook, _) => (t.bad_message, wrong_verdict(probed, right_accepted, lang)),
        (Part::Redirect, _) => (t.get, redirect_verdict(probed, lang)),
        (Part::Socket, _) => (t.get, socket_verdict(probed, lang)),
    };
    RequestView {
        name,
        steps: probed.steps.iter().map(|step| step_row(step, probed, &verdict, lang)).collect(),
        verdict,
    }
}
