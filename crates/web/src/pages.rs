//! The HTML pages of the service: the layout and the components of all pages, and the pages of the sign-in
//! (`docs/spec/authorization.md#sign-in`).
//!
//! Every page is plain data that renders itself without a clock, a request or a database, so tests render
//! each page from samples. Nothing is loaded from other hosts, and no style or script stands in a page, see
//! [`alone_policy`] and [`site_policy`]. The components are macros in `templates/pages/components.html`. A
//! page of another crate extends `pages/layout.html`, and has a field `shell`.

mod app_face;
mod field_errors;
pub mod filters;
mod flash;
mod lang;
mod moment;
mod name;
mod next;
mod policy;
mod problem;
mod refill;
mod scopes;
mod shell;
mod texts;

#[cfg(test)]
mod component_tests;
#[cfg(test)]
mod tests;

use askama::Template;

pub use app_face::AppFace;
pub use field_errors::FieldErrors;
pub use flash::Flash;
pub use lang::{Lang, language_href};
pub use moment::Moment;
pub use next::{local_page, with_next};
pub use policy::{alone_policy, documentation_policy, site_policy};
pub use problem::{PageProblem, SignInError};
pub(crate) use refill::{Typed, open_folds, refill};
pub use scopes::{ScopeLine, scope_label, scope_sentence, scope_with_key};
pub use shell::{ACCOUNT_MARK, Account, Area, FooterLink, LayoutTexts, NavigationLink, Shell};

use name::is_own_image;
use texts::Texts;

/// A person of the seeded world, offered as a one-click sign-in. Only a sandbox may list these.
#[derive(Debug, Clone, Copy)]
pub struct SeededPerson<'a> {
    /// The login, sent back as the form field `person`.
    pub login: &'a str,
    /// The name of the person's channel.
    pub channel_name: &'a str,
    /// The use of this person in a test, for example "streamer, two managers". May be empty.
    pub description: &'a str,
}

/// A provider of the operator at which people can sign in: its button is a form of its own.
#[derive(Debug, Clone)]
pub struct ProviderButton<'a> {
    /// The label of the operator.
    pub label: &'a str,
    /// The address that the form posts to, on this origin.
    pub action: String,
    /// The CSRF proof of the form.
    pub csrf: String,
}

/// Asks for login and password. The form posts `login`, `password`, `lang` and the `hidden` pairs to
/// `action`; a seeded person's button posts `person`, `lang` and the `hidden` pairs instead.
#[derive(Debug, Template)]
#[template(path = "pages/sign_in.html")]
pub struct SignInPage<'a> {
    /// The layout.
    pub shell: Shell<'a>,
    /// The name that the application's developer chose. Untrusted. `None` when a person signs in without an
    /// application.
    pub application_name: Option<&'a str>,
    /// The address that the form posts to, on this origin.
    pub action: &'a str,
    /// Names and values of hidden fields: the CSRF token and the request's parameters.
    pub hidden: &'a [(&'a str, &'a str)],
    /// The login that was typed before. The password is never sent back.
    pub login: &'a str,
    /// Why the last attempt failed.
    pub error: Option<SignInError>,
    /// The seeded people; empty outside a sandbox.
    pub people: &'a [SeededPerson<'a>],
    /// Whether people can make accounts by themselves.
    pub has_registration: bool,
    /// Whether accounts have passwords here. Otherwise people sign in at a provider.
    pub has_passwords: bool,
    /// The providers of the operator.
    pub providers: &'a [ProviderButton<'a>],
    /// The page after the sign-in, also after one at a provider and after a registration.
    pub next: &'a str,
}

impl SignInPage<'_> {
    fn texts(&self) -> &'static Texts {
        self.shell.lang.texts()
    }

    fn title(&self) -> &'static str {
        self.texts().sign_in
    }

    fn marks_fields(&self) -> bool {
        self.error.is_some_and(SignInError::marks_fields)
    }

    fn register_href(&self) -> String {
        with_next("/register", self.next)
    }
}

