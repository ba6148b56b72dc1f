// Runs the tests beside the sources: they are put together as the page is, so
// that any Node can read them, and then run.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { build } from "rolldown";

const src = new URL("..", import.meta.url).pathname;
const tests = readdirSync(src, { recursive: true }).filter((f) => f.endsWith(".test.ts"));
const dir = mkdtempSync(join(tmpdir(), "ken-page-tests-"));
try {
  await build({
    input: Object.fromEntries(tests.map((f) => [f.slice(0, -3).replaceAll("/", "-"), join(src, f)])),
    platform: "node", logLevel: "warn",
    output: { dir, entryFileNames: "[name].mjs", chunkFileNames: "shared-[hash].mjs", sourcemap: "inline" },
  });
  const made = readdirSync(dir).filter((f) => f.endsWith(".test.mjs")).map((f) => join(dir, basename(f)));
  if (made.length !== tests.length || !made.length) throw new Error(`${made.length} tests were made of ${tests.length}`);
  const ran = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...made], { stdio: "inherit" });
  process.exitCode = ran.status ?? 1;
} finally {
  rmSync(dir, { recursive: true });
}
