//! The body of a request: a browser that stops in the middle of it loses its connection, and holds no place.

use axum::body::{Body, Bytes};
use futures_util::StreamExt;
use futures_util::stream::unfold;
use std::time::Duration;
use tokio::time::timeout;

/// The longest pause in the body of a request.
pub(crate) const SILENCE: Duration = Duration::from_mins(1);

#[derive(Debug, thiserror::Error)]
#[error("nothing came for {} s", .0.as_secs())]
struct Silence(Duration);

/// The body, which ends with an error after a pause of this time.
pub(crate) fn in_time(body: Body, silence: Duration) -> Body {
    let pieces = body.into_data_stream();
    Body::from_stream(unfold(Some(pieces), move |pieces| async move {
        let mut pieces = pieces?;
        let in_time = timeout(silence, pieces.next()).await;
        let rest = in_time.is_ok().then_some(pieces);
        let silent = |_| Some(Err(axum::Error::new(Silence(silence))));
        let piece: Result<Bytes, axum::Error> = in_time.unwrap_or_else(silent)?;
        Some((piece, rest))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream::{iter, pending};
    use std::io;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_ends_with_an_error() {
        let pieces = iter([Ok::<_, io::Error>("a"), Ok("b")]);
        let whole = in_time(Body::from_stream(pieces), SILENCE);
        let whole = axum::body::to_bytes(whole, 10).await;
        assert_eq!(whole.expect("it came as a whole"), "ab");
        let stopped = iter([Ok::<_, io::Error>("a")]).chain(pending());
        let stopped = in_time(Body::from_stream(stopped), SILENCE);
        let ended = timeout(SILENCE * 2, axum::body::to_bytes(stopped, 10)).await;
        let error = ended.expect("it is not waited for").expect_err("it stops");
        assert!(error.to_string().contains("for 60 s"), "{error}");
    }
}
