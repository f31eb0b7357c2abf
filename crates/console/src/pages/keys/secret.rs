//! The page with the secret of a key, which is shown once.

use super::key_path;
use areo_client::trust::{ANONYMOUS_NAME, AccessKey};
use maud::{Markup, html};

pub(super) fn shown(name: &str, key: &AccessKey) -> Markup {
    let id = key.id.to_string();
    html! {
        h1 { "Key " (name) }
        @if name == ANONYMOUS_NAME {
            p { "Requests of S3 without a signature have the grants of this key, until it is revoked. It has no secret." }
        } @else {
            p.notice { "Keep the key now: it is not shown again." }
            dl {
                dt { "Key" } dd { code { (*key.expose_text()) } }
                dt { "Access key id of S3" } dd { code { (id) } }
                dt { "Secret access key of S3" } dd { code { (*key.secret.expose_text()) } }
            }
            p {
                "A program uses it from the variable " code { "AREO_KEY" } ", or as the line " code { "key" }
                " of a cluster file; a person signs in to the console with it."
            }
        }
        p { a href=(key_path(&id)) { "Go on to the key" } }
    }
}
