//! The door: one-time URLs and access keys, which open sessions.

use crate::forms::{compare, equal, forged};
use crate::html::Frame;
use crate::routes::Routes;
use crate::session::{Session, Sessions, random};
use crate::trouble::Trouble;
use crate::{Console, html, locked};
use areo_client::trust::AccessKey;
use areo_client::{Access, Client, ConnectOptions};
use axum::extract::{FromRequest, FromRequestParts, RawForm, RawQuery, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use maud::html;
use serde::Deserialize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time::timeout;

/// The path of the door.
pub(crate) const LOGIN: &str = "/login";
/// The time for which a one-time URL counts.
pub const ONCE_LIFE: Duration = Duration::from_mins(10);
/// The longest time for the form of a stranger to arrive.
const FORM_PATIENCE: Duration = Duration::from_secs(10);

/// All sessions, and the one-time URL that was printed last.
pub(crate) struct Door {
    once: Mutex<Option<(String, Instant)>>,
    sessions: Sessions,
    /// A one-time URL has been used.
    pub(crate) opened: Notify,
}

impl Door {
    /// A door whose sessions end at this age.
    pub(crate) fn new(longest: Duration) -> Door {
        Door {
            once: Mutex::default(),
            sessions: Sessions::new(longest),
            opened: Notify::new(),
        }
    }

    /// A new one-time token, in place of the one before it.
    pub(crate) fn once(&self) -> String {
        let token = random();
        *locked(&self.once) = Some((token.clone(), Instant::now()));
        token
    }

    /// Takes a one-time token, which counts no more then. A request that asks for the head of the page alone opens nothing: programs that show
    /// a link send one before a person follows it.
    fn take_once(&self, method: &Method, given: &str) -> bool {
        let mut once = locked(&self.once);
        let counts =
            |(token, made): &(String, Instant)| equal(token, given) && made.elapsed() < ONCE_LIFE;
        let is_taken = *method == Method::GET && once.as_ref().is_some_and(counts);
        if is_taken {
            *once = None;
            self.opened.notify_one();
        }
        is_taken
    }
}

/// A request within a session.
#[derive(Clone)]
pub(crate) struct Visit {
    pub(crate) console: Console,
    pub(crate) session: Arc<Session>,
}

impl Visit {
    /// The client of the session.
    pub(crate) fn client(&self) -> &Client {
        &self.session.client
    }

    /// The frame of a page of this session.
    pub(crate) fn frame<'a>(&'a self, path: &'a str) -> Frame<'a> {
        Frame {
            path,
            form_token: &self.session.form_token,
            key: self.session.key.as_deref(),
        }
    }
}

impl FromRequestParts<Console> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Visit, Response> {
        let id = cookie(&parts.headers, &console.cookie_name());
        if let Some(session) = id.and_then(|id| console.0.door.sessions.find(&id)) {
            let console = console.clone();
            return Ok(Visit { console, session });
        }
        let path = parts.uri.path();
        let sentence = "there is no session, or it has ended";
        let trouble = Trouble::new(StatusCode::UNAUTHORIZED, sentence);
        if path.strip_suffix(".json").is_some() {
            return Err(trouble.json());
        }
        if parts.method != Method::GET || path.ends_with("/live") {
            return Err(trouble.into_response());
        }
        let next = html::query(&[(
            "next",
            parts.uri.path_and_query().map_or("/", |it| it.as_str()),
        )]);
        Err(Redirect::to(&format!("{LOGIN}{next}")).into_response())
    }
}

/// True for a path of this console. "//" begins another host, and browsers read "\\" as "/" and pass over tabs and line feeds.
fn is_here(next: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    next.starts_with('/') && !next.starts_with("//") && next.bytes().all(is_plain)
}

/// The value of the cookie of this name.
fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).map(str::trim);
    pairs.find_map(|pair| {
        let (found, value) = pair.split_once('=')?;
        (found == name).then(|| value.to_owned())
    })
}

impl Console {
    fn cookie_name(&self) -> String {
        format!("areo-console-{}", self.0.options.port)
    }

    /// The header that sets the cookie, or with an age of 0 forgets it.
    fn set_cookie(&self, id: &str, age: Duration) -> HeaderValue {
        let secure = if self.0.options.is_encrypted {
            "; Secure"
        } else {
            ""
        };
        let (name, age) = (self.cookie_name(), age.as_secs());
        let line = format!("{name}={id}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}");
        HeaderValue::from_str(&line).expect("digits and letters are a header")
    }

    /// Lets a browser in, and sends it on.
    fn let_in(&self, client: Client, key: Option<AccessKey>, next: Option<&str>) -> Response {
        let id = self.0.door.sessions.open(client, key);
        let cookie = self.set_cookie(&id, self.0.options.session_life);
        let next = next.filter(|next| is_here(next)).unwrap_or("/");
        let page = html! {
            h1 { "Signed in" }
            p { a href=(next) { "Go on to the console" } }
        };
        // The browser sends a cookie of SameSite=Strict only with a request that begins here: a redirect would still be of the site with the link.
        let refresh = format!("0; url={next}");
        let refresh =
            HeaderValue::from_str(&refresh).unwrap_or(HeaderValue::from_static("0; url=/"));
        let headers = [(header::SET_COOKIE, cookie), (header::REFRESH, refresh)];
        (headers, html::document("Signed in", None, &page)).into_response()
    }
}

