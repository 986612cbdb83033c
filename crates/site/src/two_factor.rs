//! `/account/two-factor`: the second step of the sign-in: turning it on and off, and recovery codes.

use askama::Template;
use axum::response::Response;
use domain::application::percent_encode;
use domain::totp::TotpSecret;
use qrcodegen::{QrCode, QrCodeEcc};
use service::accounts::AccountDetails;
use web::pages::{Area, FieldErrors, Flash, Lang, Moment, Shell, filters};
use web::{Failure, FormTarget, PageAnswer, Person, PostedBy};

use crate::account::{confirmation, guessed};
use crate::confirmed::Confirmed;
use crate::forms::{ConfirmWords, at_field, confirm_words};

/// The page.
pub(crate) const TWO_FACTOR: &str = "/account/two-factor";
/// The form that begins with a new secret.
pub(crate) const BEGIN: &str = "/account/two-factor/begin";
/// The form that turns the second step on.
pub(crate) const CONFIRM: &str = "/account/two-factor/confirm";
/// The form that makes new recovery codes.
pub(crate) const CODES: &str = "/account/two-factor/codes";
/// The form that turns the second step off.
pub(crate) const OFF: &str = "/account/two-factor/off";

/// What an authenticator app reads.
struct Setup {
    /// The QR code as a path of an SVG, a unit for each module.
    path: String,
    /// The width of the QR code, with its margin.
    width: i32,
    /// The same address as text.
    uri: String,
    /// The secret, in groups.
    secret: String,
}

/// The margin of a QR code, in modules.
const MARGIN: i32 = 4;

impl Setup {
    fn new(secret: &TotpSecret, issuer: &str, login: &str) -> Result<Self, service::Error> {
        let uri = secret.otpauth_uri(issuer, login);
        let too_long = |_| service::Error::Internal("an authenticator address does not fit into a QR code");
        let code = QrCode::encode_text(&uri, QrCodeEcc::Medium).map_err(too_long)?;
        let mut path = String::new();
        for (x, y) in (0..code.size()).flat_map(|y| (0..code.size()).map(move |x| (x, y))) {
            if code.get_module(x, y) {
                path.push_str(&format!("M{} {}h1v1h-1z", x + MARGIN, y + MARGIN));
            }
        }
        let text = secret.expose();
        let groups: Vec<&str> = (0..text.len()).step_by(4).filter_map(|at| text.get(at..at + 4)).collect();
        Ok(Self { path, width: code.size() + 2 * MARGIN, uri, secret: groups.join(" ") })
    }
}

#[derive(Template)]
#[template(path = "site/two_factor.html")]
struct TwoFactorPage<'a> {
    shell: Shell<'a>,
    t: &'static TwoFactorTexts,
    account: AccountDetails,
    /// Since when it is on.
    since: Option<Moment>,
    setup: Option<Setup>,
    begin: FormTarget,
    confirm: FormTarget,
    codes: FormTarget,
    off: FormTarget,
    c: &'static ConfirmWords,
    here: &'static str,
    /// New recovery codes, shown once.
    new_codes: Vec<String>,
    /// What is wrong with the form that confirms or renews.
    errors: FieldErrors,
    /// What is wrong with the form that turns it off.
    off_errors: FieldErrors,
}

impl TwoFactorPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

impl<'a> TwoFactorPage<'a> {
    async fn new(person: &'a Person) -> Result<Self, service::Error> {
        let visitor = &person.visitor;
        let service = visitor.web().service();
        let account = service.account(&person.channel_id).await?;
        let setup = match service.unconfirmed_two_factor(&person.channel_id, visitor.browser_token()).await? {
            Some(secret) => Some(Setup::new(&secret, &visitor.web().config().brand.name, &account.login)?),
            None => None,
        };
        Ok(Self {
            t: texts(visitor.lang()),
            shell: visitor.shell(Area::Elsewhere),
            since: account.two_factor_since.map(|since| Moment::of(since, visitor.now(), visitor.lang())),
            account,
            setup,
            begin: visitor.form(BEGIN),
            confirm: visitor.form(CONFIRM),
            codes: visitor.form(CODES),
            off: visitor.form(OFF),
            c: confirm_words(visitor.lang()),
            here: TWO_FACTOR,
            new_codes: Vec::new(),
            errors: FieldErrors::default(),
            off_errors: FieldErrors::default(),
        })
    }
}

