//! A browser without JavaScript, as far as the console needs one: a jar of cookies, pages, forms and files.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::command::{command, secrets};
use crate::s3_client::{Response, read};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Stdio};

/// A process of the console.
pub(crate) struct Console {
    child: Child,
    /// It prints the one-time URLs.
    printed: BufReader<ChildStdout>,
    pub(crate) address: String,
    /// The first one-time URL, until it is taken.
    first: Option<String>,
}

impl Drop for Console {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let mut log = Vec::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_end(&mut log).unwrap();
        if !std::thread::panicking() {
            secrets::check_printed(&log);
        }
    }
}

impl Console {
    /// A console of the cluster of this file that takes connections on a port of its own.
    pub(crate) fn start(file: impl AsRef<OsStr>, options: &[&str]) -> Console {
        let mut child = command()
            .arg("--cluster")
            .arg(file)
            .args(["console", "--listen", "127.0.0.1:0", "--json"])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let printed = BufReader::new(child.stdout.take().unwrap());
        let mut console = Console {
            child,
            printed,
            address: String::new(),
            first: None,
        };
        let url = console.one_time_url();
        let (_, rest) = url.split_once("://").unwrap();
        let (address, _) = rest.split_once('/').unwrap();
        address.clone_into(&mut console.address);
        console.first = Some(url);
        console
    }

    /// The next one-time URL that it prints: one at its start, and one more each time that one was used.
    pub(crate) fn one_time_url(&mut self) -> String {
        if let Some(first) = self.first.take() {
            return first;
        }
        let mut line = String::new();
        self.printed.read_line(&mut line).unwrap();
        let line: serde_json::Value = serde_json::from_str(&line).expect("a line with a URL");
        line["url"].as_str().unwrap().to_owned()
    }

    /// A browser without a session.
    pub(crate) fn stranger(&self) -> Browser {
        Browser {
            address: self.address.clone(),
            cookies: BTreeMap::new(),
        }
    }

    /// A browser that a one-time URL let in: it has the key of the console.
    pub(crate) fn browser(&mut self) -> Browser {
        let url = self.one_time_url();
        let mut browser = self.stranger();
        let (_, path) = url.split_once(&self.address).unwrap();
        let opened = browser.get(path);
        assert_eq!(opened.status, 200, "{}", opened.text());
        browser
    }

    /// A browser that signed in with this access key.
    pub(crate) fn browser_of(&self, key: &str) -> Browser {
        let mut browser = self.stranger();
        let opened = browser.request("POST", "/login").form(&[("key", key)]);
        let opened = opened.send();
        assert_eq!(opened.status, 200, "{}", opened.text());
        browser
    }

    /// A number of bytes of `/proc/PID/status`, such as `VmHWM`.
    pub(crate) fn memory(&self, field: &str) -> u64 {
        let status = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let number = line.and_then(|it| it.split_whitespace().next());
        1024 * number.expect(field).parse::<u64>().unwrap()
    }
}

/// One browser. Clones are browsers with copies of its cookies.
#[derive(Clone)]
pub(crate) struct Browser {
    pub(crate) address: String,
    pub(crate) cookies: BTreeMap<String, String>,
}

impl Browser {
    /// A page. A redirect is an answer: it is not followed.
    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.request("GET", path).send()
    }

    /// The text of a page that is shown.
    #[track_caller]
    pub(crate) fn page(&mut self, path: &str) -> String {
        let page = self.get(path);
        assert_eq!(page.status, 200, "{path}: {}", page.text());
        page.text().to_owned()
    }

    /// The JSON of a page that is shown.
    #[track_caller]
    pub(crate) fn json(&mut self, path: &str) -> serde_json::Value {
        serde_json::from_str(&self.page(path)).unwrap()
    }

    /// The token of the forms of this session.
    #[track_caller]
    pub(crate) fn token(&mut self) -> String {
        token_in(&self.page("/objects"))
    }

    /// Sends a form with these fields, and with the token of the session.
    pub(crate) fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Response {
        let token = self.token();
        let fields = [&[("token", token.as_str())], fields].concat();
        self.request("POST", path).form(&fields).send()
    }

    /// Sends a form and shows the page after it: where it redirects to, or what it answers.
    #[track_caller]
    pub(crate) fn submit(&mut self, path: &str, fields: &[(&str, &str)]) -> String {
        let answer = self.post(path, fields);
        match answer.header("location") {
            Some(next) => self.page(next),
            None if answer.status == 200 => answer.text().to_owned(),
            None => panic!("{path}: {}: {}", answer.status, answer.text()),
        }
    }

    /// Sends a form with a file, which is its last part.
    pub(crate) fn upload(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        file: (&str, &[u8]),
    ) -> Response {
        let token = self.token();
        let fields = [&[("token", token.as_str())], fields].concat();
        let request = self.request("POST", path);
        request.multipart(&fields, file).send()
    }

    /// A request of any kind.
    pub(crate) fn request<'a>(&'a mut self, method: &'a str, path: &'a str) -> Request<'a> {
        Request {
            browser: self,
            method,
            path,
            headers: Vec::new(),
            body: Vec::new(),
            more: 0,
            kept_back: 0,
        }
    }

    fn keep_cookies(&mut self, response: &Response) {
        let set = response.headers.iter();
        for (_, line) in set.filter(|(name, _)| name == "set-cookie") {
            let (pair, attributes) = line.split_once(';').unwrap_or((line, ""));
            let (name, value) = pair.split_once('=').unwrap();
            if attributes.contains("Max-Age=0;") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
    }
}

