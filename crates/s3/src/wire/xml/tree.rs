//! Reads a document into a small tree, with limits.

use crate::wire::error::{Code, S3Error};
use quick_xml::Reader;
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};

/// Bytes of a document in the body of a request.
pub const BODY_BYTES: usize = 2 << 20;
/// Elements within each other.
const DEPTH: usize = 16;
/// Elements of a document: 10 000 parts have fewer.
const ELEMENTS: usize = 100_000;

/// An element of a parsed document.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    /// Its name, without the prefix of a namespace.
    name: String,
    /// Its text, without that of elements in it.
    text: String,
    children: Vec<Element>,
}

/// The refusal of a document.
pub(super) fn malformed(sentence: impl Into<String>) -> S3Error {
    S3Error::new(Code::MalformedXML, sentence)
}

fn unreadable(why: &quick_xml::Error) -> S3Error {
    let why = why.to_string();
    malformed(format!(
        "the document cannot be read: {}",
        why.escape_debug()
    ))
}

/// Reads a document with a root of this name.
///
/// # Errors
/// [`Code::MalformedXML`]: it is none, is larger than the limits, or has a document type or an entity.
pub(super) fn read(body: &[u8], root: &str) -> Result<Element, S3Error> {
    if body.len() > BODY_BYTES {
        return Err(malformed(format!(
            "the document has {} bytes: at most {BODY_BYTES} are read",
            body.len()
        )));
    }
    let text = std::str::from_utf8(body).map_err(|_| malformed("the document is not UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let read = Builder::default().read(text)?;
    match read.name == root {
        true => Ok(read),
        false => Err(malformed(format!(
            "the document is '{}' and not {root}",
            read.name.escape_debug()
        ))),
    }
}

/// A document on the way from its text to its tree.
#[derive(Default)]
struct Builder {
    /// The elements that are open, the root first.
    open: Vec<Element>,
    root: Option<Element>,
    elements: usize,
}

impl Builder {
    fn read(mut self, text: &str) -> Result<Element, S3Error> {
        let mut reader = Reader::from_str(text);
        loop {
            let event = reader.read_event();
            match event.map_err(|why| unreadable(&why))? {
                Event::Start(start) => self.start(&start)?,
                Event::Empty(start) => {
                    self.start(&start)?;
                    self.end();
                }
                Event::End(_) => self.end(),
                Event::Text(text) => self.text(&text.xml10_content())?,
                Event::CData(text) => self.text(&text.xml10_content())?,
                Event::GeneralRef(reference) => {
                    let character = character(&reference)?;
                    self.push(character.encode_utf8(&mut [0; 4]))?;
                }
                Event::Decl(declaration) => check_encoding(&declaration)?,
                Event::DocType(_) => {
                    return Err(malformed("the document has a document type: leave it out"));
                }
                Event::Comment(_) | Event::PI(_) => {}
                Event::Eof => break,
            }
        }
        match self.root {
            Some(root) if self.open.is_empty() => Ok(root),
            _ => Err(malformed("the document ends before its root does")),
        }
    }

    fn start(&mut self, start: &BytesStart) -> Result<(), S3Error> {
        self.elements += 1;
        if self.root.is_some() {
            return Err(malformed("the document has a second root"));
        }
        if self.open.len() >= DEPTH || self.elements > ELEMENTS {
            return Err(malformed(format!(
                "the document has more than {DEPTH} elements within each other, or {ELEMENTS} in all"
            )));
        }
        for attribute in start.attributes() {
            let is_of_namespaces = |name: &str| name == "xmlns" || name.contains(':');
            if !attribute.is_ok_and(|it| is_of_namespaces(it.key.as_ref())) {
                return Err(malformed("an element has an attribute that is not known"));
            }
        }
        let local = start.local_name();
        self.open.push(Element {
            name: local.as_ref().to_owned(),
            ..Element::default()
        });
        Ok(())
    }

    fn end(&mut self) {
        // The reader has checked that the names of start and end are equal.
        let Some(ended) = self.open.pop() else { return };
        match self.open.last_mut() {
            Some(parent) => parent.children.push(ended),
            None => self.root = Some(ended),
        }
    }

    /// Adds text as it stands in the document.
    fn text(&mut self, text: &str) -> Result<(), S3Error> {
        let is_character = |it: char| !it.is_control() || "\t\n\r".contains(it) || it >= '\u{7f}';
        match text.chars().all(is_character) {
            true => self.push(text),
            false => Err(malformed(
                "the document has a control character: write it as a reference like &#x1;",
            )),
        }
    }

    fn push(&mut self, text: &str) -> Result<(), S3Error> {
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err(malformed("the document has text outside its root")),
        }
        Ok(())
    }
}

fn check_encoding(declaration: &BytesDecl) -> Result<(), S3Error> {
    let encoding = declaration.encoding();
    let encoding = encoding
        .transpose()
        .map_err(|_| malformed("the XML declaration cannot be read"))?;
    match encoding {
        Some(name)
            if !name.eq_ignore_ascii_case("utf-8") && !name.eq_ignore_ascii_case("us-ascii") =>
        {
            Err(malformed("the document has another encoding: send UTF-8"))
        }
        _ => Ok(()),
    }
}

/// The character of a reference: one of the five entities of XML, or a number. Numbers of characters that XML has no place for are taken: keys have them.
fn character(reference: &BytesRef) -> Result<char, S3Error> {
    let name: &str = reference;
    let number = match name.strip_prefix('#') {
        Some(digits) => match digits.strip_prefix('x') {
            Some(digits) => number(digits, 16),
            None => number(digits, 10),
        },
        None => None,
    };
    let character = match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => number.and_then(char::from_u32),
    };
    character.ok_or_else(|| {
        let name = name.escape_debug();
        malformed(format!(
            "the document has an entity '{name}' that does not exist"
        ))
    })
}

