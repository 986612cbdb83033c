//! `/developers/applications/{clientId}/sessions/{sessionKey}`: one session of an application, and its end.

use askama::Template;
use domain::member::MemberRole;
use domain::refusal::Resource;
use domain::session::SessionDetails;
use domain::{Refusal, SessionKey};
use service::owned_applications::DeveloperApplication;
use web::pages::{Area, Flash, Shell, filters};
use web::{Failure, FormTarget, PageAnswer, PathIds, Person, PostedBy};

use super::access::living_application;
use super::frame::{AppFrame, AppTab, address};
use super::session_face::{SessionFace, context_of};
use super::session_texts::{SessionTexts, session_texts};

#[derive(Template)]
#[template(path = "site/developers/session.html")]
struct AppSessionPage<'a> {
    shell: Shell<'a>,
    frame: AppFrame<'a>,
    t: &'static SessionTexts,
    session: SessionFace,
    /// Ends the session; `None` where it has ended, or the person only sees.
    form: Option<FormTarget>,
    back: String,
}

impl AppSessionPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

/// `GET …/sessions/{sessionKey}`.
pub(super) async fn show(PathIds(id, key): PathIds, person: Person) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Viewer).await?;
    let details = find(&person, &application, &key).await?;
    let visitor = &person.visitor;
    let may_end = application.role >= MemberRole::Developer && details.disconnected_at.is_none();
    let context = context_of(visitor, &[&details], &details.owner).await?;
    visitor.page(&AppSessionPage {
        shell: visitor.shell(Area::Developers),
        frame: AppFrame::new(visitor, &application, AppTab::Sessions),
        t: session_texts(visitor.lang()),
        session: SessionFace::of(visitor, &details, &context).await,
        form: may_end.then(|| visitor.form(visitor.request().path())),
        back: address(details.owner.client_id().as_str(), "/sessions"),
    })
}

/// `POST …/sessions/{sessionKey}`: ends the session. Its socket is closed with the reason `evicted`.
pub(super) async fn end(PathIds(id, key): PathIds, PostedBy { person, .. }: PostedBy) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let details = find(&person, &application, &key).await?;
    let visitor = &person.visitor;
    let client_id = details.owner.client_id();
    person.service().end_session_of_application(client_id, &details.session_key).await?;
    Ok(visitor.redirect(&address(client_id.as_str(), "/sessions"), Some(Flash::SessionEnded)))
}

async fn find(
    person: &Person,
    application: &DeveloperApplication,
    key: &str,
) -> Result<SessionDetails, Failure> {
    let key = SessionKey::parse("sessionKey", key).map_err(|_| Refusal::NotFound(Resource::Session))?;
    let client_id = &application.details.life.application.client_id;
    Ok(person.visitor.web().service().session_of_application(client_id, &key).await?)
}
