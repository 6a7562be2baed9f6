"""Tests `palisade serve` with FastMCP's client; `cargo xtask clients` runs it.

FastMCP has no agent: this client makes the calls of a script itself, at once, and reports them as a
model would see them.
"""

import asyncio
import contextlib
import json

import promises
from fastmcp import Client as FastClient
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport


class Client(promises.Client):
    @contextlib.asynccontextmanager
    async def agent(self, server, user):
        async def answer(message, response_type, params, context):
            action, content = user.answer(message)
            return ElicitResult(action=action, content=content)

        async with FastClient(transport(server), elicitation_handler=answer) as client:
            yield lambda prompt: play(client, json.loads(prompt))


def transport(server):
    if server.url:
        return server.url
    program, *words = server.command
    return StdioTransport(program, words, env=server.environment)


async def play(client, script):
    """Makes the calls of a script and returns what a model would have been sent."""
    tools = [
        {"name": tool.name, "parameters": tool.input_schema} for tool in await client.list_tools()
    ]
    messages = []
    for turn in script["turns"]:
        results = await asyncio.gather(*[call(client, wanted) for wanted in turn])
        for result in results:
            messages.append({"call_id": f"call_{len(messages)}", "output": result})
    return json.dumps({"tools": tools, "messages": messages})


async def call(client, wanted):
    result = await client.call_tool(wanted["name"], wanted["arguments"], raise_on_error=False)
    return [block.model_dump(mode="json") for block in result.content]


if __name__ == "__main__":
    promises.main(Client())
