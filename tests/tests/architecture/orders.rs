//! The order of the modules of each crate that has one.

/// The modules of a crate in their order: each may use only those before it.
pub(super) struct Layers {
    pub(super) sources: &'static str,
    pub(super) order: &'static [&'static str],
}

/// The library `palisade`, in the order of ARCHITECTURE.md.
pub(super) const LIBRARY: Layers = Layers {
    sources: "host/palisade/src/",
    order: &[
        "tool",
        "workspace",
        "execution",
        "sandbox",
        "registry",
        "plugins",
        "policy",
        "confirm",
        "events",
        "session",
        "dispatch",
        "host",
        "internal",
    ],
};

/// The MCP server, in the order of its `lib.rs`.
pub(super) const MCP: Layers = Layers {
    sources: "host/mcp/src/",
    order: &[
        "settings",
        "rate_limit",
        "http",
        "protocol",
        "messages",
        "sessions",
        "questions",
        "clients",
        "telemetry",
        "state",
        "lists",
        "calls",
        "handler",
        "transport",
        "server",
    ],
};

/// The HTTP API, the journal and the console, in the order of its `lib.rs`.
pub(super) const SERVER: Layers = Layers {
    sources: "host/server/src/",
    order: &[
        "role",
        "journal",
        "recorder",
        "confirmations",
        "metrics",
        "settings",
        "wiring",
        "live",
        "console",
        "api",
        "server",
    ],
};

/// The approvals of plugins, in the order of its `lib.rs`.
pub(super) const TRUST: Layers = Layers {
    sources: "host/trust/src/",
    order: &[
        "canonical",
        "words",
        "fit",
        "version",
        "signature",
        "lock",
        "difference",
        "locked",
        "review",
    ],
};

/// The MCP servers as sources of tools, in the order of its `lib.rs`.
pub(super) const SOURCES: Layers = Layers {
    sources: "host/mcp-client/src/",
    order: &[
        "name",
        "offer",
        "reach",
        "approval",
        "runtime",
        "handler",
        "surrogates",
        "inbox",
        "lines",
        "events",
        "remote",
        "connect_error",
        "process",
        "output",
        "connection",
        "starts",
        "connections",
        "schemas",
        "tool",
        "server",
    ],
};

/// All orders.
pub(super) const ORDERS: [Layers; 5] = [LIBRARY, MCP, SERVER, TRUST, SOURCES];
