//! A gateway: it has signing keys of other keys, and acts on behalf of them by the library.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::wait_until;
use crate::keyed::{KeyedCluster, key_in};
use areo_client::blocking::wait;
use areo_client::{Access, Client, ConnectError, ConnectOptions, Domain, Error};
use areo_trust::id::KeyId;
use areo_trust::key::AccessKey;
use areo_trust::protocol::RefusalKind;
use areo_trust::signing::SigningScope;
use std::path::Path;
use std::time::SystemTime;

/// A cluster with the domain `photos`, which has one object.
fn cluster_with_photos() -> KeyedCluster {
    let cluster = KeyedCluster::start();
    let create = [
        "domain",
        "create",
        "photos",
        "--servers",
        "s1",
        "--allow-f0",
    ];
    cluster.run(&create).done();
    let admin = cluster.file();
    let put = ["--domain", "photos", "put", "k"];
    cluster.run_as(&admin, &put, b"content").done();
    cluster
}

fn key(file: &Path) -> AccessKey {
    AccessKey::parse(&key_in(file)).unwrap()
}

fn client(cluster: &KeyedCluster, file: &Path) -> Client {
    let options = ConnectOptions {
        access: Some(Access::Key(key(file))),
        ..ConnectOptions::from(&cluster.address(0)[..])
    };
    wait(Client::connect(options)).unwrap()
}

/// The sentence of a cluster that gives no ticket on behalf of a key.
#[track_caller]
fn not_on_behalf(gateway: &Client, of: KeyId) -> String {
    match wait(gateway.on_behalf(of)) {
        Err(ConnectError::Unauthorised { sentence }) => sentence,
        other => panic!("{other:?}"),
    }
}

/// Reads until the servers refuse the key.
#[track_caller]
fn wait_until_unauthorised(photos: &Domain) {
    let mut refusal = None;
    wait_until(|| {
        refusal = wait(photos.get("k")).err();
        refusal.is_some()
    });
    let is_unauthorised = matches!(refusal, Some(Error::Unauthorised { .. }));
    assert!(is_unauthorised, "{refusal:?}");
}

#[test]
fn a_gateway_acts_within_the_grants_of_another_key_until_that_is_revoked() {
    let cluster = cluster_with_photos();
    let (gateway, reader) = (
        cluster.key("s3", &["gateway"]),
        cluster.key("reader", &["read:photos"]),
    );
    let (gateway, reader) = (client(&cluster, &gateway), key(&reader).id);
    let acting = wait(gateway.on_behalf(reader)).unwrap();
    let photos = wait(acting.domain("photos")).unwrap();
    assert_eq!(wait(photos.get("k")).unwrap().into_bytes(), &b"content"[..]);
    let refused = wait(photos.put("k", "other")).unwrap_err();
    assert!(matches!(refused, Error::Unauthorised { .. }), "{refused}");
    let sentence = refused.to_string();
    assert!(sentence.contains("'write:photos'"), "{sentence}");
    assert!(sentence.contains(&reader.to_string()), "{sentence}");
    // Its own key has none of this.
    let own = wait(gateway.domain("photos")).and_then(|photos| wait(photos.get("k")));
    assert!(matches!(own, Err(Error::Unauthorised { .. })), "{own:?}");
    // Other keys are not changed by what becomes of this one.
    let other = key(&cluster.key("other", &["read:photos"])).id;
    let goes_on = wait(gateway.on_behalf(other)).unwrap();
    let goes_on = wait(goes_on.domain("photos")).unwrap();

    cluster.run(&["key", "revoke", "reader"]).done();
    wait_until_unauthorised(&photos);
    let sentence = not_on_behalf(&gateway, reader);
    assert!(sentence.contains("was revoked"), "{sentence}");
    wait(goes_on.get("k")).unwrap();
}

