"""An MCP server as a newcomer may have one: a program of the standard library alone, with one tool."""

import json
import sys

PLACE = {"type": "string", "description": "A harbour, such as Bergen."}
TIDES = {
    "name": "tides",
    "description": "The times of high and low water in a harbour today.",
    "inputSchema": {"type": "object", "properties": {"place": PLACE}, "required": ["place"]},
}


def answer(method: str, params: dict) -> dict:
    match method:
        case "initialize":
            info, version = {"name": "tides", "version": "1"}, params["protocolVersion"]
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list":
            return {"result": {"tools": [TIDES]}}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": "High water at 9:12, low water at 15:20."}]}}
    return {"error": {"code": -32601, "message": "unknown"}}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        told = {"jsonrpc": "2.0", "id": asked["id"], **answer(asked["method"], asked.get("params", {}))}
        print(json.dumps(told), flush=True)  # noqa: T201
