//! The groups of operations: one page each.

use crate::contract::Operation;
use crate::pages::Lang;

/// A page of operations.
#[derive(Debug)]
pub struct Group {
    /// The last part of its address.
    pub slug: &'static str,
    name: [&'static str; 2],
    about: [&'static str; 2],
    /// Its operations are those whose path begins with one of these. The longest of all groups counts.
    prefixes: &'static [&'static str],
}

impl Group {
    /// Its heading.
    pub fn name(&self, lang: Lang) -> &'static str {
        lang.pick(self.name[0], self.name[1])
    }

    /// A sentence about it.
    pub fn about(&self, lang: Lang) -> &'static str {
        lang.pick(self.about[0], self.about[1])
    }

    /// Whether it is for the operator's programs.
    pub fn is_platform(&self) -> bool {
        self.slug.starts_with("platform-")
    }
}

/// The group of an operation.
pub fn group_of(operation: &Operation) -> Option<&'static Group> {
    let length = |group: &&Group| {
        let prefixes = group.prefixes.iter().filter(|prefix| operation.path.starts_with(**prefix));
        prefixes.map(|prefix| prefix.len()).max().unwrap_or_default()
    };
    GROUPS.iter().max_by_key(length).filter(|group| length(group) > 0)
}

/// Every group, in the order of the navigation.
pub const GROUPS: &[Group] = &[
    Group {
        slug: "authorization",
        name: ["인증과 토큰", "Authorization and tokens"],
        about: [
            "유저가 로그인하고 동의하는 페이지와, 그 결과로 받는 토큰입니다.",
            "The pages on which a person signs in and consents, and the tokens that an application receives.",
        ],
        prefixes: &["/account-interlock", "/auth/v1/"],
    },
    Group {
        slug: "channels",
        name: ["유저와 채널", "Users and channels"],
        about: [
            "로그인한 유저와 채널, 채널의 팔로워와 구독자, 관리자를 조회합니다.",
            "The signed-in user, and channels with their followers, subscribers and managers.",
        ],
        prefixes: &["/open/v1/users", "/open/v1/channels"],
    },
    Group {
        slug: "lives",
        name: ["카테고리와 라이브", "Categories and lives"],
        about: [
            "카테고리를 검색하고, 방송 중인 라이브와 방송 설정, 스트림키를 다룹니다.",
            "Categories, the lives on air, the broadcast setting and the stream key.",
        ],
        prefixes: &["/open/v1/categories", "/open/v1/lives", "/open/v1/streams"],
    },
    Group {
        slug: "chat",
        name: ["채팅", "Chat"],
        about: [
            "채팅 메시지를 보내고 숨기며, 공지와 채팅 설정을 바꿉니다.",
            "Send and hide chat messages, pin a notice, and change the settings of a chat.",
        ],
        prefixes: &["/open/v1/chats"],
    },
    Group {
        slug: "sessions",
        name: ["세션", "Sessions"],
        about: [
            "실시간 이벤트를 받는 소켓의 주소를 만들고, 받을 이벤트를 구독합니다.",
            "Create the address of a socket, and subscribe its session to realtime events.",
        ],
        prefixes: &["/open/v1/sessions"],
    },
    Group {
        slug: "drops",
        name: ["드롭스", "Drops"],
        about: [
            "시청자가 받은 보상을 조회하고 지급 상태를 바꿉니다. 웹훅 메시지를 가져오는 리스너도 있습니다.",
            "Read which rewards viewers claimed, and report which were given. A listener fetches webhook messages.",
        ],
        prefixes: &["/open/v1/drops"],
    },
    Group {
        slug: "restrictions",
        name: ["활동제한", "Restrictions"],
        about: [
            "내 채널에서 다른 사람의 활동을 제한하거나, 채팅을 잠시 막습니다.",
            "Restrict people in a channel until they are released, or keep them out of its chat for a short time.",
        ],
        prefixes: &["/open/v1/restrict-channels", "/open/v1/temporary-restrict-channels"],
    },
    Group {
        slug: "platform-applications",
        name: ["애플리케이션과 조직", "Applications and organizations"],
        about: [
            "조직과 애플리케이션, 클라이언트 시크릿, 유저의 동의를 관리합니다.",
            "Organizations, applications with their client secrets, and the consents of users.",
        ],
        prefixes: &[
            "/platform/v1/organizations",
            "/platform/v1/applications",
            "/platform/v1/consents",
            "/platform/v1/review-requests",
        ],
    },
    Group {
        slug: "platform-webhooks",
        name: ["웹훅", "Webhooks"],
        about: [
            "애플리케이션의 웹훅 주소와 시크릿, 보낸 메시지를 관리합니다.",
            "The webhook of an application, its secrets, and the messages that were sent to it.",
        ],
        prefixes: &["/platform/v1/applications/{clientId}/webhook"],
    },
    Group {
        slug: "platform-channels",
        name: ["채널과 사람", "Channels and people"],
        about: [
            "채널을 등록하고, 그 사람의 로그인과 이용 정지, 팔로워와 관리자를 관리합니다.",
            "Channels and the people behind them: sign-in, bar, followers and managers.",
        ],
        prefixes: &["/platform/v1/channels"],
    },
    Group {
        slug: "platform-events",
        name: ["방송과 이벤트", "Broadcasts and events"],
        about: [
            "방송의 시작과 끝, 채팅과 후원, 구독을 알립니다. 한 번에 여러 건을 알릴 수도 있습니다.",
            "Report broadcasts, chat messages, donations and subscriptions, one by one or many at once.",
        ],
        prefixes: &[
            "/platform/v1/channels/{channelId}/chats",
            "/platform/v1/channels/{channelId}/donations",
            "/platform/v1/channels/{channelId}/subscriptions",
            "/platform/v1/channels/{channelId}/live",
            "/platform/v1/channels/{channelId}/stream-key",
            "/platform/v1/categories",
            "/platform/v1/events",
        ],
    },
    Group {
        slug: "platform-drops",
        name: ["드롭스 캠페인", "Drops campaigns"],
        about: [
            "캠페인과 보상을 등록하고, 시청 시간과 시청자가 받은 보상을 알립니다.",
            "Register campaigns and rewards, and report watched minutes and claims.",
        ],
        prefixes: &["/platform/v1/drops"],
    },
    Group {
        slug: "platform-operation",
        name: ["운영", "Operation"],
        about: [
            "운영자 키를 관리하고, 모든 애플리케이션의 세션을 보거나 끝냅니다.",
            "Operator keys, and the sessions of every application.",
        ],
        prefixes: &["/platform/v1/keys", "/platform/v1/sessions", "/platform/v1/"],
    },
];
