use super::*;
use crate::pages::tests::status;

/// A page may have as many bytes as this, however many domains there are.
const MOST: usize = 100_000;

fn view(after: &str, status: ClusterStatus) -> (Cluster, View) {
    let after = after.to_owned();
    let page = Cluster(Start { after });
    let numbers = status.servers.iter().map(|_| Numbers::default()).collect();
    let view = View::of(&page.0, status, numbers, Vec::new());
    (page, view)
}

#[test]
fn ten_thousand_domains_are_shown_a_page_at_a_time() {
    // Of all domains there is a problem, too.
    for serving in [5, 2] {
        let (page, view) = view("d04321", status(10_000, serving));
        let drawn = page.draw(&view).into_string();
        assert!(drawn.len() <= MOST, "{} bytes", drawn.len());
        assert!(
            drawn.contains("d04322") && !drawn.contains("d04422<"),
            "{drawn}"
        );
        assert!(drawn.contains("/cluster?after=d04421"), "{drawn}");
    }
    let (_, view) = view("", status(10_000, 5));
    let json = serde_json::to_value(view).unwrap();
    assert_eq!(json["next"], "/cluster.json?after=d00098");
    assert_eq!(json["domains"].as_array().unwrap().len(), 100);
}

#[test]
fn problems_and_certificates_have_words() {
    let (page, mut view) = view("", status(1, 2));
    view.servers[0].numbers.certificate = Some(1_800_000_000);
    view.servers[1].numbers.certificate = Some(0);
    let drawn = page.draw(&view).into_string();
    for part in [
        "operations fail",
        "'d00000' has no quorum: 2 of 3",
        "<td>2027-01-15",
        "<td>none</td>",
    ] {
        assert!(drawn.contains(part), "{part}: {drawn}");
    }
    let json = serde_json::to_value(view).unwrap();
    assert_eq!(json["problems"][0]["outage"], true);
    assert!(json["problems"][0]["problem"].is_string(), "{json}");
}
