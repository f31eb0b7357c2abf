use super::*;
use crate::cluster::tests::names;
use areo_core::config::{Dap, Descriptor};
use areo_core::object::DomainId;

fn on(members: impl IntoIterator<Item = u128>) -> Arc<Configuration> {
    let members = members.into_iter().map(ServerId).collect();
    Configuration::new(Descriptor::new(DomainId(7), members, Dap::Abd)).unwrap()
}

/// The plan for s1 to leave, where these of five servers serve.
fn planned(
    serving: impl IntoIterator<Item = u128>,
    successor: &Successor,
    members: impl IntoIterator<Item = u128>,
) -> Result<Option<Vec<String>>, ReconfigError> {
    planned_in("photos", serving, successor, &[on(members)])
}

/// The plan for s1 to leave the domain of this name.
fn planned_in(
    domain: &str,
    serving: impl IntoIterator<Item = u128>,
    successor: &Successor,
    path: &[Arc<Configuration>],
) -> Result<Option<Vec<String>>, ReconfigError> {
    let names = names(&["s1", "s2", "s3", "s4", "s5"]);
    planned_among(&names, domain, serving, successor, path)
}

fn planned_among(
    names: &Names,
    domain: &str,
    serving: impl IntoIterator<Item = u128>,
    successor: &Successor,
    path: &[Arc<Configuration>],
) -> Result<Option<Vec<String>>, ReconfigError> {
    let choosing = SuccessorChoice {
        serving: serving.into_iter().map(ServerId).collect(),
        // The first free one has the most to do already.
        domains: [(ServerId(4), 3)].into(),
        leaving: ServerId(1),
        names,
        successor,
    };
    let step = choosing.step(domain, path)?;
    let members = |step: Step| step.new.members.into_iter().map(|member| member.name);
    Ok(step.map(|step| members(step).collect()))
}

fn names_of(servers: &[&str]) -> Vec<String> {
    servers.iter().map(ToString::to_string).collect()
}

#[test]
fn a_free_server_that_serves_and_has_least_to_do_takes_the_place() {
    let free = &Successor::Free;
    assert_eq!(
        planned(2..=5, free, 1..=3).unwrap(),
        Some(names_of(&["s5", "s2", "s3"]))
    );
    assert_eq!(
        planned(2..=4, free, 1..=3).unwrap(),
        Some(names_of(&["s4", "s2", "s3"]))
    );
    assert_eq!(planned(2..=5, free, 2..=4).unwrap(), None);
    let none_is_free = planned(2..=3, free, 1..=3).unwrap_err();
    assert!(matches!(
        none_is_free,
        ReconfigError::Choice {
            error: InvalidChoice::NoFreeServer { .. }
        }
    ));
    let fewer = planned(2..=4, &Successor::FreeOrNone, 1..=4).unwrap();
    assert_eq!(fewer, Some(names_of(&["s2", "s3", "s4"])));
}

/// Although the other one has less to do.
#[test]
fn the_server_in_the_emptiest_zone_takes_the_place_and_one_to_be_emptied_does_not() {
    let labelled = |labels: &[(u128, &str, &str)]| {
        let mut records = names(&["s1", "s2", "s3", "s4", "s5"]).records().clone();
        for (server, key, text) in labels {
            let record = records.get_mut(&ServerId(*server)).unwrap();
            record.labels = record.labels.changed([(*key, *text)]);
        }
        Names::new(records)
    };
    let planned = |labels: &[(u128, &str, &str)]| {
        let (names, path) = (labelled(labels), [on(1..=3)]);
        planned_among(&names, "photos", 2..=5, &Successor::Free, &path).unwrap()
    };
    let (s4, s5) = (names_of(&["s4", "s2", "s3"]), names_of(&["s5", "s2", "s3"]));
    let zones = [(2, "zone", "a"), (3, "zone", "b"), (4, "zone", "c")];
    let with = |zone| [&zones[..], &[(5, "zone", zone)]].concat();
    assert_eq!(planned(&with("a")), Some(s4.clone()));
    assert_eq!(planned(&with("d")), Some(s5.clone()));
    // The zone of the server that goes gets a member in its place.
    let own = [
        (1, "zone", "d"),
        (2, "zone", "a"),
        (4, "zone", "a"),
        (5, "zone", "d"),
    ];
    assert_eq!(planned(&own), Some(s5));
    assert_eq!(planned(&[(5, "empty", "yes")]), Some(s4));
}

/// A change to servers of which no quorum serves would end only when they come back.
#[test]
fn a_server_goes_only_where_a_quorum_serves_afterwards() {
    let to = |name: &str| Successor::Server(name.into());
    let away = |planned: Result<_, ReconfigError>| match planned {
        Err(ReconfigError::Unreachable { servers, .. }) => {
            servers.into_iter().map(|it| it.server).collect()
        }
        Err(error) => panic!("{error}"),
        Ok(_) => Vec::new(),
    };
    assert_eq!(away(planned([2, 3], &to("s4"), 1..=3)), ["s4"]);
    assert_eq!(away(planned([4], &to("s4"), 1..=3)), ["s2", "s3"]);
    assert!(away(planned([2, 4], &to("s4"), 1..=3)).is_empty());
}

/// The root domain has every server that was free, because its own task takes them: a server can be replaced in other domains, where
/// servers are free.
#[test]
fn a_root_domain_that_has_grown_gives_a_server_up() {
    let free =
        |domain, root: Arc<Configuration>| planned_in(domain, 2..=5, &Successor::Free, &[root]);
    let grown = on(1..=5);
    assert_eq!(
        free(ROOT_DOMAIN, grown.clone()).unwrap(),
        Some(names_of(&["s2", "s3", "s4"]))
    );
    assert!(
        free("photos", grown).is_err(),
        "it is full because a person wants that"
    );
    let fixed = Descriptor {
        fixed: true,
        ..Descriptor::new(DomainId(7), (1..=5).map(ServerId).collect(), Dap::Abd)
    };
    assert!(free(ROOT_DOMAIN, Configuration::new(fixed).unwrap()).is_err());
}
