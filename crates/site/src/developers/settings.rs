//! `/developers/applications/{clientId}/settings`: name, addresses and logo of an application.

use askama::Template;
use domain::application::Presentation;
use domain::member::MemberRole;
use domain::picture::Picture;
use domain::{Invalid, Profile, Rule};
use service::owned_applications::DeveloperApplication;
use service::registration::ApplicationSettings;
use web::pages::{Area, FieldErrors, Flash, Lang, Shell, filters};
use web::{FormFields, FormTarget, PageAnswer, PathId, Person, PostedBy};

use super::access::living_application;
use super::frame::{AppFrame, AppTab, address};
use super::register::{optional_url, redirect_uris};
use crate::forms::at_field;

/// The end of the page's path.
const END: &str = "/settings";

/// What the fields hold.
struct ShownSettings {
    name: String,
    redirect_uris: String,
    homepage: String,
    terms: String,
    privacy: String,
    profile: String,
}

impl ShownSettings {
    fn of(application: &DeveloperApplication) -> Self {
        let app = &application.details.life.application;
        let Presentation { homepage, terms, privacy, .. } = &app.presentation;
        let url = |url: &Option<domain::https_url::HttpsUrl>| {
            url.as_ref().map_or_else(String::new, |url| url.as_str().to_owned())
        };
        Self {
            name: app.name.clone(),
            redirect_uris: application.details.redirect_uris.join("\n"),
            homepage: url(homepage),
            terms: url(terms),
            privacy: url(privacy),
            profile: app.profile.map(Profile::name).unwrap_or_default().to_owned(),
        }
    }

    fn posted(fields: &FormFields) -> Self {
        let text = |name| fields.text(name).to_owned();
        Self {
            name: text("name"),
            redirect_uris: text("redirectUris"),
            homepage: text("homepageUrl"),
            terms: text("termsUrl"),
            privacy: text("privacyUrl"),
            profile: text("profile"),
        }
    }
}

#[derive(Template)]
#[template(path = "site/developers/settings.html")]
struct SettingsPage<'a> {
    shell: Shell<'a>,
    frame: AppFrame<'a>,
    t: &'static SettingsTexts,
    form: FormTarget,
    logo_form: FormTarget,
    shown: ShownSettings,
    profiles: [(&'static str, &'static str); 3],
    errors: FieldErrors,
}

impl SettingsPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

impl<'a> SettingsPage<'a> {
    fn new(person: &'a Person, application: &'a DeveloperApplication) -> Self {
        let (visitor, lang) = (&person.visitor, person.visitor.lang());
        let client_id = application.details.life.application.client_id.as_str();
        let t = texts(lang);
        Self {
            shell: visitor.shell(Area::Developers),
            frame: AppFrame::new(visitor, application, AppTab::Settings),
            t,
            form: visitor.form(address(client_id, END)),
            logo_form: visitor.form(address(client_id, "/logo")),
            shown: ShownSettings::of(application),
            profiles: [
                ("", t.profile_default),
                (Profile::Documented.name(), t.profile_documented),
                (Profile::Observed.name(), t.profile_observed),
            ],
            errors: FieldErrors::default(),
        }
    }
}

/// `GET …/settings`.
pub(super) async fn show(PathId(id): PathId, person: Person) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    person.visitor.page(&SettingsPage::new(&person, &application))
}

/// `POST …/settings`.
pub(super) async fn submit(PathId(id): PathId, PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let (visitor, lang) = (&person.visitor, person.visitor.lang());
    let client_id = &application.details.life.application.client_id;
    let mut errors = FieldErrors::default();
    let settings = read(&fields, &mut errors, lang);
    if errors.is_empty() {
        let service = person.service();
        match service.change_application(&person.channel_id, client_id, settings).await {
            Ok(()) => {
                return Ok(visitor.redirect(&address(client_id.as_str(), END), Some(Flash::Saved)));
            }
            Err(error) => errors = at_field(error, lang)?,
        }
    }
    let shown = ShownSettings::posted(&fields);
    visitor.form_again(&SettingsPage { shown, errors, ..SettingsPage::new(&person, &application) })
}

