"""Checks Palisade's provider formats against the providers' own libraries; `cargo xtask providers`
runs it.

    check.py PROGRAM

For each provider, the recorded reply (`tests/replies`) parses as the library's response, with the
calls that Palisade reads. The definitions of `palisade export` are valid in a request. The messages
of `palisade dispatch` and those in `tests/golden/conversation` are valid in the next request, and
contain the results of the calls. Unknown keys are errors everywhere: the libraries pass them on,
and the providers may refuse them.
"""

import json
import os
import subprocess
import sys
import tempfile
import types
import typing
from collections import abc
from pathlib import Path

import typing_extensions
from anthropic.types import Message, MessageParam, ToolParam
from google.genai import types as gemini
from openai.types import chat, responses
from openai.types.responses import response_input_item_param
from pydantic import BaseModel, TypeAdapter, ValidationError

ROOT = Path(__file__).resolve().parents[2]

NOTES = "Buy milk.\nOPEN: ask about the invoice\n"

# Each call: its name, its arguments, whether it fails, and texts that its answer contains.
CALLS = [
    ("read_file", {"path": "notes.txt"}, False, [NOTES.strip()]),
    ("search_files", {"pattern": "OPEN"}, False, ["notes.txt", "ask about the invoice"]),
    ("calculate", {"expression": "6 * 7"}, False, ["42"]),
    ("web_fetch", {"url": "https://example.org/"}, True, ["not_found", "web_fetch"]),
    ("read_file", {}, True, ["validation_error", "path"]),
]


class Wrong(Exception):
    """A failed check."""


def need(holds, what):
    if not holds:
        raise Wrong(what)


MARKS = (
    typing_extensions.Required,
    typing_extensions.NotRequired,
    typing_extensions.ReadOnly,
    typing.Annotated,
)


def bare(annotation):
    """Returns a type without the marks of its key."""
    while typing.get_origin(annotation) in MARKS:
        annotation = typing.get_args(annotation)[0]
    return annotation


