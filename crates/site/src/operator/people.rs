//! `/operator/people`: people, searched, barred, signed out, helped to a new password, and deleted. An
//! administrator gives them operator roles.

use domain::mail::MailKind;
use domain::operator_key::OperatorRole;
use domain::refusal::Resource;
use domain::{ChannelId, Refusal};
use service::SessionFilter;
use service::channel_admin::{ChannelDetails, ChannelFilter, ChannelPage};
use web::pages::{Flash, Lang, Moment};
use web::{OperatorPerson, PageAnswer, PathId, PostedByOperator, Visitor, role};

use super::detail::{Act, Choice, Detail, ShownOnce};
use super::frame::{Badge, Section, Shown, href, not_found, role_name, unknown_action};
use super::list::{ItemList, ListRow, Search, StateLink, nothing_here, searched};
use super::paths::{AUDIT, PAGE_SIZE, PEOPLE};
use super::related::{applications_of, browsers_of, connected_to, organizations_of, sessions_of};
use crate::confirmed::Confirmed;

/// `GET /operator/people?q=&state=&next=`.
pub(super) async fn list(operator: OperatorPerson<role::Read>) -> PageAnswer {
    let visitor = operator.visitor();
    let lang = visitor.lang();
    let parameter = |name| visitor.request().parameter(name).unwrap_or_default();
    let text = searched(&parameter("q"));
    let state = if parameter("state") == "barred" { "barred" } else { "" };
    let next = visitor.request().parameter("next");
    let page = found(visitor, &text, state, next.as_deref()).await?;
    let list = ItemList {
        section: Section::People,
        lead: lang.pick(
            "채널 이름의 일부, 로그인 아이디의 앞부분, 채널 ID로 찾습니다. 대소문자는 구별하지 않습니다.",
            "Find them by a part of the channel’s name, in any case, by the beginning of their login, or by the channel’s id.",
        ),
        search: Some(Search::of(&text, lang.pick("채널 이름, 아이디 또는 채널 ID", "Name, login or id"), lang)),
        states: states(state, lang),
        headers: vec![
            lang.pick("채널", "Channel"),
            lang.pick("로그인 아이디", "Login"),
            lang.pick("팔로워", "Followers"),
            lang.pick("등록", "Registered"),
        ],
        rows: page.channels.iter().map(|channel| row(channel, visitor)).collect(),
        empty: (
            lang.pick("찾은 사람이 없습니다.", "Nobody was found."),
            nothing_here(page.next.is_some(), lang),
        ),
        parameters: vec![("q", text), ("state", state.to_owned())],
        is_later: next.is_some(),
        next: page.next,
    };
    list.page(&operator)
}

/// The people that a search finds.
async fn found(
    visitor: &Visitor,
    text: &str,
    state: &str,
    next: Option<&str>,
) -> Result<ChannelPage, service::Error> {
    let service = visitor.web().service();
    match (state, text.is_empty()) {
        ("barred", _) => service.list_channels(ChannelFilter::Barred, PAGE_SIZE, next).await,
        (_, true) => service.list_channels(ChannelFilter::All, PAGE_SIZE, next).await,
        (_, false) => service.search_people(text, PAGE_SIZE, next).await,
    }
}

fn states(here: &str, lang: Lang) -> Vec<StateLink> {
    let link = |state: &'static str, label| StateLink {
        href: href(PEOPLE, &[("state", state)]),
        label,
        is_here: state == here,
    };
    vec![link("", lang.pick("모두", "All")), link("barred", lang.pick("이용 정지됨", "Barred"))]
}

fn badges(channel: &ChannelDetails, lang: Lang) -> Vec<Badge> {
    let barred = channel.barred_at.map(|_| Badge::new("bad", lang.pick("이용 정지됨", "Barred")));
    let operator = channel.operator_role.map(|_| Badge::new("good", lang.pick("운영자", "Operator")));
    [barred, operator].into_iter().flatten().collect()
}

fn row(channel: &ChannelDetails, visitor: &Visitor) -> ListRow {
    ListRow {
        href: format!("{PEOPLE}/{}", channel.channel_id),
        name: channel.name.clone(),
        hint: channel.channel_id.to_string(),
        badges: badges(channel, visitor.lang()),
        cells: vec![
            channel.login.clone().map_or(Shown::Nothing, Shown::Text),
            Shown::Text(channel.follower_count.to_string()),
            Shown::moment(Some(channel.created_at), visitor),
        ],
    }
}

