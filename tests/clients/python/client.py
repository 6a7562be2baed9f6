"""Tests `palisade serve` with the official Python client; `cargo xtask clients` runs it.

    client.py --workspace DIR [--process PID --url URL | COMMAND…]

The server has the workspace `DIR`, the tools listed below, and a timeout of two seconds for the
answer to a question. Each promise is checked in both eras of the protocol: with a handshake, and
with self-contained requests. The output has a line per promise: `ok ERA NAME` or
`failed ERA NAME: why`.
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
TOOLS = [
    "better",
    "calculate",
    "compute",
    "fail",
    "good",
    "promise",
    "read_file",
    "test_tool_with_progress",
    "write_file",
]

# An upper bound for the time until an answer arrives, also on a slow machine, in seconds.
PATIENCE = 60
# The server's timeout for the answer to a question, in seconds: `confirm.timeout` of its settings.
QUESTION = 2
# The time to wait for messages that must not arrive, in seconds.
QUIET = 1


class Broken(Exception):
    """A broken promise."""


def ensure(holds, what):
    if not holds:
        raise Broken(what)


class Wire:
    """Records all sent and received messages, at the transport below the library."""

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

    async def pass_on(self, source, target, log):
        target = target.writer if isinstance(target, Channel) else target
        async with target:
            async for message in source:
                ensure(not isinstance(message, Exception), f"an unreadable message: {message}")
                plain = message.message.model_dump(mode="json", by_alias=True, exclude_unset=True)
                log.append(plain)
                await target.send(message)

    async def __aenter__(self):
        self.context = self.streams()
        return await self.context.__aenter__()

    async def __aexit__(self, *reason):
        return await self.context.__aexit__(*reason)

    def call(self, tool):
        """Returns the last request that called this tool."""
        calls = [sent for sent in self.sent if sent.get("method") == "tools/call"]
        return [call for call in calls if call["params"]["name"] == tool][-1]


class Channel:
    def __init__(self):
        self.writer, self.reader = anyio.create_memory_object_stream(0)


class Server:
    """The server's address or start command."""

    def __init__(self, arguments):
        self.workspace, self.url = arguments.workspace, arguments.url
        self.command = arguments.command
        self.known = arguments.process

    def wire(self):
        if self.url:
            return Wire(streamable_http_client(self.url))
        program, *words = self.command
        settings = {name: os.environ[name] for name in os.environ if name.startswith("PALISADE_")}
        return Wire(stdio_client(StdioServerParameters(command=program, args=words, env=settings)))

    def processor_time(self):
        """Returns the processor time of the server so far, in seconds."""
        return sum(seconds for _, seconds in self.processes())

    def processes(self):
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                # The fields after the name, which may contain any character.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                is_child = int(fields[1]) == os.getpid()
                if int(entry.name) == self.known if self.known else is_child:
                    ticks = int(fields[11]) + int(fields[12])
                    yield entry.name, ticks / os.sysconf("SC_CLK_TCK")


class Connection:
    """A connection with its message log and its user."""

    def __init__(self, server, era):
        self.server, (self.era, self.mode, self.version) = server, era
        self.wire = server.wire()
        self.questions, self.log_messages = [], []
        self.user = self.decline

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
        self.log_messages.append(params.data)

    async def answer(self, params):
        self.questions.append(params)
        return await self.user()

    async def accept(self):
        return types.ElicitResult(action="accept", content={"decision": "allow_once"})

    async def decline(self):
        return types.ElicitResult(action="decline")

    async def ignore(self):
        await asyncio.sleep(PATIENCE)

    def contents(self, name):
        file = self.server.workspace / name
        return file.read_text() if file.exists() else None


def fresh_name(connection, outcome):
    """Returns the name of a file, and removes a file of that name from an earlier run."""
    name = f"{outcome}-{connection.era}.txt"
    (connection.server.workspace / name).unlink(missing_ok=True)
    return name


def text(result):
    return "".join(block.text for block in result.content if block.type == "text")


