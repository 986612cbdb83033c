//! `/operator/keys`: operator keys and the people with an operator role, for administrators.

use askama::Template;
use domain::mail::MailKind;
use domain::operator_key::OperatorRole;
use domain::refusal::Resource;
use domain::{Invalid, OperatorKeyId, Refusal, Rule};
use service::operator_keys::StoredOperatorKey;
use service::operators::StaffMember;
use web::pages::{Area, FieldErrors, Flash, Lang, Moment, Shell, filters};
use web::{FormTarget, OperatorPerson, PageAnswer, PathId, PostedByOperator, Visitor, role};

use super::detail::{Act, Detail, ShownOnce};
use super::frame::{Frame, Section, Shown, href, not_found, role_name, unknown_action};
use super::paths::{AUDIT, KEYS, PAGE_SIZE, PEOPLE};
use crate::confirmed::Confirmed;

/// Operators that the page shows.
const OPERATORS_SHOWN: i64 = 100;

/// A key in the table.
struct KeyRow {
    href: String,
    name: String,
    role: &'static str,
    last_characters: String,
    created: Moment,
    last_used: Option<Moment>,
}

/// A person in the table.
struct OperatorRow {
    href: String,
    name: String,
    login: String,
    role: &'static str,
    since: Moment,
}

#[derive(Template)]
#[template(path = "site/operator/keys.html")]
struct KeysPage<'a> {
    shell: Shell<'a>,
    frame: Frame,
    t: &'static KeyTexts,
    once: Option<ShownOnce>,
    keys: Vec<KeyRow>,
    first: Option<String>,
    next: Option<String>,
    operators: Vec<OperatorRow>,
    form: FormTarget,
    typed_name: String,
    roles: Vec<(&'static str, &'static str, bool)>,
    errors: FieldErrors,
}

impl KeysPage<'_> {
    fn title(&self) -> &'static str {
        Section::Keys.title(self.shell.lang)
    }
}

impl<'a> KeysPage<'a> {
    async fn new(operator: &'a OperatorPerson<role::Admin>) -> Result<Self, service::Error> {
        let visitor = operator.visitor();
        let (lang, service) = (visitor.lang(), visitor.web().service());
        // A form that is shown again is on the first page.
        let next = visitor.request().parameter("next");
        let page = service.operator_keys(PAGE_SIZE, next.as_deref()).await?;
        let operators = service.operators(OPERATORS_SHOWN, None).await?;
        Ok(Self {
            shell: visitor.shell(Area::Operator),
            frame: Frame::new(operator, Section::Keys),
            t: texts(lang),
            once: None,
            keys: page.items.iter().map(|key| key_row(key, visitor)).collect(),
            first: next.map(|_| KEYS.to_owned()),
            next: page.next.map(|next| href(KEYS, &[("next", &next)])),
            operators: operators.items.iter().map(|member| operator_row(member, visitor)).collect(),
            form: visitor.form(KEYS),
            typed_name: String::new(),
            roles: OperatorRole::ALL.map(|one| (one.name(), role_name(one, lang), false)).to_vec(),
            errors: FieldErrors::default(),
        })
    }
}

fn key_row(key: &StoredOperatorKey, visitor: &Visitor) -> KeyRow {
    let (now, lang) = (visitor.now(), visitor.lang());
    KeyRow {
        href: format!("{KEYS}/{}", key.key_id),
        name: key.name.clone(),
        role: role_name(key.role, lang),
        last_characters: key.last_characters.clone(),
        created: Moment::of(key.created_at, now, lang),
        last_used: key.last_used_at.map(|at| Moment::of(at, now, lang)),
    }
}

fn operator_row(member: &StaffMember, visitor: &Visitor) -> OperatorRow {
    let (now, lang) = (visitor.now(), visitor.lang());
    OperatorRow {
        href: format!("{PEOPLE}/{}", member.channel_id),
        name: member.channel_name.clone(),
        login: member.login.clone(),
        role: role_name(member.role, lang),
        since: Moment::of(member.created_at, now, lang),
    }
}

/// `GET /operator/keys?next=`.
pub(super) async fn list(operator: OperatorPerson<role::Admin>) -> PageAnswer {
    operator.visitor().page(&KeysPage::new(&operator).await?)
}

/// `POST /operator/keys`: makes a key, which is shown once.
pub(super) async fn add(
    Confirmed(PostedByOperator { operator, fields }): Confirmed<PostedByOperator<role::Admin>>,
) -> PageAnswer {
    let visitor = operator.visitor();
    let (lang, name) = (visitor.lang(), fields.text("name").trim().to_owned());
    let mut errors = FieldErrors::default();
    let role = OperatorRole::from_name(fields.text("role"));
    let unknown = || Invalid::new("role", Rule::OneOf(&OperatorRole::NAMES));
    let role = errors.keep(role.ok_or_else(unknown), lang);
    let made = match role {
        Some(role) => match operator.service().add_operator_key(name.clone(), role, None).await {
            Ok(made) => Some(made),
            Err(error) => {
                let Refusal::Invalid(invalid) = error.refusal() else { return Err(error.into()) };
                errors.add_invalid(&invalid, lang);
                None
            }
        },
        None => None,
    };
    let mut page = KeysPage::new(&operator).await?;
    let Some((stored, key)) = made else {
        for (value, _, is_chosen) in &mut page.roles {
            *is_chosen = *value == fields.text("role");
        }
        return visitor.form_again(&KeysPage { typed_name: name, errors, ..page });
    };
    let (person, kind) = (&operator.person.channel_id, MailKind::OperatorKeyMade);
    visitor.web().service().notify(person, kind, lang.into()).await?;
    let note = match lang {
        Lang::Ko => format!("“{}”의 키입니다. 지금만 표시됩니다.", stored.name),
        Lang::En => format!("The key of “{}”. It is shown only now.", stored.name),
    };
    let label = lang.pick("새 운영자 키", "New operator key");
    let once = Some(ShownOnce { label, value: key.expose().to_owned(), note });
    visitor.page(&KeysPage { once, ..page })
}

