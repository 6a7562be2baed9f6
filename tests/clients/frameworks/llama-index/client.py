"""Tests `palisade serve` with LlamaIndex's agents; `cargo xtask clients` runs it."""

import contextlib
import os

import promises
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


class Client(promises.Client):
    shows_forms = False
    faults = {"shows_an_image": ("no image", "the model is given the text of a Python object")}

    @contextlib.asynccontextmanager
    async def agent(self, server, user):
        tools = await McpToolSpec(client=connected(server)).to_tool_list_async()
        model = OpenAILike(
            model="gpt-5",
            api_base=os.environ["OPENAI_BASE_URL"],
            api_key=os.environ["OPENAI_API_KEY"],
            is_chat_model=True,
            is_function_calling_model=True,
        )

        async def ask(prompt):
            return str(await FunctionAgent(tools=tools, llm=model).run(prompt))

        yield ask


def connected(server):
    if server.url:
        return BasicMCPClient(server.url)
    program, *words = server.command
    return BasicMCPClient(program, args=words, env=server.environment)


if __name__ == "__main__":
    promises.main(Client())
