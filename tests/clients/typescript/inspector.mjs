// Holds `palisade serve` against the command line of the MCP Inspector; `cargo xtask clients` runs it.
//
//     node inspector.mjs --workspace DIR [--process PID --url URL | COMMAND…]
//
// The server is as for the other clients (`../python/client.py`). The Inspector's command line shows no forms, so that whoever uses it cannot be asked.

import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PATIENCE, QUIET, fresh, need, processorTime, settings, told, tryAll, until } from './common.mjs';

const ERAS = [{ name: 'legacy' }, { name: 'modern' }];

/** The Inspector's exit codes. */
const OK = 0;
const TOOL_ERROR = 5;

const server = told();

/** The program of the Inspector's package. */
function program() {
    const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/inspector/package.json');
    return join(dirname(manifest), JSON.parse(readFileSync(manifest)).bin['mcp-inspector']);
}

/** The Inspector's settings, with the server. */
const directory = mkdtempSync(join(tmpdir(), 'inspector-'));
const config = join(directory, 'config.json');

function configure() {
    const [command, ...args] = server.command;
    const palisade = server.url ? { type: 'streamable-http', url: server.url } : { command, args, env: settings() };
    writeFileSync(config, JSON.stringify({ mcpServers: { palisade } }));
}

function command(era, more) {
    const own = ['--cli', '--config', config, '--server', 'palisade', '--protocol-era', era.name, '--format', 'json'];
    return [program(), ...own, ...more];
}

/** It would look for a key ring otherwise, and say at length that there is none. */
const ENVIRONMENT = { ...process.env, HOME: directory, MCP_INSPECTOR_SECRET_STORE: 'memory' };

/** Runs the Inspector to the end: its exit code, what it has printed, and what it has said beside that. */
function run(era, ...more) {
    return new Promise(ended => {
        const options = { env: ENVIRONMENT, timeout: PATIENCE };
        const child = execFile(process.execPath, command(era, more), options, (_, printed, said) => {
            ended({ code: child.exitCode, printed, said });
        });
        child.stdin.end();
    });
}

function call(era, tool, args = {}) {
    return run(era, '--method', 'tools/call', '--tool-name', tool, '--tool-args-json', JSON.stringify(args));
}

/** Begins a call whose end is not waited for. */
function begin(era, tool) {
    const words = command(era, ['--method', 'tools/call', '--tool-name', tool]);
    return spawn(process.execPath, words, { env: ENVIRONMENT, stdio: 'ignore' });
}

/** The server's process; none where it has ended, as one does whose client has. */
function serving() {
    if (server.known) return server.known;
    const isServer = entry => {
        const words = words_of(entry);
        return words[0] === server.command[0] && words.includes(server.workspace);
    };
    return readdirSync('/proc').filter(entry => /^[0-9]+$/.test(entry)).find(isServer);
}

/** What the server has computed so far, in milliseconds. */
function busy() {
    return processorTime(serving());
}

/** Waits until the server computes no more. */
async function resting() {
    let before;
    const deadline = Date.now() + PATIENCE;
    do {
        need(Date.now() < deadline, 'the guest computes on');
        before = busy();
        await sleep(QUIET);
    } while (busy() - before > QUIET / 10);
}

/** The command line of a process, which may have ended. */
function words_of(entry) {
    try {
        return readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0');
    } catch {
        return [];
    }
}

/** The result that was printed. */
function result({ code, printed, said }, expected) {
    need(code === expected, `it ends with ${code}, not ${expected}: ${printed}${said}`);
    return JSON.parse(printed.split('\n')[0]).result;
}

const PROMISES = {
    async every_schema_of_the_list_is_one_that_providers_take(era) {
        const listing = await run(era, '--method', 'tools/list', '--strict');
        const names = result(listing, OK).tools.map(tool => tool.name);
        need(['good', 'promise', 'read_file', 'write_file'].every(name => names.includes(name)), names);
        const faults = listing.said.match(/^(\d+) errors?, (\d+) warnings?/m);
        need(faults === null || faults[1] === '0', listing.said);
        // A warning is no fault; how many there are is worth knowing.
        return faults === null ? '' : faults[0];
    },

    async a_call_is_answered(era) {
        const { content } = result(await call(era, 'good'), OK);
        need(content.length === 1 && content[0].text === 'good', content);
        writeFileSync(join(server.workspace, 'notes.txt'), 'Buy milk.\n');
        const read = result(await call(era, 'read_file', { path: 'notes.txt' }), OK);
        need(read.content[0].text === 'Buy milk.\n', read);
    },

    async structured_output_is_what_its_schema_promises(era) {
        const kept = result(await call(era, 'promise', { give: 'right' }), OK);
        need(JSON.stringify(kept.structuredContent) === '{"n":1}', kept);
        const broken = result(await call(era, 'promise', { give: 'wrong' }), TOOL_ERROR);
        need(broken.isError && broken.structuredContent === undefined, broken);
    },

    async a_failure_is_the_tools(era) {
        const failed = result(await call(era, 'fail', { with: 'not-found' }), TOOL_ERROR);
        need(failed.isError && failed.content[0].text.includes('no such thing'), failed);
    },

    async what_nobody_can_be_asked_about_is_not_done(era) {
        const path = fresh(server.workspace, `unasked-${era.name}.txt`);
        const refused = result(await call(era, 'write_file', { path, content: 'written' }), TOOL_ERROR);
        need(refused._meta['dev.palisade/error'].class === 'permission_denied', refused);
        need(refused.content.at(-1).text.includes('--allow write'), refused);
        need(!existsSync(join(server.workspace, path)), 'it was done');
    },

    async an_endless_loop_ends_with_whoever_has_called_it(era) {
        const idle = busy();
        const caller = begin(era, 'compute');
        await until(() => busy() > idle + 500, 'the computing of the loop');
        caller.kill('SIGINT');
        await until(() => server.known || serving() === undefined, 'the end of the server');
        // Over HTTP the client of an older revision may come back within five seconds.
        await resting();
        const { content } = result(await call(era, 'good'), OK);
        need(content[0].text === 'good', content);
    },
};

configure();
await tryAll(PROMISES, ERAS, (promise, era) => promise(era));
rmSync(directory, { recursive: true, force: true });
