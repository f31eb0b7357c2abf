//! A server's disk in memory: a map from handles to records, that can rot and can remember what was dropped.

use areo_core::element::{Element, Handle};
use areo_core::server::record::{Header, Step};
use areo_core::shard::{Heap, LostRecord, Shard};
use bytes::Bytes;
use std::collections::BTreeMap;

#[derive(Clone, Default)]
pub struct Disk {
    records: BTreeMap<Handle, Record>,
    written: usize,
    /// Records that were freed: a store that moves records about may find one again.
    freed: Vec<(Record, Option<u64>)>,
    /// There is room for nothing but what frees some, and for write-backs.
    pub is_full: bool,
    /// There is no room for write-backs either.
    pub is_stuffed: bool,
}

#[derive(Clone)]
pub struct Record {
    pub header: Header,
    pub payload: Bytes,
    /// The payload no longer matches its checksum.
    pub rotten: bool,
}

impl Disk {
    /// Carries out the steps of a batch. A server never names a record twice, nor frees one that is not there.
    pub fn apply(&mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Append {
                    handle,
                    header,
                    payload,
                    ..
                } => {
                    let record = Record {
                        header: *header,
                        payload,
                        rotten: false,
                    };
                    let before = self.records.insert(handle, record);
                    assert!(before.is_none(), "{handle:?} names one record");
                    self.written += 1;
                }
                Step::Free(handle) => self.free(handle, None),
                Step::Bury { handle, grave } => self.free(handle, Some(grave)),
            }
        }
    }

    fn free(&mut self, handle: Handle, grave: Option<u64>) {
        let record = self.records.remove(&handle);
        let record = record.expect("what is freed was there");
        self.freed.push((record, grave));
    }

    /// True if a record with this grave may be found again.
    pub fn may_return(&self, grave: u64) -> bool {
        self.freed.iter().any(|(_, it)| *it == Some(grave))
    }

    /// Removes freed records for good.
    pub fn reclaim(&mut self) {
        self.freed.clear();
    }

    /// Feeds everything, and some of what was freed if that is to be, to a new server in a random order, and keeps it under the handles that this one draws.
    pub fn recover<C>(
        &mut self,
        shard: &mut Shard<C>,
        resurrect: bool,
        below: &mut dyn FnMut(usize) -> usize,
    ) {
        let mut found: Vec<Record> = std::mem::take(&mut self.records).into_values().collect();
        if resurrect {
            let again = self.freed.extract_if(.., |_| below(2) == 0);
            found.extend(again.map(|(record, _)| record));
        }
        while !found.is_empty() {
            let record = found.swap_remove(below(found.len()));
            let handle = shard.recover(record.header.clone(), record.rotten);
            let before = self.records.insert(handle, record);
            assert!(before.is_none(), "{handle:?} names one record");
        }
        shard.recovered(false);
    }

    /// Lets the payloads of elements rot for which `filter` holds; returns how many.
    pub fn rot(&mut self, filter: impl Fn(&Header) -> bool) -> usize {
        let element = |record: &&mut Record| matches!(record.header, Header::Element(_));
        let chosen = self
            .records
            .values_mut()
            .filter(element)
            .filter(|r| filter(&r.header));
        chosen.map(|record| record.rotten = true).count()
    }

    /// Loses the records for which `filter` holds, as no disk should.
    pub fn lose(&mut self, filter: impl Fn(&Header) -> bool) {
        self.records.retain(|_, record| !filter(&record.header));
    }

    /// Changes headers, as no disk should; returns how many are others now.
    pub fn bend(&mut self, bend: impl Fn(&mut Header)) -> usize {
        let mut changed = 0;
        for record in self.records.values_mut() {
            let before = record.header.clone();
            bend(&mut record.header);
            changed += usize::from(record.header != before);
        }
        changed
    }

    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.values()
    }

    /// Nothing that is there is rotten any more.
    pub fn mend(&mut self) {
        for record in self.records.values_mut() {
            record.rotten = false;
        }
    }

    /// Records written so far.
    pub fn written(&self) -> usize {
        self.written
    }

    /// Payloads of the elements on the disk.
    pub fn payloads(&self) -> impl Iterator<Item = &Bytes> {
        let element = |record: &&Record| matches!(record.header, Header::Element(_));
        let elements = self.records.values().filter(element);
        elements.map(|record| &record.payload)
    }

    pub fn headers(&self) -> impl Iterator<Item = &Header> {
        self.records.values().map(|record| &record.header)
    }

    /// Number of elements on the disk.
    pub fn elements(&self) -> usize {
        self.headers()
            .filter(|header| matches!(header, Header::Element(_)))
            .count()
    }
}

impl Heap for Disk {
    fn element(&self, handle: Handle, payload: bool) -> Result<Element, LostRecord> {
        let record = self
            .records
            .get(&handle)
            .expect("a reply names a record that is there");
        let Header::Element(header) = &record.header else {
            panic!("a reply names an element")
        };
        if record.rotten {
            return Err(LostRecord);
        }
        let payload = if payload {
            record.payload.clone()
        } else {
            Bytes::new()
        };
        Ok(Element {
            form: header.form,
            deleted: header.deleted,
            length: header.length,
            metadata: header.metadata.clone(),
            payload,
            checksum: None,
        })
    }
}
