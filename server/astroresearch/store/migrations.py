"""The schema, as steps that each take a database one version further. A released step is never changed.

A blank file and every older schema reach the same one; a crash between steps leaves a valid older version behind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import apsw

from astroresearch import crash
from astroresearch.store.connection import transact, user_version

APPLICATION_ID = 0x41526573
'"ARes" in the file\'s header: tells our library from other SQLite files.'

TOPICS = ("papers", "passages", "notes", "sessions")
"What `Store.changes` can tell apart."

Step = Callable[[apsw.Connection], None]


def m001_papers(connection: apsw.Connection) -> None:
    """Papers, their names, and the counters by which windows notice each other's changes."""
    connection.execute(f"pragma application_id = {APPLICATION_ID}")
    connection.execute("""
        create table papers (
            id text primary key collate nocase,
            title text not null,
            year integer not null,
            state text not null,
            record text not null,   -- the whole record but `raw`, as JSON
            raw text not null,      -- the source's own record, as JSON
            added text not null,
            updated text not null
        );
        create index papers_by_added on papers (added);
        create table identifiers (
            kind text not null,     -- bibcode, doi, arxiv, file, id (of a record that was merged into this one)
            value text not null,
            paper_id text not null references papers (id) on delete cascade on update cascade,
            primary key (kind, value)
        ) without rowid;
        create index identifiers_by_paper on identifiers (paper_id);
        create table revisions (topic text primary key, n integer not null) without rowid;
    """)
    connection.executemany("insert into revisions values (?, 0)", [(t,) for t in TOPICS])


def m002_passages(connection: apsw.Connection) -> None:
    """Pages and passages of papers, with a full-text index that triggers keep equal to the passages.

    Vectors have a virtual table per model, made when the model is first used (see store/passages.py); `embedded` says which
    passages have one.
    """
    connection.execute("""
        create table pages (
            paper_id text not null references papers (id) on delete cascade on update cascade,
            page integer not null,
            text text not null,
            words blob not null,
            hidden text not null,
            primary key (paper_id, page)
        );
        create table passages (
            id integer primary key autoincrement,   -- never used twice: a vector can't belong to another text
            paper_id text not null references papers (id) on delete cascade on update cascade,
            ordinal integer not null,
            section text not null,
            page integer not null,
            page_end integer not null,
            text text not null,
            start_at integer not null,
            end_at integer not null,
            unique (paper_id, ordinal)
        );
        create virtual table passages_fts using fts5 (
            text, content = 'passages', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
        );
        create virtual table passages_vocab using fts5vocab (passages_fts, row);
        create trigger passages_insert after insert on passages begin
            insert into passages_fts (rowid, text) values (new.id, new.text);
        end;
        create trigger passages_delete after delete on passages begin
            insert into passages_fts (passages_fts, rowid, text) values ('delete', old.id, old.text);
        end;
        create trigger passages_update after update of text on passages begin
            insert into passages_fts (passages_fts, rowid, text) values ('delete', old.id, old.text);
            insert into passages_fts (rowid, text) values (new.id, new.text);
        end;
        create table embedders (id integer primary key autoincrement, name text not null unique, dim integer not null);
        create table embedded (
            embedder_id integer not null references embedders (id) on delete cascade,
            passage_id integer not null references passages (id) on delete cascade,
            primary key (embedder_id, passage_id)
        ) without rowid;
        create index embedded_by_passage on embedded (passage_id);
    """)


def m003_notes(connection: apsw.Connection) -> None:
    """Notes with their full-text index. A note outlives its paper."""
    connection.execute("""
        create table notes (
            seq integer primary key autoincrement,
            id text not null unique,
            text text not null,
            tags text not null,     -- JSON array
            color text not null,
            paper_id text not null,
            page integer not null,
            quote text not null,
            quote_verified integer not null,
            cite_key text not null,
            place text not null,    -- JSON object or empty
            origin text not null,
            session_id text not null,
            created text not null,
            updated text not null
        );
        create index notes_by_paper on notes (paper_id) where paper_id <> '';
        create index notes_by_cite_key on notes (cite_key) where cite_key <> '';
        create virtual table notes_fts using fts5 (
            text, quote, tags, cite_key, content = 'notes', content_rowid = 'seq',
            tokenize = 'porter unicode61 remove_diacritics 2'
        );
        create trigger notes_insert after insert on notes begin
            insert into notes_fts (rowid, text, quote, tags, cite_key)
            values (new.seq, new.text, new.quote, new.tags, new.cite_key);
        end;
        create trigger notes_delete after delete on notes begin
            insert into notes_fts (notes_fts, rowid, text, quote, tags, cite_key)
            values ('delete', old.seq, old.text, old.quote, old.tags, old.cite_key);
        end;
        create trigger notes_update after update of text, quote, tags, cite_key on notes begin
            insert into notes_fts (notes_fts, rowid, text, quote, tags, cite_key)
            values ('delete', old.seq, old.text, old.quote, old.tags, old.cite_key);
            insert into notes_fts (rowid, text, quote, tags, cite_key)
            values (new.seq, new.text, new.quote, new.tags, new.cite_key);
        end;
    """)


