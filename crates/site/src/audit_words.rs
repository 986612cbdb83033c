//! The entries of the audit log in words.

use domain::audit::AuditAction;
use web::pages::Lang;

/// An act in words, which the id of the thing follows.
pub(crate) const fn sentence(action: AuditAction, lang: Lang) -> &'static str {
    let (ko, en) = words(action);
    lang.pick(ko, en)
}

/// The act of an entry in words. Its details tell what was made from what was changed.
pub(crate) fn entry_sentence(action: AuditAction, details: &str, lang: Lang) -> &'static str {
    let fields = fields(details);
    let is = |name: &str| fields.get(name).and_then(serde_json::Value::as_bool);
    let is_new = is("registered").or(is("isNew"));
    let (ko, en) = match (action, is_new) {
        (AuditAction::ApplicationPut, Some(true)) => {
            ("애플리케이션을 등록했습니다", "registered an application")
        }
        // Its own settings have no mark.
        (AuditAction::ApplicationPut, _) => ("애플리케이션을 바꿨습니다", "changed an application"),
        (AuditAction::WebhookPut, Some(true)) => {
            ("웹훅을 등록했습니다", "registered the webhook of an application")
        }
        (AuditAction::WebhookPut, _) => ("웹훅을 바꿨습니다", "changed the webhook of an application"),
        _ => words(action),
    };
    lang.pick(ko, en)
}

type Fields = std::collections::BTreeMap<String, serde_json::Value>;

fn fields(details: &str) -> Fields {
    serde_json::from_str(details).unwrap_or_default()
}

/// A field of the details in words; none for those that [`entry_sentence`] says.
fn label(field: &str, lang: Lang) -> Option<&str> {
    let (ko, en) = match field {
        "isNew" | "registered" => return None,
        "added" => ("추가", "added"),
        "addedRedirectUris" => ("추가한 리디렉션 주소", "redirect addresses added"),
        "changed" => ("바뀐 항목", "changed"),
        "channelId" => ("채널 ID", "channel"),
        "clientId" => ("애플리케이션", "application"),
        "enabled" => ("사용", "enabled"),
        "expiresDate" => ("만료", "expires"),
        "fromOrganizationId" => ("이전 조직", "from the organization"),
        "homepageUrl" => ("홈페이지", "home page"),
        "kind" => ("종류", "kind"),
        "lastCharacters" => ("시크릿 끝 네 글자", "last characters of the secret"),
        "logo" => ("로고", "logo"),
        "messageId" => ("메시지", "message"),
        "messages" => ("메시지 수", "messages"),
        "name" => ("이름", "name"),
        "organizationId" => ("조직", "organization"),
        "organizationName" => ("조직 이름", "name of the organization"),
        "ownerChannelId" => ("소유자", "owner"),
        "percent" => ("할당량 비율(%)", "percent of the quotas"),
        "privacyUrl" => ("개인정보 처리방침", "privacy policy"),
        "profile" => ("응답 형식", "response format"),
        "quota" => ("할당량", "quotas"),
        "redirectUris" => ("리디렉션 주소 수", "redirect addresses"),
        "removed" => ("제거", "removed"),
        "removedRedirectUris" => ("제거한 리디렉션 주소", "redirect addresses removed"),
        "requestId" => ("심사 요청", "request"),
        "role" => ("역할", "role"),
        "scopes" => ("권한", "scopes"),
        "secretId" => ("시크릿", "secret"),
        "state" => ("상태", "state"),
        "termsUrl" => ("이용약관", "terms of use"),
        "toOrganizationId" => ("새 조직", "to the organization"),
        "url" => ("주소", "address"),
        "verified" => ("인증", "verified"),
        "withLogin" => ("아이디", "with a login"),
        other => return Some(other),
    };
    Some(lang.pick(ko, en))
}

