//! `/developers/applications/{clientId}/sessions`: the sockets of an application.

use askama::Template;
use domain::member::MemberRole;
use domain::refusal::Cap;
use domain::session::{SessionDetails, SessionOwner};
use service::SessionFilter;
use service::session_details::SessionDetailsPage;
use web::pages::{Area, Shell, filters};
use web::{PageAnswer, PathId, Person};

use super::access::{is_cursor, living_application};
use super::frame::{AppFrame, AppTab, address};
use super::session_face::{SessionFace, context_of};
use super::session_texts::{SessionTexts, session_texts};

/// The end of the page's path.
const END: &str = "/sessions";
/// The value of `state` that lists the sessions that have ended.
const ENDED: &str = "ended";
/// Sessions on one page.
const PAGE_SIZE: i64 = 20;
/// Ended sessions below the connected ones.
const ENDED_SHOWN: i64 = 5;

#[derive(Template)]
#[template(path = "site/developers/sessions.html")]
struct AppSessionsPage<'a> {
    shell: Shell<'a>,
    frame: AppFrame<'a>,
    t: &'static SessionTexts,
    /// Whether the page lists the sessions that have ended, and nothing else.
    is_of_ended: bool,
    /// The connected sessions with client authentication, and how many there may be.
    client: (i64, i64),
    user_max: i64,
    events_max: i64,
    connected: Vec<SessionFace>,
    ended: Vec<SessionFace>,
    here: String,
    all_ended: String,
    first: Option<String>,
    next: Option<String>,
}

impl AppSessionsPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

/// `GET …/sessions?state=ended&next=`.
pub(super) async fn show(PathId(id): PathId, person: Person) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Viewer).await?;
    let (visitor, service) = (&person.visitor, person.visitor.web().service());
    let client_id = &application.details.life.application.client_id;
    let here = address(client_id.as_str(), END);
    let all_ended = format!("{here}?state={ENDED}");
    let is_of_ended = visitor.request().parameter("state").as_deref() == Some(ENDED);
    let next = visitor.request().parameter("next");
    let is_first = next.is_none();
    let filter = |connected| SessionFilter {
        client_id: Some(client_id.clone()),
        connected: Some(connected),
        ..SessionFilter::default()
    };
    let list = if is_of_ended { &all_ended } else { &here };
    let page = match service.list_sessions(filter(!is_of_ended), PAGE_SIZE, next.as_deref()).await {
        Err(error) if is_cursor(&error.refusal()) => return Ok(visitor.redirect(list, None)),
        page => page?,
    };
    let recent = if is_of_ended || !is_first {
        SessionDetailsPage { sessions: Vec::new(), next: None }
    } else {
        service.list_sessions(filter(false), ENDED_SHOWN, None).await?
    };
    let itself = SessionOwner::Client { client_id: client_id.clone() };
    let shown: Vec<&SessionDetails> = page.sessions.iter().chain(&recent.sessions).collect();
    let context = context_of(visitor, &shown, &itself).await?;
    let mut faces = Vec::with_capacity(shown.len());
    for details in shown {
        faces.push(SessionFace::of(visitor, details, &context).await);
    }
    let (connected, ended) = faces.into_iter().partition(|face| face.ended.is_none());
    let link = |next| {
        let sign = if is_of_ended { '&' } else { '?' };
        format!("{list}{sign}next={next}")
    };
    visitor.page(&AppSessionsPage {
        shell: visitor.shell(Area::Developers),
        frame: AppFrame::new(visitor, &application, AppTab::Sessions),
        t: session_texts(visitor.lang()),
        is_of_ended,
        client: (context.connected_of(&itself), itself.sessions_max()),
        user_max: Cap::UserSessions.limit(),
        events_max: Cap::Subscriptions.limit(),
        connected,
        ended,
        first: (!is_first).then(|| list.clone()),
        next: page.next.map(link),
        here,
        all_ended,
    })
}
