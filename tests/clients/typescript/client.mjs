// Tests `palisade serve` with the official TypeScript client; `cargo xtask clients` runs it.
//
//     node client.mjs --workspace DIR [--process PID --url URL | COMMAND…]
//
// The checks, the output and the requirements of the server are those of the Python client
// (`../python/client.py`).

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
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

const ERAS = [
    { name: 'legacy', mode: 'legacy', version: '2025-11-25' },
    { name: 'modern', mode: 'auto', version: '2026-07-28' },
];

/** The tools of the guests, and some of the shipped ones. */
const TOOLS = [
    'better',
    'calculate',
    'compute',
    'fail',
    'good',
    'promise',
    'read_file',
    'test_tool_with_progress',
    'write_file',
];

/**
 * The server's timeout for the answer to a question, in milliseconds: `confirm.timeout` of its
 * settings.
 */
const QUESTION = 2_000;
/** The error code of a request with invalid parameters. */
const INVALID_PARAMS = -32602;

const server = fromArguments();

function transport() {
    if (server.url) return new StreamableHTTPClientTransport(new URL(server.url));
    const [command, ...args] = server.command;
    const { HOME, PATH } = process.env;
    return new StdioClientTransport({ command, args, env: { HOME, PATH, ...settings() } });
}

/** A connection with its message log and its user. */
class Connection {
    sent = [];
    received = [];
    questions = [];
    logMessages = [];
    user = decline;

    constructor(era) {
        Object.assign(this, { era, transport: transport() });
        const send = this.transport.send.bind(this.transport);
        this.transport.send = (message, options) => {
            this.sent.push(message);
            return send(message, options);
        };
        // The library also calls the handler that was set before it.
        this.transport.onmessage = message => this.received.push(message);
    }

    async connect(more = {}) {
        const capabilities = { elicitation: { form: {} } };
        const versionNegotiation = { mode: this.era.mode };
        const options = { capabilities, versionNegotiation, ...more };
        const client = new Client({ name: 'suite', version: '1' }, options);
        client.setRequestHandler('elicitation/create', request => {
            this.questions.push(request.params);
            return this.user();
        });
        client.setNotificationHandler('notifications/message', message => {
            this.logMessages.push(message.params.data);
        });
        await client.connect(this.transport, { timeout: PATIENCE });
        this.client = client;
        const version = client.getNegotiatedProtocolVersion();
        ensure(version === this.era.version, `the server speaks ${version}`);
        return client;
    }

    /** Calls a tool. In the current revision each request selects its log level. */
    call(name, args = {}, options = {}) {
        const level = { _meta: { 'io.modelcontextprotocol/logLevel': 'info' } };
        const params = { name, arguments: args, ...(this.era.name === 'modern' ? level : {}) };
        return this.client.callTool(params, { timeout: PATIENCE, ...options });
    }

    /** Returns the last request that called this tool. */
    request(tool) {
        const calls = this.sent.filter(sent => sent.method === 'tools/call');
        return calls.findLast(call => call.params.name === tool);
    }

    /** Returns the name of a new file for this answer of the user. */
    file(outcome) {
        return freshName(server.workspace, `${outcome}-${this.era.name}.txt`);
    }

    /** Returns the processor time of the server so far, in milliseconds. */
    busy() {
        return processorTime(server.known ?? this.transport.pid);
    }
}

