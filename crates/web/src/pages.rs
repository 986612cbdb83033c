//! The HTML pages of the sign-in: asking who somebody is, asking for consent, and saying what went wrong
//! (`docs/spec/authorization.md#sign-in`).
//!
//! Every page is plain data that renders itself: nothing here reads a clock, a request or a database, so a
//! test can render each of them from samples. There is no script and nothing is loaded from elsewhere. The
//! one style sheet is inline and allowed by its hash, see [`content_security_policy`].

mod lang;
mod name;
mod policy;
mod problem;
mod scopes;
mod texts;

#[cfg(test)]
mod tests;

use askama::Template;

pub use lang::{Lang, language_href};
pub(crate) use policy::STYLE;
pub use policy::{content_security_policy, docs_security_policy};
pub use problem::{PageProblem, SignInError};
pub use scopes::ScopeLine;

use name::is_own_image;
use texts::Texts;

/// A person of the seeded world, offered as a one-click sign-in. Only a sandbox may list these.
#[derive(Debug, Clone, Copy)]
pub struct SeededPerson<'a> {
    /// The login, sent back as the form field `person`.
    pub login: &'a str,
    /// The name of the person's channel.
    pub channel_name: &'a str,
    /// What this person is good for in a test, for example "streamer, two managers". May be empty.
    pub description: &'a str,
}

/// Asks for login and password. The form posts `login`, `password`, `lang` and the `hidden` pairs to
/// `action`; a seeded person's button posts `person`, `lang` and the `hidden` pairs instead.
#[derive(Debug, Template)]
#[template(path = "pages/sign_in.html")]
pub struct SignInPage<'a> {
    /// The language of the page.
    pub lang: Lang,
    /// The same page in the other language, see [`language_href`]. `None` leaves the link out.
    pub language_href: Option<&'a str>,
    /// The name that the application's developer chose. Untrusted.
    pub application_name: &'a str,
    /// Where the form posts to, on this origin.
    pub action: &'a str,
    /// Names and values that travel along unseen: the CSRF token and what was asked for.
    pub hidden: &'a [(&'a str, &'a str)],
    /// What was typed into the login field before; the password is never sent back.
    pub login: &'a str,
    /// Why the last try failed.
    pub error: Option<SignInError>,
    /// The seeded people; empty outside a sandbox.
    pub people: &'a [SeededPerson<'a>],
}

impl SignInPage<'_> {
    fn texts(&self) -> &'static Texts {
        self.lang.texts()
    }

    fn title(&self) -> &'static str {
        self.texts().sign_in
    }

    fn marks_fields(&self) -> bool {
        self.error.is_some_and(SignInError::marks_fields)
    }
}

/// Asks for consent. The form posts `decision` (`allow` or `deny`), `lang` and the `hidden` pairs to
/// `action`.
#[derive(Debug, Template)]
#[template(path = "pages/consent.html")]
pub struct ConsentPage<'a> {
    /// The language of the page.
    pub lang: Lang,
    /// The same page in the other language, see [`language_href`]. `None` leaves the link out.
    pub language_href: Option<&'a str>,
    /// The name that the application's developer chose. Untrusted.
    pub application_name: &'a str,
    /// The organization behind the application; `None` for one developer alone.
    pub organization: Option<&'a str>,
    /// Whether the operator has verified that organization. Without an organization it has no meaning.
    pub verified: bool,
    /// The channel name of whoever is signed in. Untrusted.
    pub person_name: &'a str,
    /// The picture of whoever is signed in: a path on this origin or a `data:image/` address. Anything else
    /// would be stopped by the page's own policy, so the first letter of the name is shown instead.
    pub person_image: Option<&'a str>,
    /// What is asked for, in the order of `docs/spec/authorization.md#scopes`; the page groups it.
    pub scopes: &'a [ScopeLine<'a>],
    /// Host (and port, if any) of the validated redirect address.
    pub redirect_host: &'a str,
    /// Where the form posts to, on this origin.
    pub action: &'a str,
    /// Names and values that travel along unseen: the CSRF token and what was asked for.
    pub hidden: &'a [(&'a str, &'a str)],
    /// Where somebody else can sign in, on this origin.
    pub switch_account_href: &'a str,
}

impl ConsentPage<'_> {
    fn texts(&self) -> &'static Texts {
        self.lang.texts()
    }

    fn title(&self) -> &'static str {
        self.texts().consent
    }

    /// Verified is shown only next to the name that was verified.
    fn is_verified(&self) -> bool {
        self.verified && self.organization.is_some()
    }

    fn own_image(&self) -> Option<&str> {
        self.person_image.filter(|address| is_own_image(address))
    }

    fn any_scope(&self, acts: bool) -> bool {
        self.scopes.iter().any(|scope| scope.write == acts)
    }
}

/// Says what went wrong, what to do next, and what a developer should look at. Answer with
/// [`PageProblem::status`].
#[derive(Debug, Template)]
#[template(path = "pages/error.html")]
pub struct ErrorPage<'a> {
    /// The language of the page.
    pub lang: Lang,
    /// The same page in the other language, see [`language_href`]. `None` leaves the link out, as is right
    /// for an answer to a POST.
    pub language_href: Option<&'a str>,
    /// What went wrong; title, explanation, next step and developer hint follow from it.
    pub problem: PageProblem,
    /// Where to start again, on this origin, if that can help.
    pub retry_href: Option<&'a str>,
    /// The id under which the logs know this request.
    pub request_id: &'a str,
}

impl ErrorPage<'_> {
    fn texts(&self) -> &'static Texts {
        self.lang.texts()
    }

    fn title(&self) -> String {
        self.problem.title(self.lang)
    }
}

/// What templates may call with `|name`.
mod filters {
    pub use super::name::filters::*;
}
