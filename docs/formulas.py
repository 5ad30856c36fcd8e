"""Turns formulas of docstrings, plain text in backticks, into TeX.

`help()` shows `log p(v) = -F(v) - log Z`, a page of the site the same typeset.
"""

import re

_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
#: A paragraph that is one formula.
_ALONE = re.compile(r"(?:(?<=\n\n)|^)([ ]*)`([^`]+)`([.,;]?)(?=\n\s*\n|\s*$)")
#: What only a formula has: an operator between blanks, a power, a sum, a density.
_SIGNS = re.compile(
    r" [-+=~≤∝/·] | <= | >= | <- | ← |\^|²|\bsum_|\bE\[|\bp(?:_\w+)?\*?\(|'(?:$|[ )])"
)
#: What only code has: quotes, attributes, names of several words, arguments, literals.
_CODE = re.compile(
    r"\"|log-|'s |['\w]\.[a-z]|[a-z]{2,}_[a-z]{3,}|\w=\S|\(\)|\[[^\]]*:|^-?\d|~/|"
    r"'\w+'|_'|"
    r"\b(?:None|True|dict|len|seed|epochs?|count|rows|grad)\b|_(?:before|after)\b"
)
_GREEK = (
    "alpha beta gamma delta eta lambda mu nu omega pi sigma tau theta phi Delta Phi"
).split()
_NAMES = {name: f"\\{name} " for name in (*_GREEK, "log", "exp", "max", "min", "cosh")}
_NAMES |= {"sum": r"\sum ", "sigmoid": r"\sigma ", "inf": r"\infty "}
_MARKS = {
    "<=": r"\le ",
    ">=": r"\ge ",
    "<-": r"\leftarrow ",
    "←": r"\leftarrow ",
    "!=": r"\ne ",
    "~": r"\sim ",
    "...": r"\dots ",
    "…": r"\dots ",
    "·": r"\cdot ",
    "‖": r"\|",
    "∇": r"\nabla ",
    "∞": r"\infty ",
    "²": "^2",
    "'": r"^\top ",
    " | ": r" \mid ",
    " * ": r" \, ",
}
_TOKEN = re.compile(
    r"(?P<root>sqrt\([^()]*\))"
    r"|(?P<words>[A-Za-z]{2,}(?: [A-Za-z]{2,})*(?![A-Za-z]))|(?P<letter>[A-Za-z])"
    r"|(?P<index>_\{[^}]*\}|_\([^)]*\)|_[A-Za-z0-9∞]+(?:[_,](?=\w)\w)?|_[+-])"
    r"|(?P<power>\^\([^)]*\)|\^-?\w+)|(?P<star>(?<=\w)\*)"
    r"|(?P<prime>'(?=\)| =))|(?P<bracket><(?=[\w(∇])|(?<=[\w)'])>[+-]?)"
    r"|(?P<mark><=|>=|<-|!=|\.\.\.| \| | \* |[←~…·‖∇∞²'])|(?P<other>.)",
    re.DOTALL,
)


def is_formula(code):
    """Returns whether the text between backticks is a formula, not code."""
    return bool(_SIGNS.search(code)) and not _CODE.search(code)


def typeset(text):
    """Returns a docstring with its formulas as TeX."""

    def display(match):
        code = " ".join(match[2].split())
        if not is_formula(code):
            return match[0]
        return f"{match[1]}$$\n{match[1]}{tex(code)}{match[3]}\n{match[1]}$$"

    def inline(match):
        code = " ".join(match[1].split())
        return f"${tex(code)}$" if is_formula(code) else match[0]

    return _SPAN.sub(inline, _ALONE.sub(display, text))


def tex(code):
    """Returns a formula as TeX."""
    return "".join(map(_converted, _TOKEN.finditer(code))).strip()


def _converted(match):
    kind, text = match.lastgroup, match[0]
    if kind == "words":
        return _words(text)
    if kind == "index":
        shown = tex(text[2:-1]) if text[1] in "{(" else _subscript(text[1:])
        return f"_{{{shown}}}"
    if kind == "power":
        return f"^{{{tex(text[1:].strip('()'))}}}"
    if kind == "root":
        return rf"\sqrt{{{tex(text[5:-1])}}}"
    if kind in ("star", "prime"):
        return "^*" if kind == "star" else r"^\prime "
    if kind == "bracket":
        if text == "<":
            return r"\langle "
        return r"\rangle " + (f"_{text[1]}" if text[1:] else "")
    return _MARKS[text] if kind == "mark" else text


def _words(text):
    """Returns names of functions and Greek letters as these, other words upright."""
    parts, upright = [], []

    def end():
        if upright:
            several = len(upright) > 1
            shown = " ".join(upright)
            parts.append(rf"\text{{{shown}}}\ " if several else _upright(shown))
            upright.clear()

    for word in text.split():
        if word in _NAMES or word.isupper():
            end()
            parts.append(_NAMES.get(word, word))
        else:
            upright.append(word)
    end()
    return "".join(parts)


def _upright(word):
    return rf"\operatorname{{{word}}}"


def _subscript(text):
    """Returns an index: letters one by one, Greek ones as these, words upright."""
    parts = re.split(r"([A-Za-z]+|∞)", text)
    return "".join(
        _NAMES.get(part) or _MARKS.get(part) or (part if len(part) < 4 else _text(part))
        for part in parts
    )


def _text(word):
    return rf"\text{{{word}}}"