function contents(name) {
    const file = join(server.workspace, name);
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

const accept = () => ({ action: 'accept', content: { decision: 'allow_once' } });
const decline = () => ({ action: 'decline' });
const ignore = async () => {
    await sleep(PATIENCE, undefined, { ref: false });
    return { action: 'cancel' };
};

function text(result) {
    return result.content.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('');
}

function failure(result) {
    ensure(result.isError === true, result);
    return result._meta['dev.palisade/error'].class;
}

/** Returns the error of a refused request. */
async function refused(answer) {
    const result = await answer.catch(error => error);
    ensure(result instanceof Error, `it is not refused: ${JSON.stringify(result)}`);
    return result;
}

const PROMISES = {
    async list_is_sorted_and_has_hints({ client }) {
        const { tools } = await client.listTools();
        const names = tools.map(tool => tool.name);
        ensure(names.join() === names.toSorted().join(), `not in order: ${names}`);
        ensure(TOOLS.every(tool => names.includes(tool)), `missing in ${names}`);
        const hints = Object.fromEntries(tools.map(tool => [tool.name, tool.annotations]));
        ensure(hints.read_file.readOnlyHint === true, hints.read_file);
        ensure(hints.write_file.destructiveHint === true, hints.write_file);
    },

    async call_is_answered(connection) {
        let result = await connection.call('good');
        ensure(!result.isError && text(result) === 'good', result);
        writeFileSync(join(server.workspace, 'notes.txt'), 'Buy milk.\n');
        result = await connection.call('read_file', { path: 'notes.txt' });
        ensure(!result.isError && text(result) === 'Buy milk.\n', result);
    },

    async structured_output_matches_its_schema(connection) {
        const { tools } = await connection.client.listTools();
        const promise = tools.find(tool => tool.name === 'promise');
        ensure(promise.outputSchema.required.join() === 'n', promise);
        let result = await connection.call('promise', { give: 'right' });
        ensure(JSON.stringify(result.structuredContent) === '{"n":1}', result);
        result = await connection.call('promise', { give: 'wrong' });
        ensure(result.isError && result.structuredContent === undefined, result);
    },

    async tool_failures_and_invalid_arguments_are_reported(connection) {
        let result = await connection.call('fail', { with: 'not-found' });
        ensure(result.isError && text(result).includes('no such thing'), result);
        result = await connection.call('read_file', { path: 3 });
        ensure(failure(result) === 'validation_error' && text(result).includes('path'), result);
        const error = await refused(connection.call('surely_not'));
        ensure(error.code === INVALID_PARAMS, `${error}`);
    },

    async progress_precedes_the_answer(connection) {
        const steps = [];
        const tool = 'test_tool_with_progress';
        const onprogress = step => void steps.push([step.progress, step.total]);
        const result = await connection.call(tool, {}, { onprogress });
        ensure(!result.isError, result);
        // The library loses a step that it reads together with the answer. Therefore the last step
        // is checked in the log below it.
        ensure(JSON.stringify(steps).startsWith('[[0,100],[50,100]'), steps);
        const { id, params } = connection.request(tool);
        const token = params._meta.progressToken;
        const isStep = message =>
            message.method === 'notifications/progress' && message.params.progressToken === token;
        const ofCall = connection.received.filter(message => message.id === id || isStep(message));
        const order = ofCall.map(message => message.params?.progress ?? 'answer');
        ensure(order.join() === '0,50,100,answer', order);
    },

    async cancelled_loop_ends_without_further_messages(connection) {
        const stop = new AbortController();
        const cancelled = refused(connection.call('compute', {}, { signal: stop.signal }));
        const hasStarted = () => `${connection.logMessages}`.includes('started');
        await waitUntil(hasStarted, 'the start of the loop');
        const idle = connection.busy();
        await waitUntil(() => connection.busy() > idle + 100, 'the computation of the loop');
        const before = connection.received.length;
        stop.abort();
        await cancelled;
        const result = await connection.call('good');
        ensure(text(result) === 'good', result);
        await sleep(QUIET);
        const busy = connection.busy();
        await sleep(QUIET);
        ensure(connection.busy() - busy < QUIET / 10, 'the guest computes on');
        const { id } = connection.request('compute');
        // The library also requests the list of tools by itself.
        const requests = connection.sent.filter(message => 'method' in message && message.id > id);
        const asked = JSON.stringify(requests.map(message => message.id));
        const messages = connection.received.slice(before);
        const after = JSON.stringify(messages.map(message => message.id ?? message));
        ensure(after === asked, `after the cancellation: requests ${asked}, messages ${after}`);
    },

    async accepted_call_runs_after_a_question_with_its_path(connection) {
        connection.user = accept;
        const path = connection.file('accepted');
        const result = await connection.call('write_file', { path, content: 'written' });
        ensure(!result.isError && contents(path) === 'written', result);
        const { questions } = connection;
        ensure(questions.length === 1 && questions[0].message.includes(path), questions);
    },

    async declined_call_does_not_run(connection) {
        connection.user = decline;
        const path = connection.file('declined');
        const result = await connection.call('write_file', { path, content: 'written' });
        ensure(failure(result) === 'user_denied' && contents(path) === undefined, result);
        ensure(connection.questions.length === 1, connection.questions);
    },

    async ignored_call_does_not_run(connection) {
        connection.user = ignore;
        const path = connection.file('ignored');
        const args = { path, content: 'written' };
        if (connection.era.name === 'modern') {
            await lateAnswerIsRefused(connection, args);
        } else {
            const begun = Date.now();
            const result = await connection.call('write_file', args);
            ensure(failure(result) === 'confirmation_timeout', result);
            ensure(Date.now() - begun >= QUESTION, 'the question stood for less than its time');
            ensure(connection.questions.length === 1, connection.questions);
        }
        ensure(text(await connection.call('good')) === 'good', 'nothing else is answered');
        ensure(contents(path) === undefined, 'it was done');
    },
};

/**
 * Repeats the call after the timeout of the question. In this revision the server does not wait:
 * the client repeats the call with the answer.
 */
async function lateAnswerIsRefused(connection, args) {
    const call = { name: 'write_file', arguments: args };
    const options = { timeout: PATIENCE, allowInputRequired: true };
    const asked = await connection.client.callTool(call, options);
    ensure(asked.resultType === 'input_required', asked);
    await sleep(QUESTION + QUIET);
    const { requestState } = asked;
    const answers = Object.keys(asked.inputRequests).map(name => [name, accept()]);
    const params = { ...call, requestState, inputResponses: Object.fromEntries(answers) };
    const late = { method: 'tools/call', params };
    const error = await refused(connection.client.request(late, { timeout: PATIENCE }));
    ensure(error.code === INVALID_PARAMS && error.message.includes('requestState'), `${error}`);
}

/** Checks a promise with its own connection. */
async function check(promise, era) {
    const connection = new Connection(era);
    // This promise depends on the time of the answer, so it answers by itself.
    const isManual = promise.name === 'ignored_call_does_not_run';
    const more = isManual ? { inputRequired: { autoFulfill: false } } : {};
    try {
        await connection.connect(more);
        await promise(connection);
    } finally {
        await connection.client?.close();
    }
}

await checkAll(PROMISES, ERAS, check);
