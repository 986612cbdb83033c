//! `/docs`: the documents for people, in Korean and English. The page is generated from the documents, so it
//! cannot contradict them.

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use domain::Scope;
use http::{HeaderValue, header};
use serde_json::Value;

use super::json::{asyncapi, openapi};
use super::rows::{FieldRow, plain, resolve, rows};
use crate::Web;
use crate::contract::openapi::{REFUSALS, sections};
use crate::contract::{Operation, Section};
use crate::page_request::PageRequest;
use crate::pages::{Area, Lang, Shell, filters, language_href, site_policy};
use crate::router;

/// How long a browser may keep the page: ten minutes. The language is that of a cookie, so no other cache may
/// keep it.
const CACHE: HeaderValue = HeaderValue::from_static("private, max-age=600");

/// `GET /docs`, without credentials.
pub(super) async fn show(State(web): State<Web>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let request = PageRequest::of(&parts, &web);
    let [korean, english] = web.docs().get_or_init(|| Lang::ALL.map(|lang| render(&web, &request, lang)));
    let html = if request.lang() == Lang::Ko { korean } else { english };
    let mut response = request.page(html.clone(), &site_policy(), None);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, CACHE);
    headers.insert(header::VARY, HeaderValue::from_static("accept-language, cookie"));
    response
}

fn render(web: &Web, request: &PageRequest, lang: Lang) -> String {
    let (openapi, asyncapi) = (openapi(), asyncapi());
    let shell = Shell {
        lang,
        language_href: Some(language_href("/docs", None, lang.other())),
        is_alone: false,
        area: Area::Documentation,
        ..request.shell(web)
    };
    let page = DocsPage {
        shell,
        texts: if lang == Lang::Ko { &KOREAN } else { &ENGLISH },
        sections: section_views(&openapi, lang),
        events: events(&asyncapi),
    };
    page.render().unwrap_or_default()
}

/// The page.
#[derive(Template)]
#[template(path = "pages/docs.html")]
struct DocsPage<'a> {
    shell: Shell<'a>,
    texts: &'static PageTexts,
    sections: Vec<SectionView>,
    events: Vec<EventView>,
}

impl DocsPage<'_> {
    fn title(&self) -> &'static str {
        self.texts.title
    }

    fn plain(&self, text: &str) -> String {
        plain(text)
    }
}

/// Related operations.
struct SectionView {
    heading: &'static str,
    anchor: String,
    operations: Vec<OperationView>,
}

/// One operation.
struct OperationView {
    id: &'static str,
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    proof: &'static str,
    scope: Option<&'static str>,
    parameters: Vec<FieldRow>,
    body: Vec<FieldRow>,
    content: Vec<FieldRow>,
    errors: Vec<String>,
}

