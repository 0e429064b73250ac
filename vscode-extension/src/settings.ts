// The user's settings as the server takes them: only what somebody set. Defaults stay unsaid, so that the server's own files and
// environment variables are not overruled by values that nobody chose.

import * as vscode from "vscode";

export const SECTION = "astroresearch";
/** Settings of the extension itself. */
const OURS: readonly string[] = ["server.command", "interpreter", "trace.server"];

/** Dotted names below `astroresearch.`, as package.json declares them. */
export function declaredKeys(packageJson: { contributes: { configuration: { properties: Record<string, unknown> } } }): string[] {
  return Object.keys(packageJson.contributes.configuration.properties)
    .map((key) => key.slice(SECTION.length + 1))
    .filter((key) => !OURS.includes(key));
}

/** What is set, dotted. VS Code itself leaves out a workspace's values of settings with machine scope. */
export function explicitSettings(keys: readonly string[], scope?: vscode.Uri): Record<string, unknown> {
  const configuration = vscode.workspace.getConfiguration(SECTION, scope ?? null);
  const found: Record<string, unknown> = {};
  for (const key of keys) {
    const value = configuration.inspect(key);
    const said = value?.workspaceFolderValue ?? value?.workspaceValue ?? value?.globalValue;
    if (said !== undefined) found[key] = said;
  }
  return found;
}

export function serverCommand(): string[] {
  return vscode.workspace.getConfiguration(SECTION).get<string[]>("server.command") ?? [];
}

export function interpreter(): string {
  return vscode.workspace.getConfiguration(SECTION).get<string>("interpreter") ?? "";
}

/** Whether a change concerns how the server is started. */
export function changesStart(event: vscode.ConfigurationChangeEvent): boolean {
  return event.affectsConfiguration(`${SECTION}.server.command`) || event.affectsConfiguration(`${SECTION}.interpreter`);
}

const SECRETS = ["model.api_key", "ads.token"] as const;
export type SecretKey = (typeof SECRETS)[number];

/** The secrets that the user gave to the editor's store. */
export async function storedSecrets(store: vscode.SecretStorage): Promise<[SecretKey, string][]> {
  const all = await Promise.all(SECRETS.map(async (key) => [key, (await store.get(key)) ?? ""] as [SecretKey, string]));
  return all.filter(([, value]) => value);
}
