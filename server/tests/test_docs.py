"""The documentation: Markdown becomes safe HTML, and every page and link of the real one is whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from server.app import create_app
from server.docs import DocsError, read_docs, read_page
from server.settings import Settings

FOLDER = Settings().docs
PAGES = {page.name: page for section in read_docs(FOLDER, Settings().engine) for page in section.pages}


def page_of(folder: Path, text: str) -> str:
    return str(read_page(folder / "page.md", text).html)


# ----- the routes


def test_each_page_has_an_address(client: TestClient) -> None:
    for address, title in (("/docs", "Start here"), ("/docs/parts", "Parts")):
        answer = client.get(address)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert f"<title>{title}: webinfer</title>" in answer.text
        assert 'href="/assets/static-1/docs.css"' in answer.text


def test_the_navigation_names_every_page_and_marks_the_current_one(client: TestClient) -> None:
    text = client.get("/docs/parts").text
    navigation = text[text.index('<nav aria-label="Doc') : text.rindex("</nav>")]
    assert re.findall(r'href="(/[^"]*)"', navigation) == ["/docs", "/docs/parts"]
    assert re.findall(r'href="([^"]*)" aria-current="page"', navigation) == ["/docs/parts"]
    assert 'href="#a-part"' in navigation


def test_each_page_leads_to_the_next_and_back(client: TestClient) -> None:
    first, last = client.get("/docs").text, client.get("/docs/parts").text
    assert '<a rel="next" href="/docs/parts">' in first
    assert '<a rel="prev" href="/docs">' in last
    assert 'rel="prev"' not in first
    assert 'rel="next"' not in last


@pytest.mark.parametrize(
    "path", ["/docs/nothing", "/docs/index", "/docs/", "/docs/parts.md", "/docs/a/b", "/docs/%2e%2e"]
)
def test_an_unknown_page_is_a_problem(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/docs", "/docs/parts"])
def test_a_page_is_revalidated_at_every_visit(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.headers["cache-control"] == "no-cache"
    again = client.get(path, headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    head = client.head(path)
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", answer.headers["etag"])
    assert client.post(path).status_code == 405


SCRIPT = re.compile(r'<script type="module" src="/assets/static-1/docs\.js" integrity="[^"]*"></script>')


def test_the_pages_have_one_script_of_the_site_and_no_inline_style(settings: Settings) -> None:
    from dataclasses import replace

    site = TestClient(create_app(replace(settings, docs=FOLDER)), base_url="http://localhost")
    for page in PAGES.values():
        answer = site.get(page.address)
        assert answer.status_code == 200
        assert not re.search(
            r"<script|<style|\sstyle=|\son[a-z]+=|javascript:",
            SCRIPT.sub("", re.sub(r"<pre.*?</pre>", "", answer.text, flags=re.DOTALL), count=1),
        )
        assert "'unsafe-inline'" not in answer.headers["content-security-policy"]


# ----- Markdown to HTML


def test_html_in_markdown_is_shown_as_text(client: TestClient) -> None:
    text = client.get("/docs/parts").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<script" not in SCRIPT.sub("", text, count=1)


def test_the_search_file_lists_passages_and_comes_once(client: TestClient) -> None:
    answer = client.get("/docs/search.json", headers={"accept-encoding": "gzip"})
    assert (answer.headers["content-type"], answer.headers["content-encoding"]) == ("application/json", "gzip")
    rows = answer.json()
    assert {"/docs", "/docs/parts#a-part"} <= {row["address"] for row in rows}
    assert all({"id", "page", "heading", "text"} <= set(row) for row in rows)
    again = {"accept-encoding": "gzip", "if-none-match": answer.headers["etag"]}
    assert client.get("/docs/search.json", headers=again).status_code == 304


def test_an_outline_for_programs_names_every_page(client: TestClient) -> None:
    answer = client.get("/llms.txt")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/markdown; charset=utf-8")
    assert answer.text.startswith("# webinfer\n")
    assert re.findall(r"^- \[.*\]\((.*)\): .+", answer.text, re.MULTILINE) == ["docs", "docs/parts"]


def test_code_is_marked_by_class_and_escaped(client: TestClient) -> None:
    text = client.get("/docs/parts").text
    assert '<span class="s2">"&lt;b&gt;"</span>' in text
    assert "indented &amp; plain" in text


def test_headings_are_anchors_and_links_lead_to_pages(client: TestClient) -> None:
    text = client.get("/docs").text
    assert '<a href="/docs/parts#a-part">the parts</a>' in text
    assert '<h2 id="where-to-begin">' in text
    assert 'content="The first &amp; best page. See the parts."' in text


def test_a_picture_is_part_of_the_page(client: TestClient) -> None:
    assert '<title>A box</title><rect class="box"/></svg>' in client.get("/docs").text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("No title", "first level"),
        ("# A\n\n## B\n\n## B\n", "two headings"),
        ("# A\n\n[x](https://example.com)", "example.com"),
        ("# A\n\n[x](other)", "'other'"),
        ("# A\n\n[x](../README.md)", "README"),
        ("# A\n\n![x](missing.svg)", "missing.svg"),
        ("# A\n\n![x](../x.png)", "x.png"),
        ("# A\n\n![x](script.svg)", "<script>"),
        ("# A\n\n![x](click.svg)", "<rect>"),
        ("# A\n\n![x](nameless.svg)", "<title>"),
    ],
)
def test_a_broken_page_says_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    head = '<svg xmlns="http://www.w3.org/2000/svg">'
    (tmp_path / "script.svg").write_text(f"{head}<title>x</title><script>1</script></svg>")
    (tmp_path / "click.svg").write_text(f'{head}<title>x</title><rect onclick="x()"/></svg>')
    (tmp_path / "nameless.svg").write_text(f"{head}<rect/></svg>")
    with pytest.raises(DocsError, match=re.escape(words)):
        page_of(tmp_path, text)


def test_every_page_must_be_listed(settings: Settings) -> None:
    (settings.docs / "more.md").write_text("# More\n")
    with pytest.raises(DocsError, match="more"):
        create_app(settings)


# ----- the documentation itself


@pytest.mark.parametrize("name", PAGES)
def test_every_link_of_the_documentation_leads_somewhere(name: str) -> None:
    page = PAGES[name]
    by_address = {other.address: other for other in PAGES.values()}
    for target in re.findall(r'<a (?:class="anchor" )?href="([^"]*)"', page.html):
        address, _, anchor = target.partition("#")
        if address == "/docs/notebook.ipynb":
            continue
        assert (address or page.address) in by_address, target
        other = by_address[address or page.address]
        assert not anchor or anchor in other.anchors, target


def test_the_notebook_is_served(client: TestClient, settings: Settings) -> None:
    assert client.get("/docs/notebook.ipynb").status_code == 404
    text = "# A notebook\n\n## The notebook\n\n```python run\n1 + 1\n```\n"
    (settings.docs / "notebook.md").write_text(text)
    contents = settings.docs / "contents.toml"
    contents.write_text(contents.read_text().replace('"parts"', '"parts", "notebook"', 1))
    again = TestClient(create_app(settings), base_url="http://127.0.0.1:8000")
    answer = again.get("/docs/notebook.ipynb")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ipynb+json"
    assert [cell["source"] for cell in answer.json()["cells"]] == [["1 + 1"]]


def test_the_first_page_leads_to_every_other() -> None:
    linked = set(re.findall(r'href="(/docs[^"#]*)', PAGES["index"].html))
    assert linked >= {page.address for page in PAGES.values()} - {"/docs"}


def test_links_of_the_readme_lead_to_files() -> None:
    root = Path(__file__).resolve().parents[2]
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", (root / "README.md").read_text())
    assert targets
    assert [target for target in targets if "://" not in target and not (root / target).exists()] == []