def m004_sessions(connection: apsw.Connection) -> None:
    """Sessions: messages and calls (the write-ahead log), events (the timeline), tasks, leases, audit log."""
    connection.execute("""
        create table agent_sessions (
            id text primary key,
            title text not null,
            created text not null,
            updated text not null,
            turn_count integer not null default 0,
            parent text not null,
            agent text not null,
            workspace text not null,
            summary text not null default '',
            usage text not null default '{}'
        );
        create index agent_sessions_by_updated on agent_sessions (updated);
        create index agent_sessions_by_parent on agent_sessions (parent) where parent <> '';
        create table agent_messages (
            id integer primary key autoincrement,
            session text not null references agent_sessions (id) on delete cascade,
            turn_id text not null,
            role text not null,
            tool_call_id text not null,
            raw_json text not null,
            ts text not null
        );
        create index agent_messages_by_session on agent_messages (session, id);
        create table agent_calls (
            session text not null references agent_sessions (id) on delete cascade,
            id text not null,
            name text not null,
            arguments text not null,
            effect text not null,
            state text not null,    -- announced, started, finished
            turn_id text not null,
            agent_name text not null,
            started text not null,
            finished text not null,
            primary key (session, id)
        );
        create table agent_turns (
            session text not null references agent_sessions (id) on delete cascade,
            turn_id text not null,
            stop_reason text not null,
            usage text not null,
            finished text not null,
            primary key (session, turn_id)
        );
        create table agent_events (
            session text not null references agent_sessions (id) on delete cascade,
            seq integer not null,
            turn_id text not null,
            agent_name text not null,
            kind text not null,
            payload text not null,
            ts text not null,
            unique (session, seq)
        );
        create table agent_tasks (
            session text not null references agent_sessions (id) on delete cascade,
            position integer not null,
            item text not null,
            primary key (session, position)
        );
        create table agent_audit_log (
            id integer primary key autoincrement,
            ts text not null,
            session text not null,
            agent_name text not null,
            kind text not null,
            payload text not null
        );
        create index agent_audit_log_by_session on agent_audit_log (session, id);
        create table leases (
            name text primary key,
            owner text not null,
            host text not null,
            pid integer not null,
            taken real not null,
            expires real not null
        ) without rowid;
    """)


def m005_cache(connection: apsw.Connection) -> None:
    """Answers of services, kept for a time."""
    connection.execute("""
        create table cache (
            key text primary key,
            value blob not null,
            stored real not null,
            ttl_s real not null
        );
        create index cache_by_stored on cache (stored);
    """)


STEPS: tuple[Step, ...] = (m001_papers, m002_passages, m003_notes, m004_sessions, m005_cache)
VERSION = len(STEPS)


def migrate(connection: apsw.Connection, *, to: int = VERSION, given_up: threading.Event | None = None) -> list[str]:
    """Runs the steps that are missing, each in a transaction of its own, and returns their names.

    Two processes may do this at once: each step looks again at the version once it holds the lock.
    """
    done: list[str] = []
    for number, step in enumerate(STEPS[:to], start=1):

        def run(c: apsw.Connection, number: int = number, step: Step = step) -> bool:
            if user_version(c) >= number:
                return False
            step(c)
            c.execute(f"pragma user_version = {number}")
            crash.point("migrate.before_commit")
            return True

        if transact(connection, run, given_up=given_up):
            crash.point("migrate.committed")
            done.append(step.__name__)
    return done
