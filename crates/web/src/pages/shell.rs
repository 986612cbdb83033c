//! The parts of a page that all pages share: header, navigation, footer.

use super::{Flash, Lang};
use crate::brand::{Brand, StaticFiles};

/// The layout of one page.
#[derive(Debug, Clone)]
pub struct Shell<'a> {
    /// The language of the page.
    pub lang: Lang,
    /// The address of the page in the other language, see [`language_href`](super::language_href). Without it
    /// there is no link, as in an answer to a POST.
    pub language_href: Option<String>,
    /// The operator's brand.
    pub brand: &'a Brand,
    /// The files of the brand.
    pub(crate) files: &'a StaticFiles,
    /// Whether the page stands for itself, without navigation and script: signing in, consent, problems.
    pub is_alone: bool,
    /// Who is signed in.
    pub account: Account<'a>,
    /// The place of the page in the navigation.
    pub area: Area,
    /// A notice about the form before this page.
    pub flash: Option<Flash>,
}

/// Who is signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account<'a> {
    /// The page is the same for all readers.
    Unknown,
    /// The page is kept for all readers, and who is signed in is put in at [`ACCOUNT_MARK`].
    LeftOut,
    /// No person is signed in.
    SignedOut,
    /// A person.
    Person {
        /// The name of the person's channel. Untrusted.
        name: &'a str,
        /// The CSRF proof of the form that signs out.
        sign_out: &'a str,
        /// Whether the person may use the operator pages.
        is_operator: bool,
    },
}

/// Where who is signed in is put in.
pub const ACCOUNT_MARK: &str = "<!-- account -->";

/// A place in the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// None of them.
    Elsewhere,
    /// The documentation.
    Documentation,
    /// The applications that a person allows something.
    ConnectedApps,
    /// The developer center.
    Developers,
    /// The operator pages.
    Operator,
    /// The pages of a streamer.
    Studio,
}

/// A link of the navigation.
#[derive(Debug, Clone, Copy)]
pub struct NavigationLink {
    /// Its address, on this origin.
    pub href: &'static str,
    /// Its text.
    pub label: &'static str,
    /// Whether the page is there.
    pub is_here: bool,
}

/// A link of the footer, to a page of the operator.
#[derive(Debug, Clone, Copy)]
pub struct FooterLink<'a> {
    /// Its address.
    pub href: &'a str,
    /// Its text.
    pub label: &'static str,
}

/// The words of the layout and of the components.
#[derive(Debug)]
pub struct LayoutTexts {
    /// The link to the content.
    pub skip: &'static str,
    /// The name of the header's navigation.
    pub navigation: &'static str,
    /// The name of the menu of a person.
    pub account: &'static str,
    /// The link to the sign-in.
    pub sign_in: &'static str,
    /// The button that signs out.
    pub sign_out: &'static str,
    /// The button that copies a text.
    pub copy: &'static str,
    /// That button after it was used.
    pub copied: &'static str,
    /// The link to the first page.
    pub first: &'static str,
    /// The link to the page before.
    pub previous: &'static str,
    /// The link to the page after.
    pub next: &'static str,
    /// The name of the links to other pages of a list.
    pub pages: &'static str,
    /// Beside a field that may stay empty.
    pub optional: &'static str,
    /// What opens in another tab.
    pub outside: &'static str,
}

const KO: LayoutTexts = LayoutTexts {
    skip: "본문으로 건너뛰기",
    navigation: "주요 메뉴",
    account: "내 계정",
    sign_in: "로그인",
    sign_out: "로그아웃",
    copy: "복사",
    copied: "복사했습니다",
    first: "첫 페이지",
    previous: "이전",
    next: "다음",
    pages: "다른 페이지",
    optional: "선택",
    outside: "새 창",
};

const EN: LayoutTexts = LayoutTexts {
    skip: "Skip to the content",
    navigation: "Main menu",
    account: "Your account",
    sign_in: "Sign in",
    sign_out: "Sign out",
    copy: "Copy",
    copied: "Copied",
    first: "First page",
    previous: "Previous",
    next: "Next",
    pages: "Other pages",
    optional: "optional",
    outside: "opens in a new tab",
};

impl<'a> Shell<'a> {
    /// The words of the layout and of the components.
    pub const fn words(&self) -> &'static LayoutTexts {
        match self.lang {
            Lang::Ko => &KO,
            Lang::En => &EN,
        }
    }

    /// The name of the person who is signed in, and the proof of the form that signs out.
    pub fn person(&self) -> Option<(&'a str, &'a str)> {
        match self.account {
            Account::Person { name, sign_out, .. } => Some((name, sign_out)),
            Account::SignedOut | Account::LeftOut | Account::Unknown => None,
        }
    }

    /// Whether who is signed in is put in later.
    pub fn is_person_left_out(&self) -> bool {
        self.account == Account::LeftOut
    }

    /// What stands for who is signed in until then.
    pub const fn account_mark(&self) -> &'static str {
        ACCOUNT_MARK
    }

    /// Whether the header has the link to the sign-in.
    pub fn asks_to_sign_in(&self) -> bool {
        !self.is_alone && self.account == Account::SignedOut
    }

    /// The links of the header. Only pages that exist are linked to.
    pub fn navigation(&self) -> Vec<NavigationLink> {
        let link = |area, href, label| NavigationLink { href, label, is_here: self.area == area };
        vec![
            link(Area::Documentation, "/docs", self.lang.pick("개발 문서", "Documentation")),
            link(Area::Studio, "/studio", self.lang.pick("스튜디오", "Studio")),
            link(Area::Developers, "/developers", self.lang.pick("개발자 센터", "Developer center")),
        ]
    }

    /// The links of the menu of a person.
    pub fn account_links(&self) -> Vec<NavigationLink> {
        let link = |area, href, label| NavigationLink { href, label, is_here: self.area == area };
        let account = NavigationLink {
            href: "/account",
            label: self.lang.pick("내 계정", "Your account"),
            is_here: false,
        };
        let mut links = vec![
            account,
            link(Area::ConnectedApps, "/account/apps", self.lang.pick("연결된 앱", "Connected apps")),
        ];
        if matches!(self.account, Account::Person { is_operator: true, .. }) {
            links.push(link(Area::Operator, "/operator", self.lang.pick("운영", "Operation")));
        }
        links
    }

    /// The links of the footer.
    pub fn footer(&self) -> Vec<FooterLink<'a>> {
        let Brand { help, terms, privacy, .. } = self.brand;
        let links = [
            (help, self.lang.pick("도움말", "Help")),
            (terms, self.lang.pick("이용약관", "Terms")),
            (privacy, self.lang.pick("개인정보 처리방침", "Privacy")),
        ];
        let link = |(link, label): (&'a Option<domain::https_url::HttpsUrl>, _)| {
            link.as_ref().map(|link| FooterLink { href: link.as_str(), label })
        };
        links.into_iter().filter_map(link).collect()
    }

    /// The address of the style sheet.
    pub fn style(&self) -> &'a str {
        &self.files.style.href
    }

    /// The address of the script; `None` on a page without one.
    pub fn script(&self) -> Option<&'a str> {
        (!self.is_alone).then_some(&*self.files.script.href)
    }

    /// The address of the script of the documentation.
    pub fn docs_script(&self) -> &'a str {
        &self.files.docs_script.href
    }

    /// The address of the logo.
    pub fn logo(&self) -> Option<&'a str> {
        self.files.logo.as_ref().map(|file| &*file.href)
    }

    /// The address of the icon.
    pub fn icon(&self) -> &'a str {
        &self.files.icon.href
    }
}