/// The token of the first form of a page.
#[track_caller]
pub(crate) fn token_in(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"token\" value=\"").expect("a form");
    rest.split_once('"').unwrap().0.to_owned()
}

/// A request of a browser. Headers that are given take the place of those that the browser would send.
pub(crate) struct Request<'a> {
    browser: &'a mut Browser,
    method: &'a str,
    path: &'a str,
    headers: Vec<(&'a str, String)>,
    body: Vec<u8>,
    /// Bytes that follow the body: zeroes, which are not in memory.
    more: usize,
    /// Bytes that are counted and never sent.
    kept_back: usize,
}

impl<'a> Request<'a> {
    pub(crate) fn header(mut self, name: &'a str, value: &str) -> Request<'a> {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Sets a form as the body.
    pub(crate) fn form(self, fields: &[(&str, &str)]) -> Request<'a> {
        let encoded = |text: &str| {
            let digits = |mut all: String, byte| {
                write!(all, "%{byte:02x}").unwrap();
                all
            };
            text.bytes().fold(String::new(), digits)
        };
        let pair = |(name, value): &(&str, &str)| format!("{}={}", encoded(name), encoded(value));
        let pairs: Vec<String> = fields.iter().map(pair).collect();
        let mut form = self.header("content-type", "application/x-www-form-urlencoded");
        form.body = pairs.join("&").into_bytes();
        form
    }

    /// Sets a form with a file as the body.
    pub(crate) fn multipart(self, fields: &[(&str, &str)], file: (&str, &[u8])) -> Request<'a> {
        const BOUNDARY: &str = "----a-boundary-of-the-test";
        let mut form = self.header(
            "content-type",
            &format!("multipart/form-data; boundary={BOUNDARY}"),
        );
        let part = |rest: String| {
            format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{rest}").into_bytes()
        };
        for (name, value) in fields {
            form.body
                .extend(part(format!("{name}\"\r\n\r\n{value}\r\n")));
        }
        let (name, content) = file;
        form.body.extend(part(format!(
            "file\"; filename=\"{name}\"\r\ncontent-type: text/html\r\n\r\n"
        )));
        form.body.extend(content);
        form.body
            .extend(format!("\r\n--{BOUNDARY}--\r\n").into_bytes());
        form
    }

    /// Keeps so many bytes back of the end of the body, which its length counts.
    pub(crate) fn cut_off(mut self, bytes: usize) -> Request<'a> {
        self.body.truncate(self.body.len() - bytes);
        self.kept_back = bytes;
        self
    }

    /// Has so many bytes follow the body.
    pub(crate) fn and_more(mut self, bytes: usize) -> Request<'a> {
        self.more = bytes;
        self
    }

    fn head(&self) -> String {
        let cookies = self.browser.cookies.iter();
        let cookies: Vec<String> = cookies.map(|(name, it)| format!("{name}={it}")).collect();
        let mut usual = vec![
            ("host", self.browser.address.clone()),
            ("connection", "close".to_owned()),
        ];
        if !cookies.is_empty() {
            usual.push(("cookie", cookies.join("; ")));
        }
        if self.method != "GET" {
            usual.push(("origin", format!("http://{}", self.browser.address)));
            usual.push((
                "content-length",
                (self.body.len() + self.more + self.kept_back).to_string(),
            ));
        }
        let given = |name: &str| self.headers.iter().any(|(it, _)| *it == name);
        usual.retain(|(name, _)| !given(name));
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in usual.iter().chain(&self.headers) {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head + "\r\n"
    }

    /// The connection, after the request was sent.
    pub(crate) fn begin(&self) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.browser.address).unwrap();
        stream.write_all(self.head().as_bytes()).unwrap();
        // A console that refuses does not read on.
        let piece = vec![0; self.more.min(1 << 20)];
        let _ = stream.write_all(&self.body).and_then(|()| {
            let mut left = self.more;
            while left > 0 {
                let now = left.min(piece.len());
                stream.write_all(&piece[..now])?;
                left -= now;
            }
            Ok(())
        });
        BufReader::new(stream)
    }

    /// Sends the request; the answer.
    pub(crate) fn send(self) -> Response {
        let mut response = read(&mut self.begin()).expect("a whole response");
        if response.header("transfer-encoding") == Some("chunked") {
            response.body = joined(&response.body);
        }
        self.browser.keep_cookies(&response);
        response
    }
}

/// The content of chunks. It ends early where the connection broke off.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    loop {
        let mut size = String::new();
        chunks.read_line(&mut size).unwrap();
        match usize::from_str_radix(size.trim_end(), 16) {
            Ok(size @ 1..) => {
                content.extend(&chunks[..size]);
                chunks = &chunks[size + 2..];
            }
            _ => return content,
        }
    }
}