impl TwoFactorPage<'_> {
    /// The name of the file with the recovery codes, which says what they open.
    fn file_name(&self) -> String {
        format!("{} {} recovery codes.txt", self.shell.brand.name, self.account.login)
    }

    /// The file: the service, the account, the codes. It is percent-encoded.
    fn file(&self) -> String {
        let (service, t, login) = (&self.shell.brand.name, self.t, &self.account.login);
        let codes = self.new_codes.join("\n");
        let text = format!("{service}\n{}: {login}\n{}:\n\n{codes}\n", t.account, t.codes);
        let mut encoded = String::new();
        percent_encode(&text, &mut encoded);
        encoded
    }
}

/// `GET /account/two-factor`.
pub(crate) async fn show(person: Person) -> PageAnswer {
    person.visitor.page(&TwoFactorPage::new(&person).await?)
}

/// `POST /account/two-factor/begin`: a new secret for the app.
pub(crate) async fn begin(Confirmed(PostedBy { person, .. }): Confirmed<PostedBy>) -> PageAnswer {
    let visitor = &person.visitor;
    visitor.web().service().begin_two_factor(&person.channel_id, visitor.browser_token()).await?;
    Ok(visitor.redirect(TWO_FACTOR, None))
}

/// `POST /account/two-factor/confirm`: turns it on, and shows the recovery codes.
pub(crate) async fn confirm(PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let visitor = &person.visitor;
    let (service, lang) = (visitor.service(), visitor.lang());
    let (proof, code) = (confirmation(&person, &fields), fields.text("code"));
    let confirmed = service.confirm_two_factor(&person.channel_id, proof, code, lang.into());
    with_codes(&person, guessed(&person, confirmed).await).await
}

/// `POST /account/two-factor/codes`: new recovery codes.
pub(crate) async fn renew(PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let service = person.visitor.service();
    let renewed = service.renew_recovery_codes(
        &person.channel_id,
        confirmation(&person, &fields),
        person.visitor.lang().into(),
    );
    with_codes(&person, guessed(&person, renewed).await).await
}

/// `POST /account/two-factor/off`.
pub(crate) async fn turn_off(PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let visitor = &person.visitor;
    let (service, lang) = (visitor.service(), visitor.lang());
    let (proof, code) = (confirmation(&person, &fields), fields.text("code"));
    let done = service.turn_two_factor_off(&person.channel_id, proof, code, lang.into());
    match guessed(&person, done).await {
        Ok(()) => Ok(visitor.redirect(TWO_FACTOR, Some(Flash::TwoFactorOff))),
        Err(error) => {
            let off_errors = at_field(error, lang)?;
            visitor.form_again(&TwoFactorPage { off_errors, ..TwoFactorPage::new(&person).await? })
        }
    }
}

async fn with_codes(
    person: &Person,
    codes: Result<Vec<domain::totp::RecoveryCode>, service::Error>,
) -> Result<Response, Failure> {
    let visitor = &person.visitor;
    match codes {
        Ok(codes) => {
            let new_codes = codes.iter().map(|code| code.expose().to_owned()).collect();
            visitor.page(&TwoFactorPage { new_codes, ..TwoFactorPage::new(person).await? })
        }
        Err(error) => {
            let errors = at_field(error, visitor.lang())?;
            visitor.form_again(&TwoFactorPage { errors, ..TwoFactorPage::new(person).await? })
        }
    }
}

