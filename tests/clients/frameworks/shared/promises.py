"""The promises of `palisade serve` to the agent frameworks in Python; each client runs them.

    client.py --workspace DIR [--attended] [--process PID --url URL | COMMAND…]

With `--attended` the server has an operator, who answers the questions that the client cannot show.
The model is a stand-in at `OPENAI_BASE_URL`: the prompt is its script, and its last words are the
tools and the messages that it was sent. So each promise is checked where it counts, at the model.
The output has a line per promise: `ok NAME`, `failed NAME: why`, or `fault NAME: why` for a promise
that only this version of the client breaks.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import sys
import time
from pathlib import Path

import attendant

# An upper bound for the time of a promise, also on a slow machine, in seconds.
PATIENCE = 120
# The number of calls at once, and what they read.
MANY = 50
FILES = {f"note-{number}.txt": f"the note {number} of {MANY}" for number in range(MANY)}
# The beginning of the image of `test_image_content`, in base64.
IMAGE = "iVBORw0KGgo"
# The types of a part that a model sees as an image.
IMAGES = {"image", "image_url", "input_image"}
# The shipped tools whose listing is checked, and an argument that each requires.
TOOLS = {"calculate": "expression", "read_file": "path", "write_file": "path"}
# The formats that providers know.
FORMATS = {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"}


class Broken(Exception):
    """A broken promise."""


def ensure(holds, what):
    if not holds:
        raise Broken(str(what)[:2000])


class Server:
    """The server's address or start command."""

    def __init__(self, arguments):
        self.workspace, self.url = arguments.workspace, arguments.url
        self.command, self.attended = arguments.command, arguments.attended
        # The libraries do not pass these to the server by themselves.
        kept = lambda name: name.startswith("PALISADE_") or name in ("HOME", "PATH")
        self.environment = {name: value for name, value in os.environ.items() if kept(name)}

    @property
    def headers(self):
        """The headers of each request to the address: a server without an operator has no token."""
        if not self.attended:
            return {}
        return {"Authorization": f"Bearer {attendant.token(attendant.address_of(self.url))}"}

    def fresh(self, name):
        """Returns a file of the workspace, and removes the one of an earlier run."""
        file = self.workspace / name
        file.unlink(missing_ok=True)
        return file


class User:
    """The person at the client, with the messages of all forms shown."""

    def __init__(self, accepts):
        self.accepts, self.questions = accepts, []

    def answer(self, message):
        """Returns the action and the content of the answer to a form."""
        self.questions.append(message)
        return ("accept", {"decision": "allow_once"}) if self.accepts else ("decline", None)


class Client:
    """A framework under test. Each client derives from this class."""

    # The text that the framework puts before the name of each tool.
    prefix = ""
    # Whether the framework can show forms.
    shows_forms = True
    # The tools that the framework itself makes, of the documents of the server.
    own_tools = set()
    # The promises that this version of the framework breaks: the beginning of the failure, and the
    # reason.
    faults = {}
    # Further promises, to this framework only.
    promises = []
    # The program of the framework, if it is one.
    program = None
    # A time in seconds for which the framework waits only with `patient` settings, or only because
    # the server tells it that the call goes on.
    patience = 25

    @contextlib.asynccontextmanager
    async def agent(self, server, user):
        """Connects to the server, and yields a function that passes a prompt to an agent with the
        server's tools and returns its last words."""
        raise NotImplementedError
        yield

    def patient_agent(self, server, user):
        """Does the same with the settings that `patience` needs."""
        return self.agent(server, user)


class Trial:
    """A client with its server and its user, for one promise."""

    def __init__(self, client, server, user, ask, operator=None):
        self.client, self.server, self.user, self.ask = client, server, user, ask
        self.operator = operator

    async def said(self, *turns):
        """Returns what the model was sent in the last turn."""
        named = lambda call: {"name": self.client.prefix + call[0], "arguments": call[1]}
        script = {"turns": [[named(call) for call in turn] for turn in turns]}
        words = await self.ask(json.dumps(script))
        try:
            return json.loads(words)
        except (TypeError, ValueError):
            raise Broken(f"the last words are not the model's: {words!r:.2000}") from None

    async def results(self, *calls):
        """Returns the results of calls of one turn as the model was shown them, in their order."""
        messages = (await self.said(calls))["messages"]
        shown = {}
        for message in messages:
            for id, content in results_in(message):
                ensure(id not in shown, f"two results of one call: {messages}")
                shown[id] = content if isinstance(content, str) else json.dumps(content)
        ids = [f"call_{number}" for number in range(len(calls))]
        ensure(all(id in shown for id in ids), f"no result of {set(ids) - set(shown)}: {messages}")
        return [shown[id] for id in ids]


