// The environment that this extension manages: a virtual environment in its own storage with the server's wheel in it.

import fs from "node:fs/promises";
import path from "node:path";

import { type Machine, OLDEST, run } from "./python";

/** Written last: an environment without it is not finished and does not count. */
const MARK = "astroresearch-wheel.txt";

export class EnvironmentError extends Error {
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

export interface Steps {
  /** What happens now, for people. */
  step(text: string): void;
  /** A line of the programs that run, for the log. */
  line(text: string): void;
  signal?: AbortSignal;
}

export class ManagedEnvironment {
  private readonly folder: string;

  constructor(
    storage: string,
    private readonly extensionFolder: string,
  ) {
    this.folder = path.join(storage, "venv");
  }

  /** Its Python, or undefined while there is no finished environment. */
  async python(): Promise<string | undefined> {
    return (await this.installedWheel()) === undefined ? undefined : this.executable();
  }

  /** There is one, made from another wheel than the one that this extension brings. */
  async outdated(): Promise<boolean> {
    const installed = await this.installedWheel();
    if (installed === undefined) return false;
    const wheel = await this.wheel().catch(() => undefined);
    return wheel !== undefined && installed !== (await stamp(wheel));
  }

  /**
   * Makes it anew, by uv where it is installed, else by Python's own venv and pip.
   * Rejects with an `EnvironmentError` for people; what was begun is removed.
   */
  async create(machine: Machine, steps: Steps): Promise<void> {
    const wheel = await this.wheel();
    const uv = await machine.which("uv");
    await fs.rm(this.folder, { recursive: true, force: true });
    await fs.mkdir(path.dirname(this.folder), { recursive: true });
    try {
      const python = this.executable();
      if (uv) {
        await this.must(steps, "Creating the environment", uv, ["venv", "--python", `>=${OLDEST.join(".")}`, this.folder]);
        await this.must(steps, "Installing AstroResearch", uv, ["pip", "install", "--python", python, wheel]);
      } else {
        const base = await basePython(machine);
        await this.must(steps, "Creating the environment", base, ["-m", "venv", this.folder]);
        await this.must(steps, "Installing AstroResearch", python, ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", wheel]);
      }
      await fs.writeFile(path.join(this.folder, MARK), await stamp(wheel));
    } catch (error) {
      await fs.rm(this.folder, { recursive: true, force: true });
      throw error;
    }
  }

  private executable(): string {
    return process.platform === "win32" ? path.join(this.folder, "Scripts", "python.exe") : path.join(this.folder, "bin", "python");
  }

  private async installedWheel(): Promise<string | undefined> {
    return fs.readFile(path.join(this.folder, MARK), "utf8").catch(() => undefined);
  }

  private async wheel(): Promise<string> {
    const folder = path.join(this.extensionFolder, "wheel");
    const names = await fs.readdir(folder).catch(() => [] as string[]);
    const name = names.filter((one) => /^astroresearch-.*\.whl$/.test(one)).sort().at(-1);
    if (!name) throw new EnvironmentError("This build of the extension carries no server.", "Install the package astroresearch yourself and set astroresearch.interpreter.");
    return path.join(folder, name);
  }

  private async must(steps: Steps, text: string, command: string, args: string[]): Promise<void> {
    steps.step(text);
    steps.line(`$ ${[command, ...args].join(" ")}`);
    const options = { onLine: (line: string) => steps.line(line), ...(steps.signal ? { signal: steps.signal } : {}) };
    const { code, output } = await run(command, args, options);
    if (code === 0) return;
    const last = output.trim().split("\n").slice(-1)[0] ?? "";
    throw new EnvironmentError(`${text} failed: ${last || `${path.basename(command)} ended with ${code}`}`, "The log has all that was printed.");
  }
}

async function stamp(wheel: string): Promise<string> {
  const { size } = await fs.stat(wheel);
  return `${path.basename(wheel)} ${size}`;
}

async function basePython(machine: Machine): Promise<string> {
  for (const name of ["python3.13", "python3.12", "python3.11", "python3", "python"]) {
    const python = await machine.which(name);
    if (!python) continue;
    const check = `import sys, venv, ensurepip; sys.exit(sys.version_info < (${OLDEST.join(", ")}))`;
    const { code } = await run(python, ["-I", "-c", check]).catch(() => ({ code: 1 }));
    if (code === 0) return python;
  }
  throw new EnvironmentError(
    `Neither uv nor a Python of at least ${OLDEST.join(".")} with venv was found.`,
    "Install one of them (on Debian and Ubuntu: python3 and python3-venv) and try again.",
  );
}
