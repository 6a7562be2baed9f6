# The guest that the benchmark calls: one tool in Python that gives back its input, or sleeps for
# longer than anybody waits.
import json
import time

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import host, types

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}, "sleep": {"type": "boolean"}}, "required": ["text"]}


class Tool(exports.Tool):
    def definitions(self):
        return [types.Definition("python_echo", None, "For the benchmark.", json.dumps(SCHEMA), None, types.SideEffects.NONE, True, None, "")]

    def execute(self, call):
        if call.tool != "python_echo":
            raise Err(types.ToolError_NotFound(call.tool))
        if json.loads(call.input).get("sleep"):
            host.emit("started")
            time.sleep(3600)
        return types.Output([types.Content_Text(call.input)], True, "", [], None)
