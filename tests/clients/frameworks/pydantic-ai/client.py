"""Tests `palisade serve` with pydantic-ai's agents; `cargo xtask clients` runs it."""

import contextlib
import warnings

import promises
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel


class Client(promises.Client):
    @contextlib.asynccontextmanager
    async def agent(self, server, user):
        async def answer(message, response_type, params, context):
            action, content = user.answer(message)
            return ElicitResult(action=action, content=content)

        toolset = MCPToolset(place(server), elicitation_handler=answer)
        agent = Agent(OpenAIChatModel("gpt-5"), toolsets=[toolset])

        async def ask(prompt):
            return (await agent.run(prompt)).output

        async with agent:
            yield ask


def place(server):
    if server.url:
        return server.url
    program, *words = server.command
    return StdioTransport(program, words, env=server.environment)


if __name__ == "__main__":
    # It warns that no question can arrive in the current revision, and shows them all the same.
    warnings.filterwarnings("ignore", message="`elicitation_handler` will never be called")
    promises.main(Client())
