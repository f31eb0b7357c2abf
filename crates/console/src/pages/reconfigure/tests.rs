use super::*;
use crate::pages::tests::status;

#[test]
fn ten_thousand_domains_are_shown_a_page_at_a_time() {
    let page = Reconfigure {
        domain: None,
        after: "d00098".into(),
    };
    let status = status(10_000, 5);
    let view = View {
        page: page
            .start()
            .page(Reconfigure::PATH, status.all_domains(), |it| it),
        chosen: None,
        servers: status.servers,
        jobs: Vec::new(),
    };
    let drawn = page.draw(&view).into_string();
    assert!(drawn.len() <= 100_000, "{} bytes", drawn.len());
    for part in ["d00099", "/reconfigure?after=d00198", "First page"] {
        assert!(drawn.contains(part), "{part}: {drawn}");
    }
    let json = serde_json::to_value(view).unwrap();
    assert_eq!(json["next"], "/reconfigure.json?after=d00198");
}
