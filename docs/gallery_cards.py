"""The cards of the gallery: of each tutorial a picture, its title, what it took to run.

Tutorials run while the site is built; the richest picture that one draws is its card's.
"""

import base64
import html
import io
import json
import pathlib
import re
import time

from PIL import Image

#: Where run times of tutorials are kept that did not run again.
_TIMES = pathlib.Path(".cache/run_times.json")
_PICTURE = re.compile(r'src="data:image/png;base64,([^"]+)"')
_RAN = 2.0  # seconds that a tutorial takes at least, if it is not taken from a cache
_WIDTH = 480


class Gallery:
    """Collects cards while pages are rendered."""

    def __init__(self):
        self.cards = {}
        self._start = 0.0

    def begin(self):
        self._start = time.perf_counter()

    def add(self, page, content):
        """Makes the card of a tutorial that has just been rendered."""
        pictures = _PICTURE.findall(content)
        title = html.escape(page.title)
        self.cards[page.file.src_uri] = (
            f'<a class="card" href="../{page.url}">'
            + (_image(max(pictures, key=len), title) if pictures else "")
            + f"<strong>{title}</strong><span>{html.escape(_introduction(page))}</span>"
            + f"<em>{self._seconds(page.file.src_uri):.0f} s on 2 cores</em></a>"
        )

    def html(self, pages):
        """Returns the cards in the order of the pages, by sections of the site."""
        groups = {}
        for page in pages:
            if page.file.src_uri in self.cards:
                cards = groups.setdefault(page.parent.title, [])
                cards.append(self.cards[page.file.src_uri])
        return "".join(
            f'<h2>{title}</h2><div class="gallery">{"".join(cards)}</div>'
            for title, cards in groups.items()
        )

    def _seconds(self, name):
        times = json.loads(_TIMES.read_text()) if _TIMES.exists() else {}
        taken = time.perf_counter() - self._start
        if taken > _RAN or name not in times:
            times[name] = taken
            _TIMES.parent.mkdir(exist_ok=True)
            _TIMES.write_text(json.dumps(times))
        return times[name]


def _introduction(page):
    """Returns the paragraph below a tutorial's title."""
    text = pathlib.Path(page.file.abs_src_path).read_text(encoding="utf-8")
    cell = text.split("# %%")[1].replace("\n# ", "\n").replace("`", "")
    paragraphs = cell.split("\n#\n")
    if len(paragraphs) < 2:
        raise ValueError(
            f"Expected a title, an empty line and a paragraph at the top of "
            f"{page.file.src_uri}. Received: {cell!r:.200}."
        )
    return " ".join(paragraphs[1].split())


def _image(encoded, title):
    """Returns an <img> of a smaller picture."""
    picture = Image.open(io.BytesIO(base64.b64decode(encoded))).convert("RGB")
    picture.thumbnail((_WIDTH, _WIDTH))
    small = io.BytesIO()
    picture.save(small, "png", optimize=True)
    data = base64.b64encode(small.getvalue()).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{title}" loading="lazy">'
