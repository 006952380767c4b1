"""An App that asks hosts to act: every tool takes and gives JSON text. Never shipped.

`ask` answers with what the kernel said at once; `results` with every capability.result that this App took over; `copy` waits for its own;
`put` keeps bytes as an artifact and asks to save them.
"""

import json

from lineup_sdk import MiniApp, Refused

app = MiniApp()


@app.on_message("capability.result")
async def keep(message):
    state = await app.state.load() or {"results": []}
    await app.state.save({"results": [*state["results"], message.body]})


async def say(call, ask):
    try:
        asked = await app.capabilities.request(**ask, call=call)
    except Refused as refused:
        return {"code": refused.code}
    return {"request_id": asked.request_id, "status": asked.status}


@app.tool("scribe.ask")
async def ask(call):
    return {"json": json.dumps(await say(None, json.loads(call.input["json"])))}


@app.tool("scribe.results")
async def results(call):
    state = await app.state.load() or {"results": []}
    return {"json": json.dumps(state["results"])}


@app.tool("scribe.copy")
async def copy(call):
    said = await say(call, json.loads(call.input["json"]))
    if "code" not in said:
        result = await app.capabilities.wait_result(said["request_id"])
        said = {"status": result.status, "code": result.code, "reason": result.reason}
    return {"json": json.dumps(said)}


@app.tool("scribe.put")
async def put(call):
    given = json.loads(call.input["json"])
    artifact_id = await app.artifacts.put(given["text"].encode(), "text/plain")
    said = await say(
        None, {"capability": "artifact.save", "reason": "Keep it", "arguments": {"artifact_id": artifact_id, "name": given["name"]}}
    )
    return {"json": json.dumps(said)}
