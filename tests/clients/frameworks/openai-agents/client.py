"""Tests `palisade serve` with the OpenAI Agents SDK; `cargo xtask clients` runs it.

The model is used by the responses interface, as the SDK does by default.
"""

import contextlib

import promises
from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp, create_static_tool_filter


class Client(promises.Client):
    shows_forms = False

    @contextlib.asynccontextmanager
    async def agent(self, server, user, **options):
        async with connected(server, **options) as tools:
            yield lambda prompt: run(Agent(name="agent", mcp_servers=[tools]), prompt)

    def patient_agent(self, server, user):
        # By default, a call has five seconds.
        return self.agent(server, user, client_session_timeout_seconds=2 * self.patience)


def connected(server, **options):
    if server.url:
        return MCPServerStreamableHttp({"url": server.url, "headers": server.headers}, **options)
    program, *words = server.command
    settings = {"command": program, "args": words, "env": server.environment}
    return MCPServerStdio(settings, **options)


async def run(agent, prompt):
    return (await Runner.run(agent, prompt)).final_output


async def accepts_strict_schemas(trial):
    shipped = create_static_tool_filter(allowed_tool_names=SHIPPED)
    async with connected(trial.server, tool_filter=shipped) as tools:
        settings = {"convert_schemas_to_strict": True}
        agent = Agent(name="agent", mcp_servers=[tools], mcp_config=settings)
        trial.ask = lambda prompt: run(agent, prompt)
        tools = (await trial.said())["tools"]
        loose = [tool["name"] for tool in tools if not tool.get("strict")]
        promises.ensure(len(tools) == len(SHIPPED) and not loose, f"not strict: {loose} of {tools}")


SHIPPED = [
    "calculate",
    "delete_file",
    "find_files",
    "list_dir",
    "patch_file",
    "read_file",
    "search_files",
    "shell",
    "write_file",
]
Client.promises = [accepts_strict_schemas]

if __name__ == "__main__":
    set_tracing_disabled(True)
    promises.main(Client())
