"""What comments look like, by the suffix of a source file."""

from typing import NamedTuple


class CommentStyle(NamedTuple):
    """The marks of comments: those of a line, and pairs around several lines."""

    lines: tuple[str, ...]
    blocks: tuple[tuple[str, str], ...] = ()


HASH = CommentStyle(("#",))
PYTHON = CommentStyle(("#",), (('"""', '"""'), ("'''", "'''")))
SLASH = CommentStyle(("//",), (("/*", "*/"),))
PHP = CommentStyle(("//", "#"), (("/*", "*/"),))
CSS = CommentStyle((), (("/*", "*/"),))
DASH = CommentStyle(("--",), (("/*", "*/"),))
LUA = CommentStyle(("--",), (("--[[", "]]"),))
HASKELL = CommentStyle(("--",), (("{-", "-}"),))
SEMICOLON = CommentStyle((";",))
PERCENT = CommentStyle(("%",), (("%{", "%}"),))
FORTRAN = CommentStyle(("!",))
ML = CommentStyle((), (("(*", "*)"),))
BASIC = CommentStyle(("'", "REM ", "rem "))
TAGS = CommentStyle((), (("<!--", "-->"), ("/*", "*/")))

STYLES = {
    HASH: "awk bash coffee cr ex exs fish gd gemspec graphql jl ksh mk nim nix pl pm ps1 r rake rb sh tcl tf zsh",
    PYTHON: "py pyi pyw pyx",
    SLASH: (
        "c cc cpp cs cu cxx d dart fs fsx glsl go gradle groovy h hh hpp hxx java js jsx kt kts m mjs mm proto rs sass"
        " scala scss sol swift ts tsx v vala zig cjs less"
    ),
    PHP: "php",
    CSS: "css",
    DASH: "sql adb ads elm vhd vhdl",
    LUA: "lua",
    HASKELL: "hs",
    SEMICOLON: "asm clj cljs el lisp lsp rkt s scm",
    PERCENT: "erl hrl pro",
    FORTRAN: "f f90 f95 for",
    ML: "ml mli pas",
    BASIC: "bas vb vbs bat cmd",
    TAGS: "svelte vue",
}
STYLE_OF_SUFFIX = {f".{name}": style for style, names in STYLES.items() for name in names.split()}
