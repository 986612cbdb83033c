//! The secrets of an application on the operator pages, and what ends its credentials after a leak.

use domain::operator_key::OperatorRole;
use domain::refusal::Resource;
use domain::{ApplicationSecretId, ClientId};
use service::application_secrets::StoredSecret;
use service::leaked_credentials::Affected;
use web::pages::{Flash, Lang};
use web::{OperatorPerson, PageAnswer, PathIds, PostedByOperator, Visitor, role};

use super::detail::{Act, Detail, DetailTable};
use super::frame::{Section, Shown, not_found, unknown_action};
use super::paths::APPLICATIONS;
use crate::affected::affected_sentence;
use crate::confirmed::Confirmed;

/// What ends the credentials of an application, with whom it affects.
pub(super) fn leak_acts(affected: Affected, lang: Lang) -> [Act; 2] {
    let whom = affected_sentence(affected, lang);
    let tokens = Act::danger(
        "end-tokens",
        lang.pick("토큰 모두 끝내기", "End all tokens"),
        lang.pick(
            "모든 토큰과 코드, 세션이 바로 끝나고 다시 살아나지 않습니다. 동의와 시크릿은 남습니다.",
            "All tokens, codes and sessions end at once, and nothing revives them. Consents and secrets stay.",
        ),
    );
    let secrets = Act::danger(
        "revoke-secrets",
        lang.pick("시크릿 모두 폐기", "Revoke all secrets"),
        lang.pick(
            "모든 시크릿이 바로 거부되고, 그것으로 연 세션이 끝납니다. 새 시크릿이 있어야 토큰을 다시 받습니다. 이미 받은 토큰은 남습니다.",
            "All secrets are refused at once, and the sessions that they opened end. The application gets no tokens until it has a new one. Tokens that it has stay.",
        ),
    );
    [tokens, secrets].map(|act| Act { about: format!("{whom} {}", act.about).into(), ..act })
}

/// The secrets of an application, each with a page of its own.
pub(super) fn secrets_table(
    client_id: &ClientId,
    secrets: &[StoredSecret],
    visitor: &Visitor,
) -> DetailTable {
    let lang = visitor.lang();
    let row = |secret: &StoredSecret| {
        vec![
            Shown::Link {
                href: format!("{APPLICATIONS}/{client_id}/secrets/{}", secret.secret_id),
                text: ends_with(secret, lang),
            },
            Shown::moment(Some(secret.created_at), visitor),
            Shown::moment(secret.last_used_at, visitor),
            Shown::moment(secret.expires_at, visitor),
        ]
    };
    DetailTable {
        id: "secrets",
        heading: lang.pick("시크릿", "Secrets"),
        headers: vec![
            lang.pick("끝 네 글자", "Ends with"),
            lang.pick("만든 때", "Made"),
            lang.pick("마지막 사용", "Last used"),
            lang.pick("만료", "Expires"),
        ],
        rows: secrets.iter().map(row).collect(),
        empty: lang.pick("시크릿이 없습니다.", "There is no secret."),
    }
}

/// Its last characters. Of old secrets only the hash is known.
fn ends_with(secret: &StoredSecret, lang: Lang) -> String {
    match &secret.last_characters {
        Some(last) => format!("…{last}"),
        None => lang.pick("알 수 없음", "unknown").to_owned(),
    }
}

/// `GET /operator/applications/{clientId}/secrets/{secretId}`.
pub(super) async fn show(operator: OperatorPerson<role::Read>, PathIds(id, secret): PathIds) -> PageAnswer {
    let visitor = operator.visitor();
    let (client_id, secret) = find(visitor, &id, &secret).await?;
    let lang = visitor.lang();
    let name = visitor.web().service().application_details(&client_id).await?.life.application.name;
    let revoke = Act::danger(
        "revoke",
        lang.pick("폐기", "Revoke"),
        lang.pick(
            "바로 거부되고, 이 시크릿으로 연 세션이 끝납니다. 되돌릴 수 없습니다. 이미 받은 토큰은 남습니다.",
            "It is refused at once, and the sessions that it opened end. This cannot be undone. Tokens that the application has stay.",
        ),
    );
    let detail = Detail {
        section: Section::Applications,
        name: ends_with(&secret, lang),
        id: secret.secret_id.to_string(),
        badges: Vec::new(),
        facts: vec![
            (
                lang.pick("애플리케이션", "Application"),
                Shown::Link { href: format!("{APPLICATIONS}/{client_id}"), text: name },
            ),
            (lang.pick("만든 때", "Made"), Shown::moment(Some(secret.created_at), visitor)),
            (lang.pick("마지막 사용", "Last used"), Shown::moment(secret.last_used_at, visitor)),
            (lang.pick("만료", "Expires"), Shown::moment(secret.expires_at, visitor)),
        ],
        tables: Vec::new(),
        links: Vec::new(),
        once: None,
        form: visitor.form(visitor.request().path()),
        acts: if operator.role >= OperatorRole::Write { vec![revoke] } else { Vec::new() },
        choice: None,
    };
    detail.page(&operator)
}

/// `POST /operator/applications/{clientId}/secrets/{secretId}`: revokes a secret.
pub(super) async fn change(
    PathIds(id, secret): PathIds,
    Confirmed(PostedByOperator { operator, fields }): Confirmed<PostedByOperator<role::Write>>,
) -> PageAnswer {
    if fields.text("action") != "revoke" {
        return Err(unknown_action().into());
    }
    let (client_id, secret) = find(operator.visitor(), &id, &secret).await?;
    operator.service().delete_secret(&client_id, &secret.secret_id).await?;
    Ok(operator.visitor().redirect(&format!("{APPLICATIONS}/{client_id}"), Some(Flash::SecretRevoked)))
}

async fn find(visitor: &Visitor, id: &str, secret: &str) -> Result<(ClientId, StoredSecret), web::Failure> {
    let no_secret = || not_found(Resource::Secret);
    let client_id = ClientId::parse("clientId", id).map_err(|_| not_found(Resource::Application))?;
    let secret_id = ApplicationSecretId::parse("secretId", secret).map_err(|_| no_secret())?;
    let secrets = visitor.web().service().secrets(&client_id).await?;
    let secret = secrets.into_iter().find(|secret| secret.secret_id == secret_id);
    Ok((client_id, secret.ok_or_else(no_secret)?))
}
