"""The names of papers: finding them in text, canonical forms, names for files.

Canonical are: a bibcode decoded once (`A&A`, not `A%26A`), a DOI without a resolver's prefix, an arXiv id without `arXiv:`,
subject class and version (`1202.3665`, `math/0309136`). A bibcode or DOI that itself names an arXiv paper gives both names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal
from urllib.parse import unquote

from astroresearch.domain.paper import Identifiers

Kind = Literal["bibcode", "doi", "arxiv"]

_ARCHIVES = (
    "acc-phys|adap-org|alg-geom|ao-sci|astro-ph|atom-ph|bayes-an|chao-dyn|chem-ph|cmp-lg|comp-gas|cond-mat|cs|dg-ga|"
    "funct-an|gr-qc|hep-ex|hep-lat|hep-ph|hep-th|math-ph|math|mtrl-th|nlin|nucl-ex|nucl-th|patt-sol|physics|plasm-ph|"
    "q-alg|q-bio|quant-ph|solv-int|supr-con"
)
_MONTH = r"(?:0[1-9]|1[0-2])"
_NEW = rf"\d\d{_MONTH}\.\d{{4,5}}"
_OLD = rf"(?:{_ARCHIVES})(?:\.[A-Za-z-]{{2,8}})?/\d\d{_MONTH}\d{{3}}"
_ID = rf"(?P<id>{_NEW}|{_OLD})(?:v(?P<version>\d{{1,3}}))?(?!/?\d)"

_BIBCODE = re.compile(r"(?<![A-Za-z0-9&.])[12]\d{3}[A-Za-z][A-Za-z0-9&.:+]{13}[A-Z.:](?![A-Za-z0-9&])")
_DOI = re.compile(r"(?<![\d.])10\.\d{4,9}(?:\.\d+)*/(?:<[^\s<>]{1,60}>(?=\d\.\d\.)|[^\s\"<>{}|\\^`])+")
_ARXIV_WHOLE = re.compile(
    rf"(?:(?:arxiv|eprint)\s*:\s*|oai:arxiv\.org:)?{_ID}(?:\.pdf)?(?:\s*\[[\w.-]+\])?", re.IGNORECASE
)
_ARXIV_URL = re.compile(
    r"(?:arxiv\.org|lanl\.gov|ar5iv(?:\.labs\.arxiv)?\.org|alphaxiv\.org)"
    rf"/(?:abs|pdf|html|ps|format|e-print|src|list/[\w.-]+|overview)?/?(?:arxiv:)?{_ID}",
    re.IGNORECASE,
)
_ARXIV_MARKED = re.compile(rf"(?:\barxiv\s*[:.]?\s*|oai:arxiv\.org:){_ID}", re.IGNORECASE)
_ARXIV_STAMPED = re.compile(rf"(?<![\w./-]){_ID}(?=\s*\[[a-z]+(?:-[a-z]+)?(?:\.[A-Za-z-]+)?\])")
_ARXIV_OLD = re.compile(rf"(?<![\w./-])(?P<id>{_OLD})(?:v(?P<version>\d{{1,3}}))?(?!/?\d)")
_ARXIV_DOI = re.compile(rf"10\.48550/arxiv\.{_ID}", re.IGNORECASE)
_ARXIV_BIBCODE = re.compile(r"\d{4}arXiv(\d{4})\.?(\d{4,5})[A-Z.]")
_OLD_BIBCODE = re.compile(
    r"\d\d(\d\d)(astro\.ph|hep\.th|hep\.ph|hep\.ex|hep\.lat|gr\.qc|quant\.ph|cond\.mat)\.+(\d{1,5})[A-Z.]"
)
_NUMBER_ALONE = re.compile(rf"(?:arxiv:\s*)?\d\d{_MONTH}\d{{3}}(?:v\d+)?", re.IGNORECASE)
_ASCL = re.compile(r"ascl:\d{4}\.\d{3}")

_TEX_ESCAPES = re.compile(r"\{?\\([&%_#$])\}?")
_URL_TAILS = re.compile(
    r"(?:/(?:pdf|epdf|pdfdirect|meta|full|fulltext|abstract|html|epub|summary)|\.pdf|\.html?)$", re.IGNORECASE
)
_PAIRS = {")": "(", "]": "[", ">": "<"}
_TRAILING = ".,;:!?'\"”’»*“‘"


def parse(text: str) -> Identifiers | None:
    """The one identifier that the whole text is: bare, with a prefix (`doi:`, `arXiv:`), or as a URL. None if it is none."""
    text = _plain(text).strip().strip("<>").strip()
    if not text or len(text) > 2_000:
        return None
    if is_bibcode(text):
        return _of_bibcode(text)
    lowered = text.lower()
    for prefix in ("bibcode:", "doi:", "identifier:", "ads:"):
        if lowered.startswith(prefix):
            return parse(text[len(prefix) :].strip().strip('"'))
    if match := _ARXIV_WHOLE.fullmatch(text):
        return _of_arxiv(match)
    if match := _DOI.fullmatch(text):
        return _of_doi(match.group())
    if "/" in text and not re.search(r"\s", text):
        return next(_found(text), None)
    return None


def looks_like(text: str) -> Kind | None:
    """What kind of identifier the whole text is, None if none. A name that says both (an arXiv bibcode) is its own kind."""
    ids = parse(text)
    if ids is None:
        return None
    return "bibcode" if ids.bibcode else "doi" if ids.doi else "arxiv"


def why_not(text: str) -> str:
    """A sentence for text that is nearly an identifier, such as an old arXiv number without its archive; else empty."""
    number = text.strip()
    if _NUMBER_ALONE.fullmatch(number):
        bare = re.sub(r"(?i)^arxiv:\s*", "", number)
        return (
            f"{bare} is an old arXiv number without its archive: write it as `astro-ph/{bare}`, with the right archive."
        )
    return ""


def find_all(text: str) -> list[Identifiers]:
    """Every identifier in running text, in order of appearance, each once.

    A bare number such as `0706.0001` counts only with `arXiv:`, a URL or a `[class]` beside it: it may be just a number.
    """
    seen: set[frozenset[str]] = set()
    out = []
    for ids in _found(_plain(text)):
        if (key := names(ids)) not in seen:
            seen.add(key)
            out.append(ids)
    return out


def from_fields(fields: Mapping[str, str], key: str = "") -> Identifiers:
    """The identifiers in a BibTeX entry's fields (doi, eprint, adsurl, url, journal, pages, …) and key.

    Field names are in any case. Empty where there is none.
    """
    low = {name.lower(): value for name, value in fields.items()}
    ids = Identifiers()
    for found in (
        parse(low.get("bibcode", "")),
        parse(low.get("doi", "")),
        _eprint(low),
        parse(low.get("adsurl", "")),
        *(parse(low.get(name, "")) for name in ("identifier", "url", "ee", "howpublished")),
        *(next(_found(_plain(low.get(name, ""))), None) for name in ("journal", "pages", "eid", "number")),
        parse(key),
    ):
        if found is not None:
            ids = union(ids, found)
    return ids


def is_bibcode(text: str) -> bool:
    """Whether the text is a bibcode: 19 characters, a year, a journal, and a digit in volume or page."""
    return len(text) == 19 and bool(_BIBCODE.fullmatch(text)) and any(c.isdigit() for c in text[9:18])


def names(ids: Identifiers) -> frozenset[str]:
    """All names of one paper in a form for comparing: `doi:10.1086/670067`, `arxiv:1202.3665`, `bibcode:…`, `hash:…`."""
    out = {f"bibcode:{code}" for code in (ids.bibcode, *ids.alternates) if code}
    if ids.doi:
        out.add(f"doi:{ids.doi.lower()}")
    if ids.arxiv:
        out.add(f"arxiv:{ids.arxiv}")
    if ids.file_hash:
        out.add(f"hash:{ids.file_hash}")
    return frozenset(out)


def union(a: Identifiers, b: Identifiers) -> Identifiers:
    """The names of both, where `a` wins; a published bibcode wins over an arXiv one, which becomes an alternate."""
    codes = [code for code in (a.bibcode, b.bibcode, *a.alternates, *b.alternates) if code]
    codes.sort(key=is_eprint_bibcode)  # stable: keeps a before b
    main = codes[0] if codes else ""
    newer = (
        max(a.arxiv_version, b.arxiv_version) if a.arxiv == b.arxiv or not (a.arxiv and b.arxiv) else a.arxiv_version
    )
    return Identifiers(
        bibcode=main,
        doi=a.doi or b.doi,
        arxiv=a.arxiv or b.arxiv,
        arxiv_version=newer,
        alternates=tuple(dict.fromkeys(code for code in codes if code != main)),
        file_hash=a.file_hash or b.file_hash,
    )


def is_eprint_bibcode(code: str) -> bool:
    """Whether a bibcode names a preprint."""
    return bool(_ARXIV_BIBCODE.fullmatch(code) or _OLD_BIBCODE.fullmatch(code))


def primary(ids: Identifiers) -> str:
    """The identifier to show: bibcode, else `arXiv:…`, else DOI; empty when there is none."""
    return ids.bibcode or (f"arXiv:{ids.arxiv}" if ids.arxiv else ids.doi)


def safe_name(ids: Identifiers) -> str:
    """A name for files and links out of [A-Za-z0-9._-], at most 64 long; empty when there is no identifier.

    Two identifiers never share a name: what a replaced character loses, a piece of a hash adds.
    """
    if ids.bibcode:
        return _safe(ids.bibcode, "&")
    if ids.arxiv:
        return _safe(ids.arxiv, "/")
    if ids.doi:
        return _safe("doi-" + ids.doi.lower(), "/")
    return f"file-{ids.file_hash[:24]}" if ids.file_hash else ""


def _safe(name: str, known: str) -> str:
    """`known` is the one character that can't meet `_` in this kind of name, so replacing it loses nothing."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)
    lossy = (
        len(plain) > 64
        or plain.endswith(".")
        or "_" in name
        or any(c != known and p != c for c, p in zip(name, plain, strict=True))
    )
    return f"{plain[:48].rstrip('.')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}" if lossy else plain


