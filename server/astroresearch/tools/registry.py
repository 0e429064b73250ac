"""The tools of this product, one line each. A tool is one file, one line here, one test and one page below docs/tools."""

from __future__ import annotations

from astroresearch.engine.tool import Registry
from astroresearch.tools.delegation.subagent import Subagent
from astroresearch.tools.files.file_edit import FileEdit
from astroresearch.tools.files.glob_files import GlobFiles
from astroresearch.tools.files.grep_files import GrepFiles
from astroresearch.tools.files.read_file import ReadFile
from astroresearch.tools.papers.download_paper import DownloadPaper
from astroresearch.tools.papers.get_paper_content import GetPaperContent
from astroresearch.tools.papers.get_paper_metadata import GetPaperMetadata
from astroresearch.tools.papers.parse_paper import ParsePaper
from astroresearch.tools.papers.query_target import QueryTarget
from astroresearch.tools.papers.rag_search import RagSearch
from astroresearch.tools.papers.save_note import SaveNote
from astroresearch.tools.papers.search_papers import SearchPapers
from astroresearch.tools.session.ask_user import AskUser
from astroresearch.tools.session.load_skill import LoadSkill
from astroresearch.tools.session.todo_write import TodoWrite


def standard() -> Registry:
    """Every tool that the main agent is offered."""
    return Registry(
        [
            ReadFile(),
            GrepFiles(),
            GlobFiles(),
            FileEdit(),
            SearchPapers(),
            GetPaperMetadata(),
            DownloadPaper(),
            ParsePaper(),
            GetPaperContent(),
            RagSearch(),
            QueryTarget(),
            SaveNote(),
            TodoWrite(),
            LoadSkill(),
            AskUser(),
            Subagent(),
        ]
    )
