//! The texts of the console, in Korean and in English.

use crate::http::bilingual::bilingual;

bilingual! {
/// The texts of the templates in one language.
Texts {
    tag: "ko", "en";
    other_tag: "en", "ko";
    other_language: "English", "한국어";
    title: "콘솔", "Console";
    skip: "본문으로 건너뛰기", "Skip to the content";
    sections: "구역", "Sections";
    documentation: "문서", "Documentation";
    copy: "복사", "Copy";
    copied: "복사함", "Copied";
    copy_address: "주소 복사", "Copy the address";
    close: "닫기", "Close";
    any: "모두", "any";
    none_yet: "아직 없습니다.", "None yet.";
    failed: "실패", "Failed";
    refused_lead: "샌드박스 API의 답:", "";
    done: "완료", "Done";
    live_lost: "연결이 끊겼습니다. 다시 연결하는 중입니다.", "The connection is lost. The console connects again.";

    key_title: "콘솔 열기", "Open the console";
    key_about: "터미널에서 stagedoor open을 실행하면 콘솔이 열립니다. 또는 stagedoor dev가 출력한 운영자 키를 입력해 주세요. 주소 하나는 한 번만 쓸 수 있습니다.", "Run stagedoor open in a terminal: it opens the console. Or enter the operator key that stagedoor dev has printed. An address of the console works once.";
    key_label: "운영자 키", "Operator key";
    key_button: "열기", "Open";
    key_people: "사람들의 페이지에는 키가 필요 없습니다.", "The pages for people need no key.";
    key_sign_in: "로그인", "Sign in";
    key_developers: "개발자 센터", "Developer center";
    key_studio: "스튜디오", "Studio";
    key_wrong: "키가 맞지 않습니다.", "The key is wrong.";

    clock: "시계", "Clock";
    clock_about: "시계를 옮기면 그 사이에 예정된 일이 순서대로 모두 일어납니다. 시계는 뒤로 가지 않습니다. 월드를 초기화하면 처음 시각으로 돌아갑니다.", "A move of the clock runs everything that becomes due, in order. The clock never goes back; a reset of the world begins again.";
    mode_real: "실시간", "real time";
    mode_frozen: "정지", "frozen";
    mode_scaled: "배속", "scaled";
    freeze: "정지", "Freeze";
    run: "실시간으로", "Run";
    faster: "빠르게", "Run faster";
    rate: "배속", "Rate";
    advance: "앞으로 옮기기", "Advance";
    advance_by: "옮길 시간", "By";
    advance_to: "이 시각까지 (UTC)", "To this time (UTC)";
    advance_until: "다음 일까지", "Until the next";
    go: "이동", "Go";
    next_due: "다음에 일어날 일", "Due next";
    nothing_due: "예정된 일이 없습니다.", "Nothing is due.";
    go_there: "여기로", "Go there";

    trigger: "발생시키기", "Trigger";
    trigger_about: "운영 환경과 같은 방식으로 일이 일어납니다. 비워 둔 칸은 기본값을 씁니다.", "It happens by the same operation as in production. An empty field has its default.";
    trigger_button: "발생시키기", "Trigger it";
    group_events: "이벤트", "Events";
    group_channel: "채널", "Channel";
    group_access: "권한", "Access";
    group_connection: "연결", "Connection";
    group_other: "기타", "Other";
    default_first_person: "기본값: 첫 번째 사람", "default: the first person";
    default_last_person: "기본값: 마지막 사람", "default: the last person";
    default_application: "기본값: 가장 오래된 앱", "default: the oldest application";
    default_value: "기본값", "default";
    choose: "선택", "choose";
    delivered_to: "받은 세션 수", "Sessions that it was delivered to";

    people: "사람", "People";
    people_about: "앱에 로그인한 토큰을 만들거나, 이 브라우저로 로그인 페이지를 엽니다.", "Make tokens of a sign-in to an application, or open the sign-in pages as this person.";
    application: "앱", "Application";
    tokens: "토큰", "Tokens";
    sign_in_as: "로그인", "Sign in as";
    on_air: "방송 중", "on air";

    applications: "앱", "Applications";
    client_id: "클라이언트 ID", "Client id";
    secret: "시크릿", "Secret";
    secret_unknown: "만들 때 한 번만 보입니다", "shown only when it was made";
    redirect_addresses: "리디렉션 주소", "Redirect addresses";
    sign_in_link: "로그인 링크", "Sign-in link";
    open: "열기", "Open";
    scopes: "권한 범위", "Scopes";
    disabled: "사용 중지됨", "disabled";
    deleted: "삭제됨", "deleted";

    chat: "채팅과 세션", "Chat and sessions";
    chat_about: "채널의 이벤트를 각 세션이 받았는지, 받지 못했다면 그 이유를 봅니다.", "What each session received of the channel's events, and why not.";
    channel: "채널", "Channel";
    show: "보기", "Show";
    sessions: "세션", "Sessions";
    no_session: "연결된 세션이 없습니다. stagedoor listen으로 세션을 열 수 있습니다.", "No session is connected. stagedoor listen opens one.";
    subscribed_to_nothing: "이 채널을 구독하지 않음", "not subscribed to this channel";
    of_application: "앱의 세션", "session of the application";
    ended: "종료됨", "ended";

    recording: "기록", "Recording";
    recording_about: "비밀을 가린 모든 요청, 이벤트, 전송, 시계 이동입니다. 최근 것부터 보입니다.", "Every request, event, delivery and move of the clock, without secrets. The newest is first.";
    kind: "종류", "Kind";
    condition: "조건", "Conditions";
    condition_hint: "예: status=>=400 path=~^/open", "as in status=>=400 path=~^/open";
    filter: "거르기", "Filter";
    pause: "멈춤", "Pause";
    everything: "전체", "Everything";
    skipped: "건너뛴 기록 수", "Records left out";

    faults: "장애", "Faults";
    faults_about: "규칙이 요청, 이벤트, 웹훅을 골라 실패하게 합니다. 같은 시드는 같은 결과를 냅니다.", "A rule chooses requests, events or webhook messages and makes them fail. The same seed decides the same.";
    hits: "적중", "hits";
    remove: "제거", "Remove";
    remove_all: "규칙과 네트워크 모두 제거", "Remove all rules and networks";
    add_rule: "규칙 추가", "Add a rule";
    matches: "대상", "What it means";
    effect: "효과", "What happens";
    how_often: "횟수", "How often";
    user: "사용자", "User";
    method: "메서드", "Method";
    path: "경로", "Path";
    webhook_of: "웹훅 (앱)", "Webhook of";
    everything_matches: "모든 요청", "everything";

    seed: "시드", "Seed";
    times: "최대 횟수", "At most (times)";
    nth: "몇 번째부터", "From the nth on";
    probability: "확률 (0–1)", "Probability (0–1)";

    network: "네트워크", "Network";
    network_about: "앱의 요청과 세션이 이 네트워크를 지납니다. 규칙을 몰라도 나쁜 망을 테스트할 수 있습니다.", "The calls and sessions of an application pass this network, for a try of a bad one without any rule.";
    network_profile: "프로필", "Profile";
    network_button: "이 네트워크 쓰기", "Use this network";
    network_end: "네트워크 제거", "Remove the network";
    no_network: "모든 앱의 네트워크가 정상입니다.", "Every application has a good network.";
    all_applications: "모든 앱", "all applications";

    webhooks: "웹훅", "Webhooks";
    webhooks_about: "최근 메시지와 시도입니다.", "The latest messages and their attempts.";
    no_webhook: "웹훅이 없습니다. stagedoor webhook listen으로 만들 수 있습니다.", "No webhook yet. stagedoor webhook listen makes one.";
    listener: "리스너가 가져감", "fetched by a listener";
    attempts: "시도", "attempts";
    next_attempt: "다음 시도", "next attempt";

    last_received: "마지막 수신", "Last received";
    received: "받음", "received";
    not_received: "받지 못함", "not received";
    nobody_subscribed: "구독한 세션 없음", "no session was subscribed";
    events: "이벤트", "Events";
    no_events: "이 채널의 이벤트가 아직 없습니다.", "No event of this channel yet.";
    event: "이벤트", "Event";
    worlds: "월드", "Worlds";
    worlds_about: "월드는 자기 포트를 가진 별도의 샌드박스입니다.", "A world is a sandbox of its own, on a port of its own.";
    new_world: "새 월드", "New world";
    name: "이름", "Name";
    create: "만들기", "Create";
    snapshot: "스냅샷", "Snapshot";
    restore: "되돌리기", "Restore";
    reset: "초기화", "Reset";
    fork: "시작 상태", "Begin with";
    fork_file: "월드 파일 (새 시작)", "the world file (a fresh start)";
    fork_world: "월드", "world";
    fork_snapshot: "스냅샷", "snapshot";
    seed_hint: "같은 시드, 같은 ID와 토큰", "same seed, same ids and tokens";
    name_hint: "비워 두면 world-1", "empty: world-1";
    export: "내보내기", "Export";
    world_file: "월드 파일", "World file";
    import: "가져오기", "Import";
    import_world: "월드 가져오기", "Import a world";
    import_about: "내보낸 월드나 월드 파일(YAML, JSON)로 새 월드를 만듭니다.", "An exported world or a world file (YAML, JSON) becomes a new world.";
    import_file: "파일", "File";
    import_text: "또는 내용 붙여 넣기", "Or paste its content";
    confirm_reset: "이 월드를 처음으로 되돌릴까요? 그 뒤의 모든 일이 사라집니다. 먼저 스냅샷을 만들면 다시 돌아올 수 있습니다.", "Put this world back to its beginning? Everything since is lost, unless you take a snapshot first.";
    confirm_restore: "이 월드를 스냅샷으로 되돌릴까요? 그 뒤의 모든 일이 사라집니다.", "Put this world back to the snapshot? Everything since is lost.";
    confirm_delete: "지울까요? 되돌릴 수 없습니다.", "Delete it? This cannot be undone.";
    taken_of: "월드", "of world";
    this_world: "이 월드", "this world";
    scenarios: "시나리오", "Scenarios";
    scenarios_about: "stagedoor scenario run으로 실행한 결과입니다.", "The runs of stagedoor scenario run.";
    snapshots: "스냅샷 목록", "Snapshots";
    delete: "삭제", "Delete";
    no_run: "실행한 시나리오가 없습니다. stagedoor scenario run first-stream으로 실행할 수 있습니다.", "No run yet. stagedoor scenario run first-stream makes one.";
    passed: "성공", "passed";
    steps: "단계", "steps";
    group_rest: "나머지 칸", "More fields";
}
}