/// One event of the socket, or the webhook.
struct EventView {
    name: String,
    summary: String,
    headers: Vec<FieldRow>,
    payload: Vec<FieldRow>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The operations by section, in the order of the router. The document itself sorts its paths alphabetically.
fn section_views(openapi: &Value, lang: Lang) -> Vec<SectionView> {
    let operations = router::operations();
    let section = |(index, section): (usize, &Section)| {
        let own = operations.iter().filter(|operation| operation.section.tag == section.tag);
        SectionView {
            heading: if lang == Lang::Ko { section.korean } else { section.tag },
            anchor: format!("section-{index}"),
            operations: own.map(|operation| view(openapi, operation, lang)).collect(),
        }
    };
    sections(&operations).into_iter().enumerate().map(section).collect()
}

fn view(openapi: &Value, described: &Operation, lang: Lang) -> OperationView {
    let Operation { method, path, summary, scope, .. } = described;
    let operation = &openapi["paths"][*path][method.to_lowercase()];
    let texts = if lang == Lang::Ko { &KOREAN } else { &ENGLISH };
    let responses = operation["responses"].as_object().into_iter().flatten();
    let success = &operation["responses"]["200"]["content"]["application/json"]["schema"];
    let success = resolve(openapi, success);
    let bodies = operation["requestBody"]["content"].as_object().into_iter().flatten();
    let body = bodies.map(|(_, body)| &body["schema"]).next().unwrap_or(&Value::Null);
    OperationView {
        id: summary.id,
        method,
        path,
        summary: if lang == Lang::Ko { summary.korean } else { summary.english },
        proof: texts.proof(&operation["security"]),
        scope: scope.map(Scope::name),
        parameters: operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .map(FieldRow::parameter)
            .collect(),
        body: rows(openapi, body.get("x-line").unwrap_or(body)),
        content: rows(openapi, &success["properties"]["content"]),
        errors: responses
            .map(|(status, _)| status.clone())
            .filter(|status| status.as_str() >= "400")
            .collect(),
    }
}

fn events(asyncapi: &Value) -> Vec<EventView> {
    let messages = asyncapi["components"]["messages"].as_object().into_iter().flatten();
    let view = |(_, message): (&String, &Value)| {
        let payload = &message["payload"];
        EventView {
            name: text(&message["title"]),
            summary: plain(&text(&message["summary"])),
            headers: rows(asyncapi, &message["headers"]),
            payload: rows(asyncapi, payload),
        }
    };
    messages.map(view).collect()
}

/// The words of the page.
struct PageTexts {
    title: &'static str,
    lead: &'static str,
    files: &'static str,
    contents: &'static str,
    scope: &'static str,
    parameters: &'static str,
    body: &'static str,
    answer: &'static str,
    nothing: &'static str,
    errors: &'static str,
    required: &'static str,
    field: &'static str,
    kind: &'static str,
    about: &'static str,
    events: &'static str,
    events_lead: &'static str,
    headers: &'static str,
    payload: &'static str,
    errors_heading: &'static str,
    refusals: [(u16, &'static str); 8],
    proofs: [&'static str; 4],
}

impl PageTexts {
    fn proof(&self, security: &Value) -> &'static str {
        let scheme = security[0].as_object().and_then(|schemes| schemes.keys().next());
        let [none, user, client, operator] = self.proofs;
        match scheme.map(String::as_str) {
            Some("AccessToken") => user,
            Some("ClientId") => client,
            Some("OperatorKey") => operator,
            _ => none,
        }
    }
}

const ENGLISH: PageTexts = PageTexts {
    title: "API documentation",
    lead: "Every answer is JSON in an envelope: code 200, message null and content, or a code and a message.",
    files: "For programs:",
    contents: "Contents",
    scope: "Scope",
    parameters: "Parameters",
    body: "Body",
    answer: "content",
    nothing: "null",
    errors: "Errors",
    required: "required",
    field: "Field",
    kind: "Type",
    about: "Meaning",
    events: "Events and webhook",
    events_lead: "An event on the socket has one argument: a JSON text, to be parsed again.",
    headers: "Headers",
    payload: "Payload",
    errors_heading: "Errors",
    refusals: REFUSALS,
    proofs: ["no authentication", "access token", "client authentication", "operator's key"],
};

const KOREAN: PageTexts = PageTexts {
    title: "API 문서",
    lead: "모든 응답은 JSON입니다. 성공하면 code 200, message null, content가, 실패하면 code와 message가 옵니다.",
    files: "프로그램용 문서:",
    contents: "목차",
    scope: "Scope",
    parameters: "파라미터",
    body: "본문",
    answer: "content",
    nothing: "null",
    errors: "오류",
    required: "필수",
    field: "필드",
    kind: "타입",
    about: "설명",
    events: "이벤트와 웹훅",
    events_lead: "소켓 이벤트의 인자는 하나이며, 한 번 더 파싱해야 하는 JSON 문자열입니다.",
    headers: "헤더",
    payload: "내용",
    errors_heading: "오류",
    refusals: [
        (400, "잘못된 값. message가 어떤 필드에 어떤 값을 쓸 수 있는지 알려 줍니다."),
        (401, "인증되지 않음: UNAUTHORIZED, INVALID_CLIENT, INVALID_TOKEN."),
        (403, "권한 없음: 필요한 scope가 없거나 채널의 규칙에 어긋납니다."),
        (404, "결과 없음: NOT_FOUND."),
        (405, "허용되지 않는 메서드: METHOD_NOT_ALLOWED. Allow 헤더를 확인하세요."),
        (429, "할당량 또는 한도 초과: TOO_MANY_REQUESTS. Retry-After 초 뒤에 다시 시도하세요."),
        (500, "서버 오류: INTERNAL_SERVER_ERROR."),
        (
            503,
            "지금은 저장할 수 없음: SERVICE_UNAVAILABLE. 아무것도 바뀌지 않았습니다. Retry-After 초 뒤에 다시 시도하세요.",
        ),
    ],
    proofs: ["인증 없음", "Access Token 인증", "Client 인증", "운영자 키"],
};
