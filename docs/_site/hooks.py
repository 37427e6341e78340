"""What the site has beyond the pages of docs/: a generated reference, and pages from elsewhere.

A link that leads out of docs/ goes to the page made of that file, or becomes plain text.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import reference  # noqa: E402

# File in the repository -> page of the site.
ELSEWHERE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "SECURITY.md": "report-a-vulnerability.md",
    **{
        f"skilltrail/envs/{path.parent.name}/README.md": f"environments/{path.parent.name}.md"
        for path in sorted((ROOT / "skilltrail" / "envs").glob("*/README.md"))
        if not path.parent.name.startswith("_")
    },
}
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    for name, text in reference.pages().items():
        files.append(File.generated(config, name, content=text))
    for source, page in ELSEWHERE.items():
        files.append(
            File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8"))
        )
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links out of docs/ into links to pages of the site."""
    here = page.file.src_uri
    came_from = next((s for s, p in ELSEWHERE.items() if p == here), f"docs/{here}")
    folder = came_from.rpartition("/")[0]

    def turned(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        whole = normpath(f"{folder}/{target}") if folder else normpath(target)
        inside = ELSEWHERE.get(whole)
        if inside is None and whole.startswith("docs/"):
            inside = whole.removeprefix("docs/")
        if inside is None:
            return f"{text} (`{whole}`)"
        start = here.rpartition("/")[0]
        return f"[{text}]({relpath(inside, start or '.')}{anchor})"

    return _LINK.sub(turned, markdown)


def on_post_page(output: str, **_: Any) -> str:
    """Give the theme's search dialog the name that screen readers tell."""
    dialog = 'data-md-component="search" role="dialog"'
    return output.replace(dialog, f'{dialog} aria-label="Search"')


def on_post_build(config: Any) -> None:
    """Write llms.txt (every page with its address) and llms-full.txt (their texts)."""
    out, lines, whole = Path(config.site_dir), [f"# {config.site_name}", ""], []
    lines += [f"> {config.site_description}", ""]
    for name, text in sorted(_texts(config).items()):
        title = next((row[2:] for row in text.splitlines() if row.startswith("# ")), name)
        place = re.sub(r"README\.md$", "index.md", name).removesuffix(".md")
        lines.append(f"- [{title}]({place}.html)")
        whole.append(f"<!-- {name} -->\n{text.strip()}\n")
    (out / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    (out / "llms-full.txt").write_text("\n".join(whole), encoding="utf-8", newline="\n")


def _texts(config: Any) -> dict[str, str]:
    docs = Path(config.docs_dir)
    own = {
        path.relative_to(docs).as_posix(): path.read_text(encoding="utf-8")
        for path in docs.rglob("*.md")
        if "_site" not in path.parts
    }
    return own | reference.pages()
