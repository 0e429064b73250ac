"""The ReAct loop, pure: no LSP, SQL, HTTP, paper or concrete tool in here."""
