"""Tests `palisade serve` with LangChain's agents and its adapters for MCP; `cargo xtask clients`
runs it.

The adapters open a connection and a session for each call.
"""

import contextlib

import promises
from langchain.agents import create_agent
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from mcp.types import ElicitResult


class Client(promises.Client):
    @contextlib.asynccontextmanager
    async def agent(self, server, user):
        async def answer(context, params, callback_context):
            action, content = user.answer(params.message)
            return ElicitResult(action=action, content=content)

        client = MultiServerMCPClient(
            {"palisade": connection(server)}, callbacks=Callbacks(on_elicitation=answer)
        )
        agent = create_agent(ChatOpenAI(model="gpt-5"), await client.get_tools())

        async def ask(prompt):
            state = await agent.ainvoke({"messages": [("user", prompt)]})
            return state["messages"][-1].content

        yield ask


def connection(server):
    if server.url:
        return {"transport": "http", "url": server.url}
    program, *words = server.command
    return {
        "transport": "stdio",
        "command": program,
        "args": words,
        "env": server.environment,
    }


if __name__ == "__main__":
    promises.main(Client())
