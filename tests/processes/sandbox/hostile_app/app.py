"""The one hostile app: tries, when it is told to and while it is imported, everything a MiniApp must not be able to do."""

from __future__ import annotations

import attacks
import survey

AT_IMPORT = {name: attacks.attempt(name) for name in attacks.TRIED_AT_IMPORT}


class Hostile:
    """Answers `attempt {name}` with `outcome {text}`."""

    async def serve(self, channel, welcome):
        while True:
            for frame in await channel.receive():
                channel.send({"type": "outcome", "text": self._answer(frame, channel)})
                await channel.drain()

    def _answer(self, frame, channel):
        if frame["name"] == "at_import":
            return AT_IMPORT
        if frame["name"] == "survey":
            return survey.run(frame["from"], frame["to"], channel)
        if frame["name"] == "search":
            return survey.search_memory(frame["head"], frame["tail"])
        return attacks.attempt(frame["name"])


app = Hostile()
