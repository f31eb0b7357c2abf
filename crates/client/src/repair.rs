//! Full redundancy of a domain: how many objects every member holds, and bringing the others to the members that lack them
//! (`areo_core::dsm::redundancy`). Servers do the second themselves; this is for people who do not want to wait.

use crate::domain::Domain;
use crate::error::Error;
use crate::operation::Operation;
use crate::session::{Context, Deadline, RunningJob};
use crate::units::show_count;
use crate::view;
use areo_core::config::Configuration;
use areo_core::dsm::redundancy::{
    Completion, Incomplete, MemberListing, ObjectRedundancy, RedundancyPage,
};
use areo_core::limits::REPAIR_WINDOW;
use areo_core::object::{Kind, Name};
use areo_core::tag::Tag as Version;
use areo_core::{dap, gather};
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Objects that are named in a report; the others are counted.
const NAMED: usize = 1000;

/// The number of objects that every member holds. Objects are those of users, blocks of large values and of files,
/// and tombstones.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Redundancy {
    /// Objects that were looked at.
    pub objects: u64,
    /// Objects of which every member holds the newest version.
    pub full: u64,
    /// Elements that were brought to members that lacked them.
    pub repaired: u64,
    /// Objects of which a read returned another version than the listed one: a write has replaced it, or it is left of a write that did
    /// not end. Only a repair reads.
    pub superseded: u64,
    /// Other objects that are [`RepairState::Unrecoverable`].
    pub unrecoverable: u64,
    /// The first of the other objects.
    pub below: Vec<BelowRedundancy>,
    /// The domain is being reconfigured, which brings its objects to the new members: objects were not looked at, or not all of
    /// them.
    pub being_reconfigured: bool,
}

/// An object that is not known to be at every member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BelowRedundancy {
    /// Key of the object or file. A block has no key: this text names it, and [`Domain::repair_object`] takes it.
    pub key: String,
    /// `object`, `block`, `file`, or `system` for the domain's own objects.
    pub kind: &'static str,
    /// The state of its repair.
    pub state: RepairState,
    /// Servers that lack its newest version, by name. That of a write that is under way, too.
    pub lacking: Vec<String>,
    /// Servers among them at which the version is damaged.
    pub damaged: Vec<String>,
    /// Servers that did not list their holdings.
    pub silent: Vec<String>,
    /// The versions of an unrecoverable object that servers list, damaged or not, with the servers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<ListedVersion>,
    /// Why it could not be repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A version of an object, and the servers that list it as their newest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ListedVersion {
    /// The version that these servers list.
    #[serde(serialize_with = "view::text")]
    pub version: Version,
    /// Servers at which it is not damaged, by name.
    pub sound: Vec<String>,
    /// Servers at which it is damaged, by name.
    pub damaged: Vec<String>,
}

/// The requirement for bringing an object to every member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RepairState {
    /// It waits for the members that lack it, or are silent: they get it once they can take it.
    Waiting,
    /// The members without damage in it, the silent ones included, are fewer than its value takes: no read returns it until it is written
    /// over.
    Unrecoverable,
}

impl RepairState {
    /// The word for the state in reports.
    pub fn word(self) -> &'static str {
        match self {
            RepairState::Waiting => "waiting",
            RepairState::Unrecoverable => "unrecoverable",
        }
    }

    fn of(listed: &[MemberListing], needed: usize) -> RepairState {
        let sound = listed
            .iter()
            .filter(|it| **it != MemberListing::Damaged)
            .count();
        match sound >= needed {
            true => RepairState::Waiting,
            false => RepairState::Unrecoverable,
        }
    }
}

impl Redundancy {
    /// Objects that are not known to be at every member.
    pub fn below(&self) -> u64 {
        self.objects - self.full
    }

