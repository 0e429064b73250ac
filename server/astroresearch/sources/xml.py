"""XML from strangers: no entities but XML's own five, no document type of their choosing, nothing loaded from anywhere."""

from __future__ import annotations

from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat


class XmlRefused(ValueError):
    """Not well-formed, or it declares entities."""


def parse_xml(data: bytes) -> Element:
    """The root element; names as `{namespace}tag`.

    Raises:
        XmlRefused: See there.
    """
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True

    def name(text: str) -> str:
        return "{" + text if "}" in text else text

    def refuse(*_: object) -> None:
        raise XmlRefused("it declares entities")

    parser.StartElementHandler = lambda tag, attributes: builder.start(
        name(tag), {name(key): value for key, value in attributes.items()}
    )
    parser.EndElementHandler = lambda tag: builder.end(name(tag))
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = lambda *_: 0
    try:
        parser.Parse(data, True)
        root = builder.close()
    except (expat.ExpatError, AssertionError, LookupError) as error:
        raise XmlRefused(str(error)) from None
    return root
