//! Who sent a request: Signature Version 4 in a header, in a query, and over the chunks of a body.