def accept(value, annotation, at=""):
    """Validates plain JSON against a type of a library, recursively."""
    annotation = bare(annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if typing_extensions.is_typeddict(annotation):
        accept_keys(value, annotation, at)
    elif origin in (typing.Union, types.UnionType):
        accept_one(value, arguments, at)
    elif is_list(origin):
        need(isinstance(value, list), f"{at}: not a list: {value!r}")
        for index, inner in enumerate(value):
            accept(inner, arguments[0], f"{at}/{index}")
    else:
        accept_plain(value, annotation, at)


def is_list(origin):
    name = getattr(origin, "__name__", "")
    return origin in (list, abc.Iterable, abc.Sequence) or name == "SequenceNotStr"


def accept_keys(value, annotation, at):
    """Validates an object. The annotations are evaluated here, because the libraries store them as
    text, so that the class itself does not know its required keys."""
    name = annotation.__name__
    need(isinstance(value, dict), f"{at}: {name} is an object, not {value!r}")
    known = typing_extensions.get_type_hints(annotation, include_extras=True)
    is_required = lambda inner: typing.get_origin(inner) is typing_extensions.Required
    required = {key for key, inner in known.items() if is_required(inner)}
    need(required <= value.keys(), f"{at}: {name} lacks {sorted(required - value.keys())}")
    takes_others = getattr(annotation, "__pydantic_config__", {}).get("extra") == "allow"
    for key, inner in value.items():
        need(key in known or takes_others, f"{at}: {name} has no key {key!r}")
        accept(inner, known.get(key, object), f"{at}/{key}")


def accept_plain(value, annotation, at):
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    config = None if is_model else {"arbitrary_types_allowed": True}
    try:
        TypeAdapter(annotation, config=config).validate_python(value, strict=True)
    except ValidationError as error:
        raise Wrong(f"{at}: {error}") from error


def accept_one(value, alternatives, at):
    refusals = []
    for alternative in alternatives:
        try:
            return accept(value, alternative, at)
        except Wrong as wrong:
            refusals.append(str(wrong))
    raise Wrong(f"{at}: no alternative matches:\n  " + "\n  ".join(refusals))


def known_only(model, at=""):
    """Rejects a parsed reply with a field that its class does not declare."""
    if isinstance(model, BaseModel):
        unknown = sorted(model.model_extra or {})
        need(not unknown, f"{at}: {type(model).__name__} has no fields {unknown}")
        for name in type(model).model_fields:
            known_only(getattr(model, name), f"{at}/{name}")
    elif isinstance(model, list):
        for index, inner in enumerate(model):
            known_only(inner, f"{at}/{index}")


class OpenAi:
    name, reply, tool = "openai", chat.ChatCompletion, chat.ChatCompletionToolParam
    message = chat.ChatCompletionToolMessageParam
    marks_failures = False

    def calls(self, reply):
        calls = reply.choices[0].message.tool_calls
        return [
            (call.id, call.function.name, json.loads(call.function.arguments)) for call in calls
        ]

    def answers(self, messages):
        return [(message["tool_call_id"], None, message["content"], False) for message in messages]


class OpenAiResponses:
    name, reply, tool = "openai-responses", responses.Response, responses.FunctionToolParam
    message = response_input_item_param.FunctionCallOutput
    marks_failures = False

    def calls(self, reply):
        calls = [item for item in reply.output if item.type == "function_call"]
        return [(call.call_id, call.name, json.loads(call.arguments)) for call in calls]

    def answers(self, messages):
        return [(item["call_id"], None, item["output"], False) for item in messages]


class Anthropic:
    name, reply, tool, message = "anthropic", Message, ToolParam, MessageParam
    marks_failures = True

    def calls(self, reply):
        calls = [block for block in reply.content if block.type == "tool_use"]
        return [(call.id, call.name, call.input) for call in calls]

    def answers(self, messages):
        roles = [message["role"] for message in messages]
        need(roles == ["user"], "one user message answers all calls")
        for result in messages[0]["content"]:
            text = "".join(block.get("text", "") for block in result["content"])
            yield result["tool_use_id"], None, text, result["is_error"]


class Gemini:
    name, reply = "gemini", gemini.GenerateContentResponse
    tool, message = gemini.Tool, gemini.Content
    marks_failures = True

    def calls(self, reply):
        return [(call.id, call.name, call.args) for call in reply.function_calls]

    def answers(self, messages):
        need(len(messages) == 1 and messages[0]["role"] == "user", "one content answers all calls")
        for part in messages[0]["parts"]:
            answer = part["functionResponse"]
            response = answer["response"]
            need(len(response) == 1, "a response has an output or an error")
            text = str(next(iter(response.values())))
            yield answer.get("id"), answer["name"], text, "error" in response


PROVIDERS = [OpenAi(), OpenAiResponses(), Anthropic(), Gemini()]


def accept_all(values, annotation):
    """Validates values. Google's types are classes that forbid unknown fields themselves."""
    for index, value in enumerate(values):
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            forbids = annotation.model_config.get("extra") == "forbid"
            need(forbids, f"{annotation.__name__} accepts unknown fields")
            known_only(annotation.model_validate_json(json.dumps(value)), f"/{index}")
        else:
            accept(value, annotation, f"/{index}")


def check_reply(provider, _world):
    text = (ROOT / f"tests/replies/{provider.name}.json").read_text()
    # Validates the reply. The libraries of OpenAI and Anthropic themselves build their classes from a
    # response without validation.
    reply = provider.reply.model_validate_json(text)
    known_only(reply)
    calls = [(name, arguments) for _, name, arguments in provider.calls(reply)]
    expected = [(name, arguments) for name, arguments, _, _ in CALLS]
    need(calls == expected, f"the library sees {calls}")


def check_definitions(provider, world):
    for strict in ([], ["--strict"]):
        printed = world.run("export", "--format", provider.name, *strict)
        definitions = json.loads(printed)
        accept_all(definitions, provider.tool)
        is_nested = provider.name == "gemini"
        count = len(definitions[0]["functionDeclarations"] if is_nested else definitions)
        need(count >= 8, f"only {count} shipped tools are exported")


def check_recorded_messages(provider, _world):
    recorded = json.loads((ROOT / f"tests/golden/conversation/{provider.name}.json").read_text())
    need(recorded["messages"], "there are no messages")
    accept_all(recorded["messages"], provider.message)


def check_dispatched_messages(provider, world):
    text = (ROOT / f"tests/replies/{provider.name}.json").read_text()
    messages = json.loads(world.run("dispatch", "--from", provider.name, text=text))
    accept_all(messages, provider.message)
    answers = list(provider.answers(messages))
    asked = provider.calls(provider.reply.model_validate_json(text))
    ids = [answer[0] for answer in answers]
    need(ids == [call[0] for call in asked], f"the answers have the ids {ids}")
    for (_, name, text, failed), (called, _, fails, words) in zip(answers, CALLS, strict=True):
        need(name in (None, called), f"{called} is answered as {name}")
        missing = [word for word in words if word not in text]
        need(not missing, f"the answer of {called} does not contain {missing}: {text!r}")
        need(not provider.marks_failures or failed == fails, f"{called}: failed is {failed}")


CHECKS = [
    ("the recorded reply", check_reply),
    ("exported definitions", check_definitions),
    ("recorded messages", check_recorded_messages),
    ("dispatched messages", check_dispatched_messages),
]


class World:
    """A workspace and the program, isolated from the user's environment."""

    def __init__(self, program, directory):
        self.workspace = Path(directory, "workspace")
        self.workspace.mkdir()
        (self.workspace / "notes.txt").write_text(NOTES)
        self.program = program
        cache = str(Path(directory, "cache"))
        path = os.environ.get("PATH", "")
        self.environment = {"HOME": directory, "PALISADE_CACHE": cache, "PATH": path}

    def run(self, *arguments, text=""):
        command = [self.program, "--workspace", str(self.workspace), *arguments]
        options = {"capture_output": True, "text": True, "timeout": 300}
        done = subprocess.run(command, input=text, env=self.environment, **options)
        line = f"palisade {' '.join(arguments)}"
        need(done.returncode == 0, f"{line} exits with {done.returncode}: {done.stderr.strip()}")
        return done.stdout


def holds(provider, name, check, world):
    try:
        check(provider, world)
    # A failed check must not hide the others.
    except Exception as error:  # pylint: disable=broad-except
        print(f"{provider.name}: {name}: WRONG: {type(error).__name__}: {error}")
        return False
    print(f"{provider.name}: {name}: valid for {provider.reply.__module__.split('.')[0]}")
    return True


def main():
    with tempfile.TemporaryDirectory() as directory:
        world = World(sys.argv[1], directory)
        verdicts = [
            holds(provider, name, check, world)
            for provider in PROVIDERS
            for name, check in CHECKS
        ]
    if not all(verdicts):
        sys.exit(f"{verdicts.count(False)} of {len(verdicts)} checks fail")


if __name__ == "__main__":
    main()
