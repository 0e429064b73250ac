"""Who runs the engine: sessions, prompts, skills, questions, subagents."""
