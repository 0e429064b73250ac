import assert from "node:assert/strict";
import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";

import { ManagedEnvironment } from "../src/environment";
import { findServer, type Machine, machine, type Wishes } from "../src/python";

const NOTHING: Wishes = { command: [], interpreter: "", chosen: undefined, managed: undefined };

function playing(having: string[], programs: Record<string, string> = {}): Machine & { asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    probe: async (python) => {
      asked.push(python);
      return having.includes(python) ? { ok: true, reason: "" } : { ok: false, reason: "not installed there" };
    },
    which: async (name) => programs[name],
  };
}

async function chosen(wishes: Partial<Wishes>, on: Machine): Promise<string> {
  const found = await findServer({ ...NOTHING, ...wishes }, on);
  return "server" in found ? [found.server.command, ...found.server.args].join(" ") : `failed: ${found.failed}`;
}

test("the order: command, interpreter, the Python extension, managed, PATH", async () => {
  const all = { command: ["/opt/ar", "serve", "-v"], interpreter: "/i/python", chosen: "/c/python", managed: "/m/python" };
  const on = playing(["/i/python", "/c/python", "/m/python"], { astroresearch: "/bin/astroresearch" });
  const run = "-P -m astroresearch serve";
  assert.equal(await chosen(all, on), "/opt/ar serve -v");
  assert.equal(await chosen({ ...all, command: [] }, on), `/i/python ${run}`);
  assert.equal(await chosen({ ...all, command: [], interpreter: "" }, on), `/c/python ${run}`);
  assert.equal(await chosen({ managed: "/m/python" }, on), `/m/python ${run}`);
  assert.equal(await chosen({ chosen: "/other/python", managed: "/m/python" }, on), `/m/python ${run}`);
  assert.equal(await chosen({}, on), "/bin/astroresearch serve");
  assert.equal(await chosen({}, playing(["/usr/bin/python3"], { python3: "/usr/bin/python3" })), `/usr/bin/python3 ${run}`);
});

test("an interpreter that the user named and that does not work is an error", async () => {
  const on = playing(["/m/python"]);
  assert.match(await chosen({ interpreter: "/i/python", managed: "/m/python" }, on), /^failed: .*interpreter.*not installed there/);
  assert.deepEqual(on.asked, ["/i/python"]);
});

test("nothing found: says what was tried", async () => {
  const found = await findServer({ ...NOTHING, chosen: "/c/python" }, playing([], { python3: "/usr/bin/python3" }));
  assert.ok("failed" in found);
  assert.deepEqual(found.tried, ["/c/python (the Python extension): not installed there", "/usr/bin/python3 (PATH): not installed there"]);
});

test("a real Python is asked, and a file beside it in the working folder is not taken for the package", async (t) => {
  const python = await machine.which("python3");
  if (!python) return t.skip("no python3 on PATH");
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), "probe-"));
  await fs.mkdir(path.join(folder, "astroresearch"));
  await fs.writeFile(path.join(folder, "astroresearch", "__init__.py"), "");
  const before = process.cwd();
  try {
    process.chdir(folder);
    const probe = await machine.probe(python);
    assert.equal(probe.ok, (await (process.chdir("/"), machine.probe(python))).ok);
    if (!probe.ok) assert.match(probe.reason, /not installed|too old/);
  } finally {
    process.chdir(before);
    await fs.rm(folder, { recursive: true });
  }
  assert.equal((await machine.probe(path.join(folder, "nothing"))).ok, false);
});

test("the managed environment counts only when it was finished, and a failure leaves nothing behind", async () => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), "managed-"));
  const managed = new ManagedEnvironment(path.join(folder, "storage"), folder);
  const steps = { step: () => undefined, line: () => undefined };
  assert.equal(await managed.python(), undefined);
  await assert.rejects(managed.create(playing([]), steps), /carries no server/);

  await fs.mkdir(path.join(folder, "wheel"));
  await fs.writeFile(path.join(folder, "wheel", "astroresearch-0.1.0-py3-none-any.whl"), "not a wheel");
  await assert.rejects(managed.create(playing([]), steps), /Neither uv nor a Python/);

  const uv = path.join(folder, "uv");
  const lines: string[] = [];
  await fs.writeFile(uv, '#!/bin/sh\necho "$1 refuses"\nexit 2\n', { mode: 0o755 });
  await assert.rejects(managed.create(playing([], { uv }), { ...steps, line: (line) => lines.push(line) }), /Creating the environment failed: venv refuses/);
  assert.ok(lines.includes("venv refuses"));
  assert.equal(await managed.python(), undefined);

  await fs.writeFile(uv, '#!/bin/sh\n[ "$1" = venv ] && mkdir -p "$4"\nexit 0\n', { mode: 0o755 });
  await managed.create(playing([], { uv }), steps);
  assert.match((await managed.python()) ?? "", /storage\/venv\/bin\/python$/);
  assert.equal(await managed.outdated(), false);
  await fs.writeFile(path.join(folder, "wheel", "astroresearch-0.1.0-py3-none-any.whl"), "another wheel");
  assert.equal(await managed.outdated(), true);
  await fs.rm(folder, { recursive: true });
});