const fn words(action: AuditAction) -> (&'static str, &'static str) {
    use AuditAction as Action;
    match action {
        Action::KeyAdd => ("운영자 키를 만들었습니다", "made an operator key"),
        Action::KeyRevoke => ("운영자 키를 폐기했습니다", "revoked an operator key"),
        Action::OrganizationPut => ("조직을 만들거나 바꿨습니다", "created or changed an organization"),
        Action::OrganizationVerify => {
            ("조직의 인증을 바꿨습니다", "changed the verification of an organization")
        }
        Action::OrganizationDelete => ("조직을 삭제했습니다", "deleted an organization"),
        Action::OrganizationDisable => ("조직을 사용 중지했습니다", "disabled an organization"),
        Action::OrganizationEnable => ("조직을 다시 사용하게 했습니다", "enabled an organization"),
        Action::MemberPut => ("조직 구성원을 등록했습니다", "gave a person a role in an organization"),
        Action::MemberDelete => ("조직 구성원을 내보냈습니다", "removed a person from an organization"),
        Action::ReviewAdd => ("심사를 요청했습니다", "asked for a decision about"),
        Action::MemberInvite => ("조직에 초대했습니다", "invited a person to an organization"),
        Action::MemberUninvite => ("조직 초대를 취소했습니다", "took back an invitation to an organization"),
        Action::MemberDecline => ("조직의 초대를 거절했습니다", "declined an invitation to an organization"),
        Action::MemberJoin => ("조직의 초대를 수락했습니다", "joined an organization"),
        Action::ReviewWithdraw => ("심사 요청을 취소했습니다", "withdrew a request about"),
        Action::ApplicationScopes => {
            ("애플리케이션의 권한을 바꿨습니다", "chose the scopes of an application")
        }
        Action::ApplicationHandOver => {
            ("애플리케이션의 소유자를 바꿨습니다", "changed the owner of an application")
        }
        Action::ApplicationOffer => {
            ("애플리케이션을 넘기겠다고 제안했습니다", "offered an application to a person")
        }
        Action::ApplicationOfferTakeBack => {
            ("애플리케이션 제안을 취소했습니다", "took back the offer of an application")
        }
        Action::ApplicationOfferDecline => {
            ("애플리케이션 제안을 거절했습니다", "declined the offer of an application")
        }
        Action::WebhookTest => {
            ("웹훅 테스트 메시지를 보냈습니다", "sent a test message to the webhook of an application")
        }
        Action::ReviewDecide => ("심사 요청을 처리했습니다", "decided a request of"),
        Action::ApplicationPut => {
            ("애플리케이션을 등록하거나 바꿨습니다", "registered or changed an application")
        }
        Action::ApplicationDelete => ("애플리케이션을 삭제했습니다", "deleted an application"),
        Action::ApplicationDisable => ("애플리케이션을 사용 중지했습니다", "disabled an application"),
        Action::ApplicationEnable => ("애플리케이션을 다시 사용하게 했습니다", "enabled an application"),
        Action::ApplicationRestore => ("애플리케이션을 복구했습니다", "restored an application"),
        Action::ApplicationQuota => {
            ("애플리케이션의 할당량을 바꿨습니다", "changed the quotas of an application")
        }
        Action::SecretAdd => ("시크릿을 추가했습니다", "added a secret to an application"),
        Action::SecretExpire => {
            ("시크릿의 만료를 바꿨습니다", "changed the expiry of an application’s secret")
        }
        Action::SecretDelete => ("시크릿을 삭제했습니다", "deleted a secret of an application"),
        Action::TokensEnd => ("토큰을 모두 끝냈습니다", "ended all tokens of an application"),
        Action::WebhookPut => ("웹훅을 설정했습니다", "set the webhook of an application"),
        Action::WebhookDelete => ("웹훅을 삭제했습니다", "deleted the webhook of an application"),
        Action::WebhookResend => {
            ("웹훅 메시지를 다시 보냈습니다", "sent webhook messages of an application again")
        }
        Action::WebhookSecretAdd => {
            ("웹훅 시크릿을 추가했습니다", "added a secret to a webhook of an application")
        }
        Action::WebhookSecretActivate => {
            ("웹훅 시크릿을 활성화했습니다", "activated a secret of a webhook of an application")
        }
        Action::WebhookSecretDelete => {
            ("웹훅 시크릿을 삭제했습니다", "deleted a secret of a webhook of an application")
        }
        Action::ConsentWithdraw => ("동의를 철회했습니다", "withdrew a consent of a person"),
        Action::SessionEnd => ("세션을 끝냈습니다", "ended a session"),
        Action::ChannelPut => ("채널을 만들거나 바꿨습니다", "created or changed a channel"),
        Action::ChannelDelete => ("채널을 삭제했습니다", "deleted a channel"),
        Action::ChannelBar => ("이용을 정지했습니다", "barred a person"),
        Action::ChannelUnbar => ("이용 정지를 해제했습니다", "unbarred a person"),
        Action::BrowserSessionsEnd => {
            ("모든 브라우저에서 로그아웃시켰습니다", "signed every browser of a person out")
        }
        Action::PasswordResetIssue => {
            ("비밀번호 재설정 링크를 발급했습니다", "issued a link to a new password for a person")
        }
        Action::TwoFactorRemove => {
            ("2단계 인증을 해제했습니다", "removed the second step of a person’s sign-in")
        }
        Action::StreamKeyReissue => ("스트림키를 재발급했습니다", "replaced the stream key of a channel"),
        Action::OperatorRolePut => ("운영자 역할을 주었습니다", "gave an operator role to a person"),
        Action::OperatorRoleDelete => ("운영자 역할을 해제했습니다", "took the operator role of a person"),
        Action::CampaignPut => ("캠페인을 만들거나 바꿨습니다", "created or changed a campaign"),
        Action::CampaignDelete => ("캠페인을 삭제했습니다", "deleted a campaign"),
        Action::CampaignDisable => ("캠페인을 사용 중지했습니다", "disabled a campaign"),
        Action::CampaignEnable => ("캠페인을 다시 사용하게 했습니다", "enabled a campaign"),
        Action::CategoryPut => ("카테고리를 만들거나 바꿨습니다", "created or changed a category"),
    }
}