def results_in(message):
    """Yields the ids and the contents of the results in a message of any interface."""
    if (id := message.get("tool_call_id") or message.get("call_id")) is not None:
        if (content := message.get("content", message.get("output"))) is not None:
            yield id, content
    elif isinstance(parts := message.get("content"), list):
        for part in parts:
            if part.get("type") == "tool_result":
                yield part["tool_use_id"], part["content"]


async def lists_tools_with_portable_schemas(trial):
    tools = [tool.get("function", tool) for tool in (await trial.said())["tools"]]
    tools = {tool["name"]: tool.get("parameters", tool.get("input_schema")) for tool in tools}
    for name, argument in TOOLS.items():
        schema = tools.get(trial.client.prefix + name)
        ensure(schema is not None, f"{name} is missing: {sorted(tools)}")
        ensure(argument in schema.get("properties", {}), f"{name} lacks {argument}: {schema}")
        ensure(argument in schema.get("required", []), f"{argument} is optional: {schema}")
    for name in sorted(tools.keys() - trial.client.own_tools):
        for found in unportable(tools[name]):
            raise Broken(f"{name} has {found}: {tools[name]}")


def unportable(schema):
    """Yields the keywords of a schema that the one or other provider refuses."""
    if isinstance(schema, list):
        for inner in schema:
            yield from unportable(inner)
    elif isinstance(schema, dict):
        if isinstance(kinds := schema.get("type"), list):
            yield f"several types, {kinds}"
        if isinstance(form := schema.get("format"), str) and form not in FORMATS:
            yield f"the format {form}"
        yield from unportable(list(schema.values()))


async def reads_a_file(trial):
    (trial.server.workspace / "milk.txt").write_text("Buy milk.\n")
    [shown] = await trial.results(("read_file", {"path": "milk.txt"}))
    ensure("Buy milk." in shown, shown)


async def takes_null_for_an_absent_argument(trial):
    (trial.server.workspace / "milk.txt").write_text("Buy milk.\n")
    arguments = {"path": "milk.txt", "start_line": None, "end_line": None, "limit": None}
    [shown] = await trial.results(("read_file", arguments))
    ensure("Buy milk." in shown, shown)


async def shows_the_error_of_a_tool(trial):
    [shown] = await trial.results(("fail", {"with": "not-found"}))
    ensure("no such thing" in shown, shown)


async def shows_the_error_of_an_argument(trial):
    [shown] = await trial.results(("read_file", {"path": 3}))
    ensure("path" in shown and "string" in shown, shown)


async def shows_a_structured_result(trial):
    [shown] = await trial.results(("promise", {"give": "right"}))
    plain = shown.replace("\\", "").replace(" ", "").replace("'", '"')
    ensure('"n":1' in plain, shown)


async def shows_an_image(trial):
    messages = (await trial.said([("test_image_content", {})]))["messages"]
    shown = [json.dumps(part) for part in images(messages)]
    ensure(any(IMAGE in part for part in shown), f"no image: {messages}")


def images(sent):
    """Yields the parts of messages that a model sees as an image."""
    if isinstance(sent, list):
        for inner in sent:
            yield from images(inner)
    elif isinstance(sent, dict):
        if sent.get("type") in IMAGES:
            yield sent
        yield from images(list(sent.values()))


async def writes_only_what_its_user_accepts(trial):
    file = trial.server.fresh("accepted.txt")
    [shown] = await trial.results(("write_file", {"path": file.name, "content": "written"}))
    if trial.client.shows_forms:
        questions = trial.user.questions
        ensure(len(questions) == 1 and file.name in questions[0], f"{questions}; {shown}")
        ensure(file.exists() and file.read_text() == "written", f"not written: {shown}")
    else:
        ensure(not file.exists(), f"nobody was asked: {shown}")
        said = ("write_file", "denied", "refused")
        ensure(any(word in shown for word in said), f"the model is not told: {shown}")


async def writes_nothing_that_its_user_declines(trial):
    trial.user.accepts = False
    file = trial.server.fresh("declined.txt")
    [shown] = await trial.results(("write_file", {"path": file.name, "content": "written"}))
    ensure(not file.exists(), f"written all the same: {shown}")
    asked = 1 if trial.client.shows_forms else 0
    ensure(len(trial.user.questions) == asked, trial.user.questions)


