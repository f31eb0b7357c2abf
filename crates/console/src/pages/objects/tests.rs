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
        last: None,
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
    let commands: Vec<String> = asked
        .commands(&view)
        .iter()
        .map(Command::to_string)
        .collect();
    let list = r"ls --long --domain default --delimiter / --after 'b c' 'it'\''s'";
    assert_eq!(commands, [list, "put --domain default KEY FILE"]);
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

#[test]
fn ten_thousand_domains_are_shown_a_page_at_a_time() {
    let start = objects("after=d00098").start();
    let all = crate::pages::tests::domains(10_000);
    let view = Domains {
        page: start.page(Objects::PATH, all, |it| it),
        refused: None,
    };
    let drawn = draw_domains(&start, &view).into_string();
    assert!(drawn.len() <= 100_000, "{} bytes", drawn.len());
    for part in ["d00099", "/objects?after=d00198", "First page"] {
        assert!(drawn.contains(part), "{part}: {drawn}");
    }
    let json = serde_json::to_value(view).unwrap();
    assert_eq!(json["next"], "/objects.json?after=d00198");
}
