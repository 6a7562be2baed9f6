//! Notes that a guest looks for the network, so that a failure of its tool can say why there is none.
//! The denial itself is that of wasmtime-wasi: no socket is created, and no name is looked up.

use super::state::State;
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets::network::{self, ErrorCode, IpAddressFamily};
use wasmtime_wasi::p2::bindings::sockets::{
    instance_network, tcp_create_socket, udp_create_socket,
};
use wasmtime_wasi::p2::{Network, SocketError, SocketResult, TcpSocket, UdpSocket};
use wasmtime_wasi::sockets::{WasiSocketsCtxView, WasiSocketsView as _};

/// Links the interfaces without which a guest can neither create a socket nor look up a name.
///
/// # Errors
///
/// If they are linked already and the linker allows no shadowing.
pub(super) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    instance_network::add_to_linker::<_, Noted>(linker, noted)?;
    tcp_create_socket::add_to_linker::<_, Noted>(linker, noted)?;
    udp_create_socket::add_to_linker::<_, Noted>(linker, noted)
}

/// The marker type for the linked host traits.
struct Noted;

impl HasData for Noted {
    type Data<'a> = NotedNetwork<'a>;
}

struct NotedNetwork<'a>(&'a mut State);

fn noted(state: &mut State) -> NotedNetwork<'_> {
    NotedNetwork(state)
}

impl NotedNetwork<'_> {
    /// Notes the attempt, and returns the sockets of wasmtime-wasi, which deny it.
    fn denying(&mut self) -> WasiSocketsCtxView<'_> {
        self.0.misses_network = true;
        self.0.sockets()
    }
}

impl instance_network::Host for NotedNetwork<'_> {
    fn instance_network(&mut self) -> wasmtime::Result<Resource<Network>> {
        self.denying().instance_network()
    }
}

impl tcp_create_socket::Host for NotedNetwork<'_> {
    fn create_tcp_socket(&mut self, family: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        self.denying().create_tcp_socket(family)
    }
}

impl udp_create_socket::Host for NotedNetwork<'_> {
    async fn create_udp_socket(
        &mut self,
        family: IpAddressFamily,
    ) -> SocketResult<Resource<UdpSocket>> {
        self.denying().create_udp_socket(family).await
    }
}

impl network::Host for NotedNetwork<'_> {
    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<ErrorCode> {
        self.0.sockets().convert_error_code(error)
    }

    fn network_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        self.0.sockets().network_error_code(error)
    }
}

impl network::HostNetwork for NotedNetwork<'_> {
    fn drop(&mut self, network: Resource<Network>) -> wasmtime::Result<()> {
        self.0.sockets().drop(network)
    }
}