/// The query of the door: a one-time token, and the page to show then.
#[derive(Default, Deserialize)]
struct LoginQuery {
    once: Option<String>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct LoginForm {
    key: String,
    next: Option<String>,
}

#[derive(Deserialize)]
struct LogoutForm {
    token: String,
}

pub(crate) fn routes() -> Routes {
    Routes::default()
        .page(LOGIN, get(open).post(sign_in))
        .form("/logout", post(sign_out))
}

async fn open(
    State(console): State<Console>,
    method: Method,
    RawQuery(query): RawQuery,
) -> Response {
    let query = serde_html_form::from_str::<LoginQuery>(query.as_deref().unwrap_or_default());
    let LoginQuery { once, next } = query.unwrap_or_default();
    let next = next.as_deref();
    match once {
        Some(once) if console.0.door.take_once(&method, &once) => {
            console.let_in(console.0.client.clone(), None, next)
        }
        Some(_) if method == Method::GET => {
            let sentence = "this URL was used already, or is older than 10 minutes: the console prints another one where it runs";
            form(StatusCode::UNAUTHORIZED, Some(sentence), next)
        }
        _ => form(StatusCode::OK, None, next),
    }
}

/// The form for an access key.
fn form(status: StatusCode, sentence: Option<&str>, next: Option<&str>) -> Response {
    let page = html! {
        h1 { "Open the console" }
        @if let Some(sentence) = sentence { p.trouble role="alert" { (sentence) } }
        p { "Use the URL that " code { "areo console" } " printed, or an access key. The console may do what the grants of the key allow." }
        form method="post" action=(LOGIN) {
            @if let Some(next) = next { input type="hidden" name="next" value=(next); }
            label for="key" { "Access key" }
            input id="key" name="key" type="password" autocomplete="off" required placeholder="areokey1.…";
            button { "Sign in" }
        }
    };
    (status, html::document("Open the console", None, &page)).into_response()
}

async fn sign_in(State(console): State<Console>, request: Request) -> Response {
    // A stranger has no session, and must not hold a connection for longer.
    let reading = timeout(FORM_PATIENCE, RawForm::from_request(request, &console));
    let given = match reading.await {
        Ok(Ok(RawForm(bytes))) => serde_html_form::from_bytes::<LoginForm>(&bytes).ok(),
        _ => None,
    };
    let Some(given) = given else {
        return form(StatusCode::BAD_REQUEST, Some("the form has no key"), None);
    };
    let next = given.next.as_deref();
    let key = match AccessKey::parse(&given.key) {
        Ok(key) => key,
        Err(error) => return form(StatusCode::BAD_REQUEST, Some(&error.to_string()), next),
    };
    let options = ConnectOptions {
        access: Some(Access::Key(key.clone())),
        ..console.0.options.connect.clone()
    };
    match Client::connect(options).await {
        Ok(client) => console.let_in(client, Some(key), next),
        Err(error) => {
            let trouble = Trouble::from(error);
            form(trouble.status, Some(&trouble.sentence), next)
        }
    }
}

async fn sign_out(
    State(console): State<Console>,
    visit: Visit,
    headers: HeaderMap,
    RawForm(bytes): RawForm,
) -> Response {
    let form = serde_html_form::from_bytes::<LogoutForm>(&bytes);
    let token = form.ok().map(|it| it.token);
    if compare(&visit.session.form_token, token.as_deref()).is_err() {
        return forged().page(Some(&visit.frame("/logout")));
    }
    if let Some(id) = cookie(&headers, &console.cookie_name()) {
        console.0.door.sessions.close(&id);
    }
    let cookie = console.set_cookie("", Duration::ZERO);
    ([(header::SET_COOKIE, cookie)], Redirect::to(LOGIN)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_leads_to_pages_of_this_console_alone() {
        for here in ["/", "/cluster", "/objects?domain=a&prefix=b%2Fc"] {
            assert!(is_here(here), "{here}");
        }
        for elsewhere in [
            "",
            "cluster",
            "//evil.example",
            "/\\evil.example",
            "/\t/evil.example",
            "https://evil.example",
            "/a b",
        ] {
            assert!(!is_here(elsewhere), "{elsewhere:?}");
        }
    }

    #[test]
    fn a_one_time_token_counts_once_and_only_the_last_one() {
        let door = Door::new(Duration::from_hours(1));
        let first = door.once();
        let second = door.once();
        let get = |token: &str| door.take_once(&Method::GET, token);
        assert!(!get(&first), "another one was made");
        assert!(!get("") && get(&second));
        assert!(!get(&second));
    }

    #[test]
    fn a_request_for_the_head_of_a_page_uses_no_token_up() {
        let door = Door::new(Duration::from_hours(1));
        let token = door.once();
        assert!(!door.take_once(&Method::HEAD, &token));
        assert!(door.take_once(&Method::GET, &token));
    }
}
