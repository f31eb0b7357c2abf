//! The papers, pure: every algorithm of Areo as a straight-line function over one quorum call.
