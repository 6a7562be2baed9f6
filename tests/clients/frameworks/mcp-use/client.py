"""Tests `palisade serve` with mcp-use's agents; `cargo xtask clients` runs it."""

import contextlib

import promises
from langchain_openai import ChatOpenAI
from mcp.types import ElicitResult
from mcp_use import MCPAgent, MCPClient


class Client(promises.Client):
    own_tools = {"static_binary", "static_text", "watched_resource"}

    @contextlib.asynccontextmanager
    async def agent(self, server, user):
        async def answer(context, params):
            action, content = user.answer(params.message)
            return ElicitResult(action=action, content=content)

        client = MCPClient({"mcpServers": {"palisade": place(server)}}, elicitation_callback=answer)
        agent = MCPAgent(llm=ChatOpenAI(model="gpt-5"), client=client)
        try:
            yield agent.run
        finally:
            await client.close_all_sessions()


def place(server):
    if server.url:
        return {"url": server.url}
    program, *words = server.command
    return {"command": program, "args": words, "env": server.environment}


if __name__ == "__main__":
    promises.main(Client())
