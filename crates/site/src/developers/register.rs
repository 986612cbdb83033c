//! `/developers/register`: a new application, whose secret is shown once.

use askama::Template;
use domain::OrganizationId;
use domain::application::{Presentation, RedirectUri};
use domain::distinct::distinct_up_to;
use domain::https_url::HttpsUrl;
use domain::limits::REDIRECT_URIS_MAX;
use domain::member::MemberRole;
use domain::secret::SecretHash;
use service::idempotency::IdempotencyKey;
use service::registration::NewApplication;
use web::pages::{Area, FieldErrors, Lang, Shell, filters};
use web::{FormFields, FormTarget, PageAnswer, Person, PostedBy, Visitor};

use super::frame::address;
use super::paths::{DEVELOPERS, REGISTER};
use crate::forms::at_field;

/// Maximum length of a quoted line, in characters.
const LINE_SHOWN_MAX: usize = 100;

#[derive(Template)]
#[template(path = "site/developers/register.html")]
struct RegisterAppPage<'a> {
    shell: Shell<'a>,
    t: &'static RegisterAppTexts,
    form: FormTarget,
    /// A name of this form, so that it takes effect once.
    once: String,
    typed_name: &'a str,
    homepage: &'a str,
    redirect_uris: &'a str,
    /// The chosen organization, or "".
    organization: &'a str,
    /// Ids and names of the person's organizations.
    organizations: Vec<(String, String)>,
    errors: FieldErrors,
    up: &'static str,
}

impl RegisterAppPage<'_> {
    fn title(&self) -> &'static str {
        self.t.heading
    }
}

impl<'a> RegisterAppPage<'a> {
    async fn new(person: &'a Person) -> Result<Self, service::Error> {
        let visitor = &person.visitor;
        let memberships = visitor.web().service().memberships(&person.channel_id).await?;
        let organizations = memberships
            .into_iter()
            .filter(|membership| membership.role >= MemberRole::Developer)
            .map(|membership| membership.organization)
            .map(|organization| (organization.organization_id.to_string(), organization.name));
        Ok(Self {
            shell: visitor.shell(Area::Developers),
            t: texts(visitor.lang()),
            form: visitor.form(REGISTER),
            once: visitor.form_id(),
            typed_name: "",
            homepage: "",
            redirect_uris: "",
            organization: "",
            organizations: organizations.collect(),
            errors: FieldErrors::default(),
            up: DEVELOPERS,
        })
    }
}

/// The page after a registration.
#[derive(Template)]
#[template(path = "site/developers/registered.html")]
struct RegisteredPage<'a> {
    shell: Shell<'a>,
    t: &'static RegisterAppTexts,
    name: &'a str,
    client_id: &'a str,
    client_secret: &'a str,
    scopes: String,
    overview: String,
}

impl RegisteredPage<'_> {
    fn title(&self) -> &'static str {
        self.t.registered
    }
}

/// `GET /developers/register`.
pub(super) async fn show(person: Person) -> PageAnswer {
    person.visitor.page(&RegisterAppPage::new(&person).await?)
}

/// `POST /developers/register`.
pub(super) async fn submit(PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let visitor = &person.visitor;
    let mut errors = FieldErrors::default();
    let new = read(visitor, &fields, &mut errors);
    let key = key(&person, "register an application", &fields);
    let registered = match errors.is_empty() {
        true => person.service().register_application(&person.channel_id, new, key).await,
        false => return again(&person, &fields, errors).await,
    };
    match registered {
        Ok((client_id, secret)) => visitor.page(&RegisteredPage {
            shell: visitor.shell(Area::Developers),
            t: texts(visitor.lang()),
            name: fields.text("name"),
            client_id: client_id.as_str(),
            client_secret: secret.expose(),
            scopes: address(client_id.as_str(), "/scopes"),
            overview: address(client_id.as_str(), ""),
        }),
        Err(error) => again(&person, &fields, at_field(error, visitor.lang())?).await,
    }
}

async fn again(person: &Person, fields: &FormFields, errors: FieldErrors) -> PageAnswer {
    person.visitor.form_again(&RegisterAppPage {
        typed_name: fields.text("name"),
        homepage: fields.text("homepageUrl"),
        redirect_uris: fields.text("redirectUris"),
        organization: fields.text("organizationId"),
        errors,
        ..RegisterAppPage::new(person).await?
    })
}

/// The key under which a form of a person takes effect once.
pub(super) fn key(person: &Person, operation: &str, fields: &FormFields) -> Option<IdempotencyKey> {
    let operation = format!("{operation} by {}", person.channel_id);
    let once = Some(fields.text("once")).filter(|once| !once.is_empty())?;
    // The same form with other fields is another one.
    let said = ["name", "homepageUrl", "redirectUris", "organizationId"].map(|field| fields.text(field));
    let key = format!("{once} {}", SecretHash::of(&said.join("\0")).as_str());
    IdempotencyKey::parse(operation, &key, "").ok()
}

