// What the clients in JavaScript share: how they are told where the server is, and how they say what holds.

import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

/** What no answer takes, however slow the machine is, in milliseconds. */
export const PATIENCE = 60_000;
/** How long is listened for what must not come, in milliseconds. */
export const QUIET = 1_000;

/** The kernel's unit of processor time, in milliseconds. */
const TICK = 10;

/** What does not hold. */
class Wrong extends Error {}

export function need(holds, what) {
    if (!holds) throw new Wrong(typeof what === 'string' ? what : JSON.stringify(what));
}

/** Waits for something that has no message of its own. */
export async function until(holds, what) {
    const deadline = Date.now() + PATIENCE;
    while (!holds()) {
        need(Date.now() < deadline, `${what} does not happen within ${PATIENCE} ms`);
        await sleep(20);
    }
}

/** The command line: where the server works, and where it is or how it is started. */
export function told() {
    const options = { workspace: { type: 'string' }, url: { type: 'string' }, process: { type: 'string' } };
    const words = process.argv.slice(2);
    // From the first word on that is no option and no option's value, it is the server's command.
    let end = 0;
    while (end < words.length && words[end].startsWith('--')) end += 2;
    const { workspace, url, process: known } = parseArgs({ args: words.slice(0, end), options }).values;
    return { workspace, url, known, command: words.slice(end) };
}

/** The settings of Palisade in the environment, which libraries do not pass on by themselves. */
export function settings() {
    return Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('PALISADE_')));
}

/** What a process has computed so far, in milliseconds; nothing where it has ended. */
export function processorTime(process) {
    try {
        // After the name, which may hold anything.
        const fields = readFileSync(`/proc/${process}/stat`, 'utf8').split(')').at(-1).trim().split(' ');
        return (Number(fields[11]) + Number(fields[12])) * TICK;
    } catch {
        return 0;
    }
}

/** The name of a file in the workspace that no earlier run has left. */
export function fresh(workspace, name) {
    rmSync(join(workspace, name), { force: true });
    return name;
}

/** Tries each promise in each era, prints a line for each, and says in the exit code whether all are kept. */
export async function tryAll(promises, eras, keep) {
    let failed = 0;
    for (const era of eras) {
        for (const [name, promise] of Object.entries(promises)) {
            try {
                const remark = await keep(promise, era);
                console.log(`ok ${era.name} ${name}${remark ? ` (${remark})` : ''}`);
            } catch (error) {
                failed += 1;
                console.log(`failed ${era.name} ${name}: ${error instanceof Wrong ? error.message : error}`);
            }
        }
    }
    process.exitCode = failed ? 1 : 0;
}
