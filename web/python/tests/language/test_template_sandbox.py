"""Chat templates of hostile files end at a limit, compiled or run; honest ones run as Jinja2 runs them."""

from __future__ import annotations

import time

import pytest
from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from webinfer.language import template_sandbox
from webinfer.language.template_sandbox import compiled, run

LONG = "{% set s = 'a' * 9000000 %}"
GROWING = "{%% set ns = namespace(x=%s) %%}{%% for i in range(60) %%}{%% set ns.x = %s %%}{%% endfor %%}{{ ns.x }}"
HOSTILE = {
    "folded": "{% set x = 'a' * 4000000000 * 2 %}",
    "folded output": "{{ 'a' * 4000000000 }}",
    "folded filter": "{{ 'a'|center(2000000000) }}",
    "folded escape": "{% autoescape 'a'|center(2000000000) %}{% endautoescape %}",
    "power": "{{ 10 ** 99999999 }}",
    "squares": GROWING % ("3", "ns.x * ns.x"),
    "digits": "{{ " + "9" * 5000 + " }}",
    "nested ranges": "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
    "loops over a text": LONG + "{% for a in s %}{% for b in s %}{% endfor %}{% endfor %}",
    "scans": LONG + "{% for a in s %}{% if 'b' in s %}{% endif %}{% endfor %}",
    "lipsum": "{{ lipsum(100000) }}",
    "width": "{{ '%2000000000d' % 5 }}",
    "starred width": "{{ '%*d' % (2000000000, 5) }}",
    "precision": "{{ '%.2000000000f' % 5 }}",
    "filtered width": "{{ '%2000000000d'|format(5) }}",
    "width of a field": "{{ '{:2000000000}'.format(5) }}",
    "width by name": "{{ '{:{}}'.format(5, '2000000000') }}",
    "center": "{{ 'a'.center(2000000000) }}",
    "zfill": "{{ 'a'.zfill(2000000000) }}",
    "expandtabs": "{{ '\\t'.expandtabs(2000000000) }}",
    "indent": "{{ 'a\\nb'|indent(2000000000) }}",
    "justified twice": "{{ 'a'.ljust(9999999).ljust(99999999) }}",
    "slice": "{{ [1]|slice(2000000000)|list }}",
    "doubled by ~": GROWING % ("'ab'", "ns.x ~ ns.x"),
    "doubled by +": GROWING % ("'ab'", "ns.x + ns.x"),
    "lists in lists": GROWING % ("'ab'", "[ns.x, ns.x]"),
    "repeated lists": GROWING % ("['ab']", "ns.x * 2"),
    "join": LONG + "{{ s.join(('a' * 9000)|list) }}",
    "replace": LONG + "{{ s.replace('a', s) }}",
    "replace nothing": LONG + "{{ s|replace('', s) }}",
    "date": "{{ strftime_now('%2000000000d') }}",
    "macros": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "text of macros": "{% macro m() %}"
    + "x" * 90000
    + "{% endmacro %}"
    + "{% for i in range(99999) %}{% set a = m() %}{% endfor %}",
    "written": LONG + "{% for a in range(1000) %}{{ s }}{% endfor %}",
    "captured": LONG + "{% set y %}{% for a in range(1000) %}{{ s }}{% endfor %}{% endset %}",
    "captured text": "{% set y %}{% for a in range(100000) %}" + "x" * 90000 + "{% endfor %}{% endset %}",
    "sums": "{% for i in range(100000) %}{% set s = range(100000)|sum %}{% endfor %}",
    "recursion": "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "source": "x" * 500_000,
}
HONEST = (
    "{%- macro t(x) -%}[{{ x|upper }}]{%- endmacro -%}{%- for m in messages if m.role != 'system' -%}"
    "{{ loop.index0 }}/{{ loop.length }}{{ '' if loop.last else ',' }}{{ t(m['content']) }}"
    "{% set parts = m.content.split(' ') %}"
    "{{ parts[-1] ~ 1 }}{{ {'a': [1, 2]}|tojson(indent=2) }}{%- endfor -%}"
    "{% for k, v in {'a': 1}.items() %}{{ k }}={{ v }}"
    "{% endfor %}{{ 'x' * 3 }}{{ 7 % 3 }}{{ '%5.1f-%d' % (2, 3) }}{{ 'ab'|replace('a', 'c')|indent(2) }}"
    "{% set a, b = (1, 2) %}"
    "{{ a + b }}{{ messages|map(attribute='content')|join(', ') }}{% for i in range(3) %}{% if i == 1 %}"
    "{% continue %}"
    "{% endif %}{{ i }}{% endfor %}{{ none }}{{ undefined_name }}{{ [1, 2, 3][::-1]|list }}"
    "{{ 'a,b'.split(',')|length }}"
    "{{ '{} {:>5}'.format(1, 'b') }}{% set ns = namespace(n=0) %}{% set ns.n = ns.n - 2 ** 3 // 3 %}"
    "{{ ns.n }}{{ 'a'.join(['b', 'c']) }}"
    "{% set y %}in {{ 'a' }}{% endset %}{{ y|trim }}{{ messages[1:]|selectattr('role', 'equalto', 'b')|list|length }}"
)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_template_ends_at_a_limit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_sandbox, "MAX_STEPS", 20_000)
    monkeypatch.setattr(template_sandbox, "MAX_SECONDS", 0.5)
    start = time.process_time()
    with pytest.raises((TemplateError, RecursionError, ValueError)):
        run(compiled(HOSTILE[name]))
    assert time.process_time() - start < 4


def test_an_honest_template_runs_as_in_jinja2() -> None:
    messages = [{"role": "a", "content": "hi you"}, {"role": "b", "content": "x"}]
    plain = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    assert run(compiled(HONEST), messages=messages) == plain.from_string(HONEST).render(messages=messages)
    assert len(run(compiled("{{ strftime_now('%Y-%m-%d') }}"))) == 10


def test_a_long_chat_is_within_the_limits() -> None:
    messages = [{"role": "user", "content": "word " * 200}] * 2000
    template = compiled("{% for m in messages %}{{ '<' + m['role'] + '>' + m['content']|trim + '\\n' }}{% endfor %}")
    assert len(run(template, messages=messages)) > 1_900_000
