//! Servers whose certificates prove nothing.

use std::sync::atomic::{AtomicUsize, Ordering};

use portcullis::{
    link::{CertificateProblem, LinkError},
    testing::BareClient,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use tokio::{io::AsyncReadExt as _, net::TcpListener};
use tokio_rustls::TlsAcceptor;

use super::*;

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn named(host: &str) -> CertificateParams {
    CertificateParams::new(vec![host.to_owned()]).unwrap()
}

/// What a client that trusts `authority` says of a server with such a certificate, and how many bytes that
/// server was told.
async fn beginning_with(
    params: CertificateParams,
    issuer: Option<&CertifiedIssuer<'static, KeyPair>>,
    authority: &CertifiedIssuer<'static, KeyPair>,
) -> (LinkError, usize, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = match issuer {
        Some(issuer) => params.signed_by(&key, issuer).unwrap(),
        None => params.self_signed(&key).unwrap(),
    };
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/mcp?key=canary-query", listener.local_addr().unwrap());
    let heard = Arc::new(AtomicUsize::new(0));
    let serving = tokio::spawn({
        let heard = heard.clone();
        async move {
            let acceptor = TlsAcceptor::from(Arc::new(config));
            while let Ok((stream, _)) = listener.accept().await {
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    heard.fetch_add(stream.read(&mut [0; 4096]).await.unwrap_or_default(), Ordering::SeqCst);
                }
            }
        }
    });
    let address = Address::parse(&url).unwrap();
    let authorities = vec![authority.der().clone()];
    let (wire, _keeper) = open_trusting(authorities, &address, Headers::new(), &Limits::default()).unwrap();
    let error = BareClient::over(wire).initialize().await.map(drop).unwrap_err();
    serving.abort();
    (error, heard.load(Ordering::SeqCst), address.host())
}

#[tokio::test]
async fn r41_a_certificate_that_proves_nothing_is_a_hard_error_that_says_why() {
    let (trusted, stranger) = (authority("trusted"), authority("stranger"));
    let mut expired = named("127.0.0.1");
    (expired.not_before, expired.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    let mut early = named("127.0.0.1");
    (early.not_before, early.not_after) = (date_time_ymd(4000, 1, 1), date_time_ymd(4001, 1, 1));
    for (params, issuer, problem, words) in [
        (expired, Some(&trusted), CertificateProblem::Expired, "has expired"),
        (early, Some(&trusted), CertificateProblem::NotYetValid, "is not valid yet"),
        (named("example.com"), Some(&trusted), CertificateProblem::OtherHost, "is for another host"),
        (named("127.0.0.1"), None, CertificateProblem::UnknownIssuer, "is signed by nobody whom this system trusts"),
        (named("127.0.0.1"), Some(&stranger), CertificateProblem::UnknownIssuer, "is signed by nobody whom"),
    ] {
        let (error, heard, host) = beginning_with(params, issuer, &trusted).await;
        assert!(matches!(&error, LinkError::Certificate { problem: found, .. } if *found == problem), "{error:?}");
        assert!(error.to_string().starts_with(&format!("the certificate of `{host}` {words}")), "{error}");
        assert!(!format!("{error:?}").contains("canary") && !problem.help().is_empty());
        assert_eq!(heard, 0, "{problem}: something was said to it");
    }
    // The same way with nothing wrong: what is heard proves that the others failed for that reason alone.
    let (error, heard, _) = beginning_with(named("127.0.0.1"), Some(&trusted), &trusted).await;
    assert!(!matches!(error, LinkError::Certificate { .. }) && heard > 0, "{error:?}");
}

/// A server that takes no connection: its queue is full, and what comes after is answered by nothing at all.
#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn r35_a_connection_that_nobody_takes_ends_at_its_own_limit() {
    use socket2::{Domain, Socket, Type};
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let at = listener.local_addr().unwrap().as_socket().unwrap();
    let _first = std::net::TcpStream::connect(at).unwrap();

    let address = Address::parse(&format!("http://{at}/mcp?key=canary-query")).unwrap();
    let limits = Limits { start: Duration::from_secs(60), ..Limits::default() };
    let (wire, _keeper) = open(&address, Headers::new(), &limits).unwrap();
    // Nothing else happens: the clock goes on to whatever limit comes first.
    let begun = tokio::time::Instant::now();
    let error = BareClient::over(wire).initialize().await.map(drop).unwrap_err();
    assert!(matches!(&error, LinkError::Unreachable { .. }), "{error:?}");
    assert_eq!(begun.elapsed().as_secs(), CONNECT_TIME.as_secs());
    assert!(!format!("{error:?}").contains("canary"));
}
