//! A wrong value: the field, and the rule that the value breaks (`docs/spec/errors.md#messages`).

use std::borrow::Cow;

use crate::Language;
use crate::address_fault::AddressFault;
use crate::limits::{LOGIN_CHARS_MAX, LOGIN_CHARS_MIN};
use crate::password_fault::PasswordFault;
use crate::redirect_fault::RedirectFault;

/// One wrong value in a request. The answer is 400, and the request changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The field, spelled as the caller spells it.
    pub field: &'static str,
    /// The rule that the value breaks.
    pub rule: Rule,
}

/// A rule about the value of a field. "It" is the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// It must be there.
    Required,
    /// It must be there. The request has a field with nearly this name, in snake case.
    Misspelled {
        /// The right name.
        wanted: &'static str,
        /// The name in the request.
        given: String,
    },
    /// It must be JSON with these fields, not a form.
    NotAForm {
        /// Their names.
        fields: String,
    },
    /// It must be a JSON string.
    Text,
    /// It must not contain a NUL.
    NoNul,
    /// It must be `true` or `false`.
    Boolean,
    /// It must be a list of strings.
    TextList,
    /// It must be a list of JSON objects.
    ObjectList,
    /// It must be a JSON object.
    Object,
    /// The body must be JSON, in UTF-8, of at most 64 KiB.
    Json,
    /// It must be percent-encoded UTF-8.
    QueryEncoding,
    /// It must occur once only.
    Once,
    /// It must be an integer in this range.
    Integer {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// It must have this many characters, and not be blank or contain a NUL.
    Chars {
        /// Fewest.
        min: usize,
        /// Most.
        max: usize,
    },
    /// It must be one line, without control characters.
    OneLine,
    /// It must have this many printable ASCII characters, without spaces.
    Printable {
        /// Fewest.
        min: usize,
        /// Most.
        max: usize,
    },
    /// It must have at most this many bytes.
    Bytes {
        /// Most.
        max: usize,
    },
    /// It must have at most this many items.
    Items {
        /// Fewest.
        min: usize,
        /// Most.
        max: usize,
    },
    /// It must be one of these names.
    OneOf(&'static [&'static str]),
    /// It must be one of these numbers.
    OneOfNumbers(&'static [i64]),
    /// It must be a cursor of an earlier page of the same list.
    Cursor,
    /// Tags must be made of letters and digits, without spaces and special characters.
    Tag,
    /// It must not be given together with this other field.
    NotTogether(&'static str),
    /// It must name a category that exists.
    KnownCategory,
    /// It must name a campaign that exists.
    KnownCampaign,
    /// It must name a reward of the campaign.
    KnownReward,
    /// This channel has already claimed the reward.
    Claimed,
    /// It must be an id: 1 to 64 ASCII letters, digits, `-`, `_`, `.`.
    Id,
    /// It must name a channel that exists.
    KnownChannel,
    /// It must name another channel than that of the request.
    OtherChannel,
    /// It must be an amount in won: digits only.
    Amount,
    /// It must be an RFC 3339 date.
    Date,
    /// It must be a later date than this other field's.
    After(&'static str),
    /// It must be an `https` or `http` address.
    WebAddress,
    /// It must be an address that a sign-in may lead to.
    RedirectAddress(RedirectFault),
    /// It must be https, without user information.
    HttpsUrl,
    /// It must be a `data:` address of a PNG, JPEG or WebP picture of at most 32 KiB.
    Picture,
    /// It must be an address that a webhook may go to.
    WebhookAddress(AddressFault),
    /// It must be one of the seventeen scopes.
    KnownScope,
    /// It must name an organization that exists.
    KnownOrganization,
    /// Another application or channel has this value already.
    Taken,
    /// Only a webhook without address has a listener.
    WithoutAddress,
    /// It must be enabled.
    Enabled,
    /// It must be there together with this other field.
    Together(&'static str),
    /// Another secret of the webhook is pending.
    NoOtherPendingSecret,
    /// It must not be the secret that signs.
    NotTheSigningSecret,
    /// Either it or this other field must be there, and not both.
    EitherOr(&'static str),
    /// It must be a login: small letters, digits, `.`, `_` and `-`.
    Login,
    /// It must be an e-mail address.
    Email,
    /// It must be a password that may be chosen.
    Password(PasswordFault),
    /// It must be the current password.
    RightPassword,
    /// The account has no password, so the sign-in must be recent.
    RecentSignIn,
    /// It must be the code that the authenticator app shows now, or an unused recovery code.
    RightCode,
    /// It must be the code that the authenticator app shows now. There are no recovery codes yet.
    CurrentCode,
    /// It must be the login of the account.
    OwnLogin,
    /// The channel or application with this id is being deleted.
    BeingDeleted,
    /// Other rows of this kind still use it and must be deleted first.
    InUse(&'static str),
    /// Its owner or organization must have fewer than this many.
    Fewer {
        /// Most.
        max: i64,
    },
    /// It must leave the organization an admin.
    LastAdmin,
    /// It must name an application of a verified organization.
    VerifiedOrganization,
    /// It must not be granted already.
    NotGranted,
    /// It must be about a request that is pending.
    Pending,
    /// It must be the name of the application.
    SameName,
    /// It must be about an organization that is neither verified nor waits for that.
    Unverified,
}

impl Invalid {
    /// A wrong value of `field`.
    pub const fn new(field: &'static str, rule: Rule) -> Self {
        Self { field, rule }
    }

    /// `field` is missing. If the request has its name in snake case, the message points that out.
    pub fn missing(field: &'static str, is_there: impl Fn(&str) -> bool) -> Self {
        let snake = snake_case(field);
        let rule = match snake != field && is_there(&snake) {
            true => Rule::Misspelled { wanted: field, given: snake },
            false => Rule::Required,
        };
        Self { field, rule }
    }

    /// The message of the answer: the sentence that all wrong values share, then the field and its rule.
    pub fn message(&self, language: Language) -> String {
        let rule = self.rule.text(language);
        match language {
            Language::Korean => format!("잘못된 값을 입력했습니다. {}: {rule}", self.field),
            Language::English => format!("A wrong value was entered. {}: {rule}", self.field),
        }
    }
}

impl Rule {
    /// The value of `rule` in a reason.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Misspelled { .. } => "misspelled",
            Self::NotAForm { .. } => "not-a-form",
            Self::Text => "text",
            Self::NoNul => "no-nul",
            Self::OneLine => "one-line",
            Self::Boolean => "boolean",
            Self::TextList => "text-list",
            Self::ObjectList => "object-list",
            Self::Object => "object",
            Self::Json => "json",
            Self::QueryEncoding => "query-encoding",
            Self::Once => "once",
            Self::Integer { .. } => "integer",
            Self::Chars { .. } => "chars",
            Self::Printable { .. } => "printable",
            Self::Bytes { .. } => "bytes",
            Self::Items { .. } => "items",
            Self::OneOf(_) => "one-of",
            Self::OneOfNumbers(_) => "one-of-numbers",
            Self::Cursor => "cursor",
            Self::Tag => "tag",
            Self::NotTogether(_) => "not-together",
            Self::KnownCategory => "known-category",
            Self::KnownCampaign => "known-campaign",
            Self::KnownReward => "known-reward",
            Self::Claimed => "claimed",
            Self::Id => "id",
            Self::KnownChannel => "known-channel",
            Self::OtherChannel => "other-channel",
            Self::Amount => "amount",
            Self::Date => "date",
            Self::After(_) => "after",
            Self::WebAddress => "web-address",
            Self::RedirectAddress(_) => "redirect-address",
            Self::HttpsUrl => "https-url",
            Self::Picture => "picture",
            Self::WebhookAddress(_) => "webhook-address",
            Self::KnownScope => "known-scope",
            Self::KnownOrganization => "known-organization",
            Self::Taken => "taken",
            Self::WithoutAddress => "without-address",
            Self::Enabled => "enabled",
            Self::Together(_) => "together",
            Self::NoOtherPendingSecret => "no-other-pending-secret",
            Self::NotTheSigningSecret => "not-the-signing-secret",
            Self::EitherOr(_) => "either-or",
            Self::Login => "login",
            Self::Email => "email",
            Self::Password(fault) => fault.name(),
            Self::RightPassword => "right-password",
            Self::RecentSignIn => "recent-sign-in",
            Self::RightCode => "right-code",
            Self::CurrentCode => "current-code",
            Self::OwnLogin => "own-login",
            Self::BeingDeleted => "being-deleted",
            Self::InUse(_) => "in-use",
            Self::Fewer { .. } => "fewer",
            Self::LastAdmin => "last-admin",
            Self::VerifiedOrganization => "verified-organization",
            Self::NotGranted => "not-granted",
            Self::Pending => "pending",
            Self::SameName => "same-name",
            Self::Unverified => "unverified",
        }
    }

    /// The rule as a part of a sentence that begins with the field: "must be …".
    pub fn text(&self, language: Language) -> Cow<'static, str> {
        match language {
            Language::Korean => self.korean(),
            Language::English => self.english(),
        }
    }

    fn korean(&self) -> Cow<'static, str> {
        match self {
            Self::Required => "필수 값입니다.".into(),
            Self::Misspelled { wanted, given } => {
                format!("필수 값입니다. {given} 대신 {wanted}라는 이름으로 보내 주세요.").into()
            }
            Self::NotAForm { fields } => format!("폼이 아니라 JSON 객체여야 합니다. 필드: {fields}.").into(),
            Self::Text => "문자열이어야 합니다.".into(),
            Self::NoNul => "NUL 문자(U+0000)가 있으면 안 됩니다.".into(),
            Self::OneLine => "줄바꿈이나 제어 문자 없이 한 줄이어야 합니다.".into(),
            Self::Boolean => "true 또는 false여야 합니다.".into(),
            Self::TextList => "문자열 목록이어야 합니다.".into(),
            Self::ObjectList => "JSON 객체의 목록이어야 합니다.".into(),
            Self::Object => "JSON 객체여야 합니다.".into(),
            Self::Json => "UTF-8로 된 64 KiB 이하의 올바른 JSON이어야 합니다.".into(),
            Self::QueryEncoding => "퍼센트 인코딩된 UTF-8이어야 합니다.".into(),
            Self::Once => "한 번만 지정할 수 있습니다.".into(),
            Self::Integer { min, max } => format!("{min} 이상 {max} 이하의 정수여야 합니다.").into(),
            Self::Chars { min, max } => {
                format!("{min}자 이상 {max}자 이하여야 하며, 공백만 있거나 NUL 문자가 있으면 안 됩니다.")
                    .into()
            }
            Self::Printable { min, max } => {
                format!("공백이 없는 ASCII 문자 {min}자 이상 {max}자 이하여야 합니다.").into()
            }
            Self::Bytes { max } => format!("{max}바이트 이하여야 합니다.").into(),
            Self::Items { min, max } => format!("{min}개 이상 {max}개 이하여야 합니다.").into(),
            Self::OneOf(values) => format!("{} 중 하나여야 합니다.", values.join(", ")).into(),
            Self::OneOfNumbers(values) => format!("{} 중 하나여야 합니다.", joined(values)).into(),
            Self::Cursor => "같은 목록의 이전 응답에서 받은 값이어야 합니다.".into(),
            Self::Tag => {
                "20자 이하의 문자와 숫자로만 이루어져야 하며, 공백과 특수문자는 쓸 수 없습니다.".into()
            }
            Self::NotTogether(other) => format!("{other}와 함께 지정할 수 없습니다.").into(),
            Self::KnownCategory => "존재하는 카테고리여야 합니다.".into(),
            Self::KnownCampaign => "존재하는 캠페인이어야 합니다.".into(),
            Self::KnownReward => "캠페인에 있는 보상이어야 합니다.".into(),
            Self::Claimed => "이 채널이 이미 받은 보상입니다.".into(),
            Self::Id => "영문자, 숫자, '-', '_', '.'로 된 1자 이상 64자 이하의 ID여야 합니다.".into(),
            Self::KnownChannel => "존재하는 채널이어야 합니다.".into(),
            Self::OtherChannel => "다른 채널이어야 합니다.".into(),
            Self::Amount => "원 단위 금액을 나타내는 숫자 문자열이어야 합니다.".into(),
            Self::Date => "RFC 3339 형식의 날짜여야 합니다.".into(),
            Self::After(other) => format!("{other}보다 나중이어야 합니다.").into(),
            Self::WebAddress => "http 또는 https 주소여야 합니다.".into(),
            Self::RedirectAddress(fault) => fault.korean(),
            Self::Picture => "32 KiB 이하의 PNG, JPEG, WebP 그림을 담은 data: 주소여야 합니다.".into(),
            Self::HttpsUrl => "https 주소여야 하며, 사용자 정보는 쓸 수 없습니다.".into(),
            Self::WebhookAddress(fault) => fault.korean().into(),
            Self::KnownScope => "정의된 17개 scope 중 하나여야 합니다.".into(),
            Self::KnownOrganization => "존재하는 조직이어야 합니다.".into(),
            Self::Taken => "이미 사용 중입니다.".into(),
            Self::WithoutAddress => {
                "주소가 등록된 웹훅에는 리스너를 쓸 수 없습니다. 먼저 DELETE /platform/v1/applications/{clientId}/webhook으로 삭제해 주세요."
                    .into()
            }
            Self::Enabled => {
                "사용 중지된 웹훅입니다. 리스너를 다시 시작하거나, 운영자가 중지했다면 운영자에게 문의해 주세요.".into()
            }
            Self::Together(other) => format!("{other}와 함께 지정해야 합니다.").into(),
            Self::NoOtherPendingSecret => {
                "대기 중인 시크릿이 이미 있습니다. 먼저 활성화하거나 삭제해 주세요.".into()
            }
            Self::NotTheSigningSecret => {
                "서명에 쓰이고 있는 시크릿입니다. 먼저 다른 시크릿을 활성화해 주세요.".into()
            }
            Self::EitherOr(other) => format!("이 값과 {other} 중 하나만 지정해야 합니다.").into(),
            Self::Login => format!(
                "영문 소문자, 숫자, '.', '_', '-'로 된 {LOGIN_CHARS_MIN}자 이상 {LOGIN_CHARS_MAX}자 이하여야 하며, 소문자나 숫자로 시작해야 합니다."
            )
            .into(),
            Self::Email => "올바른 이메일 주소여야 합니다.".into(),
            Self::Password(fault) => fault.korean(),
            Self::RightPassword => "현재 비밀번호와 다릅니다.".into(),
            Self::RecentSignIn => "로그인한 지 10분이 지났습니다. 다시 로그인해 주세요.".into(),
            Self::RightCode => "인증 앱에 지금 표시된 코드나 쓰지 않은 복구 코드여야 합니다.".into(),
            Self::CurrentCode => "인증 앱에 지금 표시된 코드여야 합니다.".into(),
            Self::OwnLogin => "이 계정의 아이디와 다릅니다.".into(),
            Self::BeingDeleted => "삭제가 진행 중인 ID입니다. 잠시 후 다시 시도해 주세요.".into(),
            Self::InUse(what) => format!("{what} 항목이 남아 있어 삭제할 수 없습니다.").into(),
            Self::Fewer { max } => format!("최대 {max}개까지 가질 수 있습니다.").into(),
            Self::LastAdmin => "조직에 관리자가 한 명은 남아야 합니다.".into(),
            Self::VerifiedOrganization => "인증된 조직의 애플리케이션이어야 합니다.".into(),
            Self::NotGranted => "이미 승인되었습니다.".into(),
            Self::Unverified => "인증을 신청한 조직의 이름은 바꿀 수 없습니다.".into(),
            Self::SameName => "애플리케이션의 이름과 다릅니다.".into(),
            Self::Pending => "이미 처리되었거나 취소된 신청입니다.".into(),
        }
    }

    fn english(&self) -> Cow<'static, str> {
        match self {
            Self::Required => "is required.".into(),
            Self::Misspelled { wanted, given } => {
                format!("is required. There is {given}: did you mean {wanted}?").into()
            }
            Self::NotAForm { fields } => {
                format!("must be a JSON object, not a form. Its fields: {fields}.").into()
            }
            Self::Text => "must be a string.".into(),
            Self::NoNul => "must not contain NUL (U+0000).".into(),
            Self::OneLine => "must be one line without control characters.".into(),
            Self::Boolean => "must be true or false.".into(),
            Self::TextList => "must be a list of strings.".into(),
            Self::ObjectList => "must be a list of JSON objects.".into(),
            Self::Object => "must be a JSON object.".into(),
            Self::Json => "must be valid JSON in UTF-8, at most 64 KiB.".into(),
            Self::QueryEncoding => "must be percent-encoded UTF-8.".into(),
            Self::Once => "must be given once only.".into(),
            Self::Integer { min, max } => format!("must be an integer from {min} to {max}.").into(),
            Self::Chars { min, max } => {
                format!("must have {min} to {max} characters, not only spaces, and no NUL.").into()
            }
            Self::Printable { min, max } => {
                format!("must be {min} to {max} printable ASCII characters without spaces.").into()
            }
            Self::Bytes { max } => format!("must have at most {max} bytes.").into(),
            Self::Items { min, max } => format!("must have {min} to {max} items.").into(),
            Self::OneOf(values) => format!("must be one of {}.", values.join(", ")).into(),
            Self::OneOfNumbers(values) => format!("must be one of {}.", joined(values)).into(),
            Self::Cursor => "must come from an earlier page of the same list.".into(),
            Self::Tag => {
                "must be letters and digits, at most 20, without spaces and special characters.".into()
            }
            Self::NotTogether(other) => format!("must not be given together with {other}.").into(),
            Self::KnownCategory => "must name a category that exists.".into(),
            Self::KnownCampaign => "must name a campaign that exists.".into(),
            Self::KnownReward => "must name a reward of the campaign.".into(),
            Self::Claimed => "has been claimed by this channel already.".into(),
            Self::Id => "must be an id of 1 to 64 ASCII letters, digits, '-', '_' or '.'.".into(),
            Self::KnownChannel => "must name a channel that exists.".into(),
            Self::OtherChannel => "must name another channel.".into(),
            Self::Amount => "must be an amount in won, written in digits.".into(),
            Self::Date => "must be an RFC 3339 date.".into(),
            Self::After(other) => format!("must be later than {other}.").into(),
            Self::WebAddress => "must be an http or https address.".into(),
            Self::RedirectAddress(fault) => fault.english(),
            Self::Picture => "must be a data: address of a PNG, JPEG or WebP picture of at most 32 KiB.".into(),
            Self::HttpsUrl => "must be an https address, without user information.".into(),
            Self::WebhookAddress(fault) => fault.english().into(),
            Self::KnownScope => "must be one of the seventeen scopes.".into(),
            Self::KnownOrganization => "must name an organization that exists.".into(),
            Self::Taken => "is taken already.".into(),
            Self::WithoutAddress => {
                "has an address, so it takes no listener. Delete it first: DELETE /platform/v1/applications/{clientId}/webhook."
                    .into()
            }
            Self::Enabled => {
                "is disabled. Start the listener again, or ask the operator, if that is who disabled it.".into()
            }
            Self::Together(other) => format!("must be given together with {other}.").into(),
            Self::NoOtherPendingSecret => {
                "another one is pending already: activate or delete that one first.".into()
            }
            Self::NotTheSigningSecret => "signs now: activate another one first.".into(),
            Self::EitherOr(other) => format!("either this or {other} must be given, and not both.").into(),
            Self::Login => format!(
                "must be {LOGIN_CHARS_MIN} to {LOGIN_CHARS_MAX} small letters, digits, '.', '_' or '-', beginning with a letter or digit."
            )
            .into(),
            Self::Email => "must be an e-mail address.".into(),
            Self::Password(fault) => fault.english(),
            Self::RightPassword => "is not the current password.".into(),
            Self::RecentSignIn => "needs a sign-in of the last ten minutes. Please sign in again.".into(),
            Self::RightCode => {
                "must be the code that the authenticator app shows now, or an unused recovery code.".into()
            }
            Self::CurrentCode => "must be the code that the authenticator app shows now.".into(),
            Self::OwnLogin => "is not the login of this account.".into(),
            Self::BeingDeleted => "its deletion is under way; try again in a moment.".into(),
            Self::InUse(what) => format!("it cannot be deleted while it has {what}.").into(),
            Self::Fewer { max } => format!("is one too many: there are {max} already.").into(),
            Self::LastAdmin => "must leave the organization an admin.".into(),
            Self::VerifiedOrganization => "must name an application of a verified organization.".into(),
            Self::NotGranted => "is granted already.".into(),
            Self::Unverified => "cannot change once the organization has applied for verification.".into(),
            Self::SameName => "must be the name of the application.".into(),
            Self::Pending => "is decided or withdrawn already.".into(),
        }
    }
}

