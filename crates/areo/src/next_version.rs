//! A feature of a next version, for `cargo xtask upgrade`: from level 1 on the metadata of an object names the level of its write.

use areo_client::{Client, PutOptions};

const SINCE: u32 = 1;

/// The options of a write to this cluster, with its level from level 1 on.
pub(crate) async fn described(client: &Client, mut options: PutOptions) -> PutOptions {
    let level = client.level().await;
    if level >= SINCE {
        let pair = ("level".to_owned(), level.to_string());
        options.user_metadata.push(pair);
    }
    options
}
