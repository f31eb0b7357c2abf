//! The subjects of requests.

use areo_core::message::{Body, Request};

/// The subject of a request; the label `request`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Objects are read or written.
    Access,
    /// A page of a listing.
    List,
    /// A step of a consensus.
    Cell,
    /// The pointer to the next configuration.
    Config,
    /// Servers, the directory, how this one is.
    Other,
}

impl Kind {
    pub(super) const ALL: [Kind; 5] = [
        Kind::Access,
        Kind::List,
        Kind::Cell,
        Kind::Config,
        Kind::Other,
    ];

    /// The kind of a request.
    pub(crate) fn of(request: &Request) -> Kind {
        match request {
            Request::Configured { body, .. } => match body {
                Body::Access(_) => Kind::Access,
                Body::List(_) => Kind::List,
                Body::Cell { .. } | Body::Cells { .. } => Kind::Cell,
                Body::ReadConfig => Kind::Config,
                Body::Register { .. } | Body::Servers => Kind::Other,
            },
            Request::Know(_)
            | Request::Directory
            | Request::Status
            | Request::View
            | Request::Latest { .. } => Kind::Other,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Access => "access",
            Kind::List => "list",
            Kind::Cell => "cell",
            Kind::Config => "config",
            Kind::Other => "other",
        }
    }
}
