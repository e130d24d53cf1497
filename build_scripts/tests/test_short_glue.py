"""Pyodide's glue code is served shorter, and does the same."""

import pytest

from build_scripts.paths import NODE_MODULES
from build_scripts.site.late_linking import linked_late
from build_scripts.site.short_glue import published_glue, shortened

GLUE = (
    "var Module={};var _a,_b,_c,_d;var other,_e;"
    'function assignWasmExports(wasmExports){_a=Module["_a"]=wasmExports["a"];_b=Module["_b"]=wasmExports["b"];'
    '_c=Module["_c"]=wasmExports["c"];_d=Module["_d"]=wasmExports["d"].value>>>0}use(_b)'
)


def test_only_what_nobody_names_moves_into_the_loop() -> None:
    assert shortened(GLUE) == (
        "var Module={};var _b,_d;var other,_e;"
        'function assignWasmExports(wasmExports){for(const name of"a c".split(" "))Module["_"+name]=wasmExports[name];'
        '_b=Module["_b"]=wasmExports["b"];_d=Module["_d"]=wasmExports["d"].value>>>0}use(_b)'
    )


@pytest.mark.parametrize(
    "change", [("var _a,_b,_c,_d;", "let _a,_b,_c,_d;"), ("assignWasmExports", "assign"), ("_b,_c", "_b;var _c")]
)
def test_other_glue_code_stays_as_it_is(change: tuple[str, str]) -> None:
    other = GLUE.replace(*change)
    assert shortened(other) == other


def test_functions_that_are_linked_late_are_in_no_loop() -> None:
    assert "for(" not in shortened(GLUE, loop=False)


def test_the_glue_that_is_installed_is_shortened_and_links_late() -> None:
    path = NODE_MODULES / "pyodide" / "pyodide.asm.mjs"
    if not path.is_file():
        pytest.skip("Pyodide is not installed")
    glue = path.read_text()
    late = linked_late(glue)
    assert late != glue
    assert linked_late(late) == late
    assert len(shortened(glue)) < 0.8 * len(glue)
    published = published_glue(path)
    assert len(published) < len(shortened(glue))
    assert published.startswith("const _createPyodideModule=(async function(moduleArg={}){")
    assert published.endswith("return moduleRtn});export default _createPyodideModule;\n")
