// Which program is the server. Pure: what the machine answers comes in through `Machine`, so that tests can play it.

import { spawn } from "node:child_process";
import fs from "node:fs/promises";
import path from "node:path";

export const MODULE = "astroresearch";
/** The oldest Python that the server runs on. */
export const OLDEST: readonly [number, number] = [3, 11];

export type Origin = "setting `server.command`" | "setting `interpreter`" | "the Python extension" | "the managed environment" | "PATH";

export interface Server {
  command: string;
  args: string[];
  origin: Origin;
}

/** What a Python said when it was asked for the server's package. */
export interface Probe {
  ok: boolean;
  /** For people, when it is not ok. */
  reason: string;
}

export interface Machine {
  probe(python: string): Promise<Probe>;
  /** Absolute path of a program on PATH. */
  which(program: string): Promise<string | undefined>;
}

export interface Wishes {
  command: readonly string[];
  interpreter: string;
  /** The Python extension's choice; undefined without one or in an untrusted workspace. */
  chosen: string | undefined;
  /** The managed environment's Python; undefined while there is none. */
  managed: string | undefined;
}

export type Found = { server: Server } | { failed: string; tried: string[] };

/**
 * Looks in this order: `server.command`, `interpreter`, the Python extension's choice, the managed environment, PATH. The first
 * two are the user's word: if they don't work, that is an error and not a reason to look further.
 */
export async function findServer(wishes: Wishes, machine: Machine): Promise<Found> {
  const [program, ...args] = wishes.command;
  if (program) return { server: { command: program, args, origin: "setting `server.command`" } };
  if (wishes.interpreter) {
    const probe = await machine.probe(wishes.interpreter);
    if (probe.ok) return { server: byPython(wishes.interpreter, "setting `interpreter`") };
    return { failed: `The Python of the setting astroresearch.interpreter can't be used: ${probe.reason}`, tried: [wishes.interpreter] };
  }
  const tried: string[] = [];
  for (const [python, origin] of [
    [wishes.chosen, "the Python extension"],
    [wishes.managed, "the managed environment"],
  ] as const) {
    if (!python) continue;
    const probe = await machine.probe(python);
    if (probe.ok) return { server: byPython(python, origin) };
    tried.push(`${python} (${origin}): ${probe.reason}`);
  }
  const script = await machine.which(MODULE);
  if (script) return { server: { command: script, args: ["serve"], origin: "PATH" } };
  for (const name of ["python3", "python"]) {
    const python = await machine.which(name);
    if (!python) continue;
    const probe = await machine.probe(python);
    if (probe.ok) return { server: byPython(python, "PATH") };
    tried.push(`${python} (PATH): ${probe.reason}`);
  }
  return { failed: "No Python with the package astroresearch was found.", tried };
}

/** `-P` keeps the working folder off the module path: a file of a workspace must not be taken for a library. */
function byPython(python: string, origin: Origin): Server {
  return { command: python, args: ["-P", "-m", MODULE, "serve"], origin };
}

const QUESTION = [
  "import sys",
  "sys.path = [p for p in sys.path if p]", // as -P does, which a Python that is too old does not know
  `if sys.version_info < ${JSON.stringify(OLDEST).replace("[", "(").replace("]", ")")}: sys.exit("Python %d.%d is too old" % sys.version_info[:2])`,
  "import importlib.util as u",
  `sys.exit(0 if u.find_spec("${MODULE}") else "the package ${MODULE} is not installed there")`,
].join("\n");

/** This machine. */
export const machine: Machine = {
  async probe(python) {
    const { code, output } = await run(python, ["-c", QUESTION]).catch((error: Error) => ({ code: 1, output: error.message }));
    return code === 0 ? { ok: true, reason: "" } : { ok: false, reason: output.trim().split("\n").at(-1) || `it ended with ${code}` };
  },
  async which(program) {
    const names = process.platform === "win32" ? [`${program}.exe`, `${program}.cmd`] : [program];
    for (const folder of (process.env["PATH"] ?? "").split(path.delimiter)) {
      if (!path.isAbsolute(folder)) continue; // a relative entry would mean the workspace
      for (const name of names) {
        const file = path.join(folder, name);
        const found = await fs.access(file, fs.constants.X_OK).then(
          () => true,
          () => false,
        );
        if (found) return file;
      }
    }
    return undefined;
  },
};

export interface Ran {
  code: number;
  output: string;
}

/** Runs a program without a shell. Rejects when it can't be started; `signal` ends it. */
export function run(
  command: string,
  args: readonly string[],
  options: { onLine?: (line: string) => void; signal?: AbortSignal } = {},
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], windowsHide: true, ...(options.signal ? { signal: options.signal } : {}) });
    let output = "";
    const take = (chunk: Buffer) => {
      output += chunk.toString("utf8");
      for (const line of chunk.toString("utf8").split(/\r?\n|\r/)) if (line.trim()) options.onLine?.(line.trim());
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.on("error", reject);
    child.on("close", (code) => resolve({ code: code ?? 1, output }));
  });
}
