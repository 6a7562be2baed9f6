"""Tests `palisade serve` with Semantic Kernel's agents; `cargo xtask clients` runs it."""

import contextlib
import sys
import types

# Its engine for Handlebars templates is published as source only, which is not installed, and no
# agent uses it.
handlebars = sys.modules["pybars"] = types.ModuleType("pybars")
handlebars.Compiler = handlebars.PybarsError = type("Absent", (Exception,), {})

import promises
from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.connectors.mcp import MCPStdioPlugin, MCPStreamableHttpPlugin


class Client(promises.Client):
    prefix = "palisade-"
    shows_forms = False
    faults = {"shows_an_image": ("no image", "the model is given the text of a Python object")}

    @contextlib.asynccontextmanager
    async def agent(self, server, user):
        async with connected(server) as plugin:
            model = OpenAIChatCompletion(ai_model_id="gpt-5", async_client=AsyncOpenAI())
            agent = ChatCompletionAgent(service=model, name="agent", plugins=[plugin])

            async def ask(prompt):
                return str(await agent.get_response(messages=prompt))

            yield ask


def connected(server):
    if server.url:
        return MCPStreamableHttpPlugin(name="palisade", url=server.url)
    program, *words = server.command
    return MCPStdioPlugin(name="palisade", command=program, args=words, env=server.environment)


if __name__ == "__main__":
    promises.main(Client())
