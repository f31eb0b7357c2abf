//! The completion of an upload: one object of its parts.

use super::{Begun, PAGE, UploadPlace, is_of};
use crate::auth::Payload;
use crate::body::checksum::{
    Algorithm, Checksum, Expected, PartChecksum, composite, multipart_etag,
};
use crate::body::{BodyPlan, BodyReader};
use crate::gateway::failure;
use crate::gateway::kept::{Kept, KeptChecksum, etag_of};
use crate::gateway::reply::{BrokenOff, GatewayBody, Reply};
use crate::gateway::write::{self, Judged};
use crate::wire::xml::multipart::{Completed, CompletedChecksum, CompletedPart};
use crate::wire::{Code, S3Error, WriteCondition, xml};
use areo_client::{Domain, Error, Etag, PutOptions, RecordsAfter, StreamError, Version};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// The shortest part but for the last one, in bytes.
const PART_BYTES: u64 = 5 << 20;

/// The request of a completion.
pub(in crate::gateway) struct Completion<'a> {
    pub(in crate::gateway) parts: Vec<CompletedPart>,
    pub(in crate::gateway) condition: Option<&'a WriteCondition>,
    pub(in crate::gateway) expected: &'a Expected,
    pub(in crate::gateway) length: Option<u64>,
}

/// A part as it is kept.
#[derive(Clone, Debug)]
struct KeptPart {
    suffix: String,
    version: Version,
    etag: String,
    length: u64,
}

/// Answers the completion of an upload.
///
/// # Errors
/// [`Code::NoSuchUpload`], [`Code::InvalidPart`], [`Code::EntityTooSmall`], those of the condition and of the store.
pub(in crate::gateway) async fn complete(
    place: UploadPlace<'_>,
    completion: Completion<'_>,
) -> Result<Reply, S3Error> {
    // An earlier attempt may have come to its end.
    if let Some(done) = earlier(&place).await? {
        place.remove().await?;
        return Ok(done);
    }
    let begun = place.begun().await?;
    let kept = kept_parts(&place).await?;
    let parts = chosen(&completion, &kept)?;
    let name = u128::from_str_radix(place.id, 16).expect("an upload has such an id");
    let condition = completion.condition;
    let on = match write::judge(place.domain, place.key, condition, name).await? {
        Judged::On(on) => on,
        Judged::Done(_) => {
            place.remove().await?;
            return Ok(response(&place, multipart_etag(&md5s(&parts)), None));
        }
    };
    let etag = multipart_etag(&md5s(&parts));
    let checksums = Arc::<Mutex<Vec<Option<Checksum>>>>::default();
    let body = body(&place, &parts, &begun, &completion, &checksums)?;
    let mut object = Kept {
        upload: Some(place.id.to_owned()),
        ..begun.kept.clone()
    };
    let options = PutOptions {
        content_type: begun.kept.content.content_type.clone(),
        user_metadata: object.pairs(),
        etag: Some(Etag::new(&etag).expect("digits, and a number of parts")),
        request: name,
        ..PutOptions::default()
    };
    let mut checksum = None;
    let describe = |body: BodyReader<GatewayBody>, options: PutOptions| {
        let full = body.sums().and_then(|sums| sums.checksum.clone());
        checksum = match (begun.full_object, begun.algorithm) {
            (false, Some(algorithm)) => of_parts(algorithm, &parts, &checksums),
            _ => full.map(|checksum| KeptChecksum {
                checksum,
                parts: None,
            }),
        };
        object.checksum.clone_from(&checksum);
        PutOptions {
            user_metadata: object.pairs(),
            ..options
        }
    };
    let put = place
        .domain
        .put_described(place.key, body, options, on, describe);
    if let Err(error) = put.await {
        // A caller that has lost patience sends the request again, and the first attempt goes on: when it ends, the parts go.
        if let Some(done) = earlier(&place).await? {
            return Ok(done);
        }
        return Err(match &error {
            StreamError::Store(error) => write::refused(place.domain, condition, error),
            StreamError::Local(_) => match failure::of_stream(&error) {
                // The bytes are the cluster's: the caller may send the request again.
                S3Error {
                    code: Code::IncompleteBody,
                    message,
                } => S3Error::new(Code::ServiceUnavailable, message),
                error => error,
            },
        });
    }
    place.remove().await?;
    Ok(response(&place, etag, checksum))
}

/// The answer, if the object is what the upload became.
async fn earlier(place: &UploadPlace<'_>) -> Result<Option<Reply>, S3Error> {
    match place.domain.stat(place.key).await {
        Ok(info) if is_of(&info.metadata, place.id) => {
            let etag = etag_of(&info.metadata, info.version);
            let checksum = Kept::of(&info.metadata).checksum;
            Ok(Some(response(place, etag, checksum)))
        }
        Ok(_) | Err(Error::NotFound { key: Some(_), .. }) => Ok(None),
        Err(error) => Err(failure::of(&error)),
    }
}

fn response(place: &UploadPlace<'_>, etag: String, checksum: Option<KeptChecksum>) -> Reply {
    let (bucket, key) = (place.domain.name(), place.key);
    let completed = Completed {
        location: format!("/{bucket}/{key}"),
        bucket: bucket.to_owned(),
        key: key.to_owned(),
        etag,
        checksum: checksum.map(|kept| CompletedChecksum {
            checksum: kept.checksum,
            parts: kept.parts.map(u32::from),
        }),
    };
    Reply::document(xml::multipart::completed(&completed))
}

