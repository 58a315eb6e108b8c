//! Sockets: both families of loopback, bounded connections, and a port that is free again at the end.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
    task::JoinSet,
};

/// Most connections at one time; more wait.
const CONNECTIONS: usize = 512;
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
        let mut listeners = Self { sockets: Vec::new(), port };
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

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Answers until `end` completes, and then lets what is under way end for two seconds. The sockets are
    /// closed when it returns, whoever is still connected.
    pub async fn serve(self, router: Router, end: impl Future<Output = ()>) {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let (ending, ended) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut accepting = JoinSet::new();
        let (accepted, mut incoming) = tokio::sync::mpsc::channel(1);
        for socket in self.sockets {
            accepting.spawn(accept(socket, places.clone(), accepted.clone()));
        }
        drop(accepted);
        let mut end = std::pin::pin!(end);
        loop {
            tokio::select! {
                biased;
                () = &mut end => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                Some((stream, place)) = incoming.recv() => {
                    let (router, ended) = (router.clone(), ended.clone());
                    connections.spawn(async move {
                        let _place = place;
                        connection(stream, router, ended).await;
                    });
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

type Accepted = (tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit);

async fn accept(socket: TcpListener, places: Arc<Semaphore>, accepted: tokio::sync::mpsc::Sender<Accepted>) {
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        match socket.accept().await {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                if accepted.send((stream, place)).await.is_err() {
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

async fn connection(stream: tokio::net::TcpStream, router: Router, mut ended: watch::Receiver<bool>) {
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = async { drop(ended.wait_for(|ended| *ended).await) } => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended");
    }
}