/// `GET /operator/people/{channelId}`.
pub(super) async fn show(operator: OperatorPerson<role::Read>, PathId(id): PathId) -> PageAnswer {
    detail(&operator, &channel_id(&id)?).await?.page(&operator)
}

/// `POST /operator/people/{channelId}`: what the button says.
pub(super) async fn change(
    PathId(id): PathId,
    Confirmed(PostedByOperator { operator, fields }): Confirmed<PostedByOperator<role::Write>>,
) -> PageAnswer {
    let (channel_id, service) = (channel_id(&id)?, operator.service());
    let visitor = operator.visitor();
    match fields.text("action") {
        "bar" => service.bar_channel(&channel_id).await?,
        "unbar" => service.unbar_channel(&channel_id).await?,
        "sign-out" => service.end_browser_sessions(&channel_id).await?,
        "remove-two-factor" => {
            let language = visitor.web().config().language;
            service.remove_two_factor(&channel_id, language).await?;
        }
        "reset-password" => return reset_password(&operator, &channel_id).await,
        "delete" if fields.text("confirm") == channel_id.as_str() => {
            service.delete_channel(&channel_id).await?;
            return Ok(visitor.redirect(PEOPLE, Some(Flash::Done)));
        }
        "delete" => {
            let detail = detail(&operator, &channel_id).await?;
            return detail.mistyped("delete", &operator).page(&operator);
        }
        _ => return Err(unknown_action().into()),
    }
    Ok(visitor.redirect(visitor.request().path(), Some(Flash::Done)))
}

/// The page of the person with a link to a new password, this once.
async fn reset_password<R>(operator: &OperatorPerson<R>, channel_id: &ChannelId) -> PageAnswer {
    let visitor = operator.visitor();
    let lang = visitor.lang();
    let page = visitor.web().reset_page();
    let issued =
        operator.service().issue_password_reset(channel_id, &page, visitor.web().config().language).await?;
    let until = Moment::of(issued.expires_at, visitor.now(), lang).full;
    let note = match lang {
        Lang::Ko => {
            format!("지금만 표시됩니다. 본인에게 전해 주세요. 한 번만 쓸 수 있고 {until}까지 유효합니다.")
        }
        Lang::En => format!("It is shown only now. Give it to the person. It works once, until {until}."),
    };
    let label = lang.pick("새 비밀번호를 정하는 링크", "Link to a new password");
    let once = Some(ShownOnce { label, value: issued.link, note });
    Detail { once, ..detail(operator, channel_id).await? }.page(operator)
}

/// `POST /operator/people/{channelId}/role`: the person's operator role.
pub(super) async fn set_role(
    PathId(id): PathId,
    Confirmed(PostedByOperator { operator, fields }): Confirmed<PostedByOperator<role::Admin>>,
) -> PageAnswer {
    let (channel_id, service) = (channel_id(&id)?, operator.service());
    match (fields.text("role"), OperatorRole::from_name(fields.text("role"))) {
        ("none", _) => service.delete_operator_role(&channel_id).await?,
        (_, Some(role)) => service.put_operator_role(&channel_id, role).await?,
        _ => return Err(unknown_action().into()),
    }
    let (visitor, person) = (operator.visitor(), &operator.person.channel_id);
    let (kind, lang) = (MailKind::OperatorRoleChanged, visitor.lang());
    visitor.web().service().notify(person, kind, lang.into()).await?;
    let location = format!("{PEOPLE}/{channel_id}");
    Ok(operator.visitor().redirect(&location, Some(Flash::Done)))
}

fn channel_id(id: &str) -> Result<ChannelId, Refusal> {
    ChannelId::parse("channelId", id).map_err(|_| not_found(Resource::Channel))
}

