//! A gateway on a port of its own.

use std::convert::Infallible;
use std::net::SocketAddr;

use gateway::{Gateway, Socket};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Serves a gateway on a free port, until the task is aborted.
///
/// # Panics
/// When there is no free port.
pub async fn serve(gateway: Gateway) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let listening = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let gateway = gateway.clone();
            tokio::spawn(async move {
                stream.set_nodelay(true).expect("the socket is open");
                let socket = Socket::new(stream);
                let hold = socket.hold();
                let service = service_fn(move |mut request| {
                    request.extensions_mut().insert(hold.clone());
                    let gateway = gateway.clone();
                    async move { Ok::<_, Infallible>(gateway.handle(request).await) }
                });
                let http = http1::Builder::new();
                let _ = http.serve_connection(TokioIo::new(socket), service).with_upgrades().await;
            });
        }
    });
    (address, listening)
}
