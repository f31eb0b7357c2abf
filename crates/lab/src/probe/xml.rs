//! Texts of elements in answers.

use quick_xml::Reader;
use quick_xml::events::Event;

/// An element without children.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    /// The names of all elements that are open, from the root on, joined by `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// The number of the element that it is in.
    pub(super) parent: usize,
}

/// The elements of a document without children, in order. A document that cannot be read ends where it cannot.
pub(super) fn leaves(document: &[u8]) -> Vec<Leaf> {
    let Ok(text) = std::str::from_utf8(document) else {
        return Vec::new();
    };
    let mut reader = Reader::from_str(text);
    // Open elements: the name and the number.
    let (mut open, mut leaves) = (Vec::<(String, usize)>::new(), Vec::new());
    let (mut content, mut is_leaf, mut number) = (String::new(), false, 0);
    let leaf = |open: &[(String, usize)], text: String| {
        let names: Vec<&str> = open.iter().map(|(name, _)| name.as_str()).collect();
        let above = open.len().checked_sub(2).map(|at| open[at].1);
        Leaf {
            path: names.join("/"),
            text,
            parent: above.unwrap_or(0),
        }
    };
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => {
                number += 1;
                open.push((start.local_name().as_ref().to_owned(), number));
                content.clear();
                is_leaf = true;
            }
            Ok(Event::Empty(start)) => {
                open.push((start.local_name().as_ref().to_owned(), 0));
                leaves.push(leaf(&open, String::new()));
                open.pop();
                is_leaf = false;
            }
            Ok(Event::Text(text)) => content.push_str(&text.xml10_content()),
            Ok(Event::CData(text)) => content.push_str(&text.xml10_content()),
            Ok(Event::GeneralRef(reference)) => content.push_str(&character(&reference)),
            Ok(Event::End(_)) => {
                if is_leaf {
                    leaves.push(leaf(&open, std::mem::take(&mut content)));
                }
                open.pop();
                is_leaf = false;
            }
            Ok(Event::Eof) | Err(_) => return leaves,
            Ok(_) => {}
        }
    }
}

/// A character that is written by its number or by its name.
fn character(name: &str) -> String {
    let number = name
        .strip_prefix('#')
        .map(|digits| match digits.strip_prefix('x') {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => digits.parse(),
        });
    if let Some(Ok(number)) = number {
        return char::from_u32(number).map_or(String::new(), String::from);
    }
    let named = match name {
        "quot" => "\"",
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "apos" => "'",
        _ => "",
    };
    named.to_owned()
}

/// The text of the first element with this path.
pub(super) fn first(leaves: &[Leaf], path: &str) -> Option<String> {
    let found = leaves.iter().find(|leaf| leaf.path == path);
    found.map(|leaf| leaf.text.clone())
}

/// The text at one path, and that at another path in the same element, whichever comes first there.
pub(super) fn pairs(leaves: &[Leaf], path: &str, other: &str) -> Vec<(String, String)> {
    let of_path = leaves.iter().filter(|leaf| leaf.path == path);
    let pair = |leaf: &Leaf| {
        let mut beside = leaves.iter().filter(|one| one.parent == leaf.parent);
        let beside = beside.find(|one| one.path == other);
        let beside = beside.map_or(String::new(), |one| one.text.clone());
        (leaf.text.clone(), beside)
    };
    of_path.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::{first, leaves, pairs};

    #[test]
    fn elements_of_a_listing_are_found_in_any_order() {
        let document = br#"<?xml version="1.0"?><List xmlns="x"><Truncated>false</Truncated>
            <Contents><Key>a</Key><ETag>&quot;1&#34;</ETag></Contents><Contents><ETag>2</ETag><Key>b</Key></Contents><Contents><Key>c</Key></Contents><Empty/></List>"#;
        let found = leaves(document);
        assert_eq!(first(&found, "List/Truncated").unwrap(), "false");
        assert_eq!(first(&found, "List/Empty").unwrap(), "");
        let entries = pairs(&found, "List/Contents/Key", "List/Contents/ETag");
        let entries: Vec<(&str, &str)> = entries.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(entries, [("a", "\"1\""), ("b", "2"), ("c", "")]);
        assert_eq!(leaves(b"\xff"), []);
    }
}
