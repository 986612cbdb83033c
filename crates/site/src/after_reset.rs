//! `/account/after-reset`: after a new password by a link, the other ways into the account.

use askama::Template;
use axum::Extension;
use upstream::Upstreams;
use web::pages::{Area, Lang, Shell, filters};
use web::{PageAnswer, Person};

use crate::provider_rows::{LinkTexts, ProviderRow, link_texts, provider_rows};

/// The page.
pub(crate) const AFTER_RESET: &str = "/account/after-reset";

#[derive(Template)]
#[template(path = "site/after_reset.html")]
struct AfterResetPage<'a> {
    shell: Shell<'a>,
    t: &'static AfterResetTexts,
    p: &'static LinkTexts,
    providers: Vec<ProviderRow<'a>>,
}

impl AfterResetPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

/// `GET /account/after-reset`: the linked providers, each with a button that ends it.
pub(crate) async fn show(Extension(upstreams): Extension<Upstreams>, person: Person) -> PageAnswer {
    let (visitor, lang) = (&person.visitor, person.visitor.lang());
    let account = visitor.web().service().account(&person.channel_id).await?;
    let providers = provider_rows(&person, &upstreams, account.has_password).await?;
    let (shell, t, p) = (visitor.shell(Area::Elsewhere), texts(lang), link_texts(lang));
    visitor.page(&AfterResetPage { shell, t, p, providers })
}

struct AfterResetTexts {
    title: &'static str,
    lead: &'static str,
    keep: &'static str,
}

fn texts(lang: Lang) -> &'static AfterResetTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: AfterResetTexts = AfterResetTexts {
    title: "비밀번호를 바꿨습니다",
    lead: "아래 계정으로도 로그인할 수 있습니다. 내가 연결하지 않은 계정이 있으면 지금 연결을 끊어 주세요.",
    keep: "모두 내 계정입니다",
};

const EN: AfterResetTexts = AfterResetTexts {
    title: "Your password is changed",
    lead: "These accounts can sign in as you, too. If you did not link one of them, unlink it now.",
    keep: "All of them are mine",
};