/// `GET /operator/keys/{keyId}`.
pub(super) async fn show(operator: OperatorPerson<role::Admin>, PathId(id): PathId) -> PageAnswer {
    let visitor = operator.visitor();
    let lang = visitor.lang();
    let key = visitor.web().service().operator_key(&key_id(&id)?).await?;
    let detail = Detail {
        section: Section::Keys,
        name: key.name.clone(),
        id: key.key_id.to_string(),
        badges: Vec::new(),
        facts: vec![
            (lang.pick("역할", "Role"), Shown::Text(role_name(key.role, lang).to_owned())),
            (lang.pick("마지막 네 글자", "Last four characters"), Shown::Code(key.last_characters.clone())),
            (lang.pick("만든 때", "Made"), Shown::moment(Some(key.created_at), visitor)),
            (lang.pick("마지막 사용", "Last used"), Shown::moment(key.last_used_at, visitor)),
        ],
        tables: Vec::new(),
        links: vec![(
            href(AUDIT, &[("actor", key.key_id.as_str())]),
            lang.pick("이 키로 한 일", "What was done with it"),
        )],
        once: None,
        form: visitor.form(format!("{KEYS}/{}", key.key_id)),
        acts: vec![Act::danger(
            "revoke",
            lang.pick("폐기", "Revoke"),
            lang.pick(
                "이 키를 쓰는 다음 호출부터 모든 노드에서 거부됩니다. 되돌릴 수 없습니다.",
                "The next call with it is refused on every node. This cannot be undone.",
            ),
        )],
        choice: None,
    };
    detail.page(&operator)
}

/// `POST /operator/keys/{keyId}`: revokes a key.
pub(super) async fn revoke(
    PathId(id): PathId,
    Confirmed(PostedByOperator { operator, fields }): Confirmed<PostedByOperator<role::Admin>>,
) -> PageAnswer {
    if fields.text("action") != "revoke" {
        return Err(unknown_action().into());
    }
    operator.service().revoke_operator_key(&key_id(&id)?).await?;
    Ok(operator.visitor().redirect(KEYS, Some(Flash::Done)))
}

fn key_id(id: &str) -> Result<OperatorKeyId, Refusal> {
    OperatorKeyId::parse("keyId", id).map_err(|_| not_found(Resource::OperatorKey))
}

/// The words of the page.
struct KeyTexts {
    lead: &'static str,
    keys: &'static str,
    key: &'static str,
    role: &'static str,
    ends_with: &'static str,
    made: &'static str,
    last_used: &'static str,
    never: &'static str,
    none: &'static str,
    none_about: &'static str,
    add: &'static str,
    name: &'static str,
    name_hint: &'static str,
    operators: &'static str,
    operators_about: &'static str,
    person: &'static str,
    login: &'static str,
    since: &'static str,
    no_operators: &'static str,
}

fn texts(lang: Lang) -> &'static KeyTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: KeyTexts = KeyTexts {
    lead: "플랫폼 API의 키와 이 페이지를 쓸 수 있는 사람입니다. 설정 파일의 키는 여기에 없습니다.",
    keys: "운영자 키",
    key: "키",
    role: "역할",
    ends_with: "끝 네 글자",
    made: "만든 때",
    last_used: "마지막 사용",
    never: "아직 없음",
    none: "키가 없습니다.",
    none_about: "시스템마다 키를 하나씩 만드세요.",
    add: "키 만들기",
    name: "이름",
    name_hint: "누가 또는 무엇이 쓰는지.",
    operators: "운영자",
    operators_about: "역할은 사람 페이지에서 바꿉니다.",
    person: "사람",
    login: "로그인 아이디",
    since: "역할을 받은 때",
    no_operators: "운영자 역할을 가진 사람이 없습니다.",
};

const EN: KeyTexts = KeyTexts {
    lead: "The keys of the platform API, and the people who may use these pages. The key of the configuration is not here.",
    keys: "Operator keys",
    key: "Key",
    role: "Role",
    ends_with: "Ends with",
    made: "Made",
    last_used: "Last used",
    never: "Not yet",
    none: "There is no key.",
    none_about: "Make one for each system.",
    add: "Create a key",
    name: "Name",
    name_hint: "Who or what uses it.",
    operators: "Operators",
    operators_about: "A role is changed on the page of its person.",
    person: "Person",
    login: "Login",
    since: "Since",
    no_operators: "Nobody has an operator role.",
};