def failure(result):
    ensure(result.is_error, f"no error: {result}")
    return result.meta["dev.palisade/error"]["class"]


async def wait_until(holds, what):
    """Polls until a condition holds that no message announces."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        ensure(time.monotonic() < deadline, f"{what} does not happen within {PATIENCE} s")
        await asyncio.sleep(0.02)


async def list_is_sorted_and_has_hints(connection, client):
    listed = (await client.list_tools()).tools
    names = [tool.name for tool in listed]
    ensure(names == sorted(names), f"not in order: {names}")
    ensure(set(TOOLS) <= set(names), f"missing: {set(TOOLS) - set(names)}")
    hints = {tool.name: tool.annotations for tool in listed}
    ensure(hints["read_file"].read_only_hint is True, f"read_file: {hints['read_file']}")
    ensure(hints["write_file"].destructive_hint is True, f"write_file: {hints['write_file']}")


async def call_is_answered(connection, client):
    result = await client.call_tool("good")
    ensure(not result.is_error and text(result) == "good", f"{result}")
    (connection.server.workspace / "notes.txt").write_text("Buy milk.\n")
    result = await client.call_tool("read_file", {"path": "notes.txt"})
    ensure(not result.is_error and text(result) == "Buy milk.\n", f"{result}")


async def structured_output_matches_its_schema(connection, client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    ensure(tools["promise"].output_schema["required"] == ["n"], f"{tools['promise']}")
    result = await client.call_tool("promise", {"give": "right"})
    ensure(result.structured_content == {"n": 1}, f"{result}")
    result = await client.call_tool("promise", {"give": "wrong"})
    ensure(result.is_error and result.structured_content is None, f"it is passed on: {result}")


async def tool_failures_and_invalid_arguments_are_reported(connection, client):
    result = await client.call_tool("fail", {"with": "not-found"})
    ensure(result.is_error and "no such thing" in text(result), f"{result}")
    result = await client.call_tool("read_file", {"path": 3})
    ensure(failure(result) == "validation_error" and "path" in text(result), f"{result}")
    try:
        ensure(False, f"an unknown tool answers: {await client.call_tool('surely_not')}")
    except MCPError as error:
        ensure(error.code == types.INVALID_PARAMS, f"{error}")


async def progress_precedes_the_answer(connection, client):
    steps = []

    async def step(progress, total, message):
        steps.append((progress, total, message))

    tool = "test_tool_with_progress"
    result = await client.call_tool(tool, progress_callback=step)
    ensure(not result.is_error, f"{result}")
    await wait_until(lambda: len(steps) == 3, "the last step of progress")
    amounts = [(done, total) for done, total, _ in steps]
    ensure(amounts == [(0, 100), (50, 100), (100, 100)], f"{steps}")
    call = connection.wire.call(tool)
    token = call["params"]["_meta"]["progressToken"]
    kinds = [of_call(message, call["id"], token) for message in connection.wire.received]
    kinds = [kind for kind in kinds if kind]
    ensure(kinds == ["step", "step", "step", "answer"], f"{kinds}")


def of_call(message, id, token):
    """Returns whether a message is the answer to a call or a progress step of it."""
    if message.get("id") == id:
        return "answer"
    return "step" if message.get("params", {}).get("progressToken") == token else None


async def cancelled_loop_ends_without_further_messages(connection, client):
    connection.log_messages.clear()
    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()
        group.start_soon(call_within, scope, client)
        await wait_until(lambda: "started" in str(connection.log_messages), "the start of the loop")
        idle = connection.server.processor_time()
        computes = lambda: connection.server.processor_time() > idle + 0.1
        await wait_until(computes, "the computation of the loop")
        scope.cancel()
    cancelled, before = connection.wire.call("compute"), len(connection.wire.received)
    result = await client.call_tool("good")
    ensure(text(result) == "good", f"{result}")
    await asyncio.sleep(QUIET)
    busy = connection.server.processor_time()
    await asyncio.sleep(QUIET)
    ensure(connection.server.processor_time() - busy < QUIET / 10, "the guest computes on")
    # The library also requests the list of tools by itself.
    ids = [message["id"] for message in connection.wire.sent if "id" in message]
    asked = [id for id in ids if id > cancelled["id"]]
    after = [message.get("id", message) for message in connection.wire.received[before:]]
    ensure(sorted(after) == asked, f"after the cancellation: requests {asked}, messages {after}")


async def call_within(scope, client):
    with scope:
        await client.call_tool("compute")


async def accepted_call_runs_after_a_question_with_its_path(connection, client):
    connection.user = connection.accept
    name = fresh_name(connection, "accepted")
    result = await client.call_tool("write_file", {"path": name, "content": "written"})
    ensure(not result.is_error and connection.contents(name) == "written", f"{result}")
    questions = connection.questions
    ensure(len(questions) == 1 and name in questions[0].message, f"{questions}")


async def declined_call_does_not_run(connection, client):
    connection.user = connection.decline
    name = fresh_name(connection, "declined")
    result = await client.call_tool("write_file", {"path": name, "content": "written"})
    ensure(failure(result) == "user_denied" and connection.contents(name) is None, f"{result}")
    ensure(len(connection.questions) == 1, f"{connection.questions}")


async def ignored_call_does_not_run(connection, client):
    connection.user = connection.ignore
    name = fresh_name(connection, "ignored")
    arguments = {"path": name, "content": "written"}
    if connection.era == "modern":
        await late_answer_is_refused(client, arguments)
    else:
        begun = time.monotonic()
        result = await client.call_tool("write_file", arguments)
        ensure(failure(result) == "confirmation_timeout", f"{result}")
        ensure(time.monotonic() - begun >= QUESTION, "the question stood for less than its time")
        ensure(len(connection.questions) == 1, f"{connection.questions}")
    ensure(text(await client.call_tool("good")) == "good", "nothing else is answered")
    ensure(connection.contents(name) is None, "it was done")


async def late_answer_is_refused(client, arguments):
    """Repeats the call after the timeout of the question. In this revision the server does not
    wait: the client repeats the call with the answer."""
    asked = await client.session.call_tool("write_file", arguments, allow_input_required=True)
    ensure(isinstance(asked, types.InputRequiredResult), f"{asked}")
    await asyncio.sleep(QUESTION + QUIET)
    yes = types.ElicitResult(action="accept", content={"decision": "allow_once"})
    responses = {name: yes for name in asked.input_requests}
    try:
        late = await client.session.call_tool(
            "write_file", arguments, input_responses=responses, request_state=asked.request_state
        )
        ensure(False, f"a late answer is taken: {late}")
    except MCPError as error:
        ensure(error.code == types.INVALID_PARAMS and "requestState" in error.message, f"{error}")


PROMISES = [
    list_is_sorted_and_has_hints,
    call_is_answered,
    structured_output_matches_its_schema,
    tool_failures_and_invalid_arguments_are_reported,
    progress_precedes_the_answer,
    cancelled_loop_ends_without_further_messages,
    accepted_call_runs_after_a_question_with_its_path,
    declined_call_does_not_run,
    ignored_call_does_not_run,
]


async def check(promise, server, era):
    """Checks a promise with its own connection."""
    connection = Connection(server, era)
    async with asyncio.timeout(2 * PATIENCE):
        async with connection.client() as client:
            version = client.protocol_version
            ensure(version == connection.version, f"the server speaks {version}")
            await promise(connection, client)


def causes(error):
    """Returns the errors inside the exception groups of task groups, as text."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(causes(inner) for inner in error.exceptions)
    return f"{error}" if isinstance(error, Broken) else f"{type(error).__name__}: {error}"


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
                asyncio.run(check(promise, server, era))
                print(f"ok {name}", flush=True)
            except Exception as error:
                failed += 1
                print(f"failed {name}: {causes(error)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
