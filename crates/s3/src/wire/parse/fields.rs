//! Query parameters and headers of a request, taken one by one by the operation that knows them.

use super::path::decoded;
use super::{invalid, known};
use crate::wire::error::{Code, S3Error};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method};
use std::collections::BTreeMap;

/// The parameters and headers that no operation has taken yet.
pub(super) struct Fields {
    parameters: BTreeMap<String, String>,
    /// Values of the headers, by the name in small letters. Parameters `x-amz-*` of a presigned URL, other than those of its signature, are headers,
    /// too: SDKs put them there.
    headers: BTreeMap<String, Vec<String>>,
}

impl Fields {
    /// The parameters and headers of this request that count.
    ///
    /// # Errors
    /// [`Code::InvalidURI`]: the query cannot be decoded. [`Code::InvalidArgument`]: a parameter is there twice.
    pub(super) fn read(head: &Parts) -> Result<Fields, S3Error> {
        let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in &head.headers {
            if known::counts(name.as_str()) {
                let values = headers.entry(name.as_str().to_owned()).or_default();
                values.push(text(value));
            }
        }
        let mut fields = Fields {
            parameters: BTreeMap::new(),
            headers,
        };
        let query = head.uri.query().unwrap_or_default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            fields.add_parameter(pair)?;
        }
        Ok(fields)
    }

    fn add_parameter(&mut self, pair: &str) -> Result<(), S3Error> {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text: &str| decoded(&text.replace('+', " "));
        let (name, value) = (decode(name)?, decode(value)?);
        let small = name.to_ascii_lowercase();
        if small.starts_with("x-amz-") {
            if known::is_of_signature(&small) {
                return Ok(());
            }
            let is_header = HeaderName::from_bytes(small.as_bytes()).is_ok()
                && HeaderValue::from_bytes(value.as_bytes()).is_ok();
            if !is_header {
                return Err(invalid(&name, &value, "it stands for a header"));
            }
            self.headers.entry(small).or_default().push(value);
            return Ok(());
        }
        if self.parameters.insert(name.clone(), value).is_some() {
            let sentence = format!("the parameter '{}' is there twice", name.escape_debug());
            return Err(S3Error::new(Code::InvalidArgument, sentence));
        }
        Ok(())
    }

    /// Takes a query parameter out of the fields.
    pub(super) fn parameter(&mut self, name: &str) -> Option<String> {
        self.parameters.remove(name)
    }

    /// True if the parameter is there; it is taken then.
    pub(super) fn has(&mut self, name: &str) -> bool {
        self.parameter(name).is_some()
    }

    /// True if the parameter is there; it stays.
    pub(super) fn shows(&self, name: &str) -> bool {
        self.parameters.contains_key(name)
    }

    /// Takes a header.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`]: it is there twice.
    pub(super) fn header(&mut self, name: &str) -> Result<Option<String>, S3Error> {
        let Some(mut values) = self.headers.remove(name) else {
            return Ok(None);
        };
        if values.len() > 1 {
            let sentence = format!("the header {name} is there {} times", values.len());
            return Err(S3Error::new(Code::InvalidArgument, sentence));
        }
        Ok(values.pop())
    }

    /// True if the header is there; it stays.
    pub(super) fn shows_header(&self, name: &str) -> bool {
        self.headers.contains_key(name)
    }

    /// Takes a header whose values are a list.
    pub(super) fn list(&mut self, name: &str) -> Vec<String> {
        let lines = self.headers.remove(name).unwrap_or_default();
        let words = lines.iter().flat_map(|line| line.split(','));
        words.map(|word| word.trim().to_owned()).collect()
    }

    /// Takes the headers whose names begin so, with the rest of their names.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`]: one of them is there twice, or has no rest.
    pub(super) fn headers_behind(&mut self, start: &str) -> Result<Vec<(String, String)>, S3Error> {
        let names = self.headers.keys().filter(|name| name.starts_with(start));
        let names: Vec<String> = names.cloned().collect();
        let mut taken = Vec::new();
        for name in names {
            let value = self.header(&name)?.unwrap_or_default();
            match &name[start.len()..] {
                "" => {
                    let sentence = format!("the header {start} has no name behind that");
                    return Err(S3Error::new(Code::InvalidArgument, sentence));
                }
                rest => taken.push((rest.to_owned(), value)),
            }
        }
        Ok(taken)
    }

    /// Takes a header or parameter that may only have these values, because the gateway has no others.
    ///
    /// # Errors
    /// [`Code::NotImplemented`]: it has another one.
    pub(super) fn only(&mut self, name: &str, values: &[&str]) -> Result<(), S3Error> {
        match self.header(name)?.or_else(|| self.parameter(name)) {
            Some(value) if !values.contains(&value.as_str()) => {
                let (value, values) = (value.escape_debug(), values.join("' or '"));
                let sentence = format!(
                    "{name} '{value}' is not implemented: leave it out, or send '{values}'"
                );
                Err(S3Error::new(Code::NotImplemented, sentence))
            }
            _ => Ok(()),
        }
    }

    /// Refuses temporary credentials, of which the gateway has none.
    ///
    /// # Errors
    /// [`Code::AccessDenied`].
    pub(super) fn refuse_session_token(&self) -> Result<(), S3Error> {
        match self.shows_header("x-amz-security-token") {
            true => Err(S3Error::new(
                Code::AccessDenied,
                "x-amz-security-token names temporary credentials, which do not exist here: use an access key",
            )),
            false => Ok(()),
        }
    }

    /// Refuses a parameter that no operation took.
    ///
    /// # Errors
    /// [`Code::NotImplemented`].
    pub(super) fn refuse_parameters(&self, method: &Method) -> Result<(), S3Error> {
        let mut names = self.parameters.keys();
        match names.find(|name| !known::is_harmless_parameter(name)) {
            Some(name) => {
                let name = name.escape_debug();
                let sentence =
                    format!("the parameter '{name}' of {method} is not implemented in this place");
                Err(S3Error::new(Code::NotImplemented, sentence))
            }
            None => Ok(()),
        }
    }

    /// Refuses a parameter and a header that would change the meaning of the request and that no operation took.
    ///
    /// # Errors
    /// [`Code::NotImplemented`].
    pub(super) fn refuse_the_rest(&self, method: &Method) -> Result<(), S3Error> {
        self.refuse_parameters(method)?;
        match self.headers.keys().find(|name| !known::is_harmless(name)) {
            Some(name) => {
                let name = name.escape_debug();
                let sentence =
                    format!("the header {name} of {method} is not implemented in this place");
                Err(S3Error::new(Code::NotImplemented, sentence))
            }
            None => Ok(()),
        }
    }
}

/// A header as text: UTF-8, which most SDKs send, or else Latin-1, which HTTP once said.
pub(super) fn text(value: &HeaderValue) -> String {
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => text.to_owned(),
        Err(_) => value.as_bytes().iter().copied().map(char::from).collect(),
    }
}
