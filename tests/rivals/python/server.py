"""The two tools of the comparison on the official Python SDK's server.

`cargo xtask rivals` runs it:

    server.py [PORT]

Without a port it serves over stdio. An answer is one text block without structured output, as with
the other servers.
"""

import sys

from mcp.server import MCPServer

server = MCPServer("rival")


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Returns the text."""
    return text


@server.tool(structured_output=False)
def checksum(text: str) -> str:
    """Returns the checksum of the text's bytes: 32-bit FNV-1a."""
    hash = 0x811C9DC5
    for byte in text.encode():
        hash = (hash ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{hash:08x}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")
