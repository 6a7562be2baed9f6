"""Tests `palisade serve` with Claude Code; `cargo xtask clients` runs it.

Its program runs without a terminal, once for each prompt, and with the tools of the server only.
"""

import asyncio
import contextlib
import json
import os

import promises

# The time after which the program gives up a call of which it hears nothing, in seconds. It looks
# every 30 s only.
SILENCE, LOOKS = 15, 30
# So that the program shows the model every tool at once, and connects to nothing else.
SETTINGS = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT": str(SILENCE * 1000),
    "DISABLE_AUTOUPDATER": "1",
    "ENABLE_TOOL_SEARCH": "false",
}
# The environment variables that the program gets: no account, no other setting of this machine.
KEPT = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "HOME", "NO_PROXY", "PATH", "TMPDIR")


class Client(promises.Client):
    prefix = "mcp__palisade__"
    # It says that it shows forms; without a terminal it closes each at once.
    shows_forms = False
    # So long that the program would have given up twice.
    patience = 2 * LOOKS + 5

    @contextlib.asynccontextmanager
    async def agent(self, server, user):
        yield lambda prompt: self.run(server, prompt)

    async def run(self, server, prompt):
        servers = {"mcpServers": {"palisade": entry(server)}}
        words = ["--print", "--bare", "--tools", "", "--output-format", "json"]
        words += ["--strict-mcp-config", "--mcp-config", json.dumps(servers)]
        words += ["--allowedTools", "mcp__palisade", "--no-session-persistence", "--", prompt]
        process = await asyncio.create_subprocess_exec(
            self.program,
            *words,
            env={name: value for name, value in os.environ.items() if name in KEPT} | SETTINGS,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said, error = await process.communicate()
        try:
            return json.loads(said)["result"]
        except (KeyError, TypeError, ValueError):
            raise promises.Broken(f"it ends with {said!r:.1000} and {error!r:.1000}") from None


def entry(server):
    if server.url:
        return {"type": "http", "url": server.url, "headers": server.headers}
    program, *words = server.command
    return {"command": program, "args": words, "env": server.environment}


if __name__ == "__main__":
    promises.main(Client())
