//! The guides: texts about one thing each, in Markdown, with numbers from the constants of the service.

use crate::pages::Lang;

/// A guide.
#[derive(Debug)]
pub struct Guide {
    /// The last part of its address.
    pub slug: &'static str,
    title: [&'static str; 2],
    about: [&'static str; 2],
    text: [&'static str; 2],
}

impl Guide {
    /// Its heading.
    pub fn title(&self, lang: Lang) -> &'static str {
        lang.pick(self.title[0], self.title[1])
    }

    /// A sentence about it.
    pub fn about(&self, lang: Lang) -> &'static str {
        lang.pick(self.about[0], self.about[1])
    }

    /// Its text, in Markdown with places for numbers.
    pub fn text(&self, lang: Lang) -> &'static str {
        lang.pick(self.text[0], self.text[1])
    }
}

macro_rules! text {
    ($name:literal) => {
        [
            include_str!(concat!("guides/", $name, ".ko.markdown")),
            include_str!(concat!("guides/", $name, ".en.markdown")),
        ]
    };
}

/// Every guide, in the order of the navigation.
pub const GUIDES: &[Guide] = &[
    Guide {
        slug: "applications",
        title: ["애플리케이션과 리디렉션 주소", "Applications and redirect addresses"],
        about: [
            "애플리케이션을 등록하고, 리디렉션 주소와 시크릿을 정하는 방법입니다.",
            "How to register an application, which redirect addresses it may have, and how to change its secret.",
        ],
        text: text!("applications"),
    },
    Guide {
        slug: "sign-in",
        title: ["로그인과 토큰", "Signing in and tokens"],
        about: [
            "유저의 동의를 받고, 토큰을 교환하고 갱신하고 폐기하는 방법입니다.",
            "How a user consents, and how tokens are exchanged, refreshed and revoked.",
        ],
        text: text!("sign-in"),
    },
    Guide {
        slug: "scopes",
        title: ["권한(scope)", "Scopes"],
        about: [
            "모든 권한과, 권한마다 할 수 있는 호출입니다.",
            "Every scope, with what it allows and the calls that need it.",
        ],
        text: text!("scopes"),
    },
    Guide {
        slug: "sessions",
        title: ["세션과 실시간 이벤트", "Sessions and realtime events"],
        about: [
            "소켓을 열고 이벤트를 구독하는 방법, 세션 수의 한도, 다시 연결하는 방법입니다.",
            "How to open a socket and subscribe, how many sessions there may be, and how to reconnect.",
        ],
        text: text!("sessions"),
    },
    Guide {
        slug: "clients",
        title: ["클라이언트 라이브러리", "Client libraries"],
        about: [
            "어떤 Socket.IO 클라이언트를 쓸 수 있고 무엇을 설정하는지, 실행해 볼 프로그램과 함께 알려 줍니다.",
            "Which Socket.IO clients work, what to set, and programs to start with.",
        ],
        text: text!("clients"),
    },
    Guide {
        slug: "close-reasons",
        title: ["세션이 끝나는 이유", "Why sessions end"],
        about: [
            "세션이 끝나는 모든 이유와, 이유마다 할 일입니다.",
            "Every reason why a session is closed, and what to do about it.",
        ],
        text: text!("close-reasons"),
    },
    Guide {
        slug: "chat",
        title: ["채팅", "Chat"],
        about: [
            "메시지를 보내고 받고 숨기는 방법과, 시청자에게 적용되는 규칙입니다.",
            "How to send, receive and hide messages, and the rules for viewers.",
        ],
        text: text!("chat"),
    },
    Guide {
        slug: "drops",
        title: ["드롭스", "Drops"],
        about: [
            "시청자가 받은 보상을 알아내고, 게임에서 지급했음을 알리는 방법입니다.",
            "How a game learns of claimed rewards, and reports that it gave them.",
        ],
        text: text!("drops"),
    },
    Guide {
        slug: "requests",
        title: ["요청과 응답", "Requests and answers"],
        about: [
            "응답의 모양, 인증 헤더, 목록의 페이지, 날짜와 글자 수의 규칙입니다.",
            "The form of answers, credentials, pages of lists, dates and lengths.",
        ],
        text: text!("requests"),
    },
    Guide {
        slug: "errors",
        title: ["오류", "Errors"],
        about: [
            "거절된 응답의 모양과, 이유마다 할 일입니다.",
            "What a refusal looks like, and what to do about each reason.",
        ],
        text: text!("errors"),
    },
    Guide {
        slug: "limits",
        title: ["한도와 할당량", "Limits and quotas"],
        about: [
            "얼마나 자주 호출할 수 있고, 얼마나 오래 쓸 수 있고, 몇 개까지 만들 수 있는지입니다.",
            "How often you may call, how long things live, and how many there may be.",
        ],
        text: text!("limits"),
    },
    Guide {
        slug: "testing",
        title: ["샌드박스로 테스트", "Testing with the sandbox"],
        about: [
            "후원과 채팅을 일으키고, 시간을 옮기고, 연결을 끊어 보는 방법입니다.",
            "How to cause donations and chat messages, move the time, and lose connections.",
        ],
        text: text!("testing"),
    },
    Guide {
        slug: "moving",
        title: ["다른 플랫폼에서 옮기기", "Moving from another platform"],
        about: [
            "같은 모양의 API를 쓰던 프로그램을 이 서비스로 옮길 때 달라지는 점입니다.",
            "What changes for a program that was written for the platform whose API this one follows.",
        ],
        text: text!("moving"),
    },
];
