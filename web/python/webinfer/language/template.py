"""Chats as text: the template in a model's file, run by Jinja2 in a sandbox, as anybody may have written it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.errors import InputError, ModelFormatError
from webinfer.language.template_sandbox import compiled, run
from webinfer.language.tokenizer import Tokenizer

Messages = Sequence[Mapping[str, str]]
PLAIN = (  # for files without a template whose vocabulary has these tokens
    "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{'<|im_start|>assistant\n'}}{% endif %}"
)


class ChatTemplate:
    """A file's template.

    Raises:  ModelFormatError if it is none that Jinja2 reads
    """

    def __init__(self, source: Any, tokenizer: Tokenizer) -> None:
        if not isinstance(source, str):
            source = PLAIN if "<|im_start|>" in tokenizer.ids else ""
        try:
            self._template = compiled(source) if source else None
        except Exception as error:  # TemplateError, RecursionError, and what Python says of its text
            raise ModelFormatError(f"the template of chats in this file cannot be read: {error}") from error
        self._words = {
            name: "" if i is None else tokenizer.tokens[i]
            for name, i in (("bos_token", tokenizer.begin), ("eos_token", tokenizer.end))
        }

    def text(self, messages: Messages, answer: bool = True) -> str:
        """The chat as text, with `answer` up to where the next answer begins.

        Raises:  InputError if these are not messages, or the template refuses them
        """
        if self._template is None:
            raise InputError("this model's file has no template of chats; give a text in place of messages")
        try:
            plain = [{key: str(m[key]) for key in ("role", "content")} for m in messages]
        except (TypeError, KeyError, IndexError):
            raise InputError('messages are a list of {"role": "user", "content": "…"}') from None
        if not plain:
            raise InputError("there is no message to answer")
        try:
            return run(self._template, messages=plain, add_generation_prompt=answer, **self._words)
        except Exception as error:  # whatever the code of the file runs into
            raise InputError(f"the model's template of chats does not take these messages: {error}") from error
