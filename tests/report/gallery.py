"""Draws the pictures of docs/gallery.md: gallery.py FTAX [NAME…].

Each picture stands above the command that makes its page; the comment behind it names the parts of the page that it shows. The
parts become one SVG with the page's own style, so that the text is sharp at every size and follows the reader's light or dark
theme. Takes Chromium from FTAX_BROWSER or the PATH.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from browser import BROWSERS, Browser, find_browser

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "gallery.md"
PICTURE = re.compile(r"!\[[^\]]*\]\((images/gallery/([\w-]+)\.svg)\)\n<!-- (.*?) -->\n.*?```sh\n(.*?)```", re.DOTALL)
WIDTH = 840  # of a picture in a README on GitHub
LARGEST_BYTES = 60_000

# The parts as markup of XML, their style, and their height; what scrolls, folds or sorts on a page does not in a picture.
PARTS = """(selectors => {
  const parts = selectors.flatMap(selector => [...document.querySelectorAll(selector)].slice(0, 1));
  if (parts.length < selectors.length) return null;
  document.body.replaceChildren(...parts);
  const style = [...document.querySelectorAll('style')].map(sheet => sheet.textContent).join('');
  const markup = new XMLSerializer().serializeToString(document.body);
  return {markup, style, height: Math.ceil(document.body.getBoundingClientRect().height)};
})"""
PICTURE_STYLE = ("body{columns:auto!important;max-width:none!important;padding:0 12px!important;overflow:hidden}"
                 ".wide{overflow:visible!important;background:none!important}td.long{min-width:13rem!important}th,td{padding:.25rem .45rem!important}section h2{margin-top:.8rem}figure{max-width:none!important}")


def draw(browser, ftax, command, selectors, folder):
    """The parts of the page that the command writes, as SVG."""
    subprocess.run(["sh", "-e", "-c", command], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**os.environ, "PATH": f"{ftax.parent}:{os.environ['PATH']}"})
    browser.view(WIDTH)
    browser.open(folder / re.search(r"--html (\S+)", command)[1])
    browser.evaluate(f"document.head.insertAdjacentHTML('beforeend', {json.dumps(f'<style>{PICTURE_STYLE}</style>')})")
    parts = browser.evaluate(f"{PARTS}({json.dumps(selectors)})")
    if parts is None:
        raise RuntimeError(f"the page of `{command.strip()}` lacks one of {selectors}")
    height = parts["height"] + 16
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">\n'
            f"<style>{parts['style'].replace('&', '&amp;').replace('<', '&lt;')}</style>\n"
            f'<foreignObject width="{WIDTH}" height="{height}">{parts["markup"]}</foreignObject>\n</svg>\n')


def main(ftax, names):
    program = find_browser()
    if not program:
        sys.exit("gallery.py: no browser; it takes one of " + ", ".join(BROWSERS))
    with Browser(program) as browser:
        for path, name, selectors, command in PICTURE.findall(PAGE.read_text()):
            if names and name not in names:
                continue
            with tempfile.TemporaryDirectory() as folder:
                picture = draw(browser, pathlib.Path(ftax).resolve(), command, selectors.split(" | "), pathlib.Path(folder))
            if len(picture.encode()) > LARGEST_BYTES:
                sys.exit(f"gallery.py: {name} has {len(picture.encode())} bytes, more than {LARGEST_BYTES}")
            target = PAGE.parent / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(picture)
            print(f"{path}: {len(picture.encode())} bytes")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