/// `clientId` as `client_id`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn joined(numbers: &[i64]) -> String {
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}

/// Checks a text of `min` to `max` code points that is not blank and contains no NUL
/// (`docs/spec/rest.md#text`).
///
/// # Errors
/// `Invalid` naming `field`.
pub fn text(field: &'static str, value: &str, min: usize, max: usize) -> Result<(), Invalid> {
    let fits = (min..=max).contains(&value.chars().count());
    let blank = min > 0 && value.trim().is_empty();
    if fits && !blank && !value.contains('\0') {
        Ok(())
    } else {
        Err(Invalid::new(field, Rule::Chars { min, max }))
    }
}

/// Checks a name that a person chose: as [`text`], and one line without control characters.
///
/// # Errors
/// `Invalid` naming `field`.
pub fn name(field: &'static str, value: &str, max: usize) -> Result<(), Invalid> {
    text(field, value, 1, max)?;
    match value.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        true => Err(Invalid::new(field, Rule::OneLine)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_the_field_and_what_it_may_be() {
        let invalid = Invalid::new("size", Rule::Integer { min: 1, max: 50 });
        assert_eq!(
            invalid.message(Language::Korean),
            "잘못된 값을 입력했습니다. size: 1 이상 50 이하의 정수여야 합니다."
        );
        assert_eq!(
            invalid.message(Language::English),
            "A wrong value was entered. size: must be an integer from 1 to 50."
        );
    }

    #[test]
    fn a_missing_field_in_snake_case_is_pointed_out() {
        let missing = |field, there: &str| Invalid::missing(field, |name| name == there);
        let clients = missing("clientId", "client_id");
        assert_eq!(
            clients.message(Language::English),
            "A wrong value was entered. clientId: is required. There is client_id: did you mean clientId?"
        );
        assert_eq!(missing("clientId", "clientid").rule, Rule::Required);
        assert_eq!(missing("code", "code").rule, Rule::Required);
    }

    #[test]
    fn characters_are_code_points() {
        let check = |value: &str, ok| assert_eq!(text("message", value, 1, 3).is_ok(), ok, "{value:?}");
        check("", false);
        check("   ", false);
        check("가나다", true);
        check("가나다라", false);
        check("a\0", false);
        check("👋🏽", true);
        check(" a ", true);
    }
}
