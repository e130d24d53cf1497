"""Pyodide's glue code, changed so that what only other modules ask for is linked when the first of them is loaded.

Emscripten makes every function of the runtime an entry of the table of functions, and of several lists, whether
anybody asks for it or not; and it wraps each function of JavaScript whose address the runtime knows in a module of its
own. Together that is a third of what Python's start costs once its code is compiled.
"""

import re

ALL = "webinfer.all"  # of the exports of a runtime that comes in parts: the function that returns all of them
NAMED = re.compile(r"""wasmExports(?:\["([\w$]+)"\]|\.([\w$]+))""")

# Where the glue code has it, and what stands there instead.
CHANGES = (
    (
        'var origExports=wasmExports;mergeLibSymbols(wasmExports,"main");',
        "var origExports=wasmExports;wasmImports.main=wasmImports.__main_argc_argv=wasmExports.__main_argc_argv;",
    ),
    ("updateGOT(origExports);LDSO.init()", f'linkRest=()=>linkAll(origExports["{ALL}"]?.()??origExports);LDSO.init()'),
    (
        "var GOT={};",
        "var linkRest=null;var linkOthers=()=>{var link=linkRest;linkRest=null;link?.()};"
        'var linkAll=exports=>{mergeLibSymbols(exports,"main");'
        'if("open64"in wasmImports)wasmImports.open64??=wasmImports.open;'
        "updateTableMap(0,wasmTable.length);updateGOT(exports);"
        'for(var name in exports)Module["_"+name]??=exports[name]?.value??exports[name]};'
        # One module wraps all functions of JavaScript that the runtime was linked with: its table is the runtime's.
        "var addFunctions=()=>{var functions=[];for(var[name,entry]of Object.entries(GOT)){"
        "var value=entry.value==-1?wasmImports[name]:null;"
        'if(typeof value=="function"&&value.sig&&!functions.includes(value))functions.push(value)}'
        "var leb=n=>n<128?[n]:[n&127|128,...leb(n>>>7)];"
        "var section=(id,rows)=>{var bytes=[leb(rows.length),...rows].flat();return[id,...leb(bytes.length),...bytes]};"
        "var typed=functions.map(({sig})=>[96,...generateTypePack(sig.slice(1)),"
        '...generateTypePack(sig[0]==="v"?"":sig[0])]);'
        "var name=i=>{var text=String(i);return[text.length,...text].map((c,at)=>at?c.charCodeAt(0):c)};"
        "var imported=functions.map((_,i)=>[1,101,...name(i),0,...leb(i)]);"
        "var first=wasmTable.grow(functions.length);"
        "var bytes=[0,97,115,109,1,0,0,0,...section(1,typed),...section(2,[...imported,[1,101,1,116,1,112,0,0]]),"
        "...section(9,[[0,65,...signed(first),11,...leb(functions.length),...functions.flatMap((_,i)=>leb(i))]])];"
        "new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.from(bytes)),{e:{...functions,t:wasmTable}});"
        "functions.forEach((value,i)=>functionsInTableMap.set(value,first+i))};"
        "var signed=n=>n<64?[n]:[n&127|128,...signed(n>>>7)];"
        "var GOT={};",
    ),
    ("var functionsInTableMap;", "var functionsInTableMap=new WeakMap;"),
    (
        "if(!dynamicLibraries.length){reportUndefinedSymbols();return}",
        "if(!dynamicLibraries.length){addFunctions();reportUndefinedSymbols();return}",
    ),
    (
        "var resolveGlobalSymbol=(symName,direct=false)=>{var sym;",
        "var resolveGlobalSymbol=(symName,direct=false)=>{var sym;if(!direct&&!isSymbolDefined(symName))linkOthers();",
    ),
    (
        "function loadDynamicLibrary(libName,flags={global:true,nodelete:true},localScope,handle){",
        "function loadDynamicLibrary(libName,flags={global:true,nodelete:true},localScope,handle){linkOthers();",
    ),
    (
        "var loadWebAssemblyModule=(binary,flags,libName,localScope,handle)=>{",
        "var loadWebAssemblyModule=(binary,flags,libName,localScope,handle)=>{linkOthers();",
    ),
    (
        "function __dlsym_js(handle,symbol,symbolIndex){",
        "function __dlsym_js(handle,symbol,symbolIndex){linkOthers();",
    ),
)


def linked_late(glue: str) -> str:
    """The same program; glue code that is written in another way is left as it is."""
    if any(glue.count(there) != 1 for there, _ in CHANGES):
        return glue
    for there, instead in CHANGES:
        glue = glue.replace(there, instead)
    return glue


def named_exports(glue: str) -> frozenset[str] | None:
    """The exports that this glue code names; None if it asks for others when it begins."""
    if ALL not in glue:
        return None
    return frozenset(quoted or plain for quoted, plain in NAMED.findall(glue))
