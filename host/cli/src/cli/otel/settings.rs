//! Reads the OpenTelemetry variables, as far as they are supported here.

use opentelemetry_otlp::Protocol;

/// A kind of telemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Traces,
    Metrics,
}

/// An unsupported value of a variable.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(in crate::cli) enum Unsupported {
    #[error(
        "`{0}` must be an `http://` URL; TLS is not supported: for other collectors, run one on this machine that forwards"
    )]
    Address(String),
    #[error("`{0}` asks for another protocol than `http/protobuf` and `http/json`")]
    Protocol(String),
}

impl Signal {
    /// Returns the part of the variable names that is specific to this signal.
    fn name(self) -> &'static str {
        match self {
            Self::Traces => "TRACES",
            Self::Metrics => "METRICS",
        }
    }
}

/// Returns a variable's value; an empty variable counts as unset, as OpenTelemetry specifies.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the protocol of a signal, or `None` if its export is not enabled.
pub(super) fn protocol(signal: Signal) -> Result<Option<Protocol>, Unsupported> {
    decided(signal, variable)
}

fn decided(
    signal: Signal,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Protocol>, Unsupported> {
    let is_off = variable("OTEL_SDK_DISABLED")
        .is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || variable(&format!("OTEL_{}_EXPORTER", signal.name()))
            .is_some_and(|value| value != "otlp");
    // Variables of one signal take precedence over the general ones.
    let told = |what: &str| {
        let names = [
            format!("OTEL_EXPORTER_OTLP_{}_{what}", signal.name()),
            format!("OTEL_EXPORTER_OTLP_{what}"),
        ];
        names.into_iter().find_map(|name| Some((variable(&name)?, name)))
    };
    let Some((address, name)) = told("ENDPOINT").filter(|_| !is_off) else { return Ok(None) };
    if !address.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://")) {
        return Err(Unsupported::Address(name));
    }
    match told("PROTOCOL") {
        None => Ok(Some(Protocol::HttpBinary)),
        Some((protocol, _)) if protocol == "http/protobuf" => Ok(Some(Protocol::HttpBinary)),
        Some((protocol, _)) if protocol == "http/json" => Ok(Some(Protocol::HttpJson)),
        Some((_, name)) => Err(Unsupported::Protocol(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Result<Option<Protocol>, Unsupported> {
        let find = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        decided(Signal::Traces, find)
    }

    const SOMEWHERE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");

    #[test]
    fn telemetry_is_off_by_default() {
        assert_eq!(with(&[]), Ok(None));
        assert_eq!(with(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")]), Ok(None));
        assert_eq!(
            with(&[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://localhost:4318")]),
            Ok(None)
        );
        assert_eq!(with(&[SOMEWHERE, ("OTEL_SDK_DISABLED", "true")]), Ok(None));
        assert_eq!(with(&[SOMEWHERE, ("OTEL_TRACES_EXPORTER", "none")]), Ok(None));
    }

    #[test]
    fn protobuf_is_the_default_protocol() {
        assert_eq!(with(&[SOMEWHERE]), Ok(Some(Protocol::HttpBinary)));
        assert_eq!(
            with(&[SOMEWHERE, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")]),
            Ok(Some(Protocol::HttpJson))
        );
        let own = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf");
        let both = with(&[SOMEWHERE, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"), own]);
        assert_eq!(both, Ok(Some(Protocol::HttpBinary)));
    }

    #[test]
    fn unsupported_setting_is_refused_by_variable() {
        let name = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        for address in ["https://collector:4318", "localhost:4318", "é", "unix:/run/collector"] {
            assert_eq!(
                with(&[(name, address)]),
                Err(Unsupported::Address(name.to_owned())),
                "{address}"
            );
        }
        let name = "OTEL_EXPORTER_OTLP_PROTOCOL";
        assert_eq!(with(&[SOMEWHERE, (name, "grpc")]), Err(Unsupported::Protocol(name.to_owned())));
    }
}
