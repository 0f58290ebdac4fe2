"""A hook of MkDocs (1.4 or later): links from a page to files outside docs/ lead to the repository's site.

In the repository such a link is relative. The site has only docs/, so it would lead nowhere there.
"""
import posixpath
import re

LINK = re.compile(r"\]\((\.\.?/[^)\s#]*)(#[^)\s]*)?\)")


def on_page_markdown(markdown, page, config, files, **_):
    folder = posixpath.dirname(posixpath.join("docs", page.file.src_uri if hasattr(page.file, "src_uri") else page.file.src_path))

    def absolute(link):
        path = posixpath.normpath(posixpath.join(folder, link.group(1)))
        if path == "docs" or path.startswith("docs/"):
            return link.group(0)
        return f"]({config['repo_url'].rstrip('/')}/blob/main/{path}{link.group(2) or ''})"

    return LINK.sub(absolute, markdown)