def _plain(text: str) -> str:
    """LaTeX and HTML escapes undone, percent escapes decoded once."""
    text = _TEX_ESCAPES.sub(r"\1", text).replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")
    return unquote(text, errors="replace") if "%" in text else text


def _found(text: str) -> Iterator[Identifiers]:
    """Identifiers in order of appearance; where two overlap, the longer one."""
    spans: list[tuple[int, int, Identifiers]] = []
    for match in _DOI.finditer(text):
        doi = _trim(match.group(), in_url=_in_url(text, match.start()))
        if ids := _of_doi(doi):
            spans.append((match.start(), match.start() + len(doi), ids))
    for match in _BIBCODE.finditer(text):
        if is_bibcode(match.group()):
            spans.append((match.start(), match.end(), _of_bibcode(match.group())))
    for pattern in (_ARXIV_URL, _ARXIV_MARKED, _ARXIV_STAMPED, _ARXIV_OLD):
        for match in pattern.finditer(text):
            if ids := _of_arxiv(match):
                spans.append((match.start(), match.end(), ids))
    end = -1
    for start, stop, ids in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= end:
            end = stop
            yield ids


def _in_url(text: str, at: int) -> bool:
    head = text[max(0, at - 200) : at]
    return bool(re.search(r"(?:https?://|www\.)\S*$", head)) and not re.search(r"doi\.org/$", head)