/// All parts that came, by number.
async fn kept_parts(place: &UploadPlace<'_>) -> Result<BTreeMap<u16, KeptPart>, S3Error> {
    let mut parts = BTreeMap::new();
    let mut after = None;
    let begin = format!("{}/", place.id);
    loop {
        let from = after.as_ref();
        let from = from.map_or(RecordsAfter::Nothing, RecordsAfter::Record);
        let listed = place.domain.list_records_of(place.key, &begin, from, PAGE);
        let page = listed.await.map_err(|error| failure::of(&error))?;
        for entry in page.entries {
            let number = entry.name.suffix[begin.len()..].parse();
            if let (Ok(number), Some(etag)) = (number, entry.etag) {
                let part = KeptPart {
                    suffix: entry.name.suffix,
                    version: entry.version,
                    length: entry.length,
                    etag,
                };
                parts.insert(number, part);
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(parts),
        }
    }
}

/// The parts that the caller lists, as they are kept.
fn chosen(
    completion: &Completion<'_>,
    kept: &BTreeMap<u16, KeptPart>,
) -> Result<Vec<KeptPart>, S3Error> {
    let mut parts = Vec::with_capacity(completion.parts.len());
    for listed in &completion.parts {
        let number = listed.part;
        let part = kept.get(&number).filter(|part| part.etag == listed.etag);
        let part = part.ok_or_else(|| {
            let sentence = format!("there is no part {number} with that ETag");
            S3Error::new(Code::InvalidPart, sentence)
        })?;
        parts.push(part.clone());
    }
    let but_last = &parts[..parts.len().saturating_sub(1)];
    if let Some(place) = but_last.iter().position(|part| part.length < PART_BYTES) {
        let number = completion.parts[place].part;
        let sentence =
            format!("part {number} has less than {PART_BYTES} bytes, and is not the last one");
        return Err(S3Error::new(Code::EntityTooSmall, sentence));
    }
    let length: u64 = parts.iter().map(|part| part.length).sum();
    if completion.length.is_some_and(|said| said != length) {
        let sentence =
            format!("the parts have {length} bytes, and x-amz-mp-object-size says another number");
        return Err(S3Error::new(Code::InvalidRequest, sentence));
    }
    Ok(parts)
}

fn md5s(parts: &[KeptPart]) -> Vec<[u8; 16]> {
    let digits = |part: &KeptPart| u128::from_str_radix(&part.etag, 16).unwrap_or_default();
    parts
        .iter()
        .map(|part| digits(part).to_be_bytes())
        .collect()
}

/// The checksum of the parts' checksums; none if a part has none.
fn of_parts(
    algorithm: Algorithm,
    parts: &[KeptPart],
    checksums: &Mutex<Vec<Option<Checksum>>>,
) -> Option<KeptChecksum> {
    let checksums = checksums.lock().expect("no holder of the lock panics");
    let rows = parts.iter().zip(checksums.iter().cloned());
    let rows: Option<Vec<_>> = rows
        .map(|(part, checksum)| {
            let length = part.length;
            checksum.map(|checksum| PartChecksum { length, checksum })
        })
        .collect();
    let text = composite(algorithm, &rows?)?;
    let (text, count) = text.rsplit_once('-')?;
    Some(KeptChecksum {
        checksum: Checksum::parse(algorithm, text).ok()?,
        parts: Some(count.parse().ok()?),
    })
}

/// A reader of all parts, one after another.
fn body(
    place: &UploadPlace<'_>,
    parts: &[KeptPart],
    begun: &Begun,
    completion: &Completion<'_>,
    checksums: &Arc<Mutex<Vec<Option<Checksum>>>>,
) -> Result<BodyReader<GatewayBody>, S3Error> {
    let length = parts.iter().map(|part| part.length).sum();
    let (sender, pieces) = mpsc::channel(1);
    let (domain, key) = (place.domain.clone(), place.key.to_owned());
    let (parts, checksums) = (parts.to_vec(), Arc::clone(checksums));
    tokio::spawn(async move {
        for part in parts {
            if let Err(broken) = send(&domain, &key, &part, (&sender, &checksums)).await {
                // The reader may be gone, which is an end as well.
                let _ = sender.send(Err(broken)).await;
                return;
            }
        }
    });
    let body = GatewayBody::Pieces {
        pieces,
        left: length,
    };
    // A caller that says a checksum of a composite object says one of its parts.
    let (algorithm, expected) = match begun.full_object {
        true => (begun.algorithm, completion.expected.clone()),
        false => (None, Expected::default()),
    };
    let plan = BodyPlan {
        algorithm,
        expected,
        computes_md5: false,
        ..BodyPlan::new(Payload::Unsigned, length)
    };
    BodyReader::new(body, plan)
}

type Pieces = mpsc::Sender<Result<Bytes, BrokenOff>>;

fn note(checksums: &Mutex<Vec<Option<Checksum>>>, checksum: Option<Checksum>) {
    let mut noted = checksums.lock().expect("no holder of the lock panics");
    noted.push(checksum);
}

/// Sends the bytes of one part, and notes its checksum.
async fn send(
    domain: &Domain,
    key: &str,
    part: &KeptPart,
    (pieces, checksums): (&Pieces, &Mutex<Vec<Option<Checksum>>>),
) -> Result<(), BrokenOff> {
    let broken = |error: Error| BrokenOff {
        reason: error.to_string(),
    };
    let stream = domain.get_record_stream(key, &part.suffix).await;
    let mut stream = stream.map_err(broken)?;
    if stream.version() != part.version {
        let reason = "a part was replaced while the upload was completed".into();
        return Err(BrokenOff { reason });
    }
    let kept = Kept::of(stream.metadata()).checksum;
    note(checksums, kept.map(|kept| kept.checksum));
    while let Some(piece) = stream.next().await.map_err(broken)? {
        if pieces.send(Ok(piece)).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
