"""One file a tool; the file is named as the model sees the tool."""
