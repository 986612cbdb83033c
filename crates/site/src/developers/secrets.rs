//! `/developers/applications/{clientId}/secrets`: the secrets of an application. A new one is shown once.

use askama::Template;
use domain::limits::{APPLICATION_SECRETS_MAX, DAY_MS, HOUR_MS};
use domain::mail::MailKind;
use domain::member::MemberRole;
use domain::refusal::Resource;
use domain::{ApplicationSecretId, Refusal, Timestamp};
use service::application_secrets::StoredSecret;
use service::owned_applications::DeveloperApplication;
use web::pages::{Area, Flash, Lang, Moment, Shell, filters};
use web::{Failure, FormTarget, PageAnswer, PathId, PathIds, Person, PostedBy};

use super::access::living_application;
use super::frame::{AppFrame, AppTab, address};
use super::leak;
use super::register::key;
use crate::confirmed::Confirmed;

/// The end of the page's path.
const END: &str = "/secrets";
/// What a person does with a secret: the value of the button, and after how long the secret expires.
const CHOICES: [(&str, i64); 4] = [("now", 0), ("hour", HOUR_MS), ("day", DAY_MS), ("week", 7 * DAY_MS)];

struct SecretLine {
    /// `None` for a secret from before they were kept.
    last_characters: Option<String>,
    created: Moment,
    last_used: Option<Moment>,
    expires: Option<Moment>,
    href: String,
}

#[derive(Template)]
#[template(path = "site/developers/secrets.html")]
struct SecretsPage<'a> {
    shell: Shell<'a>,
    frame: AppFrame<'a>,
    t: &'static SecretTexts,
    secrets: Vec<SecretLine>,
    form: FormTarget,
    once: String,
    /// A new secret, shown once.
    made: Option<String>,
    leak: String,
    is_full: bool,
}

impl SecretsPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

impl<'a> SecretsPage<'a> {
    async fn new(person: &'a Person, application: &'a DeveloperApplication) -> Result<Self, service::Error> {
        let (visitor, lang) = (&person.visitor, person.visitor.lang());
        let client_id = &application.details.life.application.client_id;
        let secrets = visitor.web().service().secrets(client_id).await?;
        let line = |secret: &StoredSecret| SecretLine {
            href: address(client_id.as_str(), &format!("{END}/{}", secret.secret_id)),
            ..SecretLine::of(secret, visitor.now(), lang)
        };
        Ok(Self {
            shell: visitor.shell(Area::Developers),
            frame: AppFrame::new(visitor, application, AppTab::Secrets),
            t: texts(lang),
            secrets: secrets.iter().map(line).collect(),
            form: visitor.form(address(client_id.as_str(), END)),
            once: visitor.form_id(),
            made: None,
            leak: address(client_id.as_str(), leak::END),
            is_full: i64::try_from(secrets.len()).is_ok_and(|count| count >= APPLICATION_SECRETS_MAX),
        })
    }
}

impl SecretLine {
    fn of(secret: &StoredSecret, now: Timestamp, lang: Lang) -> Self {
        let moment = |at: Timestamp| Moment::of(at, now, lang);
        Self {
            last_characters: secret.last_characters.clone(),
            created: moment(secret.created_at),
            last_used: secret.last_used_at.map(moment),
            expires: secret.expires_at.map(moment),
            href: String::new(),
        }
    }
}

/// One secret, and what can be done with it.
#[derive(Template)]
#[template(path = "site/developers/secret.html")]
struct SecretPage<'a> {
    shell: Shell<'a>,
    frame: AppFrame<'a>,
    t: &'static SecretTexts,
    secret: SecretLine,
    is_last: bool,
    form: FormTarget,
    back: String,
}

impl SecretPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

/// `GET …/secrets`.
pub(super) async fn show(PathId(id): PathId, person: Person) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    person.visitor.page(&SecretsPage::new(&person, &application).await?)
}

/// `POST …/secrets`: a new secret. The others stay valid.
pub(super) async fn add(
    PathId(id): PathId,
    Confirmed(PostedBy { person, fields }): Confirmed<PostedBy>,
) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let service = person.service();
    let client_id = &application.details.life.application.client_id;
    let key = key(&person, &format!("make a secret of {client_id}"), &fields);
    let secret = match service.add_own_secret(client_id, key).await {
        Ok(secret) => secret,
        // One too many: the page says so.
        Err(error) if matches!(error.refusal(), Refusal::Invalid(_)) => {
            return person.visitor.form_again(&SecretsPage::new(&person, &application).await?);
        }
        Err(error) => return Err(error.into()),
    };
    service.notify(&person.channel_id, MailKind::ClientSecretMade, person.visitor.lang().into()).await?;
    let made = Some(secret.expose().to_owned());
    person.visitor.page(&SecretsPage { made, ..SecretsPage::new(&person, &application).await? })
}

/// `GET …/secrets/{secretId}`.
pub(super) async fn show_one(PathIds(id, secret_id): PathIds, person: Person) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let (secret, is_last) = find(&person, &application, &secret_id).await?;
    let (visitor, lang) = (&person.visitor, person.visitor.lang());
    let client_id = application.details.life.application.client_id.as_str();
    visitor.page(&SecretPage {
        shell: visitor.shell(Area::Developers),
        frame: AppFrame::new(visitor, &application, AppTab::Secrets),
        t: texts(lang),
        secret: SecretLine::of(&secret, visitor.now(), lang),
        is_last,
        form: visitor.form(visitor.request().path()),
        back: address(client_id, END),
    })
}