    /// Servers that objects wait for, by name.
    pub fn waiting_for(&self) -> BTreeSet<&str> {
        let servers = self
            .below
            .iter()
            .flat_map(|it| it.lacking.iter().chain(&it.silent));
        servers.map(String::as_str).collect()
    }

    /// Why redundancy is not full in this domain of so many servers, if it is not, and what to do.
    pub fn show_lack(&self, domain: &str, servers: usize) -> Option<String> {
        if self.being_reconfigured {
            return Some(format!(
                "'{domain}' is being reconfigured: run this again when that has ended (`areo reconfig status {domain}`)"
            ));
        }
        if self.unrecoverable > 0 {
            let lost = show_count(self.unrecoverable, "object");
            return Some(format!(
                "{lost} of '{domain}' cannot be recovered: `areo repair ls --domain {domain}` says which, and where"
            ));
        }
        let below = self.below();
        if below == 0 {
            return None;
        }
        let is = if below == 1 { "is" } else { "are" };
        let waiting: Vec<&str> = self.waiting_for().into_iter().collect();
        Some(format!(
            "{} of '{domain}' {is} not at all {servers} servers: {} repairs itself once it runs; one that is lost is replaced with `areo server replace`",
            show_count(below, "object"),
            waiting.join(", "),
        ))
    }
}

impl Domain {
    /// Looks at every object of the domain, and brings its newest version to the members that lack it. One object that cannot
    /// be repaired does not keep others from it. `progress` gets the number of objects so far. May be called at any time, also
    /// by several clients, and has no deadline as long as it gets on.
    ///
    /// # Errors
    /// [`Error::Unavailable`]: no quorum lists the objects. What was repaired by then stays so.
    pub async fn repair(
        &self,
        progress: impl Fn(u64) + Send + 'static,
    ) -> Result<Redundancy, Error> {
        self.look_at_all(true, Box::new(progress)).await
    }

    /// Compares the members as [`Domain::repair`] does, and repairs nothing.
    ///
    /// # Errors
    /// As [`Domain::repair`].
    pub async fn redundancy(
        &self,
        progress: impl Fn(u64) + Send + 'static,
    ) -> Result<Redundancy, Error> {
        self.look_at_all(false, Box::new(progress)).await
    }

    /// Repairs, as [`Domain::repair`] does, the object with this key, and of the block or file that [`BelowRedundancy::key`] names so.
    ///
    /// # Errors
    /// [`Error::NotFound`] if no server has heard of it; [`Error::Invalid`] for what is no key; as [`Domain::repair`].
    pub fn repair_object<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Redundancy, Error>> {
        Box::pin(async move {
            Name::user(key)?;
            // A record has the byte 0 in its name.
            let of_kind = |kind| Name::new(kind, key).ok();
            let names: Vec<Name> = Kind::ALL.into_iter().filter_map(of_kind).collect();
            let look = move |context: Context| async move {
                let mut all = Redundancy::default();
                let looked = look_at(&context, &names, &mut all).await;
                match all.objects {
                    0 if looked.is_ok() => Err(context.domain.not_found(names[0].key())),
                    _ => ended(&context, looked, all),
                }
            };
            self.run(Deadline::Idle, Operation::Repair, None, look)
                .await
        })
    }

    fn look_at_all(
        &self,
        repairs: bool,
        progress: Box<dyn Fn(u64) + Send>,
    ) -> RunningJob<Result<Redundancy, Error>> {
        let look = move |context: Context| async move {
            let mut all = Redundancy::default();
            let looked = go_over(&context, repairs, &mut all, progress).await;
            ended(&context, looked, all)
        };
        self.run(Deadline::Idle, Operation::Repair, None, look)
    }
}

fn ended(
    context: &Context,
    looked: Result<(), Incomplete>,
    all: Redundancy,
) -> Result<Redundancy, Error> {
    match looked {
        Ok(()) => Ok(all),
        Err(Incomplete::Moving) => Ok(Redundancy {
            being_reconfigured: true,
            ..all
        }),
        Err(Incomplete::Unavailable(failed)) => Err(context.not_applied(&failed)),
    }
}

