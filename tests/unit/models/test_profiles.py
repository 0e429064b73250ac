"""What a profile derives from its settings."""

from __future__ import annotations

import pytest

from astroresearch.models.profiles import READING_S, ModelProfile


@pytest.mark.parametrize(
    ("url", "idle", "first"),
    [
        ("http://127.0.0.1:8080/v1", 60.0, READING_S),
        ("http://localhost:11434/v1", 60.0, READING_S),
        ("http://localhost:11434/v1", 90.0, 90.0),
        ("http://localhost:11434/v1", 5.0, 5.0),
        ("https://api.openai.com/v1", 60.0, 60.0),
    ],
)
def test_a_local_model_has_longer_to_read_its_prompt(url: str, idle: float, first: float) -> None:
    assert ModelProfile("m", url, idle_timeout_s=idle).first_timeout_s == first
