// Tests `palisade serve` with the command line of the MCP Inspector; `cargo xtask clients` runs it.
//
//     node inspector.mjs --workspace DIR [--process PID --url URL | COMMAND…]
//
// The server is that of the other clients (`../python/client.py`). The Inspector's command line
// shows no forms, so that its user cannot be asked.

import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
    PATIENCE,
    QUIET,
    checkAll,
    ensure,
    freshName,
    fromArguments,
    processorTime,
    settings,
    waitUntil,
} from './common.mjs';

const ERAS = [{ name: 'legacy' }, { name: 'modern' }];

/** The Inspector's exit codes. */
const OK = 0;
const TOOL_ERROR = 5;

const server = fromArguments();

/** Returns the program of the Inspector's package. */
function program() {
    const { resolve } = createRequire(import.meta.url);
    const manifest = resolve('@modelcontextprotocol/inspector/package.json');
    return join(dirname(manifest), JSON.parse(readFileSync(manifest)).bin['mcp-inspector']);
}

/** The file of the Inspector's settings, which name the server. */
const directory = mkdtempSync(join(tmpdir(), 'inspector-'));
const config = join(directory, 'config.json');

function configure() {
    const [command, ...args] = server.command;
    const http = { type: 'streamable-http', url: server.url };
    const palisade = server.url ? http : { command, args, env: settings() };
    writeFileSync(config, JSON.stringify({ mcpServers: { palisade } }));
}

function command(era, more) {
    const source = ['--cli', '--config', config, '--server', 'palisade'];
    return [program(), ...source, '--protocol-era', era.name, '--format', 'json', ...more];
}

/** Without these variables the Inspector looks for a key ring, and reports that there is none. */
const ENVIRONMENT = { ...process.env, HOME: directory, MCP_INSPECTOR_SECRET_STORE: 'memory' };

/** Runs the Inspector until it exits, and returns its exit code and its outputs. */
function run(era, ...more) {
    return new Promise(ended => {
        const options = { env: ENVIRONMENT, timeout: PATIENCE };
        const finish = (_, stdout, stderr) => ended({ code: child.exitCode, stdout, stderr });
        const child = execFile(process.execPath, command(era, more), options, finish);
        child.stdin.end();
    });
}

function call(era, tool, args = {}) {
    const json = JSON.stringify(args);
    return run(era, '--method', 'tools/call', '--tool-name', tool, '--tool-args-json', json);
}

/** Starts a call without waiting for its end. */
function begin(era, tool) {
    const words = command(era, ['--method', 'tools/call', '--tool-name', tool]);
    return spawn(process.execPath, words, { env: ENVIRONMENT, stdio: 'ignore' });
}

/** Returns the server's process, if it runs. A server over stdio ends with its client. */
function serving() {
    if (server.known) return server.known;
    const isServer = entry => {
        const words = words_of(entry);
        return words[0] === server.command[0] && words.includes(server.workspace);
    };
    return readdirSync('/proc').filter(entry => /^[0-9]+$/.test(entry)).find(isServer);
}

/** Returns the processor time of the server so far, in milliseconds. */
function busy() {
    return processorTime(serving());
}

/** Waits until the server is idle. */
async function waitUntilIdle() {
    let before;
    const deadline = Date.now() + PATIENCE;
    do {
        ensure(Date.now() < deadline, 'the guest computes on');
        before = busy();
        await sleep(QUIET);
    } while (busy() - before > QUIET / 10);
}

/** Returns the command line of a process; empty if it has ended. */
function words_of(entry) {
    try {
        return readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0');
    } catch {
        return [];
    }
}

/** Returns the printed result. */
function result({ code, stdout, stderr }, expected) {
    ensure(code === expected, `it exits with ${code}, not ${expected}: ${stdout}${stderr}`);
    return JSON.parse(stdout.split('\n')[0]).result;
}

const PROMISES = {
    async list_passes_strict_validation(era) {
        const listing = await run(era, '--method', 'tools/list', '--strict');
        const names = result(listing, OK).tools.map(tool => tool.name);
        const expected = ['good', 'promise', 'read_file', 'write_file'];
        ensure(expected.every(name => names.includes(name)), names);
        const faults = listing.stderr.match(/^(\d+) errors?, (\d+) warnings?/m);
        ensure(faults === null || faults[1] === '0', listing.stderr);
        // Warnings are only counted.
        return faults === null ? '' : faults[0];
    },

    async call_is_answered(era) {
        const { content } = result(await call(era, 'good'), OK);
        ensure(content.length === 1 && content[0].text === 'good', content);
        writeFileSync(join(server.workspace, 'notes.txt'), 'Buy milk.\n');
        const read = result(await call(era, 'read_file', { path: 'notes.txt' }), OK);
        ensure(read.content[0].text === 'Buy milk.\n', read);
    },

    async structured_output_matches_its_schema(era) {
        const kept = result(await call(era, 'promise', { give: 'right' }), OK);
        ensure(JSON.stringify(kept.structuredContent) === '{"n":1}', kept);
        const broken = result(await call(era, 'promise', { give: 'wrong' }), TOOL_ERROR);
        ensure(broken.isError && broken.structuredContent === undefined, broken);
    },

    async tool_failure_is_reported(era) {
        const failed = result(await call(era, 'fail', { with: 'not-found' }), TOOL_ERROR);
        ensure(failed.isError && failed.content[0].text.includes('no such thing'), failed);
    },

    async unconfirmable_call_does_not_run(era) {
        const path = freshName(server.workspace, `unasked-${era.name}.txt`);
        const answer = await call(era, 'write_file', { path, content: 'written' });
        const refused = result(answer, TOOL_ERROR);
        ensure(refused._meta['dev.palisade/error'].class === 'permission_denied', refused);
        const text = refused.content[0].text;
        ensure(text.includes('ask the user') && !text.includes('--allow'), refused);
        ensure(!existsSync(join(server.workspace, path)), 'it was done');
    },

    async loop_ends_with_its_caller(era) {
        const idle = busy();
        const caller = begin(era, 'compute');
        await waitUntil(() => busy() > idle + 500, 'the computation of the loop');
        caller.kill('SIGINT');
        await waitUntil(() => server.known || serving() === undefined, 'the end of the server');
        // Over HTTP a client of an earlier revision may reconnect within five seconds.
        await waitUntilIdle();
        const { content } = result(await call(era, 'good'), OK);
        ensure(content[0].text === 'good', content);
    },
};

configure();
await checkAll(PROMISES, ERAS, (promise, era) => promise(era));
rmSync(directory, { recursive: true, force: true });
