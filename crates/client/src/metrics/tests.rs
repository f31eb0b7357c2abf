use super::*;
use crate::error::Error;

/// Checks that the text has these lines.
fn assert_says(metrics: &Metrics, lines: &[&str]) {
    let text = metrics.text();
    for line in lines {
        assert!(
            text.lines().any(|known| known == *line),
            "no '{line}' in {text}"
        );
    }
}

fn not_found() -> Result<(), Error> {
    Err(Error::NotFound {
        domain: "photos".into(),
        key: Some("secret-key".into()),
    })
}

#[test]
fn operations_are_counted_by_kind_and_by_how_they_ended() {
    let metrics = Metrics::new();
    metrics.begin(Operation::Get).end(&Ok::<_, Error>(()));
    metrics.begin(Operation::Get).end(&not_found());
    metrics.begin(Operation::Get).end(&not_found());
    drop(metrics.begin(Operation::FilePush));
    assert_says(
        &metrics,
        &[
            "areo_client_operations_total{operation=\"get\",outcome=\"ok\"} 1",
            "areo_client_operations_total{operation=\"get\",outcome=\"not_found\"} 2",
            "areo_client_operations_total{operation=\"put\",outcome=\"ok\"} 0",
            "areo_client_operations_total{operation=\"file_push\",outcome=\"cancelled\"} 1",
            "areo_client_operation_seconds_count{operation=\"get\"} 3",
            "areo_client_operation_seconds_count{operation=\"put\"} 0",
        ],
    );
    assert!(!metrics.text().contains("secret-key"));
}

#[test]
fn steps_of_reconfigurations_are_counted_with_what_they_moved() {
    let metrics = Metrics::new();
    let moved = |objects, bytes| Progress::Transferring { objects, bytes };
    for progress in [Progress::Deciding, moved(3, 100), moved(2, 50)] {
        metrics.reconfiguring(progress);
    }
    assert_says(
        &metrics,
        &[
            "areo_client_reconfiguration_steps_total{step=\"decide\"} 1",
            "areo_client_reconfiguration_steps_total{step=\"transfer\"} 2",
            "areo_client_reconfiguration_steps_total{step=\"finalize\"} 0",
            "areo_client_reconfiguration_objects_total 5",
        ],
    );
}

#[test]
fn the_number_of_series_is_bounded() {
    let metrics = Metrics::new();
    for outcome in OUTCOMES {
        for (kind, _) in Operation::COUNTED {
            metrics.begin(kind).outcome = outcome;
        }
    }
    let series = |text: &str| text.lines().filter(|line| !line.starts_with('#')).count();
    let all = series(&metrics.text());
    for (kind, _) in Operation::COUNTED {
        metrics.begin(kind).end(&not_found());
    }
    assert_eq!(series(&metrics.text()), all);
    let operations = metrics.text();
    let of_operations = operations
        .lines()
        .filter(|line| line.starts_with("areo_client_operations_total{"));
    assert_eq!(
        of_operations.count(),
        Operation::COUNTED.len() * OUTCOMES.len()
    );
}

/// The order of the labels is that of the kinds, by which they are found.
#[test]
fn every_kind_has_its_word() {
    for (position, (kind, _)) in Operation::COUNTED.iter().enumerate() {
        assert_eq!(*kind as usize, position);
    }
}
