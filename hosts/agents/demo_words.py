"""What the demo Agent says, English and Chinese: one set of words a language, the same members in each.

The words a person may write are known in both languages at any time; an answer is in the language the Agent was started with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lineup_sdk.protocol.messages import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """One language. {…} is filled in. after_choice: by the id of what was chosen."""

    greeting: str
    help: str
    tour_task: str
    another_task: str
    question_title: str
    question: str
    actions: tuple[JsonObject, ...]
    after_choice: Mapping[str, str]
    no_answer: str
    no_board: str
    board_open: str
    board_title: str
    no_drawing: str
    drawing: str
    tour_over: str
    said_back: str
    not_now: str
    # of the script whose claims are checked
    begin: str
    task: str
    done: str


EN: Final = Words(
    greeting="""## Hello, this is the demo Agent
I am a **fixed script**, not a model: I show what a page of LineUp can do, and nothing leaves this machine.

1. I put a task on the **Task Dashboard**.
2. I ask you **one question**.
3. I open a **Whiteboard** for you to draw on.

Write to me at any time; `help` says what I know.""",
    help="""I know a few words: `board` opens another board, `task` puts another task on the dashboard, `ask` asks you something again.

A real Agent connects with `lineup agent`: one JSON object a line, in and out. I then give way to it.""",
    tour_task="Show you around",
    another_task="Another task",
    question_title="Where to first?",
    question="How shall we **begin**?",
    actions=(
        {"id": "tour", "label": "Show me around", "description": "A line about what each part of this page is for."},
        {"id": "draw", "label": "Let me draw", "description": "Straight to the whiteboard."},
        {"id": "quiet", "label": "I will look around myself"},
    ),
    after_choice={
        "tour": "Apps stand at the side with what they are doing; this conversation is yours and mine; **Activity** has every call, "
        "and why it ended as it did. Nothing here is lost when a program dies: try it.",
        "draw": "Straight to the board, then.",
        "quiet": "As you like. I will leave a board for you all the same.",
    },
    no_answer="No answer is an answer too.",
    no_board="The whiteboard is switched off, so there is nothing to draw on.",
    board_open="A board is open. Draw something and **submit** it, or cancel it: I see either.",
    board_title="Draw me something",
    no_drawing="The board ended without a drawing (`{code}`). That is fine.",
    drawing="Thank you! This is what I got:\n\n![Your drawing](artifact:{artifact_id})",
    tour_over="That was the tour. Write `help` for what else I can do.",
    said_back="You wrote:\n\n{quoted}\n\nI am a script and can only say it back. `help` says what I know.",
    not_now="One thing after the other: first what is open now.",
    begin="This is the demo Agent. I will put one task on the dashboard and bring it to its end.",
    task="Show what LineUp does",
    done="Done: one task finished, one stale call refused.",
)

ZH: Final = Words(
    greeting="""## 你好，我是演示 Agent
我是一段**固定的脚本**，不是模型：我来展示 LineUp 页面能做什么，任何内容都不会离开这台机器。

1. 我在**任务面板**上放一项任务。
2. 我问你**一个问题**。
3. 我为你打开一块**白板**。

随时可以给我写信；写 `帮助` 就能知道我会什么。""",
    help="""我认得几个词：`画板` 再打开一块白板，`任务` 在面板上再放一项任务，`提问` 再问你一次。

真正的 Agent 用 `lineup agent` 连接：每行读写一个 JSON 对象。到那时我就让位。""",
    tour_task="带你看看",
    another_task="另一项任务",
    question_title="先看什么？",
    question="我们**从哪里**开始？",
    actions=(
        {"id": "tour", "label": "带我看看", "description": "用一两句话说明页面各部分的用途。"},
        {"id": "draw", "label": "让我画画", "description": "直接打开白板。"},
        {"id": "quiet", "label": "我自己看看"},
    ),
    after_choice={
        "tour": "应用和它们正在做的事在侧边；这里的对话属于你和我；**活动**里有每个调用，以及它为何那样结束。"
        "程序意外结束时这里什么都不会丢：不妨试试。",
        "draw": "那就直接去白板。",
        "quiet": "随你。我还是会给你留一块白板。",
    },
    no_answer="不回答也是一种回答。",
    no_board="白板已停用，没有可以画的地方。",
    board_open="白板已打开。画点什么并**提交**，或者放弃：两样我都看得到。",
    board_title="给我画点什么",
    no_drawing="白板结束了，没有画（`{code}`）。没关系。",
    drawing="谢谢！这是我收到的：\n\n![你的画](artifact:{artifact_id})",
    tour_over="演示到此结束。写 `帮助` 看看我还会什么。",
    said_back="你写的是：\n\n{quoted}\n\n我只是脚本，只能照样说回来。写 `帮助` 看看我会什么。",
    not_now="一件一件来：先处理现在打开的。",
    begin="我是演示 Agent。我会在面板上放一项任务，并把它做完。",
    task="展示 LineUp 能做什么",
    done="完成：一项任务已做完，一个过时的调用被拒绝。",
)

LANGUAGES: Final[Mapping[str, Words]] = {"en": EN, "zh": ZH}

KNOWN_WORDS: Final[Mapping[str, str]] = {
    "ask": "ask", "提问": "ask",
    "board": "board", "画板": "board", "白板": "board",
    "help": "help", "帮助": "help",
    "task": "task", "任务": "task",
}  # fmt: skip