/// More scopes than these are folded on the consent page.
const UNFOLDED_MAX: usize = 4;

/// Asks for consent. The form posts `decision` (`allow` or `deny`), `lang` and the `hidden` pairs to
/// `action`.
#[derive(Debug, Template)]
#[template(path = "pages/consent.html")]
pub struct ConsentPage<'a> {
    /// The layout.
    pub shell: Shell<'a>,
    /// The name that the application's developer chose. Untrusted.
    pub application_name: &'a str,
    /// Its logo, links and version, see [`AppFace`].
    pub face: AppFace<'a>,
    /// Whether the person allowed it something before.
    pub is_returning: bool,
    /// The organization of the application; `None` for a single developer.
    pub organization: Option<&'a str>,
    /// Whether the operator has verified that organization. Without an organization it has no meaning.
    pub verified: bool,
    /// The channel name of the signed-in person. Untrusted.
    pub person_name: &'a str,
    /// The picture of the signed-in person: a path on this origin or a `data:image/` address. The page's own
    /// policy blocks any other address, so the page then shows the first letter of the name.
    pub person_image: Option<&'a str>,
    /// The requested scopes, in the order of `docs/spec/authorization.md#scopes`. The page groups them.
    pub scopes: &'a [ScopeLine<'a>],
    /// Host (and port, if any) of the validated redirect address.
    pub redirect_host: &'a str,
    /// The address that the form posts to, on this origin.
    pub action: &'a str,
    /// Names and values of hidden fields: the CSRF token and the request's parameters.
    pub hidden: &'a [(&'a str, &'a str)],
    /// The address where another person can sign in, on this origin.
    pub switch_account_href: &'a str,
}

impl ConsentPage<'_> {
    fn texts(&self) -> &'static Texts {
        self.shell.lang.texts()
    }

    fn title(&self) -> &'static str {
        self.texts().consent
    }

    /// The mark is shown only next to the verified name.
    fn is_verified(&self) -> bool {
        self.verified && self.organization.is_some()
    }

    fn own_image(&self) -> Option<&str> {
        self.person_image.filter(|address| is_own_image(address))
    }

    /// The scopes of a group that the person has not allowed before.
    fn new_scopes(&self, acts: bool) -> Vec<ScopeLine<'_>> {
        self.scopes.iter().filter(|scope| scope.write == acts && !scope.is_known).copied().collect()
    }

    /// The scopes that the person has allowed before.
    fn known_scopes(&self) -> Vec<ScopeLine<'_>> {
        self.scopes.iter().filter(|scope| scope.is_known).copied().collect()
    }

    /// Whether so many scopes only read that they are folded.
    fn folds(&self, scopes: &[ScopeLine<'_>]) -> bool {
        scopes.len() > UNFOLDED_MAX
    }
}

/// Describes a problem, the next step, and a hint for developers. The answer has the status
/// [`PageProblem::status`].
#[derive(Debug, Template)]
#[template(path = "pages/error.html")]
pub struct ErrorPage<'a> {
    /// The layout.
    pub shell: Shell<'a>,
    /// The problem. It decides title, explanation, next step and developer hint.
    pub problem: PageProblem,
    /// The address to start again, on this origin, if that can help.
    pub retry_href: Option<&'a str>,
    /// The id of this request in the logs.
    pub request_id: &'a str,
}

impl ErrorPage<'_> {
    fn texts(&self) -> &'static Texts {
        self.shell.lang.texts()
    }

    fn title(&self) -> String {
        self.problem.title(self.shell.lang)
    }
}

/// Who is signed in, as it stands in the header of a page.
#[derive(Debug, Template)]
#[template(path = "pages/account.html")]
pub struct AccountPart<'a> {
    /// The layout.
    pub shell: Shell<'a>,
}

/// The text of the error page about a problem.
pub fn problem_page(shell: Shell<'_>, problem: PageProblem, request_id: &str) -> String {
    let retry_href = problem.is_lost().then_some("/");
    ErrorPage { shell, problem, retry_href, request_id }.render().unwrap_or_default()
}
