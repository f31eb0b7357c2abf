use super::download::disposition;
use super::*;

fn objects(query: &str) -> Objects {
    serde_html_form::from_str(query).expect("a query")
}

fn listing(prefix: &str, rows: Vec<Row>) -> Listing {
    Listing {
        domain: "default".into(),
        prefix: prefix.into(),
        delimiter: "/".into(),
        rows,
        next: None,
    }
}

/// Keys are of strangers, who would have a browser run them.
#[test]
fn a_key_is_text_and_no_part_of_the_page() {
    let key = "a\"b/<script>alert(1)</script>&";
    let folder = Row::Prefix { prefix: key.into() };
    let drawn = draw_listing(&listing("a\"b/", vec![folder])).into_string();
    assert!(!drawn.contains("<script"), "{drawn}");
    assert!(drawn.contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;"));
    assert!(drawn.contains("prefix=a%22b/%3Cscript%3Ealert%281%29%3C/script%3E%26\""));
}

#[test]
fn a_listing_names_its_command() {
    let asked = objects("domain=default&prefix=it%27s&after=b+c");
    let view = View::Listing(listing("it's", Vec::new()));
    let command = r"ls --domain default --long --delimiter / --after 'b c' 'it'\''s'";
    assert_eq!(asked.commands(&view), [command]);
}

#[test]
fn folders_lead_to_each_beginning() {
    let drawn = folders("default", "a/b/rest").into_string();
    for part in ["prefix=\"", "prefix=a/\"", "prefix=a/b/\"", " › rest"] {
        assert!(drawn.contains(part), "{part}: {drawn}");
    }
}

#[test]
fn a_download_has_a_name_that_is_no_path_and_no_header() {
    let line = |key| disposition(key).to_str().expect("plain letters").to_owned();
    assert_eq!(
        line("a/b.html"),
        "attachment; filename=\"b.html\"; filename*=UTF-8''b%2Ehtml"
    );
    for (key, plain) in [
        ("", "object"),
        ("a/..", "object"),
        ("a\\b\"; x=\"\r\nset-cookie: c", "a_b___x____set-cookie__c"),
        ("é", "_"),
    ] {
        let line = line(key);
        assert!(line.contains(&format!("filename=\"{plain}\"")), "{line}");
    }
}