async fn look_at(
    context: &Context,
    names: &[Name],
    all: &mut Redundancy,
) -> Result<(), Incomplete> {
    let domain = context.handle();
    let path = domain.path().await?;
    let [c] = &path[..] else {
        return Err(Incomplete::Moving);
    };
    for name in names {
        if let Some(object) = domain.redundancy_of(c, name).await? {
            look_at_objects(context, c, &[object], true, all).await;
        }
    }
    Ok(())
}

async fn go_over(
    context: &Context,
    repairs: bool,
    all: &mut Redundancy,
    progress: impl Fn(u64),
) -> Result<(), Incomplete> {
    let domain = context.handle();
    let path = domain.path().await?;
    let [c] = &path[..] else {
        return Err(Incomplete::Moving);
    };
    for kind in Kind::ALL {
        let mut next = Some(String::new());
        while let Some(after) = next {
            let page = domain.redundancy(c, kind, &after).await?;
            let RedundancyPage {
                objects,
                next: more,
            } = page;
            look_at_objects(context, c, &objects, repairs, all).await;
            progress(all.objects);
            next = more;
        }
    }
    Ok(())
}

async fn look_at_objects(
    context: &Context,
    c: &Arc<Configuration>,
    objects: &[ObjectRedundancy],
    repairs: bool,
    all: &mut Redundancy,
) {
    let domain = context.handle();
    let complete = objects.iter().map(async |object| {
        let lacking = object.lacking();
        match repairs && lacking.contains(&true) {
            true => Some(domain.complete(c, object, &lacking).await),
            false => None,
        }
    });
    let completed = gather::join(REPAIR_WINDOW, complete).await;
    for (object, completed) in objects.iter().zip(completed) {
        add(all, context, c, object, completed);
    }
}

/// Counts an object in the report.
fn add(
    all: &mut Redundancy,
    context: &Context,
    c: &Arc<Configuration>,
    object: &ObjectRedundancy,
    completed: Option<Result<Completion, Incomplete>>,
) {
    let mut listed = object.listed.clone();
    let mut error = None;
    match completed {
        None => {}
        Some(Ok(completion)) => {
            // A listed version that no read returned is left of a write that did not end: it is not lacked.
            let is_unfinished = completion.tag < object.tag;
            all.superseded += u64::from(completion.tag != object.tag);
            if !is_unfinished {
                all.repaired += completion.reached() as u64;
            }
            let lacking = object.lacking();
            let lacking = (0..c.n()).filter(|at| lacking[*at]);
            for (at, got_it) in lacking.zip(completion.has_it()) {
                if got_it {
                    listed[at] = MemberListing::Newest;
                }
            }
        }
        Some(Err(incomplete)) => error = Some(incomplete.to_string()),
    }
    all.objects += 1;
    if listed.iter().all(|it| *it == MemberListing::Newest) {
        all.full += 1;
        return;
    }
    let state = RepairState::of(&listed, dap::needed_without_damage(c));
    all.unrecoverable += u64::from(state == RepairState::Unrecoverable);
    if all.below.len() < NAMED {
        let names = context.cluster().names();
        let members = c.members().iter().zip(&listed);
        let named = |which: &[MemberListing]| {
            let chosen = members.clone().filter(|(_, it)| which.contains(it));
            chosen.map(|(member, _)| names.name(*member)).collect()
        };
        all.below.push(BelowRedundancy {
            key: object.name.key().to_owned(),
            kind: word_of(object.name.kind()),
            state,
            lacking: named(&[MemberListing::Older, MemberListing::Damaged]),
            damaged: named(&[MemberListing::Damaged]),
            silent: named(&[MemberListing::Unknown]),
            versions: match state {
                RepairState::Waiting => Vec::new(),
                RepairState::Unrecoverable => versions(object, |at| names.name(c.members()[at])),
            },
            error,
        });
    }
}

