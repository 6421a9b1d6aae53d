//! Connections: how many, for how long, and how they end. Whoever comes while all places are taken gets that of the one who has been idle longest.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future as _;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::response::Response;
use baton_runtime::relay::Relays;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::fs::OFlags;
use rustix::process::{Resource, getrlimit};
use rustls::pki_types::pem;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;

use crate::access::{Hosts, Tokens};
use crate::app::{Address, Server, keep};
use crate::house::House;
use crate::limits::{
    CONNECTIONS_MAX, DESCRIPTORS_LEFT, DRAIN_WAIT, HEAD_BYTES_MAX, HEAD_WAIT, HEADERS_MAX, PEM_BYTES_MAX,
    Patience,
};

/// Where to listen, and how.
#[derive(Debug, Clone)]
pub struct Setting {
    pub listen: SocketAddr,
    /// Whether another port will do where this one is taken.
    pub is_port_free: bool,
    pub tls: Option<Tls>,
    /// Names under which the server may be called, beside those of the machine for itself.
    pub hosts: Vec<String>,
    /// Whether tokens may travel unencrypted to other machines.
    pub is_exposed: bool,
    pub patience: Patience,
}

/// Files of a certificate.
#[derive(Debug, Clone)]
pub struct Tls {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen at {0}: {1}")]
    Listen(SocketAddr, io::Error),
    #[error("{0} is not this machine alone, and without a certificate tokens would travel there unencrypted")]
    Exposed(SocketAddr),
    #[error("{path}: {why}")]
    Certificate { path: PathBuf, why: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A server that runs, on threads of its own.
pub struct Listening {
    pub address: SocketAddr,
    pub is_tls: bool,
    ending: watch::Sender<bool>,
    relays: Arc<Relays>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Listening {
    /// Begins to listen. Requests are answered from the moment on that this returns.
    pub fn start(setting: &Setting, house: House, tokens: Arc<Tokens>) -> Result<Listening, Error> {
        if !setting.listen.ip().is_loopback() && setting.tls.is_none() && !setting.is_exposed {
            return Err(Error::Exposed(setting.listen));
        }
        let tls = setting.tls.as_ref().map(acceptor).transpose()?;
        let listener = bind(setting)?;
        let address = listener.local_addr()?;
        let (ending, ended) = watch::channel(false);
        let mut hosts = setting.hosts.clone();
        if !address.ip().is_loopback() && !address.ip().is_unspecified() {
            hosts.push(match address {
                SocketAddr::V4(address) => address.ip().to_string(),
                SocketAddr::V6(address) => format!("[{}]", address.ip()),
            });
        }
        let found =
            Address { hosts: Hosts::new(address.port(), hosts), port: address.port(), is_tls: tls.is_some() };
        let patience = setting.patience;
        let server = Server::new(house, tokens, found, patience, ended.clone())?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_name("http")
            .enable_all()
            .build()?;
        let (is_tls, relays) = (tls.is_some(), server.relays.clone());
        let thread = std::thread::Builder::new().name("http".into()).spawn(move || {
            runtime.block_on(async {
                serve(listener, tls, server.router(), patience.write, ended).await;
                server.wait_for_streams().await;
            });
            runtime.shutdown_timeout(DRAIN_WAIT);
        })?;
        Ok(Listening { address, is_tls, ending, relays, thread: Some(thread) })
    }

    /// Where people and programs find it.
    pub fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        let mut address = self.address;
        if address.ip().is_unspecified() {
            // Everywhere is no place to call; this machine is one of those that may.
            address.set_ip(match address {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        format!("{scheme}://{address}")
    }

    /// Takes no more, lets those finish that are being answered, within a bound, and ends.
    pub fn end(mut self) {
        // First of all: whoever leads an agent is told of its end.
        self.relays.end_all();
        self.ending.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Requests that wait for the disk at once; more queue.
const BLOCKING_THREADS: usize = 64;

fn bind(setting: &Setting) -> Result<std::net::TcpListener, Error> {
    let fail = |error| Error::Listen(setting.listen, error);
    let bound = match std::net::TcpListener::bind(setting.listen) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && setting.is_port_free => {
            std::net::TcpListener::bind(SocketAddr::new(setting.listen.ip(), 0))
        }
        bound => bound,
    };
    let bound = bound.map_err(fail)?;
    bound.set_nonblocking(true).map_err(fail)?;
    Ok(bound)
}

/// The bytes of a file; a pipe or something without an end is none, and is not waited for.
fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = std::fs::File::options().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(PEM_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > PEM_BYTES_MAX {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {PEM_BYTES_MAX} bytes"),
        )),
        false => Ok(bytes),
    }
}

fn acceptor(tls: &Tls) -> Result<TlsAcceptor, Error> {
    use pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let bad = |path: &PathBuf, why: String| Error::Certificate { path: path.clone(), why };
    let text = |path: &PathBuf| read_regular(path).map_err(|error| bad(path, error.to_string()));
    let (cert, key) = (text(&tls.cert)?, text(&tls.key)?);
    let certs = CertificateDer::pem_slice_iter(&cert)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| bad(&tls.cert, unread(error, "certificate")))?;
    if certs.is_empty() {
        return Err(bad(&tls.cert, unread(pem::Error::NoItemsFound, "certificate")));
    }
    let key = PrivateKeyDer::from_pem_slice(&key);
    let key = key.map_err(|error| bad(&tls.key, unread(error, "private key")))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(&tls.cert, error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(certs, key)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                bad(&tls.key, format!("this is not the key of the certificate in {}", tls.cert.display()))
            }
            error => bad(&tls.cert, error.to_string()),
        })?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Why a file of a certificate is none.
fn unread(error: pem::Error, what: &str) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => format!("it holds no {what} in PEM form"),
        error => format!("it holds no {what} that reads: {error}"),
    }
}