def _trim(doi: str, *, in_url: bool) -> str:
    """Without what the sentence or the page adds at its end: punctuation, a closing bracket never opened, `/pdf`."""
    if in_url:
        doi = re.split(r"[?#&]", doi, maxsplit=1)[0]
        doi = _URL_TAILS.sub("", doi)
    while doi:
        last = doi[-1]
        opening = _PAIRS.get(last)
        if last in _TRAILING or (opening and doi.count(last) > doi.count(opening)):
            doi = doi[:-1]
        else:
            break
    return doi


def _of_bibcode(code: str) -> Identifiers:
    arxiv = ""
    if match := _ARXIV_BIBCODE.fullmatch(code):
        arxiv = f"{match.group(1)}.{match.group(2)}"
        arxiv = arxiv if _valid(arxiv) else ""
    elif match := _OLD_BIBCODE.fullmatch(code):
        year, archive, number = match.groups()
        arxiv = f"{archive.replace('.', '-')}/{year}{number.zfill(5)}"
        arxiv = arxiv if _valid(arxiv) else ""
    return Identifiers(bibcode=code, arxiv=arxiv)


def _of_doi(doi: str) -> Identifiers | None:
    doi = _trim(doi, in_url=False)
    if match := _ARXIV_DOI.fullmatch(doi):
        return _of_arxiv(match)
    return Identifiers(doi=doi) if _DOI.fullmatch(doi) else None


def _of_arxiv(match: re.Match[str]) -> Identifiers | None:
    name = match.group("id")
    if "/" in name:
        archive, _, number = name.partition("/")
        name = f"{archive.partition('.')[0].lower()}/{number}"
    if not _valid(name):
        return None
    return Identifiers(arxiv=name, arxiv_version=int(match.group("version") or 0))


def _valid(arxiv: str) -> bool:
    """Ids had a slash until March 2007, four digits until December 2014, five since."""
    if "/" in arxiv:
        yymm = arxiv.partition("/")[2][:4]
        known = re.fullmatch(rf"{_OLD}", arxiv) is not None
        return known and (yymm >= "9107" or yymm <= "0703")
    yymm, _, number = arxiv.partition(".")
    if not re.fullmatch(rf"\d\d{_MONTH}", yymm) or yymm < "0704" or yymm >= "9000":
        return False
    return len(number) == (4 if yymm <= "1412" else 5)


def _eprint(low: Mapping[str, str]) -> Identifiers | None:
    """`eprint` with `archivePrefix` or `primaryClass`, which an old number alone needs."""
    value = low.get("eprint", "").strip()
    kind = (low.get("archiveprefix") or low.get("eprinttype") or "").strip()
    if not value or kind.lower() in ("ascl", "jstor", "pubmed", "hdl") or _ASCL.fullmatch(value):
        return None
    if _NUMBER_ALONE.fullmatch(value):
        for archive in (kind, low.get("primaryclass", "").strip(), low.get("eprintclass", "").strip()):
            if ids := parse(f"{archive.partition('.')[0]}/{value}"):
                return ids
    return parse(value)


def without_version(ids: Identifiers) -> Identifiers:
    """The same paper, whatever its version."""
    return replace(ids, arxiv_version=0)


def merge_all(many: Iterable[Identifiers]) -> Identifiers:
    """`union` of all, the first wins."""
    out = Identifiers()
    for ids in many:
        out = union(out, ids)
    return out
