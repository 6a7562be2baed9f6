"""Holds `palisade serve` against the official Python client; `cargo xtask clients` runs it.

    client.py --workspace DIR [--process PID --url URL | COMMAND…]

The server serves `DIR`, has the guests that are named below beside the shipped tools, and waits two seconds for the answer to a question. Everything is tried
in both eras of the protocol: with a handshake, and with requests that stand for themselves. Each promise is a line, `ok ERA NAME` or `failed ERA NAME: why`.
"""

import argparse
import asyncio
import contextlib
import os
import sys
import time
from pathlib import Path

import anyio
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

ERAS = [("legacy", "legacy", "2025-11-25"), ("modern", "auto", "2026-07-28")]

# The tools of the guests, and some of the shipped ones.
TOOLS = ["better", "calculate", "compute", "fail", "good", "promise", "read_file", "test_tool_with_progress", "write_file"]

# What no answer takes, however slow the machine is, in seconds.
PATIENCE = 60
# How long the server waits for the answer to a question, in seconds: `confirm.timeout` of its settings.
QUESTION = 2
# How long is listened for what must not come, in seconds.
QUIET = 1


class Wrong(Exception):
    """What does not hold."""


def need(holds, what):
    if not holds:
        raise Wrong(what)


class Wire:
    """Everything that is sent and received, read off the transport below the library."""

    def __init__(self, transport):
        self.transport = transport
        self.sent = []
        self.received = []

    @contextlib.asynccontextmanager
    async def streams(self):
        async with self.transport as (read, write), anyio.create_task_group() as group:
            group.start_soon(self.pass_on, read, into_client := Channel(), self.received)
            group.start_soon(self.pass_on, (from_client := Channel()).reader, write, self.sent)
            yield into_client.reader, from_client.writer
            group.cancel_scope.cancel()

    async def pass_on(self, source, target, book):
        target = target.writer if isinstance(target, Channel) else target
        async with target:
            async for message in source:
                need(not isinstance(message, Exception), f"the library cannot read what came: {message}")
                book.append(message.message.model_dump(mode="json", by_alias=True, exclude_unset=True))
                await target.send(message)

    async def __aenter__(self):
        self.context = self.streams()
        return await self.context.__aenter__()

    async def __aexit__(self, *reason):
        return await self.context.__aexit__(*reason)

    def call(self, tool):
        """The request that has last called this tool."""
        calls = [sent for sent in self.sent if sent.get("method") == "tools/call" and sent["params"]["name"] == tool]
        return calls[-1]


class Channel:
    def __init__(self):
        self.writer, self.reader = anyio.create_memory_object_stream(0)


class Server:
    """Where the server is, or how it is started."""

    def __init__(self, arguments):
        self.workspace, self.url, self.command = arguments.workspace, arguments.url, arguments.command
        self.known = arguments.process

    def wire(self):
        if self.url:
            return Wire(streamable_http_client(self.url))
        program, *words = self.command
        environment = {name: value for name, value in os.environ.items() if name.startswith("PALISADE_")}
        return Wire(stdio_client(StdioServerParameters(command=program, args=words, env=environment)))

    def processor_time(self):
        """What the server has computed so far, in seconds."""
        return sum(seconds for _, seconds in self.processes())

    def processes(self):
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                # After the name, which may hold anything.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                is_server = int(entry.name) == self.known if self.known else int(fields[1]) == os.getpid()
                if is_server:
                    yield entry.name, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Tried:
    """One connection, and what the person in front of the client says."""

    def __init__(self, server, era):
        self.server, (self.era, self.mode, self.version) = server, era
        self.wire = server.wire()
        self.questions, self.said = [], []
        self.person = self.decline

    def client(self):
        return Client(
            self.wire,
            mode=self.mode,
            read_timeout_seconds=PATIENCE,
            elicitation_callback=lambda context, params: self.answer(params),
            logging_callback=self.listen,
            log_level="info",
        )

    async def listen(self, params):
        self.said.append(params.data)

    async def answer(self, params):
        self.questions.append(params)
        return await self.person()

    async def accept(self):
        return types.ElicitResult(action="accept", content={"decision": "allow_once"})

    async def decline(self):
        return types.ElicitResult(action="decline")

    async def ignore(self):
        await asyncio.sleep(PATIENCE)

    def written(self, name):
        file = self.server.workspace / name
        return file.read_text() if file.exists() else None


