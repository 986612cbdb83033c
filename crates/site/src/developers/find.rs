//! `/developers/find`: one field that takes any id, and leads to what the id names.

use askama::Template;
use domain::drops::{FulfillmentState, RewardClaim};
use domain::{ClientId, OrganizationId};
use service::application_usage::RefusedRequest;
use service::chat_log::LoggedMessage;
use service::find_by_id::FoundById;
use web::pages::{Area, Lang, Moment, Shell, filters};
use web::{PageAnswer, Person, Visitor};

use super::find_words::{FindWords, find_words};
use super::frame::address;
use super::paths::DEVELOPERS;

/// The length of an id of a request, in hexadecimal digits.
const REQUEST_ID_CHARS: usize = 20;

/// A thing without a page of its own.
enum FoundFace {
    Request {
        request: RefusedRequest,
        at: Moment,
        client_id: ClientId,
    },
    Claim {
        claim: RewardClaim,
        state: &'static str,
        at: Moment,
        organization: OrganizationId,
    },
    Message {
        message: LoggedMessage,
        at: Moment,
    },
    /// Nothing, or nothing that the person may see.
    Nothing,
    /// The field was empty.
    Asked,
}

#[derive(Template)]
#[template(path = "site/developers/find.html")]
struct FindPage<'a> {
    shell: Shell<'a>,
    t: &'static FindTexts,
    find: &'static FindWords,
    id: &'a str,
    shown: FoundFace,
    /// The id may be one of a request.
    is_request: bool,
    /// In a sandbox the console shows every request.
    has_console: bool,
}

impl FindPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

/// `GET /developers/find?id=`.
pub(super) async fn show(person: Person) -> PageAnswer {
    let (visitor, lang) = (&person.visitor, person.visitor.lang());
    let id = visitor.request().parameter("id").unwrap_or_default();
    let id = id.trim();
    let found = visitor.web().service().find_by_id(&person.channel_id, id).await?;
    let shown = match found {
        Some(found) => match place(&found) {
            Some(place) => return Ok(visitor.redirect(&place, None)),
            None => shown(visitor, found),
        },
        None if id.is_empty() => FoundFace::Asked,
        None => FoundFace::Nothing,
    };
    visitor.page(&FindPage {
        shell: visitor.shell(Area::Developers),
        t: texts(lang),
        find: find_words(lang),
        id,
        shown,
        is_request: id.len() == REQUEST_ID_CHARS && id.bytes().all(|byte| byte.is_ascii_hexdigit()),
        has_console: visitor.web().config().sandbox,
    })
}

/// The address of what has a page of its own.
fn place(found: &FoundById) -> Option<String> {
    match found {
        FoundById::Application(id) => Some(address(id.as_str(), "")),
        FoundById::Organization(id) => Some(format!("{DEVELOPERS}/organizations/{id}")),
        FoundById::Session(id, key) => Some(address(id.as_str(), &format!("/sessions/{key}"))),
        FoundById::Delivery(id, message) => {
            Some(address(id.as_str(), &format!("/webhook/deliveries/{message}")))
        }
        FoundById::Request(..) | FoundById::Claim(..) | FoundById::Message(_) => None,
    }
}

fn shown(visitor: &Visitor, found: FoundById) -> FoundFace {
    let (now, lang) = (visitor.now(), visitor.lang());
    match found {
        FoundById::Request(client_id, request) => {
            FoundFace::Request { at: Moment::of(request.at, now, lang), request, client_id }
        }
        FoundById::Claim(organization, claim) => {
            let state = match claim.state {
                FulfillmentState::Claimed => lang.pick("수령함(지급 전)", "Claimed, not fulfilled yet"),
                FulfillmentState::Fulfilled => lang.pick("지급 완료", "Fulfilled"),
            };
            FoundFace::Claim { at: Moment::of(claim.claimed_at, now, lang), claim, state, organization }
        }
        FoundById::Message(message) => {
            FoundFace::Message { at: Moment::of(message.message_time, now, lang), message }
        }
        FoundById::Application(_)
        | FoundById::Organization(_)
        | FoundById::Session(..)
        | FoundById::Delivery(..) => FoundFace::Nothing,
    }
}

struct FindTexts {
    title: &'static str,
    up: &'static str,
    lead: &'static str,
    nothing: &'static str,
    nothing_about: &'static str,
    requests: &'static str,
    console: &'static str,
    request: &'static str,
    app: &'static str,
    at: &'static str,
    operation: &'static str,
    status: &'static str,
    reason: &'static str,
    user: &'static str,
    usage: &'static str,
    claim: &'static str,
    state: &'static str,
    campaign: &'static str,
    reward: &'static str,
    organization: &'static str,
    message: &'static str,
    sender: &'static str,
    hidden: &'static str,
    chat: &'static str,
}

fn texts(lang: Lang) -> &'static FindTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: FindTexts = FindTexts {
    title: "ID로 찾기",
    up: "개발자 센터",
    lead: "요청, 세션, 메시지, 수령, 웹훅 메시지, 앱, 조직의 ID를 넣으면 그 페이지로 갑니다.",
    nothing: "찾지 못했습니다.",
    nothing_about: "이 ID를 가진 것이 없거나, 내가 볼 수 없는 것입니다.",
    requests: "요청은 거절된 것만, 앱마다 마지막 50개를 이 노드가 기억합니다. 다른 요청은 운영자의 로그에 요청 ID로 남아 있으므로, 운영자에게 이 ID를 알려 주세요.",
    console: "샌드박스 콘솔에서 모든 요청 보기",
    request: "거절된 요청",
    app: "앱",
    at: "시각",
    operation: "호출",
    status: "상태",
    reason: "이유",
    user: "유저",
    usage: "이 앱의 거절된 요청 모두 보기",
    claim: "드롭스 수령",
    state: "상태",
    campaign: "캠페인",
    reward: "보상",
    organization: "조직",
    message: "내 채팅의 메시지",
    sender: "보낸 사람",
    hidden: "가려짐",
    chat: "채팅 보기",
};

const EN: FindTexts = FindTexts {
    title: "Find by id",
    up: "Developer center",
    lead: "Give the id of a request, session, message, claim, webhook message, app or organization, and you get its page.",
    nothing: "Nothing was found.",
    nothing_about: "Nothing has this id, or it is not yours to see.",
    requests: "Of requests, this node remembers the last 50 that were refused of each app. Others are in the log of the \
               operator by their id: give it to the operator.",
    console: "See every request in the sandbox console",
    request: "A refused request",
    app: "App",
    at: "Time",
    operation: "Call",
    status: "Status",
    reason: "Reason",
    user: "User",
    usage: "All refused requests of this app",
    claim: "A claim of drops",
    state: "State",
    campaign: "Campaign",
    reward: "Reward",
    organization: "Organization",
    message: "A message in your chat",
    sender: "Sender",
    hidden: "Hidden",
    chat: "See the chat",
};
