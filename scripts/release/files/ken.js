#!/usr/bin/env node
// Starts the binary of Ken for this platform, which npm installed as an optional
// dependency of this package.
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { name } = require("../package.json");

const binary = `${name}-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${binary}/bin/ken${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`ken: the package ${binary} is not installed. Either Ken is not built for ${process.platform} on ${process.arch}, or optional dependencies were left out. Install ${name} again without --omit=optional.`);
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A signal for this process is meant for Ken. Ctrl-C in a terminal reaches both
// processes already, and Ken would take a second one as an order to end at once.
const terminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    if (signal !== "SIGINT" || !terminal) child.kill(signal);
  });
}
child.on("error", (err) => {
  console.error(`ken: start ${program}: ${err.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
