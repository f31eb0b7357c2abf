//! Adoption (`[X-17 adopted-elements]`): a version that this server holds in an earlier configuration of the domain need not
//! be sent to it again. What it has becomes an ordinary put of the later configuration, with a record of its own, before the
//! request is handled; so it is acknowledged like one, and the earlier configuration may go.

use super::Server;
use crate::config::{Configuration, ConfigurationId};
use crate::dap;
use crate::element::{Element, Form, Handle};
use crate::limits;
use crate::message::{Access, Body, Request};
use crate::object::Name;
use crate::tag::Tag;
use std::sync::Arc;

/// An element held from which one of a later configuration can be made.
pub(crate) struct Adoptable {
    /// The access of the request that it is for.
    pub(crate) access: usize,
    tag: Tag,
    pub(crate) handle: Handle,
    /// The form that is wanted.
    pub(crate) form: Form,
}

impl Adoptable {
    /// The put that the adoption becomes with the element that was read.
    pub(crate) fn put(self, c: &Configuration, element: Element) -> Option<Access> {
        assert_ne!(self.form, Form::Trimmed, "a tag alone is no element");
        let element = dap::adapted(c, self.form, element)?;
        Some(Access::Put {
            tag: self.tag,
            element,
            write_back: true,
        })
    }
}

impl Server {
    /// The records that the request's adoptions can be made of, and the configuration that it is to be made for. Only records that are in the store
    /// by now: a handle of the open batch may name another record there.
    pub(crate) fn adoptable(
        &self,
        request: &Request,
    ) -> Option<(Arc<Configuration>, Vec<Adoptable>)> {
        let Request::Configured {
            configuration,
            descriptor,
            body: Body::Access(accesses),
            ..
        } = request
        else {
            return None;
        };
        let adopts = |(_, access): &(Name, Access)| matches!(access, Access::Adopt(_));
        let answers = self.serving && !self.unreadable;
        if !answers || !accesses.iter().any(adopts) || accesses.len() > limits::ACCESSES {
            return None;
        }
        let known = self.known(configuration).or(descriptor.as_ref());
        let target = known.filter(|known| known.id() == *configuration)?;
        let position = target.position(self.identity.id)?;
        let (open, mut bytes) = (self.ledger.open(), 0_u64);
        let mut found = Vec::new();
        for (access, (name, adopt)) in accesses.iter().enumerate() {
            let Access::Adopt(tag) = adopt else {
                continue;
            };
            let source = self.source(configuration, (target, position), name, *tag);
            let Some((length, source)) = source.filter(|(_, it)| !open.contains(&it.handle)) else {
                continue;
            };
            bytes = bytes.saturating_add(length);
            // More than a transfer ever asks for: the rest can be sent.
            if !found.is_empty() && bytes > limits::TRANSFER_BYTES {
                break;
            }
            found.push(Adoptable { access, ..source });
        }
        Some((target.clone(), found))
    }

    /// An element of this version in an earlier configuration, and its length, if the target has none and can use it.
    fn source(
        &self,
        id: &ConfigurationId,
        (target, position): (&Arc<Configuration>, usize),
        name: &Name,
        tag: Tag,
    ) -> Option<(u64, Adoptable)> {
        let state = self.states.get(id);
        let known = state.filter(|it| it.configuration().is_some());
        if known.is_some_and(|it| it.supersedes(name, tag) == Ok(true)) {
            return None;
        }
        let earlier = self.states.range(id.earlier()).rev();
        let mut sources = earlier.filter_map(|(_, state)| {
            let stored = state.find(name, tag)?;
            let form = match stored.form {
                Form::Manifest => Form::Manifest,
                Form::Trimmed => return None,
                Form::Copy | Form::Fragment { .. } => {
                    dap::form(target, name, position, (stored.length, stored.deleted))
                }
            };
            let fits = dap::is_enough(stored.form, form);
            let adoptable = Adoptable {
                access: 0,
                tag,
                handle: stored.handle,
                form,
            };
            fits.then_some((stored.bytes, adoptable))
        });
        sources.next()
    }
}
