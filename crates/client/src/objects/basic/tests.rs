use super::*;
use crate::cluster::tests::names;
use crate::object::ElementRole;
use crate::stream::value_to_put;
use areo_core::config::{Configuration, Dap, Decider, Descriptor, Options, ServerId};
use areo_core::dap;
use areo_core::element::{Form, Value};
use areo_core::object::DomainId;
use std::sync::Arc;

fn configuration(dap: Dap) -> Arc<Configuration> {
    let descriptor = Descriptor {
        domain: DomainId(9),
        partition: 0,
        index: 0,
        members: (1..=5).map(ServerId).collect(),
        dap,
        delta: 5,
        copy_bytes: 100,
        options: Options::default(),
        decided_by: Decider::Members,
        lattice: None,
        era: 0,
        fixed: false,
    };
    Configuration::new(descriptor).unwrap()
}

#[test]
fn placement_is_what_a_put_sends() {
    let names = names(&["s1", "s2", "s3", "s4", "s5"]);
    for key in ["a", "b", "c", "d", "e", "f"] {
        let name = Name::user(key).unwrap();
        for length in [0, 100, 101, 5000] {
            let c = configuration(Dap::Ec { k: 3 });
            let value = Value::new(Bytes::new(), vec![1; length].into());
            let sent = dap::elements(&c, &name, &value);
            let placed = placement(&c, &names, &name, length as u64);
            assert_eq!(placed.len(), 5);
            for (element, place) in sent.iter().zip(&placed) {
                let role = match element.form {
                    Form::Copy | Form::Manifest => ElementRole::Copy,
                    Form::Trimmed => unreachable!("nothing was trimmed"),
                    Form::Fragment { index, k, .. } => {
                        assert_eq!(index, place.element);
                        match index < k {
                            true => ElementRole::Data,
                            false => ElementRole::Parity,
                        }
                    }
                };
                assert_eq!(role, place.role, "{key}, {length} bytes");
            }
        }
    }
    let copies = placement(
        &configuration(Dap::Abd),
        &names,
        &Name::user("a").unwrap(),
        5000,
    );
    assert!(copies.iter().all(|place| place.role == ElementRole::Copy));
    assert_eq!(copies[1].name, "s2");
}

#[test]
fn values_carry_their_checksum_and_are_limited() {
    let options = PutOptions {
        content_type: Some("text/plain".into()),
        ..PutOptions::default()
    };
    let content = Bytes::from_static(b"123456789");
    let value = value_to_put(content.clone(), options.clone()).unwrap();
    assert_eq!(value.content[0].as_ptr(), content.as_ptr(), "not copied");
    let metadata = Metadata::decode(&value.metadata).unwrap();
    assert_eq!(metadata.checksum, Some(0xe306_9283));
    assert_eq!(metadata.content_type.as_deref(), Some("text/plain"));
    assert!(metadata.written_at_ms.is_some());

    for block_bytes in [0, 4095, (64 << 20) + 1] {
        let options = PutOptions {
            block_bytes,
            ..options.clone()
        };
        let bytes = block_bytes.into();
        let reason = Invalid::BlockBytes { bytes };
        let refused = value_to_put(Bytes::new(), options).unwrap_err();
        assert_eq!(refused, Error::Invalid { reason });
    }
}

#[test]
fn metadata_over_its_limit_is_invalid() {
    let options = PutOptions {
        user_metadata: vec![("name".into(), "v".repeat(2048))],
        ..PutOptions::default()
    };
    let refused = value_to_put(Bytes::new(), options).unwrap_err();
    assert!(refused.to_string().contains("at most 2048"), "{refused}");
}