async def loses_none_of_fifty_calls_at_once(trial):
    for name, content in FILES.items():
        (trial.server.workspace / name).write_text(content)
    shown = await trial.results(*[("read_file", {"path": name}) for name in FILES])
    for (name, content), result in zip(FILES.items(), shown, strict=True):
        ensure(content in result, f"{name}: {result}")


async def ask_operator(trial):
    """Makes a write that the operator answers. Returns its file, and what the model was shown."""
    file, operator = trial.server.fresh(f"{trial.operator.decision}.txt"), trial.operator
    begun = time.monotonic()
    [shown] = await trial.results(("write_file", {"path": file.name, "content": "written"}))
    took = time.monotonic() - begun
    asked = [question["projected_modifications"] for question in operator.questions.values()]
    ensure(asked == [[file.name]], f"asked: {asked}; {shown}")
    ensure(operator.answers == [operator.decision], f"answered: {operator.answers}; {shown}")
    ensure(took >= operator.after, f"it did not wait, but took {took} s: {shown}")
    return file, shown


async def writes_what_the_operator_allows(trial):
    file, shown = await ask_operator(trial)
    ensure(file.exists() and file.read_text() == "written", f"not written: {shown}")
    ensure("Created" in shown and file.name in shown, f"the model sees no success: {shown}")


async def writes_nothing_that_the_operator_denies(trial):
    file, shown = await ask_operator(trial)
    ensure(not file.exists(), f"written all the same: {shown}")
    ensure("denied" in shown, f"the model is not told: {shown}")


async def waits_for_an_operator_who_takes_long(trial):
    await writes_what_the_operator_allows(trial)


PROMISES = [
    lists_tools_with_portable_schemas,
    reads_a_file,
    takes_null_for_an_absent_argument,
    shows_the_error_of_a_tool,
    shows_the_error_of_an_argument,
    shows_a_structured_result,
    shows_an_image,
    writes_only_what_its_user_accepts,
    writes_nothing_that_its_user_declines,
    loses_none_of_fifty_calls_at_once,
]
# The promises of a server with an operator: the decision, and its time in seconds. Without one, the
# operator takes as long as the framework has patience.
ATTENDED = {
    writes_what_the_operator_allows: ("allow", 2),
    writes_nothing_that_the_operator_denies: ("deny", 2),
    waits_for_an_operator_who_takes_long: ("allow", None),
}


async def check(promise, client, server):
    """Checks a promise with its own connection."""
    user, operator, agent = User(accepts=True), None, client.agent
    if promise in ATTENDED:
        decision, after = ATTENDED[promise]
        if after is None:
            after, agent = client.patience, client.patient_agent
        # Before the agent, which may start the server.
        operator = attendant.Attendant(server.url, decision, after)
    try:
        async with asyncio.timeout(PATIENCE):
            async with agent(server, user) as ask:
                await promise(Trial(client, server, user, ask, operator))
    finally:
        if operator is not None:
            operator.leave()


def causes(error):
    """Returns the errors inside the exception groups of task groups, as text."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(causes(inner) for inner in error.exceptions)
    return f"{error}" if isinstance(error, Broken) else f"{type(error).__name__}: {error}"


def report(promise, client, server):
    """Checks a promise and prints the outcome. Returns whether it is as listed."""
    name = promise.__name__
    failure, fault = client.faults.get(name, (None, None))
    try:
        asyncio.run(check(promise, client, server))
    except Exception as error:
        why = causes(error)
        is_listed = fault is not None and why.startswith(failure)
        print(f"fault {name}: {fault}" if is_listed else f"failed {name}: {why}", flush=True)
        return is_listed
    kept = f"failed {name}: it is kept, and still listed as a fault: {fault}"
    print(f"ok {name}" if fault is None else kept, flush=True)
    return fault is None


def main(client):
    parser = argparse.ArgumentParser()
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument("--program", type=Path)
    parser.add_argument("--attended", action="store_true")
    parser.add_argument("--process", type=int)
    parser.add_argument("--url")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    server, client.program = Server(arguments), arguments.program
    promises = list(ATTENDED) if server.attended else PROMISES + client.promises
    known = [*PROMISES, *client.promises, *ATTENDED]
    unknown = client.faults.keys() - {promise.__name__ for promise in known}
    ensure(not unknown, f"faults of no promise: {unknown}")
    # The frameworks log each failed call.
    logging.disable()
    kept = [report(promise, client, server) for promise in promises]
    # Some frameworks leave threads behind that would keep the interpreter running.
    sys.stdout.flush()
    os._exit(0 if all(kept) else 1)