fn read(fields: &FormFields, errors: &mut FieldErrors, lang: Lang) -> ApplicationSettings {
    let wrong_profile = || Invalid::new("profile", Rule::OneOf(&["documented", "observed"]));
    let profile = match fields.text("profile") {
        "" => None,
        name => errors.keep(Profile::from_name(name).ok_or_else(wrong_profile), lang),
    };
    let homepage = optional_url("homepageUrl", fields, errors, lang);
    let terms = optional_url("termsUrl", fields, errors, lang);
    let privacy = optional_url("privacyUrl", fields, errors, lang);
    ApplicationSettings {
        name: fields.text("name").trim().to_owned(),
        presentation: Presentation { homepage, terms, privacy, logo_version: None },
        redirect_uris: redirect_uris(fields, errors, lang),
        profile,
    }
}

/// `POST …/logo`: a new logo, or none.
pub(super) async fn upload(PathId(id): PathId, PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let visitor = &person.visitor;
    let client_id = &application.details.life.application.client_id;
    let picture = match fields.is_checked("remove") {
        true => Ok(None),
        false => Picture::of_bytes("logo", fields.file("logo").unwrap_or_default()).map(Some),
    };
    match picture {
        Ok(logo) => {
            person.service().change_logo(&person.channel_id, client_id, logo).await?;
            Ok(visitor.redirect(&address(client_id.as_str(), END), Some(Flash::Saved)))
        }
        Err(_) => {
            let mut errors = FieldErrors::default();
            errors.add("logo", texts(visitor.lang()).logo_wrong);
            visitor.form_again(&SettingsPage { errors, ..SettingsPage::new(&person, &application) })
        }
    }
}

struct SettingsTexts {
    title: &'static str,
    about: &'static str,
    name: &'static str,
    name_hint: &'static str,
    redirect_uris: &'static str,
    redirect_uris_hint: &'static str,
    homepage: &'static str,
    terms: &'static str,
    privacy: &'static str,
    url_hint: &'static str,
    profile: &'static str,
    profile_hint: &'static str,
    profile_default: &'static str,
    profile_documented: &'static str,
    profile_observed: &'static str,
    save: &'static str,
    logo: &'static str,
    logo_hint: &'static str,
    logo_wrong: &'static str,
    upload: &'static str,
    remove: &'static str,
    remove_question: &'static str,
}

fn texts(lang: Lang) -> &'static SettingsTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: SettingsTexts = SettingsTexts {
    title: "앱 설정",
    about: "기본 정보",
    name: "앱 이름",
    name_hint: "접근을 허용할지 묻는 화면에 표시됩니다.",
    redirect_uris: "리디렉션 주소",
    redirect_uris_hint: "한 줄에 하나씩, 20개까지. https 주소여야 하며, 127.0.0.1과 localhost는 http도 됩니다.",
    homepage: "홈페이지 (선택)",
    terms: "이용약관 (선택)",
    privacy: "개인정보 처리방침 (선택)",
    url_hint: "https로 시작하는 주소. 허용 화면에 링크로 표시됩니다.",
    profile: "응답 형식",
    profile_hint: "documented는 문서대로, observed는 기존 클라이언트 라이브러리가 기대하는 대로 응답합니다.",
    profile_default: "서버 기본값",
    profile_documented: "documented",
    profile_observed: "observed",
    save: "저장",
    logo: "로고",
    logo_hint: "32 KiB 이하의 PNG, JPEG, WebP 그림. 정사각형이 가장 보기 좋습니다.",
    logo_wrong: "32 KiB 이하의 PNG, JPEG, WebP 그림이어야 합니다.",
    upload: "로고 올리기",
    remove: "로고 지우기",
    remove_question: "로고 대신 앱 이름의 첫 글자가 표시됩니다.",
};

const EN: SettingsTexts = SettingsTexts {
    title: "Settings of the app",
    about: "About the app",
    name: "Name of the app",
    name_hint: "People see it when they are asked to allow access.",
    redirect_uris: "Redirect addresses",
    redirect_uris_hint: "One on each line, up to 20. They begin with https; 127.0.0.1 and localhost may use http.",
    homepage: "Home page (optional)",
    terms: "Terms of use (optional)",
    privacy: "Privacy policy (optional)",
    url_hint: "An address that begins with https. It is a link where people are asked to allow access.",
    profile: "Form of answers",
    profile_hint: "documented follows the documentation, observed what existing client libraries expect.",
    profile_default: "The server’s",
    profile_documented: "documented",
    profile_observed: "observed",
    save: "Save",
    logo: "Logo",
    logo_hint: "A PNG, JPEG or WebP picture of at most 32 KiB. A square looks best.",
    logo_wrong: "This must be a PNG, JPEG or WebP picture of at most 32 KiB.",
    upload: "Upload the logo",
    remove: "Remove the logo",
    remove_question: "People see the first letter of the name in its place.",
};
