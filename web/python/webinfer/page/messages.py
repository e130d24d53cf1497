"""The messages between page and engine worker.

Generated from page/messages.toml by `python3 -m build_scripts tables --write`: do not edit.
"""

VERSION = 6

TO_ENGINE: dict[str, dict[str, str]] = {
    "runtime": {"module": "any?"},
    "runtimeChecked": {"whole": "flag"},
    "detect": {"id": "number", "image": "any", "live": "flag"},
    "select": {"backend": "text", "model": "text", "options": "object"},
    "plan": {},
    "profile": {},
    "tune": {"budget": "number"},
    "exportTuning": {},
    "importTuning": {"text": "text"},
    "ask": {"id": "number", "action": "text", "fields": "object"},
    "stop": {},
    "ping": {},
    "close": {},
    "start": {
        "manifest": "object",
        "facts": "object",
        "page": "text",
        "task": "text",
        "model": "text",
        "also": "list",
        "options": "object",
        "backend": "text",
        "debug": "number",
        "life": "text",
        "patience": "number",
        "runtimeComes": "flag?",
    },
}

FROM_ENGINE: dict[str, dict[str, str]] = {
    "alive": {},
    "started": {"capabilities": "list"},
    "progress": {"stage": "text", "done": "number", "total": "number", "unit": "text"},
    "plan": {"columns": "list", "rows": "list", "summary": "text"},
    "profiling": {"done": "number", "total": "number"},
    "profile": {"report": "object", "svg": "text"},
    "tuning": {"done": "number", "total": "number"},
    "tuningLog": {"text": "text"},
    "tuningImported": {"taken": "number", "skipped": "number"},
    "step": {"id": "number", "stage": "text", "done": "number", "total": "number"},
    "answer": {"id": "number", "answer": "object", "buffers": "list"},
    "pong": {},
    "error": {"code": "text", "message": "text", "id": "number?", "fatal": "flag?", "died": "flag?"},
    "ready": {
        "backend": "text",
        "reason": "text",
        "notice": "object?",
        "capabilities": "list",
        "overlaps": "flag",
        "tunable": "flag",
        "result": "object",
    },
    "result": {
        "id": "number",
        "backend": "text",
        "reason": "text",
        "image": "object",
        "found": "list",
        "times": "object",
    },
    "tuned": {
        "model": "text",
        "plan": "text",
        "default_ms": "number",
        "tuned_ms": "number",
        "gain": "number",
        "changed": "number",
        "kept": "flag",
        "timed": "number",
        "known": "number",
        "shapes": "number",
    },
}
