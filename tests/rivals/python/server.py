"""The two tools of the comparison on the official Python SDK's own server; `cargo xtask rivals` runs it.

    server.py [PORT]

Without a port it serves on its standard input and output. What it answers is one block of text, as elsewhere: no structured output beside it.
"""

import sys

from mcp.server import MCPServer

server = MCPServer("rival")


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Gives back a text."""
    return text


@server.tool(structured_output=False)
def checksum(text: str) -> str:
    """The checksum of its bytes: their 32-bit FNV-1a."""
    hash = 0x811C9DC5
    for byte in text.encode():
        hash = (hash ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{hash:08x}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")
