//! The errors of requests as a guest sees them.

use crate::connect::ConnectError;
use crate::limits;
use crate::refusal::NetRefused;
use crate::send::SendError;
use wasmtime_wasi_http::Error;

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Connect(error) => error.into(),
            SendError::Network(_) | SendError::Panicked => Self::ConfigurationError,
            SendError::Memory(_) => Self::ConnectionLimitReached,
            SendError::Slow(_) => Self::HttpResponseTimeout,
            SendError::Headers => {
                Self::HttpResponseHeaderSectionSize(u32::try_from(limits::HEADERS).ok())
            }
            SendError::Exchange(error) => Self::Hyper(error),
        }
    }
}

impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Refused(refused) => refused.into(),
            ConnectError::Network(_) => Self::ConfigurationError,
            ConnectError::ResolveTimeout => Self::DnsTimeout,
            ConnectError::Timeout => Self::ConnectionTimeout,
            ConnectError::Io(_) => Self::ConnectionRefused,
            ConnectError::Tls(_) => Self::TlsProtocolError,
        }
    }
}

impl From<NetRefused> for Error {
    fn from(refused: NetRefused) -> Self {
        match refused {
            NetRefused::Url { .. } => Self::HttpRequestUriInvalid,
            NetRefused::Class { .. }
            | NetRefused::NoRule { .. }
            | NetRefused::Part
            | NetRefused::Body { .. }
            | NetRefused::PlainSecret { .. }
            | NetRefused::PlainAddress { .. }
            | NetRefused::SecretValue { .. } => Self::HttpRequestDenied,
            NetRefused::Address { .. } => Self::DestinationIpProhibited,
            NetRefused::Name { .. } => Self::DnsError { rcode: None, info_code: None },
            NetRefused::Connections => Self::ConnectionLimitReached,
            NetRefused::Method => Self::HttpRequestMethodInvalid,
            NetRefused::Encoded { encoding } => {
                Self::HttpResponseContentCoding(Some(encoding.to_owned()))
            }
        }
    }
}