fn read(visitor: &Visitor, fields: &FormFields, errors: &mut FieldErrors) -> NewApplication {
    let lang = visitor.lang();
    let organization_id = match fields.text("organizationId") {
        "" => None,
        id => errors.keep(OrganizationId::parse("organizationId", id), lang),
    };
    let homepage = optional_url("homepageUrl", fields, errors, lang);
    NewApplication {
        name: fields.text("name").trim().to_owned(),
        presentation: Presentation { homepage, ..Presentation::default() },
        redirect_uris: redirect_uris(fields, errors, lang),
        organization_id,
    }
}

/// The address in a field that may be empty.
pub(super) fn optional_url(
    field: &'static str,
    fields: &FormFields,
    errors: &mut FieldErrors,
    lang: Lang,
) -> Option<HttpsUrl> {
    match fields.text(field).trim() {
        "" => None,
        url => errors.keep(HttpsUrl::parse(field, url), lang),
    }
}

/// Redirect addresses, one on each line. The error names each wrong one.
pub(super) fn redirect_uris(fields: &FormFields, errors: &mut FieldErrors, lang: Lang) -> Vec<RedirectUri> {
    let lines = fields.text("redirectUris").lines().map(str::trim).filter(|line| !line.is_empty());
    let (mut addresses, mut wrong) = (Vec::new(), Vec::new());
    for line in distinct_up_to(REDIRECT_URIS_MAX, lines) {
        match RedirectUri::parse(line) {
            Ok(address) => addresses.push(address),
            Err(invalid) => wrong.push(about(line, &invalid.rule.text(lang.into()), lang)),
        }
    }
    if !wrong.is_empty() {
        errors.add("redirectUris", wrong.join("\n"));
    }
    addresses
}

/// A sentence about a line, which is quoted.
fn about(line: &str, rule: &str, lang: Lang) -> String {
    let more = if line.chars().nth(LINE_SHOWN_MAX).is_some() { "…" } else { "" };
    let shown: String = line.chars().take(LINE_SHOWN_MAX).collect();
    match lang {
        Lang::Ko => format!("‘{shown}{more}’: {rule}"),
        Lang::En => format!("“{shown}{more}” {rule}"),
    }
}

struct RegisterAppTexts {
    heading: &'static str,
    lead: &'static str,
    name: &'static str,
    name_hint: &'static str,
    homepage: &'static str,
    homepage_hint: &'static str,
    redirect_uris: &'static str,
    redirect_uris_hint: &'static str,
    owner: &'static str,
    owner_hint: &'static str,
    me: &'static str,
    submit: &'static str,
    cancel: &'static str,
    registered: &'static str,
    registered_lead: &'static str,
    client_id: &'static str,
    client_id_note: &'static str,
    secret: &'static str,
    secret_note: &'static str,
    to_scopes: &'static str,
    to_overview: &'static str,
}

fn texts(lang: Lang) -> &'static RegisterAppTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: RegisterAppTexts = RegisterAppTexts {
    heading: "앱 등록",
    lead: "등록하면 바로 클라이언트 ID와 시크릿을 받습니다. 나머지는 나중에 바꿀 수 있습니다.",
    name: "앱 이름",
    name_hint: "접근을 허용할지 묻는 화면에 표시됩니다.",
    homepage: "홈페이지 (선택)",
    homepage_hint: "https로 시작하는 주소",
    redirect_uris: "리디렉션 주소 (선택)",
    redirect_uris_hint: "한 줄에 하나씩, 20개까지. https 주소여야 하며, 127.0.0.1과 localhost는 http도 됩니다.",
    owner: "소유자",
    owner_hint: "조직의 앱은 조직 구성원이 함께 관리합니다.",
    me: "나",
    submit: "앱 등록",
    cancel: "취소",
    registered: "앱을 등록했습니다",
    registered_lead: "시크릿은 지금 한 번만 표시됩니다. 안전한 곳에 저장해 주세요.",
    client_id: "클라이언트 ID",
    client_id_note: "공개해도 되는 값입니다.",
    secret: "클라이언트 시크릿",
    secret_note: "이 페이지를 벗어나면 다시 볼 수 없습니다. 잃어버리면 새로 만들어 주세요.",
    to_scopes: "권한 선택하기",
    to_overview: "앱 보기",
};

const EN: RegisterAppTexts = RegisterAppTexts {
    heading: "Register an app",
    lead: "You get a client id and a secret at once. Everything else can be changed later.",
    name: "Name of the app",
    name_hint: "People see it when they are asked to allow access.",
    homepage: "Home page (optional)",
    homepage_hint: "An address that begins with https",
    redirect_uris: "Redirect addresses (optional)",
    redirect_uris_hint: "One on each line, up to 20. They begin with https; 127.0.0.1 and localhost may use http.",
    owner: "Owner",
    owner_hint: "The members of an organization manage its apps together.",
    me: "Me",
    submit: "Register the app",
    cancel: "Cancel",
    registered: "The app is registered",
    registered_lead: "The secret is shown this once. Store it in a safe place.",
    client_id: "Client id",
    client_id_note: "It is no secret.",
    secret: "Client secret",
    secret_note: "You cannot see it again after this page. If you lose it, make another one.",
    to_scopes: "Choose scopes",
    to_overview: "See the app",
};
