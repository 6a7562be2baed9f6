//! The limits of requests, each with its reason.

use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Requests of one call that are under way at once. A page and its parts need a handful.
pub const CONNECTIONS_OF_CALL: usize = 8;
/// Connections of the process, in which each plugin and each caller has a share. Each also takes
/// one of the descriptors that guests may hold.
pub const CONNECTIONS: u64 = 256;
/// Names that are looked up at once for plugins, in which each plugin and each caller has a share.
/// Each takes a thread and a descriptor until the system answers, which no end of a request
/// hastens.
pub const LOOKUPS: u64 = 16;
/// The memory that a connection may take, in bytes: its read buffer, the piece on its way to the
/// guest, and the buffers of TLS. It counts towards the memory of the call.
pub const CONNECTION_MEMORY: u64 = 256 * KIB;
/// The header fields that a guest sets for one request, in bytes, with 32 for each name and 40 for
/// each value. Servers accept 8 to 16 KiB.
pub const REQUEST_HEADERS: usize = 16 * KIB as usize;
/// The length of a method and of a scheme that have no name of their own, in bytes. The longest
/// method in use, `UPDATEREDIRECTREF`, has 17.
pub const WORD: usize = 64;
/// The length of a host with its port, in bytes. The longest name of a host has 253.
pub const AUTHORITY: usize = 512;
/// The bytes of a request's body that a guest writes at once. Three such pieces can wait for the
/// server.
pub const PIECE: usize = 8 * KIB as usize;
/// The memory behind the handles of a call, in bytes, of which it has 256: each holds the fields of
/// a request, which take up to four times the bytes that are counted, its path of up to 64 KiB, and
/// three pieces of its body, or the head of a response.
pub const HANDLES_MEMORY: u64 = 40 * MIB;
/// The header section of a response, in bytes; also the size of the read buffer. Proxies accept 8
/// to 64 KiB.
pub const HEADERS: usize = 64 * KIB as usize;
/// The bytes of a response that are read before its head is complete: the head, interim responses
/// before it, and the beginning of the body that comes with it.
pub const BEFORE_BODY: u64 = 4 * HEADERS as u64;
/// Header fields of a response. Real ones have up to about 60.
pub const HEADER_COUNT: usize = 128;
/// The size of the bodies of all responses of a call together, in bytes. Guests have 128 MiB.
pub const RESPONSE_BODIES: u64 = 64 * MIB;
/// The size of the bodies of all requests of a call together, in bytes.
pub const REQUEST_BODIES: u64 = 16 * MIB;
/// The length of a URL's path and query, in bytes. Servers accept 8 KiB.
pub const PATH: usize = 16 * KIB as usize;
/// Addresses of a name that are tried.
pub const ADDRESSES: usize = 8;
/// Time to resolve a name.
pub const RESOLVE: Duration = Duration::from_secs(10);
/// Time to connect to one address, and for the TLS handshake.
pub const CONNECT: Duration = Duration::from_secs(10);
/// Time from the end of the request to the head of the response. Slow APIs answer in a minute.
pub const FIRST_BYTE: Duration = Duration::from_secs(120);
/// Time between two pieces of a response's body.
pub const BETWEEN_PIECES: Duration = Duration::from_secs(30);
/// The least length of a secret, in bytes. A shorter one could not be told from ordinary text.
pub const SECRET_MIN: usize = 8;
/// The greatest length of all secrets of a plugin together, in bytes. In the worst case a byte of a
/// response costs as much as they are long.
pub const SECRETS: usize = 16 * KIB as usize;
/// The greatest length of a secret, in bytes. The redaction holds back as much of each body.
pub const SECRET_MAX: usize = 4 * KIB as usize;
/// Time of a whole exchange of the host itself: 64 MiB at 0.9 Mbit/s.
pub const EXCHANGE: Duration = Duration::from_secs(600);
/// The part of a failure's body that an exchange of the host keeps, in bytes: its explanation.
pub const ERROR_BODY: usize = 16 * KIB as usize;
/// The wishes of one plugin that are read. A person reads each of them.
pub const WISHES: usize = 32;
/// The length of each text of a wish, in bytes. The longest name of a host has 253.
pub const WISH: usize = 512;