/// The versions that members list, the newest first.
fn versions(object: &ObjectRedundancy, name: impl Fn(usize) -> String) -> Vec<ListedVersion> {
    let mut listed: BTreeMap<Version, ListedVersion> = BTreeMap::new();
    for (at, version) in object.versions.iter().enumerate() {
        let Some(version) = *version else { continue };
        let of_version = listed.entry(version).or_insert(ListedVersion {
            version,
            sound: Vec::new(),
            damaged: Vec::new(),
        });
        match object.listed[at] {
            MemberListing::Damaged => of_version.damaged.push(name(at)),
            _ => of_version.sound.push(name(at)),
        }
    }
    listed.into_values().rev().collect()
}

fn word_of(kind: Kind) -> &'static str {
    match kind {
        Kind::User => "object",
        Kind::Block => "block",
        Kind::Genesis => "file",
        Kind::System => "system",
        Kind::Upload => "upload record",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MemberListing::{Damaged, Newest, Older, Unknown};

    #[test]
    fn what_is_missing_is_said_with_what_to_do() {
        let mut redundancy = Redundancy {
            objects: 3,
            full: 3,
            ..Redundancy::default()
        };
        assert_eq!(redundancy.show_lack("d", 5), None);
        redundancy.full = 2;
        redundancy.below.push(BelowRedundancy {
            key: "k".into(),
            kind: "object",
            state: RepairState::Waiting,
            lacking: vec!["s2".into()],
            damaged: Vec::new(),
            silent: vec!["s4".into()],
            versions: Vec::new(),
            error: None,
        });
        let sentence = redundancy.show_lack("d", 5).expect("one is below");
        assert!(sentence.starts_with("1 object of 'd' is not at all 5 servers: s2, s4 repairs"));
        redundancy.unrecoverable = 1;
        let sentence = redundancy.show_lack("d", 5).expect("one is lost");
        assert!(sentence.starts_with("1 object of 'd' cannot be recovered"));
        redundancy.being_reconfigured = true;
        let sentence = redundancy
            .show_lack("d", 5)
            .expect("not all were looked at");
        assert!(sentence.starts_with("'d' is being reconfigured"));
    }

    #[test]
    fn of_what_is_lost_the_versions_are_said_and_where_they_are() {
        let tag = |number| Version {
            number,
            ..Version::INITIAL
        };
        let object = ObjectRedundancy {
            name: Name::user("k").unwrap(),
            tag: tag(3),
            listed: vec![Damaged, Older, Damaged, Newest, Unknown],
            versions: vec![Some(tag(3)), Some(tag(2)), Some(tag(2)), Some(tag(3)), None],
            is_gone: false,
        };
        let listed = versions(&object, |at| format!("s{}", at + 1));
        let shown = |it: &ListedVersion| (it.version, it.sound.join(" "), it.damaged.join(" "));
        assert_eq!(
            listed.iter().map(shown).collect::<Vec<_>>(),
            [
                (tag(3), "s4".into(), "s1".into()),
                (tag(2), "s2".into(), "s3".into())
            ]
        );
    }

    #[test]
    fn an_object_is_unrecoverable_when_the_members_without_damage_are_too_few() {
        let of = |listed: &[MemberListing]| RepairState::of(listed, 4);
        let waiting = RepairState::Waiting;
        assert_eq!(of(&[Newest, Newest, Newest, Older, Unknown]), waiting);
        assert_eq!(of(&[Newest, Newest, Newest, Older, Damaged]), waiting);
        let lost = of(&[Newest, Newest, Older, Damaged, Damaged]);
        assert_eq!(lost, RepairState::Unrecoverable);
        // A silent server may be without damage.
        assert_eq!(of(&[Newest, Unknown, Unknown, Unknown, Damaged]), waiting);
    }
}