struct TwoFactorTexts {
    title: &'static str,
    lead: &'static str,
    off_lead: &'static str,
    begin: &'static str,
    setup: &'static str,
    setup_lead: &'static str,
    qr: &'static str,
    by_hand: &'static str,
    app_link: &'static str,
    code: &'static str,
    code_hint: &'static str,
    password: &'static str,
    confirm: &'static str,
    restart: &'static str,
    on: &'static str,
    on_since: &'static str,
    codes: &'static str,
    codes_left: &'static str,
    codes_once: &'static str,
    download: &'static str,
    account: &'static str,
    renew: &'static str,
    turn_off: &'static str,
    off_code_hint: &'static str,
    back: &'static str,
}

fn texts(lang: Lang) -> &'static TwoFactorTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: TwoFactorTexts = TwoFactorTexts {
    title: "2단계 인증",
    lead: "비밀번호를 알아낸 사람도 내 인증 앱의 코드 없이는 로그인할 수 없습니다.",
    off_lead: "꺼져 있습니다. 휴대전화의 인증 앱이 필요합니다.",
    begin: "설정 시작",
    setup: "인증 앱에 추가",
    setup_lead: "인증 앱으로 QR 코드를 찍거나 아래 키를 입력한 뒤, 앱에 표시된 코드를 입력해 주세요.",
    qr: "인증 앱이 읽는 QR 코드. 같은 내용이 아래에 글자로 있습니다.",
    by_hand: "직접 입력할 키",
    app_link: "이 기기의 인증 앱에서 열기",
    code: "인증 코드",
    code_hint: "앱에 지금 표시된 여섯 자리 숫자",
    password: "현재 비밀번호",
    confirm: "켜기",
    restart: "새 키로 다시 시작",
    on: "켜짐",
    on_since: "켠 날:",
    codes: "복구 코드",
    codes_left: "남은 복구 코드:",
    download: "파일로 저장",
    account: "계정",
    codes_once: "지금 저장해 두세요. 다시 볼 수 없습니다. 기기가 없을 때 코드 하나로 한 번 로그인할 수 있습니다.",
    renew: "복구 코드 새로 만들기",
    turn_off: "2단계 인증 끄기",
    off_code_hint: "앱에 표시된 코드나 복구 코드",
    back: "내 계정으로",
};

const EN: TwoFactorTexts = TwoFactorTexts {
    title: "Two-factor authentication",
    lead: "A stolen password is not enough to sign in: a code of your authenticator app is needed too.",
    off_lead: "It is off. You need an authenticator app on your phone.",
    begin: "Set it up",
    setup: "Add it to your app",
    setup_lead: "Scan the QR code with your authenticator app, or type the key. Then enter the code that the app shows.",
    qr: "The QR code for your authenticator app. The same stands below as text.",
    by_hand: "The key to type",
    app_link: "Open it in an app on this device",
    code: "Code",
    code_hint: "The six digits that the app shows now",
    password: "Current password",
    confirm: "Turn it on",
    restart: "Begin again with a new key",
    on: "On",
    on_since: "Since:",
    codes: "Recovery codes",
    codes_left: "Recovery codes left:",
    download: "Save as a file",
    account: "Account",
    codes_once: "Keep them now. They are not shown again. Without your device, each of them signs you in once.",
    renew: "Make new recovery codes",
    turn_off: "Turn it off",
    off_code_hint: "The code that the app shows, or a recovery code",
    back: "Your account",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_qr_code_has_its_finder_patterns_and_a_margin() {
        let secret = TotpSecret::generate([7; 20]);
        let setup = Setup::new(&secret, "하늘 방송국", &"x".repeat(512)).expect("it fits");
        assert!(setup.path.starts_with("M4 4h1v1h-1zM5 4h1v1h-1z"), "{}", &setup.path[..40]);
        assert!(setup.width > 21 + 2 * MARGIN);
        assert!(setup.uri.starts_with("otpauth://totp/"));
        assert_eq!(setup.secret.replace(' ', ""), secret.expose());
    }
}
