/** The keys of all `\cite…{a,b}` commands in a text, each once. */
export function citeKeys(text: string): string[] {
  const keys = new Set<string>();
  for (const match of text.matchAll(/\\[a-zA-Z]*cite[a-zA-Z]*\*?(?:\s*\[[^\]]*\])*\s*\{([^}]*)\}/g)) {
    for (const key of (match[1] ?? "").split(",")) if (key.trim()) keys.add(key.trim());
  }
  return [...keys];
}