/// The fields of the details in words, each with its value.
pub(crate) fn details(text: &str, lang: Lang) -> Vec<(String, String)> {
    let shown = |value: serde_json::Value| match value {
        serde_json::Value::String(text) => text,
        serde_json::Value::Bool(true) => lang.pick("예", "yes").to_owned(),
        serde_json::Value::Bool(false) => lang.pick("아니요", "no").to_owned(),
        serde_json::Value::Array(items) => {
            let items =
                items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
            items.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    let is_empty = |value: &serde_json::Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let named = |value: serde_json::Value| match value {
        serde_json::Value::Array(names) => {
            let names = names.iter().filter_map(|name| label(name.as_str()?, lang));
            names.collect::<Vec<_>>().join(", ")
        }
        other => shown(other),
    };
    let fields = fields(text).into_iter().filter(|(_, value)| !is_empty(value));
    fields
        .filter_map(|(name, value)| {
            let value = if name == "changed" { named(value) } else { shown(value) };
            Some((label(&name, lang)?.to_owned(), value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_shown_as_text() {
        let text = r#"{"scopes":["a","b"],"quota":true,"name":"봇","organizationId":null,"removed":[]}"#;
        for (lang, expected) in [
            (Lang::En, [("name", "봇"), ("quotas", "yes"), ("scopes", "a, b")]),
            (Lang::Ko, [("이름", "봇"), ("할당량", "예"), ("권한", "a, b")]),
        ] {
            let shown = details(text, lang);
            let shown: Vec<_> = shown.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(shown, expected);
        }
        let text = r#"{"changed":["homepageUrl","ownerChannelId"],"lastCharacters":"ab12"}"#;
        let shown = details(text, Lang::Ko);
        assert_eq!(shown[0], ("바뀐 항목".to_owned(), "홈페이지, 소유자".to_owned()));
        assert_eq!(shown[1], ("시크릿 끝 네 글자".to_owned(), "ab12".to_owned()));
        assert!(details("{}", Lang::En).is_empty() && details("", Lang::En).is_empty());
    }

    #[test]
    fn what_was_made_is_told_from_what_was_changed() {
        use AuditAction::{ApplicationPut, WebhookPut};
        for (action, made, changed) in [
            (ApplicationPut, r#"{"registered":true}"#, r#"{"name":"a","redirectUris":1}"#),
            (ApplicationPut, r#"{"name":"a","isNew":true}"#, r#"{"name":"a","isNew":false}"#),
            (WebhookPut, r#"{"enabled":true,"isNew":true}"#, r#"{"enabled":true}"#),
        ] {
            for (lang, of_made, of_changed) in
                [(Lang::En, "registered ", "changed "), (Lang::Ko, "등록했습니다", "바꿨습니다")]
            {
                let (made, changed) =
                    (entry_sentence(action, made, lang), entry_sentence(action, changed, lang));
                assert!(made.contains(of_made) && changed.contains(of_changed), "{made}, {changed}");
                assert!(!made.contains(" or ") && !changed.contains("거나"), "{made}, {changed}");
            }
            let shown = details(made, Lang::En);
            assert!(shown.iter().all(|(name, _)| name != "isNew" && name != "registered"), "{shown:?}");
        }
    }
}