def fresh(tried, outcome):
    """The name of a file that no earlier run has left."""
    name = f"{outcome}-{tried.era}.txt"
    (tried.server.workspace / name).unlink(missing_ok=True)
    return name


def text(result):
    return "".join(block.text for block in result.content if block.type == "text")


def failure(result):
    need(result.is_error, f"no error: {result}")
    return result.meta["dev.palisade/error"]["class"]


async def until(holds, what):
    """Waits for something that has no message of its own."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        need(time.monotonic() < deadline, f"{what} does not happen within {PATIENCE} s")
        await asyncio.sleep(0.02)


async def the_list_has_every_tool_in_order_and_says_what_it_may_do(tried, client):
    listed = (await client.list_tools()).tools
    names = [tool.name for tool in listed]
    need(names == sorted(names), f"not in order: {names}")
    need(set(TOOLS) <= set(names), f"missing: {set(TOOLS) - set(names)}")
    hints = {tool.name: tool.annotations for tool in listed}
    need(hints["read_file"].read_only_hint is True, f"read_file: {hints['read_file']}")
    need(hints["write_file"].destructive_hint is True, f"write_file: {hints['write_file']}")


async def a_call_is_answered(tried, client):
    result = await client.call_tool("good")
    need(not result.is_error and text(result) == "good", f"{result}")
    (tried.server.workspace / "notes.txt").write_text("Buy milk.\n")
    result = await client.call_tool("read_file", {"path": "notes.txt"})
    need(not result.is_error and text(result) == "Buy milk.\n", f"{result}")


async def structured_output_is_what_its_schema_promises(tried, client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    need(tools["promise"].output_schema["required"] == ["n"], f"{tools['promise']}")
    result = await client.call_tool("promise", {"give": "right"})
    need(result.structured_content == {"n": 1}, f"{result}")
    result = await client.call_tool("promise", {"give": "wrong"})
    need(result.is_error and result.structured_content is None, f"a broken promise is passed on: {result}")


async def a_failure_is_the_tools_and_bad_arguments_are_named(tried, client):
    result = await client.call_tool("fail", {"with": "not-found"})
    need(result.is_error and "no such thing" in text(result), f"{result}")
    result = await client.call_tool("read_file", {"path": 3})
    need(failure(result) == "validation_error" and "path" in text(result), f"{result}")
    try:
        need(False, f"an unknown tool answers: {await client.call_tool('surely_not')}")
    except MCPError as error:
        need(error.code == types.INVALID_PARAMS, f"{error}")


async def progress_is_told_before_the_answer(tried, client):
    steps = []

    async def step(progress, total, message):
        steps.append((progress, total, message))

    tool = "test_tool_with_progress"
    result = await client.call_tool(tool, progress_callback=step)
    need(not result.is_error, f"{result}")
    await until(lambda: len(steps) == 3, "the last step of progress")
    need([(done, total) for done, total, _ in steps] == [(0, 100), (50, 100), (100, 100)], f"{steps}")
    call = tried.wire.call(tool)
    token = call["params"]["_meta"]["progressToken"]
    kinds = [kind for message in tried.wire.received if (kind := of_call(message, call["id"], token))]
    need(kinds == ["step", "step", "step", "answer"], f"{kinds}")


def of_call(message, id, token):
    """What a message is to a call, if anything."""
    if message.get("id") == id:
        return "answer"
    return "step" if message.get("params", {}).get("progressToken") == token else None


async def an_endless_loop_ends_when_it_is_cancelled_and_nothing_is_sent_after(tried, client):
    tried.said.clear()
    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()
        group.start_soon(call_within, scope, client)
        await until(lambda: "started" in str(tried.said), "the beginning of the loop")
        idle = tried.server.processor_time()
        await until(lambda: tried.server.processor_time() > idle + 0.1, "the computing of the loop")
        scope.cancel()
    cancelled, before = tried.wire.call("compute"), len(tried.wire.received)
    result = await client.call_tool("good")
    need(text(result) == "good", f"{result}")
    await asyncio.sleep(QUIET)
    busy = tried.server.processor_time()
    await asyncio.sleep(QUIET)
    need(tried.server.processor_time() - busy < QUIET / 10, "the guest computes on")
    # The library asks for the list by itself, too.
    asked = [message["id"] for message in tried.wire.sent if "id" in message and message["id"] > cancelled["id"]]
    after = [message.get("id", message) for message in tried.wire.received[before:]]
    need(sorted(after) == asked, f"after request {cancelled['id']} was cancelled {asked} were asked, and there came {after}")


async def call_within(scope, client):
    with scope:
        await client.call_tool("compute")


async def what_is_accepted_is_done_after_a_question_that_names_it(tried, client):
    tried.person = tried.accept
    name = fresh(tried, "accepted")
    result = await client.call_tool("write_file", {"path": name, "content": "written"})
    need(not result.is_error and tried.written(name) == "written", f"{result}")
    need(len(tried.questions) == 1 and name in tried.questions[0].message, f"{tried.questions}")


async def what_is_declined_is_not_done(tried, client):
    tried.person = tried.decline
    name = fresh(tried, "declined")
    result = await client.call_tool("write_file", {"path": name, "content": "written"})
    need(failure(result) == "user_denied" and tried.written(name) is None, f"{result}")
    need(len(tried.questions) == 1, f"{tried.questions}")


async def what_is_ignored_is_not_done(tried, client):
    tried.person = tried.ignore
    name = fresh(tried, "ignored")
    arguments = {"path": name, "content": "written"}
    if tried.era == "modern":
        await an_answer_that_comes_too_late_counts_for_nothing(client, arguments)
    else:
        begun = time.monotonic()
        result = await client.call_tool("write_file", arguments)
        need(failure(result) == "confirmation_timeout", f"{result}")
        need(time.monotonic() - begun >= QUESTION, "the question stood for less than its time")
        need(len(tried.questions) == 1, f"{tried.questions}")
    need(text(await client.call_tool("good")) == "good", "nothing else is answered")
    need(tried.written(name) is None, "it was done")


async def an_answer_that_comes_too_late_counts_for_nothing(client, arguments):
    """Here nobody waits but the client: what is ignored is a call that is not made again, or too late."""
    asked = await client.session.call_tool("write_file", arguments, allow_input_required=True)
    need(isinstance(asked, types.InputRequiredResult), f"{asked}")
    await asyncio.sleep(QUESTION + QUIET)
    yes = types.ElicitResult(action="accept", content={"decision": "allow_once"})
    responses = {name: yes for name in asked.input_requests}
    try:
        late = await client.session.call_tool(
            "write_file", arguments, input_responses=responses, request_state=asked.request_state
        )
        need(False, f"a late answer is taken: {late}")
    except MCPError as error:
        need(error.code == types.INVALID_PARAMS and "requestState" in error.message, f"{error}")


PROMISES = [
    the_list_has_every_tool_in_order_and_says_what_it_may_do,
    a_call_is_answered,
    structured_output_is_what_its_schema_promises,
    a_failure_is_the_tools_and_bad_arguments_are_named,
    progress_is_told_before_the_answer,
    an_endless_loop_ends_when_it_is_cancelled_and_nothing_is_sent_after,
    what_is_accepted_is_done_after_a_question_that_names_it,
    what_is_declined_is_not_done,
    what_is_ignored_is_not_done,
]


async def keep(promise, server, era):
    """Each promise has a connection of its own."""
    tried = Tried(server, era)
    async with asyncio.timeout(2 * PATIENCE):
        async with tried.client() as client:
            need(client.protocol_version == tried.version, f"the server speaks {client.protocol_version}")
            await promise(tried, client)


def causes(error):
    """What the task groups on the way have wrapped."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(causes(inner) for inner in error.exceptions)
    return f"{error}" if isinstance(error, Wrong) else f"{type(error).__name__}: {error}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument("--process", type=int)
    parser.add_argument("--url")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    server = Server(parser.parse_args())
    failed = 0
    for era in ERAS:
        for promise in PROMISES:
            name = f"{era[0]} {promise.__name__}"
            try:
                asyncio.run(keep(promise, server, era))
                print(f"ok {name}", flush=True)
            except Exception as error:
                failed += 1
                print(f"failed {name}: {causes(error)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
