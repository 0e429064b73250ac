"""BibTeX as ADS writes it, from the stored record, without network.

A record of ADS's gives ADS's own entry: fields, order, journal macros. Any other record gives an entry of what it holds; what it
does not hold is left out, never invented. Two differences from ADS are meant: of several DOIs the first is written, where ADS's
exporter joins them into one that leads nowhere; and a publisher's `&` is escaped, without which LaTeX stops.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from astroresearch.domain import identifiers
from astroresearch.domain.paper import Paper
from astroresearch.domain.people import key_name
from astroresearch.library.latex import balanced, encode, encode_name

KeyFormat = Literal["bibcode", "author_year"]

ADS_NOTE = "Provided by the SAO/NASA Astrophysics Data System"
ADS_PAGE = "https://ui.adsabs.harvard.edu/abs/"
MAX_AUTHORS = 200
"Longer lists are cut to the first ten, as ADS does."
KEPT_AUTHORS = 10

MACROS: Mapping[str, str] = {
    "AJ": r"\aj", "ApJ": r"\apj", "AcA": r"\actaa", "ARA&A": r"\araa", "ApJL": r"\apjl", "ApJS": r"\apjs", "ApOpt": r"\ao",
    "Ap&SS": r"\apss", "A&A": r"\aap", "A&ARv": r"\aapr", "A&AS": r"\aaps", "AZh": r"\azh", "BAAS": r"\baas", "ChA&A": r"\caa",
    "ChJAA": r"\cjaa", "Icar": r"\icarus", "JCAP": r"\jcap", "JRASC": r"\jrasc", "MmRAS": r"\memras", "MNRAS": r"\mnras",
    "NewA": r"\na", "NewAR": r"\nar", "PhRvA": r"\pra", "PhRvB": r"\prb", "PhRvC": r"\prc", "PhRvD": r"\prd", "PhRvE": r"\pre",
    "PhRvL": r"\prl", "PASA": r"\pasa", "PASP": r"\pasp", "PASJ": r"\pasj", "RMxAA": r"\rmxaa", "QJRAS": r"\qjras",
    "S&T": r"\skytel", "SoPh": r"\solphys", "SvA": r"\sovast", "SSRv": r"\ssr", "ZA": r"\zap", "Natur": r"\nat", "IAUC": r"\iaucirc",
    "ApL": r"\aplett", "ASPRv": r"\apspr", "BAN": r"\bain", "FCPh": r"\fcp", "GeCoA": r"\gca", "GeoRL": r"\grl", "JChPh": r"\jcp",
    "JGR": r"\jgr", "JQSRT": r"\jqsrt", "MmSAI": r"\memsai", "NuPhA": r"\nphysa", "PhR": r"\physrep", "PhyS": r"\physscr",
    "P&SS": r"\planss", "SPIE": r"\procspie",
}  # fmt: skip
"AASTeX's macros by ADS's journal abbreviation."

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ARTICLES = frozenset(
    ["article", "bookreview", "catalog", "circular", "editorial", "eprint", "erratum", "newsletter", "obituary"]
)
_TYPES: Mapping[str, str] = {
    **dict.fromkeys(_ARTICLES, "@ARTICLE"), "inproceedings": "@INPROCEEDINGS", "abstract": "@INPROCEEDINGS", "inbook": "@INCOLLECTION",
    "book": "@BOOK", "proceedings": "@PROCEEDINGS", "phdthesis": "@PHDTHESIS", "mastersthesis": "@MASTERSTHESIS",
    "software": "@software", "dataset": "@dataset",
}  # fmt: skip
_ARTICLE = "author title journal keywords year month volume number eid pages doi eprint"
_PROCEEDINGS = "keywords booktitle year editor series volume month publisher"
_FIELDS: Mapping[str, str] = {
    "@ARTICLE": _ARTICLE,
    "@INPROCEEDINGS": f"author title {_PROCEEDINGS} eid pages doi eprint",
    "@INCOLLECTION": "author title keywords booktitle year editor publisher eid pages doi eprint",
    "@PROCEEDINGS": f"title {_PROCEEDINGS} doi eprint",
    "@BOOK": "author title year publisher doi eprint",
    "@MISC": "author title keywords howpublished year month eid pages doi eprint",
    "@PHDTHESIS": "author title keywords school year month",
    "@MASTERSTHESIS": "author title keywords school year month",
    "@software": "author title howpublished year month eid doi eprint version publisher",
    "@dataset": "author title howpublished year month eid doi eprint version publisher",
    "@TECHREPORT": "author title keywords institution year report howpublished doi eprint",
}
"Fields by type, in ADS's order; `adsurl` and `adsnote` end each."


def bibtex(papers: Sequence[Paper], *, keys: KeyFormat = "bibcode", taken: Sequence[str] = ()) -> str:
    """Entries in the given order, each followed by one blank line.

    Args:
        papers: Any records.
        keys: `bibcode` as ADS; `author_year` gives `Fabian2012`, with a, b where two would be the same.
        taken: Keys that the bibliography has already.
    """
    return "".join(entry(paper, key) for paper, key in zip(papers, cite_keys(papers, keys, taken), strict=True))


def entry(paper: Paper, key: str) -> str:
    """One entry and a blank line."""
    doc = paper.raw if "bibcode" in paper.raw else _as_document(paper)
    kind = _type(doc)
    lines = [line for name in _FIELDS[kind].split() for line in _WRITERS[name](doc)]
    if code := str(doc.get("bibcode", "")):
        lines.append(_braced("adsurl", ADS_PAGE + code))
        if doc is paper.raw:
            lines.append(_braced("adsnote", ADS_NOTE))
    return f"{kind}{{{key},\n" + ",\n".join(lines) + "\n}\n\n"


def cite_key(paper: Paper, keys: KeyFormat = "bibcode") -> str:
    """The key of one paper, without the letter that tells two of the same author and year apart."""
    if keys == "bibcode" and paper.identifiers.bibcode:
        return paper.identifiers.bibcode
    author = key_name(paper.authors[0]) if paper.authors else ""
    year = str(paper.year) if paper.year else ""
    return f"{author}{year}" or identifiers.safe_name(paper.identifiers) or "untitled"


def cite_keys(papers: Sequence[Paper], keys: KeyFormat = "bibcode", taken: Sequence[str] = ()) -> list[str]:
    """Unique keys; only those that would clash get a letter."""
    plain = [cite_key(paper, keys) for paper in papers]
    count = Counter(plain)
    used = set(taken)
    out = []
    for key in plain:
        if count[key] == 1 and key not in used:
            chosen = key
        else:
            chosen = next(f"{key}{letter}" for letter in _letters() if f"{key}{letter}" not in used)
        used.add(chosen)
        out.append(chosen)
    return out


def journal_macro(doc: Mapping[str, Any]) -> str:
    """AASTeX's macro of the journal, or empty."""
    stems = _many(doc.get("bibstem"))
    stem = str(stems[0]) if stems else str(doc.get("bibcode", ""))[4:9].rstrip(".")
    return MACROS.get(stem, "")