#[test]
fn a_gateway_that_is_revoked_acts_on_behalf_of_no_key() {
    let cluster = cluster_with_photos();
    let (gateway, ops, reader) = (
        cluster.key("s3", &["gateway"]),
        cluster.key("ops", &["status,reconfig,keys,join,trace"]),
        cluster.key("reader", &["read:photos"]),
    );
    let reader = key(&reader).id;
    let sentence = not_on_behalf(&client(&cluster, &ops), reader);
    assert!(sentence.contains("lacks the grant 'gateway'"), "{sentence}");
    let gateway = client(&cluster, &gateway);
    let acting = wait(gateway.on_behalf(reader)).unwrap();
    let photos = wait(acting.domain("photos")).unwrap();
    wait(photos.get("k")).unwrap();
    // On behalf of the administrator it makes no keys.
    let admin = wait(gateway.on_behalf(key(&cluster.file()).id)).unwrap();
    let refused = wait(admin.trust().keys()).unwrap_err();
    assert_eq!(refused.kind(), RefusalKind::Unauthorised, "{refused}");

    cluster.run(&["key", "revoke", "s3"]).done();
    wait_until_unauthorised(&photos);
    not_on_behalf(&gateway, reader);
}

/// Today in UTC as yyyymmdd.
fn today() -> u32 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let written = areo_client::units::show_time(now * 1000);
    written[..10].replace('-', "").parse().unwrap()
}

#[test]
fn a_gateway_has_the_signing_keys_of_the_key_that_a_client_of_s3_is_given() {
    let cluster = cluster_with_photos();
    let gateway = cluster.key("s3", &["gateway"]);
    let create = [
        "key",
        "create",
        "reader",
        "--grant",
        "read:photos",
        "--json",
    ];
    let made = cluster.run(&create).done();
    let shown = &made.objects()[0];
    let text = |name: &str| shown[name].as_str().unwrap().to_owned();
    let (id, secret) = (text("access_key_id"), text("secret_access_key"));
    assert_eq!(text("key"), format!("areokey1.{id}.{secret}"));
    assert_eq!(text("id"), id);
    let reader = AccessKey::parse(&text("key")).unwrap();

    let gateway = client(&cluster, &gateway);
    let today = today();
    let signing = |key| wait(gateway.trust().signing_keys(key, today, "eu-1"));
    let expected = SigningScope::new(today, "eu-1").unwrap();
    assert_eq!(
        signing(reader.id),
        Ok(vec![expected.derive(&reader.secret)])
    );
    let file = cluster.data("rotated.toml");
    let path = file.to_str().unwrap();
    let rotate = ["key", "rotate", "reader", "--file", path, "--json"];
    let rotated = &cluster.run(&rotate).done().objects()[0];
    assert_eq!(rotated["access_key_id"], id.as_str());
    assert!(rotated["key"].is_null() && rotated["secret_access_key"].is_null());
    let both = [&key(&file), &reader].map(|key| expected.derive(&key.secret));
    assert_eq!(signing(reader.id), Ok(both.to_vec()));
    cluster.run(&["key", "revoke", "reader"]).done();
    let refused = signing(reader.id).unwrap_err();
    assert_eq!(refused.kind(), RefusalKind::NotFound, "{refused}");

    let other = client(&cluster, &cluster.key("other", &["read:*", "status,keys"]));
    let refused = wait(other.trust().signing_keys(reader.id, today, "eu-1"));
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind(), RefusalKind::Unauthorised, "{refused}");
    let created = cluster.run(&["key", "create", "x", "--grant", "gateway"]);
    let said = created.done().stderr;
    assert!(
        said.contains("clients of S3: the access key id is "),
        "{said}"
    );
}

/// A gateway whose key got other grants had its requests about trust refused until its next ticket, so that users of it were not known.
#[test]
fn a_gateway_that_gets_other_grants_loses_no_request() {
    let cluster = cluster_with_photos();
    let file = cluster.key("s3", &["gateway"]);
    let gateway = client(&cluster, &file);
    let reader = key(&cluster.key("reader", &["read:photos"]));
    let today = today();
    let expected = SigningScope::new(today, "eu-1").unwrap();
    for grant in ["gateway,status", "gateway"] {
        let change = ["key", "grant", "s3", "--grant", grant];
        cluster.run(&change).done();
        assert_eq!(
            wait(gateway.trust().signing_keys(reader.id, today, "eu-1")),
            Ok(vec![expected.derive(&reader.secret)])
        );
    }
}
