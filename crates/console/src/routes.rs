//! The routes of pages and changes. Those of changes are listed, so that the tests of misuse know every one.

use crate::Console;
use axum::Router;
use axum::routing::MethodRouter;

/// Routes, and the paths among them to which forms are sent.
#[derive(Default)]
pub(crate) struct Routes {
    router: Router<Console>,
    forms: Vec<&'static str>,
}

impl Routes {
    /// Adds a route that changes nothing.
    pub(crate) fn page(mut self, path: &str, by: MethodRouter<Console>) -> Routes {
        self.router = self.router.route(path, by);
        self
    }

    /// Adds the route of a change, which judges the token of its form.
    pub(crate) fn form(mut self, path: &'static str, by: MethodRouter<Console>) -> Routes {
        self.forms.push(path);
        self.page(path, by)
    }

    /// Adds those of another part.
    pub(crate) fn merge(mut self, others: Routes) -> Routes {
        self.router = self.router.merge(others.router);
        self.forms.extend(others.forms);
        self
    }

    /// The paths of all changes.
    pub(crate) fn forms(self) -> Vec<&'static str> {
        self.forms
    }

    /// The router of them all.
    pub(crate) fn router(self) -> Router<Console> {
        self.router
    }
}