fn number(digits: &str, radix: u32) -> Option<u32> {
    let is_digits = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    let number = is_digits.then(|| u32::from_str_radix(digits, radix))?;
    number.ok()
}

impl Element {
    /// Takes the element of this name, if it is there.
    ///
    /// # Errors
    /// [`Code::MalformedXML`]: it is there twice.
    pub(super) fn take(&mut self, name: &str) -> Result<Option<Element>, S3Error> {
        let Some(at) = self.children.iter().position(|child| child.name == name) else {
            return Ok(None);
        };
        let taken = self.children.remove(at);
        match self.children.iter().any(|child| child.name == name) {
            true => Err(malformed(format!("{} has two {name}", self.name))),
            false => Ok(Some(taken)),
        }
    }

    /// Takes the text of the element of this name, if it is there.
    ///
    /// # Errors
    /// [`Code::MalformedXML`]: it is there twice, or has elements.
    pub(super) fn take_text(&mut self, name: &str) -> Result<Option<String>, S3Error> {
        self.take(name)?.map(Element::into_text).transpose()
    }

    /// Takes the text of the element of this name.
    ///
    /// # Errors
    /// [`Code::MalformedXML`]: it is not there, is there twice, or has elements.
    pub(super) fn need_text(&mut self, name: &str) -> Result<String, S3Error> {
        let text = self.take_text(name)?;
        text.ok_or_else(|| malformed(format!("{} needs {name}", self.name)))
    }

    /// Takes all elements of this name, in their order.
    pub(super) fn take_all(&mut self, name: &str) -> Vec<Element> {
        let children = std::mem::take(&mut self.children);
        let (taken, rest) = children.into_iter().partition(|child| child.name == name);
        self.children = rest;
        taken
    }

    /// Takes the texts of all elements of this name, in their order.
    ///
    /// # Errors
    /// [`Code::MalformedXML`]: one has elements.
    pub(super) fn take_texts(&mut self, name: &str) -> Result<Vec<String>, S3Error> {
        self.take_all(name)
            .into_iter()
            .map(Element::into_text)
            .collect()
    }

    /// The text of an element without elements.
    ///
    /// # Errors
    /// [`Code::MalformedXML`]: it has elements.
    pub(super) fn into_text(self) -> Result<String, S3Error> {
        match self.children.is_empty() {
            true => Ok(self.text),
            false => Err(malformed(format!(
                "{} has elements: it takes text",
                self.name
            ))),
        }
    }

    /// Refuses elements that were not taken.
    ///
    /// # Errors
    /// [`Code::NotImplemented`]: an element is left. [`Code::MalformedXML`]: text stands between elements.
    pub(super) fn finish(self) -> Result<(), S3Error> {
        if !self.text.trim().is_empty() {
            let sentence = format!("{} has text: it takes elements", self.name);
            return Err(malformed(sentence));
        }
        match self.children.first() {
            None => Ok(()),
            Some(child) => {
                let name = child.name.escape_debug();
                let sentence = format!("the element {name} in {} is not implemented", self.name);
                Err(S3Error::new(Code::NotImplemented, sentence))
            }
        }
    }
}

/// A number of digits alone.
///
/// # Errors
/// [`Code::MalformedXML`]: it is none, or too large.
pub(super) fn digits(name: &str, text: &str) -> Result<u32, S3Error> {
    let text = text.trim();
    number(text, 10).ok_or_else(|| {
        let text = text.escape_debug();
        malformed(format!("{name} '{text}' is no number"))
    })
}