async fn detail<R>(operator: &OperatorPerson<R>, id: &ChannelId) -> Result<Detail, service::Error> {
    let visitor = operator.visitor();
    let lang = visitor.lang();
    let channel = visitor.web().service().channel_details(id).await?;
    let role = channel.operator_role.map(|role| role_name(role, lang));
    let facts = vec![
        (lang.pick("로그인 아이디", "Login"), channel.login.clone().map_or(Shown::Nothing, Shown::Text)),
        (lang.pick("팔로워", "Followers"), Shown::Text(channel.follower_count.to_string())),
        (lang.pick("등록", "Registered"), Shown::moment(Some(channel.created_at), visitor)),
        (lang.pick("이용 정지", "Barred"), Shown::moment(channel.barred_at, visitor)),
        (
            lang.pick("운영자 역할", "Operator role"),
            role.map_or(Shown::Nothing, |role| Shown::Text(role.to_owned())),
        ),
    ];
    let mut links = Vec::new();
    if operator.role >= OperatorRole::Admin {
        links.push((
            href(AUDIT, &[("subject", id.as_str())]),
            lang.pick("이 사람에 대한 기록", "What was done to them"),
        ));
        links.push((href(AUDIT, &[("actor", id.as_str())]), lang.pick("이 사람이 한 일", "What they did")));
    }
    // An operator does not change the account of a higher role.
    let may_change = operator.role >= OperatorRole::Write && Some(operator.role) >= channel.operator_role;
    Ok(Detail {
        section: Section::People,
        name: channel.name.clone(),
        id: id.to_string(),
        badges: badges(&channel, lang),
        facts,
        tables: vec![
            applications_of(visitor, id).await?,
            organizations_of(visitor, id).await?,
            connected_to(visitor, id).await?,
            browsers_of(visitor, id).await?,
            sessions_of(visitor, SessionFilter { channel_id: Some(id.clone()), ..SessionFilter::default() })
                .await?,
        ],
        links,
        once: None,
        form: visitor.form(format!("{PEOPLE}/{id}")),
        acts: if may_change { acts(&channel, operator.person.channel_id == *id, lang) } else { Vec::new() },
        choice: (operator.role >= OperatorRole::Admin && channel.login.is_some())
            .then(|| role_choice(visitor, id, channel.operator_role)),
    })
}

fn role_choice(visitor: &Visitor, id: &ChannelId, role: Option<OperatorRole>) -> Choice {
    let lang = visitor.lang();
    let mut options = vec![("none", lang.pick("없음", "None"), role.is_none())];
    options.extend(OperatorRole::ALL.map(|one| (one.name(), role_name(one, lang), role == Some(one))));
    Choice {
        form: visitor.form(format!("{PEOPLE}/{id}/role")),
        heading: lang.pick("운영자 역할", "Operator role"),
        about: lang.pick(
            "조회는 이 페이지들을 볼 수 있고, 변경은 바꿀 수 있으며, 관리는 키와 역할도 다룹니다. 바로 적용됩니다.",
            "Read sees these pages, write changes things, admin manages keys and roles too. It takes effect at once.",
        ),
        field: "role",
        label: lang.pick("역할", "Role"),
        options: options.into_iter().map(|(role, label, is_here)| (role.into(), label.into(), is_here)).collect(),
        button: lang.pick("저장", "Save"),
    }
}

/// A person's own password and second step have their own pages, which ask for the password.
fn acts(channel: &ChannelDetails, is_own: bool, lang: Lang) -> Vec<Act> {
    let mut acts = Vec::new();
    let may_sign_in = channel.login.is_some() && channel.barred_at.is_none();
    if may_sign_in && !is_own {
        acts.push(Act::new(
            "reset-password",
            lang.pick("비밀번호 재설정 링크 발급", "Reset password"),
            lang.pick(
                "링크를 한 번 표시합니다. 사용할 때까지 지금 비밀번호가 유효합니다.",
                "The link is shown once. The present password stays until the link is used.",
            ),
        ));
        acts.push(Act::new(
            "remove-two-factor",
            lang.pick("2단계 인증 해제", "Remove the second step of the sign-in"),
            lang.pick(
                "기기와 복구 코드를 모두 잃어버린 사람을 위한 것입니다.",
                "For a person who lost the device and the recovery codes.",
            ),
        ));
    }
    if may_sign_in {
        acts.push(Act::new(
            "sign-out",
            lang.pick("모든 브라우저에서 로그아웃", "Sign every browser out"),
            lang.pick("앱의 토큰은 그대로입니다.", "Tokens of applications stay."),
        ));
    }
    acts.push(if channel.barred_at.is_some() {
        Act::new(
            "unbar",
            lang.pick("이용 정지 해제", "Unbar"),
            lang.pick("다시 로그인할 수 있습니다.", "The person can sign in again."),
        )
    } else {
        Act::danger(
            "bar",
            lang.pick("이용 정지", "Bar"),
            lang.pick(
                "로그인할 수 없게 되고 브라우저, 토큰, 세션이 바로 끝납니다. 해제할 수 있습니다.",
                "The person cannot sign in; browsers, tokens and sessions end at once. You can take it back.",
            ),
        )
    });
    let delete = Act::danger(
        "delete",
        lang.pick("영구 삭제", "Delete for good"),
        lang.pick(
            "채널과 그 데이터가 삭제됩니다. 되돌릴 수 없습니다.",
            "The channel is deleted with its data. This cannot be undone.",
        ),
    );
    acts.push(delete.typing(channel.channel_id.as_str()));
    acts
}
