//! A browser without scripts: cookies, pages, forms.

use std::net::SocketAddr;

use crate::html::{attribute, forms};
use crate::{Connection, Form, Request, Response};

/// The state of a browser between pages.
#[derive(Clone, Debug)]
pub struct Browser {
    address: SocketAddr,
    cookies: Vec<Cookie>,
    /// The value of `Accept-Language`.
    pub accept_language: Option<String>,
}

#[derive(Clone, Debug)]
struct Cookie {
    name: String,
    value: String,
    path: String,
}

/// A page.
#[derive(Clone, Debug)]
pub struct Page {
    /// The whole answer.
    pub response: Response,
    /// Its forms.
    pub forms: Vec<Form>,
}

impl Page {
    /// The form that has a field or button of this name.
    ///
    /// # Panics
    /// When there is none.
    pub fn form(&self, name: &str) -> Form {
        let has = |pairs: &[(String, String)]| pairs.iter().any(|(key, _)| key == name);
        let form = self.forms.iter().find(|form| has(&form.fields) || has(&form.buttons));
        form.unwrap_or_else(|| panic!("no form with {name}: {}", self.response.text())).clone()
    }

    /// The target of the link with this text.
    ///
    /// # Panics
    /// When there is none.
    pub fn link(&self, text: &str) -> String {
        let page = self.response.text();
        let link = page.split("<a").skip(1).find(|link| link.contains(&format!(">{text}</a>")));
        let tag = link.and_then(|link| link.split('>').next()).and_then(|tag| attribute(tag, "href"));
        tag.unwrap_or_else(|| panic!("no link {text}: {page}"))
    }

    /// The target of the redirect.
    ///
    /// # Panics
    /// When it is no redirect.
    pub fn location(&self) -> &str {
        assert_eq!(self.response.status, 303, "no redirect: {}", self.response.text());
        self.response.header("location").expect("a redirect says where to")
    }
}

impl Browser {
    /// A browser without cookies that talks to this server.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, cookies: Vec::new(), accept_language: None }
    }

    /// The value of a cookie.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies.iter().find(|cookie| cookie.name == name).map(|cookie| cookie.value.as_str())
    }

    /// Sets a cookie, like an attacker.
    pub fn plant(&mut self, name: &str, value: &str) {
        self.cookies.retain(|cookie| cookie.name != name);
        self.cookies.push(Cookie { name: name.to_owned(), value: value.to_owned(), path: "/".to_owned() });
    }

    /// Opens a page.
    pub async fn open(&mut self, target: &str) -> Page {
        self.send(Request::get(target)).await
    }

    /// Sends a form.
    pub async fn submit(&mut self, form: &Form) -> Page {
        assert_eq!(form.method, "post", "the forms of the sign-in post");
        let request = Request::post(&form.action).header("Content-Type", "application/x-www-form-urlencoded");
        self.send(request.body(form.body())).await
    }

    /// Sends any request with this browser's cookies. Redirects are not followed.
    pub async fn send(&mut self, mut request: Request) -> Page {
        let sent = self.cookies.iter().filter(|cookie| request.target().starts_with(&cookie.path));
        let sent: Vec<_> = sent.map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect();
        if !sent.is_empty() {
            request = request.header("Cookie", sent.join("; "));
        }
        if let Some(languages) = &self.accept_language {
            request = request.header("Accept-Language", languages);
        }
        let response = Connection::open(self.address).await.send(&request).await;
        for (_, line) in response.headers.iter().filter(|(name, _)| name == "set-cookie") {
            self.keep(line);
        }
        let forms = String::from_utf8(response.body.clone()).map(|page| forms(&page)).unwrap_or_default();
        Page { response, forms }
    }

    fn keep(&mut self, set_cookie: &str) {
        let mut parts = set_cookie.split(';').map(str::trim);
        let (name, value) = parts.next().and_then(|pair| pair.split_once('=')).expect("a cookie has a name");
        let path = parts.find_map(|part| part.strip_prefix("Path=")).unwrap_or("/");
        self.cookies.retain(|cookie| cookie.name != name);
        self.cookies.push(Cookie { name: name.to_owned(), value: value.to_owned(), path: path.to_owned() });
    }
}
