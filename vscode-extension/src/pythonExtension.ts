// The Python extension, where there is one. Every step may be missing: then it has no say.

import * as vscode from "vscode";

interface Api {
  environments?: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(path: { path: string }): Promise<{ executable?: { uri?: vscode.Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath?: vscode.Event<unknown>;
  };
}

async function api(): Promise<Api["environments"]> {
  const extension = vscode.extensions.getExtension<Api>("ms-python.python");
  if (!extension) return undefined;
  return (extension.isActive ? extension.exports : await extension.activate())?.environments;
}

/** The chosen Python; undefined without the extension, and in an untrusted workspace, whose choice could be its own program. */
export async function chosenPython(log: vscode.LogOutputChannel): Promise<string | undefined> {
  if (!vscode.workspace.isTrusted) return undefined;
  try {
    const environments = await api();
    if (!environments) return undefined;
    const active = environments.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
    const resolved = await environments.resolveEnvironment(active);
    return resolved?.executable?.uri?.fsPath;
  } catch (error) {
    log.warn(`The Python extension did not say which Python to use: ${String(error)}`);
    return undefined;
  }
}

/** Calls back when another Python is chosen. */
export async function onChoice(callback: () => void): Promise<vscode.Disposable | undefined> {
  if (!vscode.workspace.isTrusted) return undefined;
  const environments = await api().catch(() => undefined);
  return environments?.onDidChangeActiveEnvironmentPath?.(callback);
}
