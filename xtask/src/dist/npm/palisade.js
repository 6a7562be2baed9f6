#!/usr/bin/env node
// Starts the program of the package for this system, and ends as it ends.
'use strict';

const { spawn } = require('node:child_process');

const systems = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64'];
const system = `${process.platform}-${process.arch}`;
const name = `palisade-cli-${system}`;

function program() {
  try {
    return require.resolve(`${name}/bin/palisade`);
  } catch {
    const reason = systems.includes(system)
      ? `the package ${name} is missing: npm leaves it out with --omit=optional, and on a Linux without glibc`
      : `there is no program for ${system}, only for ${systems.join(', ')}`;
    fail(reason);
  }
}

// 1 is the program's own exit code for an internal error.
function fail(reason) {
  console.error(`error: ${reason}`);
  process.exit(1);
}

const child = spawn(program(), process.argv.slice(2), { stdio: 'inherit' });
child.on('error', (error) => fail(`the program cannot be started: ${error.message}`));

// A terminal sends an interrupt to both processes: the program must not get it twice, and this one
// must outlive it.
process.on('SIGINT', () => {});
const passedOn = ['SIGTERM', 'SIGHUP'];
for (const signal of passedOn) {
  process.on(signal, () => child.kill(signal));
}

child.on('exit', (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