def _letters() -> Any:
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    yield from alphabet
    yield from (first + second for first in alphabet for second in alphabet)


def _type(doc: Mapping[str, Any]) -> str:
    doctype = str(doc.get("doctype", ""))
    if doctype in ("techreport", "intechreport") and doc.get("publisher"):
        return "@TECHREPORT"
    if not doctype:
        return "@ARTICLE" if doc.get("pub") or doc.get("_arxiv") else "@MISC"
    return _TYPES.get(doctype, "@MISC")


def _author(doc: Mapping[str, Any]) -> list[str]:
    names = [str(name) for name in _many(doc.get("author"))]
    cut = names[:KEPT_AUTHORS] if len(names) > MAX_AUTHORS else names
    text = " and ".join(map(encode_name, cut)) + (" and et al." if len(cut) < len(names) else "")
    return _filled("author", text)


def _editor(doc: Mapping[str, Any]) -> list[str]:
    return _filled("editor", " and ".join(encode_name(str(name)) for name in _many(doc.get("editor"))))


def _title(doc: Mapping[str, Any]) -> list[str]:
    text = balanced(" ".join(encode(_first(doc, "title")).split()))
    return [f'{"title":>13} = "{{{text}}}"'] if text else []


def _journal(doc: Mapping[str, Any]) -> list[str]:
    return _filled("journal", journal_macro(doc) or encode(_first(doc, "pub")))


def _keywords(doc: Mapping[str, Any]) -> list[str]:
    return _filled("keywords", encode(", ".join(str(word) for word in _many(doc.get("keyword")))))


def _howpublished(doc: Mapping[str, Any]) -> list[str]:
    text = re.sub(r";?\s*<(ALTJOURNAL|CONF_METADATA)>.*?</\1>\s*", "", _first(doc, "pub_raw"))
    text = re.sub(r"</?(?:ISBN|NUMPAGES)>", "", text)
    if text and text == _first(doc, "publisher"):
        return []  # Zenodo's: the publisher is written as such
    return _filled("howpublished", encode(text))


