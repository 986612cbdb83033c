//! `/developers/applications/{clientId}/leak`: what a developer does when a secret or tokens leaked.

use askama::Template;
use domain::member::MemberRole;
use service::owned_applications::DeveloperApplication;
use web::pages::{Area, Flash, Lang, Shell, filters};
use web::{FormTarget, PageAnswer, PathId, Person, PostedBy};

use super::access::living_application;
use super::frame::{AppFrame, AppTab, address};
use crate::affected::affected_sentence;

/// The end of the page's path.
pub(super) const END: &str = "/leak";

#[derive(Template)]
#[template(path = "site/developers/leak.html")]
struct LeakPage<'a> {
    shell: Shell<'a>,
    frame: AppFrame<'a>,
    t: &'static LeakTexts,
    /// Whom it affects.
    affected: String,
    secrets: usize,
    secrets_href: String,
    form: FormTarget,
}

impl LeakPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

impl<'a> LeakPage<'a> {
    async fn new(person: &'a Person, application: &'a DeveloperApplication) -> Result<Self, service::Error> {
        let (visitor, lang) = (&person.visitor, person.visitor.lang());
        let client_id = &application.details.life.application.client_id;
        let service = visitor.web().service();
        Ok(Self {
            shell: visitor.shell(Area::Developers),
            frame: AppFrame::new(visitor, application, AppTab::Secrets),
            t: texts(lang),
            affected: affected_sentence(service.affected_by(client_id).await?, lang),
            secrets: service.secrets(client_id).await?.len(),
            secrets_href: address(client_id.as_str(), "/secrets"),
            form: visitor.form(address(client_id.as_str(), END)),
        })
    }
}

/// `GET …/leak`.
pub(super) async fn show(PathId(id): PathId, person: Person) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    person.visitor.page(&LeakPage::new(&person, &application).await?)
}

/// `POST …/leak`: ends all tokens, or revokes all secrets.
pub(super) async fn end(PathId(id): PathId, PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let (visitor, service) = (&person.visitor, person.service());
    let client_id = &application.details.life.application.client_id;
    let flash = match fields.text("end") {
        "tokens" => {
            service.end_application_tokens(client_id).await?;
            Some(Flash::TokensEnded)
        }
        "secrets" => {
            service.delete_all_secrets(client_id).await?;
            Some(Flash::SecretsRevoked)
        }
        _ => None,
    };
    Ok(visitor.redirect(&address(client_id.as_str(), "/secrets"), flash))
}

struct LeakTexts {
    title: &'static str,
    lead: &'static str,
    one: &'static str,
    one_about: &'static str,
    one_link: &'static str,
    tokens: &'static str,
    tokens_about: &'static str,
    tokens_question: &'static str,
    secrets: &'static str,
    secrets_about: &'static str,
    secrets_question: &'static str,
}

fn texts(lang: Lang) -> &'static LeakTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: LeakTexts = LeakTexts {
    title: "유출 대응",
    lead: "시크릿이나 토큰이 유출되었을 때 여기서 끊습니다.",
    one: "유출된 시크릿만 바꾸기",
    one_about: "새 시크릿을 만들어 앱에 넣은 뒤, 유출된 시크릿을 폐기하세요. 그 시크릿으로 받은 토큰은 남으므로 아래에서 함께 끝내세요.",
    one_link: "시크릿 목록으로",
    tokens: "모든 사람의 토큰 끝내기",
    tokens_about: "모든 토큰과 코드, 세션이 바로 끝나고 다시 살아나지 않습니다. 동의는 남아 있어, 앱에 다시 로그인하면 새 토큰을 받습니다.",
    tokens_question: "모두 다시 로그인해야 합니다. 되돌릴 수 없습니다.",
    secrets: "시크릿 모두 폐기",
    secrets_about: "모든 시크릿이 바로 거부되고, 그것으로 연 세션이 끝납니다. 새 시크릿을 만들 때까지 앱은 토큰을 받거나 갱신할 수 없습니다.",
    secrets_question: "앱이 바로 멈출 수 있습니다. 되돌릴 수 없습니다.",
};

const EN: LeakTexts = LeakTexts {
    title: "After a leak",
    lead: "Cut off whoever has a secret or tokens of this app.",
    one: "Replace one secret",
    one_about: "Create a new secret, give it to your app, then revoke the leaked one. Tokens that were issued with it stay: end those below.",
    one_link: "To the secrets",
    tokens: "End all user tokens",
    tokens_about: "All tokens, codes and sessions end at once, and nothing revives them. Consents stay: with the next sign-in the app gets new tokens.",
    tokens_question: "Everybody has to sign in to the app again. This cannot be undone.",
    secrets: "Revoke all secrets",
    secrets_about: "All secrets are refused at once, and the sessions that they opened end. Until you make a new one, the app can neither get nor refresh tokens.",
    secrets_question: "The app may stop working at once. This cannot be undone.",
};
