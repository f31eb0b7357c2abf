//! Services outside the cluster that decide which configuration of a domain comes next. A network is given the way to them;
//! without one it decides nothing there, and the members of configurations decide as ever.

use areo_core::config::Decider;
use areo_core::error::DeciderError;
use bytes::Bytes;
use std::pin::Pin;
use std::time::Duration;

/// A question that is to be decided.
#[derive(Clone, Debug)]
pub struct Question {
    /// The service that decides.
    pub service: Decider,
    /// The key at the external service under which it is decided.
    pub key: String,
    /// The value to decide, if nothing is decided there yet.
    pub proposal: Bytes,
    /// The time that the answer is waited for.
    pub timeout: Duration,
}

/// The future of a decision of the external service.
pub type Decision = Pin<Box<dyn Future<Output = Result<Bytes, DeciderError>>>>;

/// Asks a service outside.
pub type DecideOutside = fn(Question) -> Decision;

/// Asks the service, if this process has a way to it.
pub(crate) async fn decide(
    way: Option<DecideOutside>,
    question: Question,
) -> Result<Bytes, DeciderError> {
    match way {
        Some(way) => way(question).await,
        None => Err(DeciderError {
            service: question.service.to_string(),
            reason: "this program has no way to services outside".into(),
            handed_over: false,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn asked(way: Option<DecideOutside>) -> Result<Bytes, DeciderError> {
        let question = Question {
            service: "etcd=a:1".parse().expect("it is a service"),
            key: "/areo".into(),
            proposal: Bytes::from_static(b"mine"),
            timeout: Duration::from_secs(1),
        };
        let mut asking = pin!(decide(way, question));
        match asking
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("nothing is waited for"),
        }
    }

    #[test]
    fn a_service_is_asked_by_the_way_that_is_given() {
        let agrees: DecideOutside = |question| Box::pin(async move { Ok(question.proposal) });
        assert_eq!(asked(Some(agrees)), Ok(Bytes::from_static(b"mine")));
        let undecided = asked(None).unwrap_err();
        assert!(!undecided.handed_over, "no service was asked");
    }
}