def _month(doc: Mapping[str, Any]) -> list[str]:
    """ADS calls a month that it does not know January."""
    date = _first(doc, "pubdate") or _first(doc, "date")
    month = date[5:7]
    if not month.isdigit() or int(month) > 12:
        return []
    if doc.get("_exact") and month == "00":
        return []
    return [f"{'month':>13} = {_MONTHS[max(int(month), 1) - 1]}"]


def _year(doc: Mapping[str, Any]) -> list[str]:
    year = _first(doc, "year")
    return [f"{'year':>13} = {year}"] if year.isdigit() else []


def _pages(doc: Mapping[str, Any]) -> list[str]:
    return _filled("pages", _first(doc, "page_range") or _first(doc, "page"))


def _school(doc: Mapping[str, Any]) -> list[str]:
    schools = [str(aff) for aff in _many(doc.get("aff")) if aff != "-"]
    return _filled("school", encode(", ".join(schools)))


def _eprint(doc: Mapping[str, Any]) -> list[str]:
    for name in map(str, _many(doc.get("identifier"))):
        if match := re.fullmatch(r"ascl:(\d{4}\.\d{3})", name):
            return [_braced("archivePrefix", "ascl"), _braced("eprint", match.group(1))]
    arxiv = str(doc.get("_arxiv", "")) or next(
        (ids.arxiv for name in _many(doc.get("identifier")) if (ids := identifiers.parse(str(name))) and ids.arxiv), ""
    )
    if not arxiv:
        return []
    lines = [_braced("archivePrefix", "arXiv"), _braced("eprint", arxiv)]
    return lines + _filled("primaryClass", _first(doc, "arxiv_class"))


def _plain(field: str, source: str = "", *, escape: bool = False) -> Callable[[Mapping[str, Any]], list[str]]:
    def write(doc: Mapping[str, Any]) -> list[str]:
        text = _first(doc, source or field)
        return _filled(field, encode(text) if escape else text)

    return write


_WRITERS: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "author": _author,
    "booktitle": _plain("booktitle", "pub", escape=True),
    "doi": _plain("doi"),
    "editor": _editor,
    "eid": _plain("eid"),
    "eprint": _eprint,
    "howpublished": _howpublished,
    "institution": _plain("institution", "publisher", escape=True),
    "journal": _journal,
    "keywords": _keywords,
    "month": _month,
    "number": _plain("number", "issue"),
    "pages": _pages,
    "publisher": _plain("publisher", escape=True),
    "report": _plain("number", "eid", escape=True),
    "school": _school,
    "series": _plain("series", escape=True),
    "title": _title,
    "version": _plain("version"),
    "volume": _plain("volume"),
    "year": _year,
}


def _as_document(paper: Paper) -> dict[str, Any]:
    """A record without ADS's own as ADS would hold it: only what is known."""
    arxiv = paper.raw.get("arxiv")
    primary = arxiv.get("primary_category", "") if isinstance(arxiv, Mapping) else ""
    preprint = bool(paper.identifiers.arxiv) and not paper.journal
    return {
        "bibcode": paper.identifiers.bibcode,
        "title": [paper.title],
        "author": list(paper.authors),
        "year": str(paper.year) if paper.year else "",
        "pubdate": paper.pubdate,
        "pub": paper.journal or ("arXiv e-prints" if preprint else ""),
        "volume": paper.volume,
        "issue": paper.issue,
        "page_range": paper.pages,
        "eid": f"arXiv:{paper.identifiers.arxiv}" if preprint else "",
        "keyword": list(paper.keywords),
        "doctype": paper.doctype or ("eprint" if preprint else ""),
        "doi": [paper.identifiers.doi] if paper.identifiers.doi else [],
        "arxiv_class": [primary] if primary else [],
        "_arxiv": paper.identifiers.arxiv,
        "_exact": True,
    }


def _filled(field: str, text: str) -> list[str]:
    return [_braced(field, text)] if text else []


def _braced(field: str, text: str) -> str:
    return f"{field:>13} = {{{balanced(' '.join(text.split()))}}}"


def _many(value: Any) -> Sequence[Any]:
    if value is None or value == "":
        return ()
    return value if isinstance(value, (list, tuple)) else (value,)


def _first(doc: Mapping[str, Any], name: str) -> str:
    many = _many(doc.get(name))
    return html.unescape(str(many[0])) if many else ""
