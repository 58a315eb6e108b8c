//! Sockets: both families of loopback, bounded connections, and a port that is free again at the end.

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, HttpBody},
    response::Response,
};
use bytes::Bytes;
use hyper::{
    body::{Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tower_service::Service as _;

use crate::{
    manage,
    routes::status,
    seats::{Busy, Seat, Seats},
};

/// Most connections at one time, where so many can be had.
const PLACES: usize = 4096;
/// Fewest, however little the system gives.
const FEWEST: usize = 128;
/// Connections beyond that, for the management API alone: whoever is to answer comes in.
pub(crate) const RESERVE: usize = 16;
/// How long a connection may take for the head of a request, and lie idle before the next.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// Most headers of one request.
const HEADERS: usize = 100;
/// How long requests that are under way may take to end once the program is to.
const END_TIME: Duration = Duration::from_secs(2);

/// Why the endpoint cannot be reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Somebody else listens there.
    #[error("the port {port} is taken{}", .owner.as_deref().map(|owner| format!(" by {owner}")).unwrap_or_default())]
    Taken {
        /// The port.
        port: u16,
        /// The program that has it, where the system tells.
        owner: Option<String>,
    },
    /// The operating system did not let us.
    #[error("could not listen at {address}")]
    Refused {
        /// Where.
        address: SocketAddr,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
}

/// Sockets that listen and answer nobody yet.
#[derive(Debug)]
pub struct Listeners {
    sockets: Vec<TcpListener>,
    port: u16,
    places: usize,
}

impl Listeners {
    /// Listens at `port` of loopback, IPv4 and IPv6 where the machine has it; port 0 takes one that is free.
    ///
    /// # Errors
    ///
    /// [`ListenError`].
    pub fn loopback(port: u16) -> Result<Self, ListenError> {
        Self::at(&[IpAddr::V4(Ipv4Addr::LOCALHOST)], port)?.and(IpAddr::V6(Ipv6Addr::LOCALHOST))
    }

    /// Listens at these addresses.
    ///
    /// # Errors
    ///
    /// [`ListenError`].
    pub fn at(addresses: &[IpAddr], port: u16) -> Result<Self, ListenError> {
        let mut listeners = Self { sockets: Vec::new(), port, places: places() };
        for address in addresses {
            let address = SocketAddr::new(*address, listeners.port);
            let socket = bind(address).map_err(|source| of_bind(address, source))?;
            listeners.port = socket.local_addr().map_or(port, |address| address.port());
            listeners.sockets.push(socket);
        }
        Ok(listeners)
    }

    /// The same at one more address, unless this machine does not have its family.
    fn and(mut self, address: IpAddr) -> Result<Self, ListenError> {
        let address = SocketAddr::new(address, self.port);
        match bind(address) {
            Ok(socket) => self.sockets.push(socket),
            Err(source) if source.kind() == io::ErrorKind::AddrInUse => return Err(of_bind(address, source)),
            Err(error) => tracing::info!(%address, %error, "not listening there"),
        }
        Ok(self)
    }

    /// The same at `address` too.
    ///
    /// # Errors
    ///
    /// [`ListenError`].
    pub fn with(mut self, address: IpAddr) -> Result<Self, ListenError> {
        let address = SocketAddr::new(address, self.port);
        self.sockets.push(bind(address).map_err(|source| of_bind(address, source))?);
        Ok(self)
    }

    /// The same for at most so many connections at one time. Without this, half of what the system lets this process
    /// open, and 4,096 at most.
    #[must_use]
    pub fn places(self, places: usize) -> Self {
        Self { places, ..self }
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Answers until `end` completes, and then lets what is under way end for two seconds. The sockets are
    /// closed when it returns, whoever is still connected.
    pub async fn serve(self, router: Router, end: impl Future<Output = ()>) {
        let seats = Seats::new(self.places);
        let (ending, ended) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut accepting = JoinSet::new();
        let (accepted, mut incoming) = tokio::sync::mpsc::channel(1);
        for socket in self.sockets {
            accepting.spawn(accept(socket, accepted.clone()));
        }
        drop(accepted);
        let mut end = std::pin::pin!(end);
        loop {
            tokio::select! {
                biased;
                () = &mut end => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                Some(stream) = incoming.recv() => {
                    // One for which there is no room at all is closed.
                    if let Some(seat) = seats.take() {
                        connections.spawn(connection(stream, router.clone(), seat, ended.clone()));
                    }
                }
            }
        }
        accepting.shutdown().await;
        drop(incoming);
        ending.send_replace(true);
        let all = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(END_TIME, all).await.is_err() {
            connections.shutdown().await;
        }
    }
}

/// How many connections there may be: each is a descriptor, and servers need some as well.
fn places() -> usize {
    #[cfg(unix)]
    let given = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    let given: Option<u64> = None;
    let half = given.and_then(|given| usize::try_from(given / 2).ok()).unwrap_or(PLACES);
    half.clamp(FEWEST, PLACES)
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // After an end with open connections the port is ours again at once. Elsewhere than on Unix this would
    // let two programs have it.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    TcpListener::from_std(socket.into())
}

fn of_bind(address: SocketAddr, source: io::Error) -> ListenError {
    match source.kind() {
        io::ErrorKind::AddrInUse => {
            ListenError::Taken { port: address.port(), owner: crate::owner::of(address.port()) }
        }
        _ => ListenError::Refused { address, source },
    }
}

async fn accept(socket: TcpListener, accepted: tokio::sync::mpsc::Sender<TcpStream>) {
    loop {
        match socket.accept().await {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                if accepted.send(stream).await.is_err() {
                    return;
                }
            }
            // Out of descriptors, or a connection that is gone already: others may do better.
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, router: Router, seat: Seat, mut ended: watch::Receiver<bool>) {
    let service = service_fn(|request| answer(&router, &seat, request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        // It had nothing to do, and others have.
        () = seat.given_up() => return,
        () = async { drop(ended.wait_for(|ended| *ended).await) } => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended");
    }
}

/// One request, during which its connection is not given up: to the last byte of the answer.
fn answer(
    router: &Router,
    seat: &Seat,
    request: http::Request<Incoming>,
) -> impl Future<Output = Result<Response, Infallible>> + use<> {
    let refused = seat.is_reserved() && !request.uri().path().starts_with(manage::ROOT);
    let (busy, mut router) = (seat.busy(), router.clone());
    async move {
        if refused {
            return Ok(status(http::StatusCode::SERVICE_UNAVAILABLE));
        }
        let response = router.call(request.map(Body::new)).await?;
        Ok(response.map(|body| Body::new(Held { body, _busy: busy })))
    }
}

/// An answer that holds the place of its connection to its end.
struct Held {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
