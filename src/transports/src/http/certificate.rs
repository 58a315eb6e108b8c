//! What is wrong with a certificate, found in the depth of a client's error.

use std::{error::Error, io};

use portcullis::link::CertificateProblem;
use rustls::CertificateError as Found;

/// The problem with a certificate that `error` is about, if it is about one.
pub(super) fn problem(error: &(dyn Error + 'static)) -> Option<CertificateProblem> {
    let mut next = Some(error);
    while let Some(error) = next {
        // An `io::Error` does not name what it holds as its source.
        let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let tls = held.and_then(|held| held.downcast_ref()).or_else(|| error.downcast_ref());
        if let Some(rustls::Error::InvalidCertificate(found)) = tls {
            return Some(of(found));
        }
        next = held.map(|held| held as &(dyn Error + 'static)).or_else(|| error.source());
    }
    None
}

fn of(found: &Found) -> CertificateProblem {
    match found {
        Found::Expired | Found::ExpiredContext { .. } => CertificateProblem::Expired,
        Found::NotValidYet | Found::NotValidYetContext { .. } => CertificateProblem::NotYetValid,
        Found::NotValidForName | Found::NotValidForNameContext { .. } => CertificateProblem::OtherHost,
        Found::UnknownIssuer => CertificateProblem::UnknownIssuer,
        Found::Revoked => CertificateProblem::Revoked,
        _ => CertificateProblem::Invalid,
    }
}
