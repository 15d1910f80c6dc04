"""What a user would build instead: LangGraph with a synchronous SQLite checkpointer behind FastAPI.

    OLLAMA_HOST=http://127.0.0.1:11434 PEER_DB=peer.db python langgraph_peer.py PORT

`POST /query {"query", "session_id"}` streams one call from an Ollama-like server and answers `{"answer"}` once the
checkpoint is on the disk. Runs in a virtual environment of its own, see `durable_peer`.
"""

import json
import operator
import os
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypedDict

import aiosqlite
import httpx
import uvicorn
from fastapi import FastAPI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

Json = dict[str, Any]


class Conversation(TypedDict):
    """What a thread's checkpoint holds."""

    messages: Annotated[list[Json], operator.add]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The graph of one node, on a database that syncs every commit."""
    async with (
        httpx.AsyncClient(base_url=os.environ["OLLAMA_HOST"]) as client,
        aiosqlite.connect(os.environ["PEER_DB"]) as connection,
    ):

        async def model(state: Conversation) -> Json:
            said = {"content": "", "thinking": ""}
            body = {"model": "gemma4:12b", "messages": state["messages"], "stream": True, "think": True}
            async with client.stream("POST", "/api/chat", json=body) as response:
                async for line in response.aiter_lines():
                    message = json.loads(line).get("message", {}) if line else {}
                    for key in said:
                        said[key] += message.get(key) or ""
            return {"messages": [{"role": "assistant", **said}]}

        await connection.execute("pragma journal_mode=wal")
        await connection.execute("pragma synchronous=full")
        saver = AsyncSqliteSaver(connection)
        await saver.setup()
        graph = StateGraph(Conversation)
        graph.add_node("model", model)
        graph.add_edge(START, "model")
        graph.add_edge("model", END)
        app.state.graph = graph.compile(checkpointer=saver)
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/query")
async def query(body: Json) -> Json:
    """One turn of a thread; a query without one begins one."""
    thread = {"configurable": {"thread_id": body.get("session_id") or uuid.uuid4().hex}}
    asked = {"messages": [{"role": "user", "content": body["query"]}]}
    ended = await app.state.graph.ainvoke(asked, thread, durability="sync")
    return {"answer": ended["messages"][-1]["content"]}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