/// `POST …/secrets/{secretId}`: lets a secret expire, now or later, or never.
pub(super) async fn change(
    PathIds(id, secret_id): PathIds,
    PostedBy { person, fields }: PostedBy,
) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let (secret, _) = find(&person, &application, &secret_id).await?;
    let (visitor, service) = (&person.visitor, person.service());
    let client_id = &application.details.life.application.client_id;
    let list = address(client_id.as_str(), END);
    let choice = fields.text("expires");
    let span = CHOICES.into_iter().find(|(name, _)| *name == choice).map(|(_, ms)| ms);
    match span {
        Some(0) => {
            service.delete_secret(client_id, &secret.secret_id).await?;
            Ok(visitor.redirect(&list, Some(Flash::SecretRevoked)))
        }
        Some(ms) => {
            let at = visitor.now().plus_ms(ms);
            service.time_secret(client_id, &secret.secret_id, Some(at)).await?;
            Ok(visitor.redirect(&list, Some(Flash::Saved)))
        }
        None if choice == "never" => {
            service.time_secret(client_id, &secret.secret_id, None).await?;
            Ok(visitor.redirect(&list, Some(Flash::Saved)))
        }
        None => Ok(visitor.redirect(&list, None)),
    }
}

/// A secret of the application, and whether it is the only one.
async fn find(
    person: &Person,
    application: &DeveloperApplication,
    secret_id: &str,
) -> Result<(StoredSecret, bool), Failure> {
    let not_found = || Refusal::NotFound(Resource::Secret);
    let secret_id = ApplicationSecretId::parse("secretId", secret_id).map_err(|_| not_found())?;
    let client_id = &application.details.life.application.client_id;
    let secrets = person.visitor.web().service().secrets(client_id).await?;
    let is_last = secrets.len() == 1;
    let secret = secrets.into_iter().find(|secret| secret.secret_id == secret_id);
    Ok((secret.ok_or_else(not_found)?, is_last))
}

struct SecretTexts {
    title: &'static str,
    lead: &'static str,
    secret: &'static str,
    created: &'static str,
    last_used: &'static str,
    never_used: &'static str,
    expires: &'static str,
    never: &'static str,
    change: &'static str,
    make: &'static str,
    make_about: &'static str,
    full: &'static str,
    made: &'static str,
    made_note: &'static str,
    replace: &'static str,
    replace_about: &'static str,
    hour: &'static str,
    day: &'static str,
    week: &'static str,
    keep: &'static str,
    revoke: &'static str,
    revoke_about: &'static str,
    last: &'static str,
    back: &'static str,
    none: &'static str,
    leaked: &'static str,
    leaked_about: &'static str,
    unknown: &'static str,
}

fn texts(lang: Lang) -> &'static SecretTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: SecretTexts = SecretTexts {
    title: "시크릿",
    lead: "앱이 서버에 자신을 증명하는 값입니다. 서버에는 해시만 저장되므로 다시 볼 수 없습니다.",
    secret: "시크릿",
    created: "만든 날",
    last_used: "마지막 사용",
    never_used: "아직 없음",
    expires: "만료",
    never: "만료되지 않음",
    change: "바꾸기",
    make: "새 시크릿 만들기",
    make_about: "지금 쓰는 시크릿은 그대로 남습니다. 앱을 새 시크릿으로 바꾼 뒤 이전 시크릿을 만료시키세요.",
    full: "시크릿은 20개까지 만들 수 있습니다. 쓰지 않는 시크릿을 폐기해 주세요.",
    made: "새 시크릿",
    made_note: "지금 한 번만 표시됩니다. 이 페이지를 벗어나면 다시 볼 수 없습니다.",
    replace: "만료 시각 정하기",
    replace_about: "그때까지는 다른 시크릿과 함께 쓸 수 있습니다. 만료되면 이 시크릿으로 연 세션도 끝납니다.",
    hour: "1시간 뒤",
    day: "1일 뒤",
    week: "7일 뒤",
    keep: "만료되지 않게 하기",
    revoke: "지금 폐기",
    revoke_about: "폐기하면 바로 쓸 수 없게 되고, 이 시크릿으로 연 세션이 끝납니다. 되돌릴 수 없습니다.",
    last: "이 앱의 하나뿐인 시크릿입니다. 새 시크릿을 먼저 만들지 않으면 앱이 토큰을 받을 수 없습니다.",
    back: "그대로 두기",
    none: "시크릿이 없습니다. 새로 만들어야 앱이 토큰을 받을 수 있습니다.",
    leaked: "유출 대응",
    leaked_about: "시크릿이나 토큰이 유출되었다면:",
    unknown: "알 수 없음",
};

const EN: SecretTexts = SecretTexts {
    title: "Secrets",
    lead: "The app proves itself with a secret. The server stores only its hash, so nobody can see it again.",
    secret: "Secret",
    created: "Made",
    last_used: "Last used",
    never_used: "Not yet",
    expires: "Expires",
    never: "Never",
    change: "Change",
    make: "Create a new secret",
    make_about: "The current ones stay valid. Change the app to the new one, then let the old one expire.",
    full: "An app may have 20 secrets. Revoke those that you do not use.",
    made: "The new secret",
    made_note: "It is shown this once. You cannot see it again after this page.",
    replace: "Let it expire",
    replace_about: "Until then it works beside the others. When it expires, the sessions that it opened end, too.",
    hour: "In 1 hour",
    day: "In 1 day",
    week: "In 7 days",
    keep: "Let it never expire",
    revoke: "Revoke it now",
    revoke_about: "It stops working at once, and the sessions that it opened end. This cannot be undone.",
    last: "It is the only secret of this app. Without another one the app gets no tokens.",
    back: "Cancel",
    none: "There is no secret. The app gets no tokens until you make one.",
    leaked: "End tokens and secrets",
    leaked_about: "A secret or tokens leaked?",
    unknown: "unknown",
};
