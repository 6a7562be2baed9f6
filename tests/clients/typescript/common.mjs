// The common parts of the JavaScript clients: the command line, and the report of the promises.

import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

/** An upper bound for the time until an answer arrives, also on a slow machine, in milliseconds. */
export const PATIENCE = 60_000;
/** The time to wait for messages that must not arrive, in milliseconds. */
export const QUIET = 1_000;

/** The kernel's unit of processor time, in milliseconds. */
const TICK = 10;

/** A broken promise. */
class Broken extends Error {}

export function ensure(holds, what) {
    if (!holds) throw new Broken(typeof what === 'string' ? what : JSON.stringify(what));
}

/** Polls until a condition holds that no message announces. */
export async function waitUntil(holds, what) {
    const deadline = Date.now() + PATIENCE;
    while (!holds()) {
        ensure(Date.now() < deadline, `${what} does not happen within ${PATIENCE} ms`);
        await sleep(20);
    }
}

/** Parses the command line: the workspace of the server, and its address or start command. */
export function fromArguments() {
    const text = { type: 'string' };
    const options = { workspace: text, url: text, process: text };
    const words = process.argv.slice(2);
    // The first word that is neither an option nor an option's value starts the server's command.
    let end = 0;
    while (end < words.length && words[end].startsWith('--')) end += 2;
    const { values } = parseArgs({ args: words.slice(0, end), options });
    const { workspace, url, process: known } = values;
    return { workspace, url, known, command: words.slice(end) };
}

/** Returns Palisade's environment variables, which the libraries do not pass to the server. */
export function settings() {
    const variables = Object.entries(process.env);
    return Object.fromEntries(variables.filter(([name]) => name.startsWith('PALISADE_')));
}

/** Returns the processor time of a process so far, in milliseconds; zero if it has ended. */
export function processorTime(process) {
    try {
        // The fields after the name, which may contain any character.
        const stat = readFileSync(`/proc/${process}/stat`, 'utf8');
        const fields = stat.split(')').at(-1).trim().split(' ');
        return (Number(fields[11]) + Number(fields[12])) * TICK;
    } catch {
        return 0;
    }
}

/** Returns the name of a file in the workspace, and removes that file of an earlier run. */
export function freshName(workspace, name) {
    rmSync(join(workspace, name), { force: true });
    return name;
}

/** Checks each promise in each era, prints a line for each, and sets the exit code. */
export async function checkAll(promises, eras, check) {
    let failed = 0;
    for (const era of eras) {
        for (const [name, promise] of Object.entries(promises)) {
            try {
                const remark = await check(promise, era);
                console.log(`ok ${era.name} ${name}${remark ? ` (${remark})` : ''}`);
            } catch (error) {
                failed += 1;
                const why = error instanceof Broken ? error.message : error;
                console.log(`failed ${era.name} ${name}: ${why}`);
            }
        }
    }
    process.exitCode = failed ? 1 : 0;
}
