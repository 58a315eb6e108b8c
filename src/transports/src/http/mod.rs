//! MCP over HTTP: addresses, headers, and the client behind the wire.
//!
//! Redirects are never followed, bodies and events are bounded, and a failed request is the error
//! of exactly that request: it is neither repeated nor left without an answer. No error holds a
//! query, a header or a body.

pub(crate) mod address;
mod body;
mod certificate;
mod connection;
mod events;
pub(crate) mod headers;
mod pool;
mod reply;
mod wire;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use portcullis::{
    Limits,
    link::{Exit, Keeper},
    transport::TransportError,
};
use reqwest::redirect::Policy;
use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::CertificateDer};
use rustls_platform_verifier::{BuilderVerifierExt as _, Verifier};

pub(crate) use self::wire::HttpWire;
use self::{address::Address, connection::Connection, headers::Headers, pool::Pool};

/// Longest wait for a connection.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Connections kept for the next request.
const IDLE_CONNECTIONS: usize = 16;

/// A wire to `address` that sends `headers` with every request. Connects with the first message.
pub(crate) fn open(
    address: &Address,
    headers: Headers,
    limits: &Limits,
) -> Result<(HttpWire, HttpKeeper), TransportError> {
    open_trusting(Vec::new(), address, headers, limits)
}

/// The same, trusting more authorities than the operating system does.
fn open_trusting(
    authorities: Vec<CertificateDer<'static>>,
    address: &Address,
    headers: Headers,
    limits: &Limits,
) -> Result<(HttpWire, HttpKeeper), TransportError> {
    let failed = |source| TransportError::Other { what: "the HTTP client could not be set up".to_owned(), source };
    let tls = tls(authorities, address).map_err(|error| failed(error.into()))?;
    let connect_time = CONNECT_TIME.min(limits.start);
    let client = move || {
        reqwest::Client::builder()
            .user_agent(concat!("portcullis/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            // What a host wants of its environment, it says; nothing here reads it.
            .no_proxy()
            .tcp_nodelay(true)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .connect_timeout(connect_time)
            .tls_backend_preconfigured(tls.clone())
            .build()
    };
    let http = Pool::new(client).map_err(|error| failed(error.into()))?;
    let headers = headers.into_iter().collect();
    let connection = Arc::new(Connection::new(http, address, headers, limits.message_bytes, limits.stop_grace));
    Ok((HttpWire::new(connection.clone()), HttpKeeper { connection }))
}

/// The operating system's idea of whom to trust; read where it is needed alone.
fn tls(authorities: Vec<CertificateDer<'static>>, address: &Address) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    if !address.is_encrypted() {
        return Ok(versions.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    if authorities.is_empty() {
        return Ok(versions.with_platform_verifier()?.with_no_client_auth());
    }
    let verifier = Verifier::new_with_extra_roots(authorities, provider)?;
    Ok(versions.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// Ends the session on the server's side where the wire had no chance to.
#[derive(Debug)]
pub(crate) struct HttpKeeper {
    connection: Arc<Connection>,
}

#[async_trait]
impl Keeper for HttpKeeper {
    async fn ended(&self) -> Exit {
        std::future::pending().await
    }

    fn stderr_tail(&self) -> String {
        String::new()
    }

    async fn close(&self, grace: Duration) -> Exit {
        // Nothing depends on it: a server forgets a session by itself in the end.
        let _ = tokio::time::timeout(grace, self.connection.end_session()).await;
        Exit::Unknown
    }
}

#[cfg(test)]
mod tests;
