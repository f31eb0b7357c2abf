//! One sentence for each way a handshake fails: what is wrong, and what to do.

use std::io;

use rustls::{AlertDescription, Error};

use crate::certificate::CertificateError;

/// The sentence for an error of a stream over TLS; none if TLS is not its cause.
pub fn explain_io(error: &io::Error) -> Option<String> {
    let cause = error.get_ref()?.downcast_ref::<Error>()?;
    Some(explain(cause))
}

/// The sentence for an error of a connection over TLS.
pub fn explain(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(rustls::CertificateError::Other(other)) => {
            match other.0.downcast_ref::<CertificateError>() {
                Some(refusal) => refusal.to_string(),
                None => error.to_string(),
            }
        }
        Error::InvalidMessage(_) => {
            "the other end does not speak TLS: it was started without it, or is no areo server"
                .to_owned()
        }
        Error::PeerIncompatible(_) | Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            "the other end does not speak TLS 1.3, and areo speaks nothing older: update its program"
                .to_owned()
        }
        // A server without keys answers so.
        Error::AlertReceived(AlertDescription::InsufficientSecurity) => {
            "the other end was started without TLS: its cluster has no keys, so leave key and token away, or look whether the address is that of the cluster which is meant"
                .to_owned()
        }
        Error::NoApplicationProtocol
        | Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "the other end speaks TLS, and not the protocol of areo: look whether the address is that of an areo server"
                .to_owned()
        }
        Error::AlertReceived(
            AlertDescription::CertificateUnknown
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::UnknownCA,
        ) => "the other end refused this end's certificate: its log says why".to_owned(),
        Error::NoCertificatesPresented => {
            "the other end shows no certificate: it is no areo server".to_owned()
        }
        other => format!("the encrypted connection failed: {other}"),
    }
}