/// How many connections there is room for.
fn connections_max() -> usize {
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let left =
        usize::try_from(allowed.saturating_sub(DESCRIPTORS_LEFT).max(allowed / 4)).unwrap_or(usize::MAX);
    left.clamp(1, CONNECTIONS_MAX)
}

async fn serve(
    listener: std::net::TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    write_wait: Duration,
    mut ended: watch::Receiver<bool>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let (places, most) = (Arc::new(Places::default()), connections_max());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = crate::api::streams::ended(&mut ended) => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let Some(place) = places.enter(most) else { continue };
                let _ = stream.set_nodelay(true);
                let stream = Patient::new(stream, write_wait);
                tokio::spawn(connection(stream, tls.clone(), router.clone(), place, ended.clone()));
            }
            // No descriptors are left: whoever ends frees some.
            Err(_) => {
                places.drop_idlest();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
    drop(listener);
    places.wait_for_none().await;
}

/// Serves one connection until it ends, is idle for too long, or has to make room.
async fn connection(
    stream: Patient,
    tls: Option<TlsAcceptor>,
    router: Router,
    place: Arc<Place>,
    mut ended: watch::Receiver<bool>,
) {
    let (left, busy) = (place.clone(), place.clone());
    let talk = async move {
        match tls {
            None => converse(TokioIo::new(stream), router, busy, &mut ended).await,
            Some(tls) => {
                if let Ok(Ok(stream)) = tokio::time::timeout(HEAD_WAIT, tls.accept(stream)).await {
                    converse(TokioIo::new(stream), router, busy, &mut ended).await;
                }
            }
        }
    };
    tokio::select! {
        () = talk => {}
        () = left.leaves.notified() => {}
    }
    drop(place);
}

async fn converse<S>(stream: TokioIo<S>, router: Router, place: Arc<Place>, ended: &mut watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let (mut router, work) = (router.clone(), place.clone().work());
        async move {
            use tower_service::Service as _;
            let response = router.call(request).await;
            response.map(|response| keep_working(response, work))
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .half_close(false)
        .serve_connection(stream, service)
        .with_upgrades();
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = crate::api::streams::ended(ended) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(DRAIN_WAIT, connection).await;
}

/// Whoever is being sent something is not idle, however long that takes.
fn keep_working(response: Response, work: Work) -> Response {
    match response.body().size_hint().exact() {
        // It lies ready as a whole.
        Some(_) => response,
        None => keep(response, work),
    }
}

/// All connections.
#[derive(Debug, Default)]
struct Places {
    taken: Mutex<Taken>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    places: BTreeMap<u64, Arc<Waiting>>,
    next: u64,
}

/// One connection, as the others know it.
#[derive(Debug)]
struct Waiting {
    /// Requests that are answered at the moment.
    working: AtomicUsize,
    since: Mutex<Instant>,
    leaves: Notify,
}

/// A connection's place, until it ends.
struct Place {
    places: Arc<Places>,
    number: u64,
    waiting: Arc<Waiting>,
}

impl std::ops::Deref for Place {
    type Target = Waiting;

    fn deref(&self) -> &Waiting {
        &self.waiting
    }
}

/// A request that is answered.
struct Work(Arc<Place>);

impl Places {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place, for which the idlest goes where there is none left; `None` where nobody is idle.
    fn enter(self: &Arc<Self>, most: usize) -> Option<Arc<Place>> {
        if self.taken().places.len() >= most && !self.drop_idlest() {
            return None;
        }
        let waiting = Arc::new(Waiting {
            working: AtomicUsize::new(0),
            since: Mutex::new(Instant::now()),
            leaves: Notify::new(),
        });
        let mut taken = self.taken();
        let number = taken.next;
        taken.next += 1;
        taken.places.insert(number, waiting.clone());
        Some(Arc::new(Place { places: self.clone(), number, waiting }))
    }

    /// Ends the connection that has been idle longest.
    fn drop_idlest(&self) -> bool {
        let mut taken = self.taken();
        let idle = taken.places.iter().filter(|(_, place)| place.working.load(Ordering::Relaxed) == 0);
        let since = |place: &Waiting| *place.since.lock().unwrap_or_else(PoisonError::into_inner);
        let idlest = idle.min_by_key(|(_, place)| since(place)).map(|(number, _)| *number);
        let Some(place) = idlest.and_then(|number| taken.places.remove(&number)) else { return false };
        place.leaves.notify_one();
        true
    }

    /// Waits until all have gone, within a bound.
    async fn wait_for_none(&self) {
        let none = async {
            loop {
                let changed = self.changed.notified();
                if self.taken().places.is_empty() {
                    return;
                }
                changed.await;
            }
        };
        let _ = tokio::time::timeout(DRAIN_WAIT + Duration::from_secs(1), none).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().places.remove(&self.number);
        self.places.changed.notify_waiters();
    }
}

impl Place {
    fn work(self: Arc<Self>) -> Work {
        self.working.fetch_add(1, Ordering::Relaxed);
        Work(self)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        *self.0.since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.working.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that is not waited for without end when it takes nothing.
struct Patient {
    stream: TcpStream,
    /// How long it is waited for.
    most: Duration,
    /// Runs while there is something that it does not take.
    patience: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn new(stream: TcpStream, most: Duration) -> Self {
        Patient { stream, most, patience: None }
    }

    fn judge<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.patience = None;
            return polled;
        }
        let most = self.most;
        let patience = self.patience.get_or_insert_with(|| Box::pin(tokio::time::sleep(most)));
        match patience.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(cx, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.judge(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.judge(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
