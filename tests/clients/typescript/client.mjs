// Holds `palisade serve` against the official TypeScript client; `cargo xtask clients` runs it.
//
//     node client.mjs --workspace DIR [--process PID --url URL | COMMAND…]
//
// What is tried, what is printed and what the server needs is the same as for the Python client (`../python/client.py`).

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { PATIENCE, QUIET, fresh, need, processorTime, settings, told, tryAll, until } from './common.mjs';

const ERAS = [
    { name: 'legacy', mode: 'legacy', version: '2025-11-25' },
    { name: 'modern', mode: 'auto', version: '2026-07-28' },
];

/** The tools of the guests, and some of the shipped ones. */
const TOOLS = ['better', 'calculate', 'compute', 'fail', 'good', 'promise', 'read_file', 'test_tool_with_progress', 'write_file'];

/** How long the server waits for the answer to a question, in milliseconds: `confirm.timeout` of its settings. */
const QUESTION = 2_000;
/** The code of an answer to a request that cannot be meant. */
const INVALID_PARAMS = -32602;

const server = told();

function transport() {
    if (server.url) return new StreamableHTTPClientTransport(new URL(server.url));
    const [command, ...args] = server.command;
    const { HOME, PATH } = process.env;
    return new StdioClientTransport({ command, args, env: { HOME, PATH, ...settings() } });
}

/** One connection, all that goes over it, and what the person in front of the client says. */
class Tried {
    sent = [];
    received = [];
    questions = [];
    said = [];
    person = decline;

    constructor(era) {
        Object.assign(this, { era, transport: transport() });
        const send = this.transport.send.bind(this.transport);
        this.transport.send = (message, options) => {
            this.sent.push(message);
            return send(message, options);
        };
        // The library passes on to whoever listened before.
        this.transport.onmessage = message => this.received.push(message);
    }

    async connect(more = {}) {
        const options = { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: this.era.mode }, ...more };
        const client = new Client({ name: 'suite', version: '1' }, options);
        client.setRequestHandler('elicitation/create', request => {
            this.questions.push(request.params);
            return this.person();
        });
        client.setNotificationHandler('notifications/message', message => void this.said.push(message.params.data));
        await client.connect(this.transport, { timeout: PATIENCE });
        this.client = client;
        const version = client.getNegotiatedProtocolVersion();
        need(version === this.era.version, `the server speaks ${version}`);
        return client;
    }

    /** A client of the current revision says with each request what it wants to hear. */
    call(name, args = {}, options = {}) {
        const wanted = this.era.name === 'modern' ? { _meta: { 'io.modelcontextprotocol/logLevel': 'info' } } : {};
        return this.client.callTool({ name, arguments: args, ...wanted }, { timeout: PATIENCE, ...options });
    }

    /** The request that has last called this tool. */
    request(tool) {
        return this.sent.findLast(sent => sent.method === 'tools/call' && sent.params.name === tool);
    }

    /** The name of a file for what the person says. */
    file(outcome) {
        return fresh(server.workspace, `${outcome}-${this.era.name}.txt`);
    }

    /** What the server has computed so far, in milliseconds. */
    busy() {
        return processorTime(server.known ?? this.transport.pid);
    }
}

function written(name) {
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
    need(result.isError === true, result);
    return result._meta['dev.palisade/error'].class;
}

/** The error that an answer is. */
async function refused(answer) {
    const result = await answer.catch(error => error);
    need(result instanceof Error, `it is answered: ${JSON.stringify(result)}`);
    return result;
}

const PROMISES = {
    async the_list_has_every_tool_in_order_and_says_what_it_may_do({ client }) {
        const { tools } = await client.listTools();
        const names = tools.map(tool => tool.name);
        need(names.join() === names.toSorted().join(), `not in order: ${names}`);
        need(TOOLS.every(tool => names.includes(tool)), `missing in ${names}`);
        const hints = Object.fromEntries(tools.map(tool => [tool.name, tool.annotations]));
        need(hints.read_file.readOnlyHint === true, hints.read_file);
        need(hints.write_file.destructiveHint === true, hints.write_file);
    },

    async a_call_is_answered(tried) {
        let result = await tried.call('good');
        need(!result.isError && text(result) === 'good', result);
        writeFileSync(join(server.workspace, 'notes.txt'), 'Buy milk.\n');
        result = await tried.call('read_file', { path: 'notes.txt' });
        need(!result.isError && text(result) === 'Buy milk.\n', result);
    },

    async structured_output_is_what_its_schema_promises(tried) {
        const { tools } = await tried.client.listTools();
        const promise = tools.find(tool => tool.name === 'promise');
        need(promise.outputSchema.required.join() === 'n', promise);
        let result = await tried.call('promise', { give: 'right' });
        need(JSON.stringify(result.structuredContent) === '{"n":1}', result);
        result = await tried.call('promise', { give: 'wrong' });
        need(result.isError && result.structuredContent === undefined, result);
    },

    async a_failure_is_the_tools_and_bad_arguments_are_named(tried) {
        let result = await tried.call('fail', { with: 'not-found' });
        need(result.isError && text(result).includes('no such thing'), result);
        result = await tried.call('read_file', { path: 3 });
        need(failure(result) === 'validation_error' && text(result).includes('path'), result);
        const error = await refused(tried.call('surely_not'));
        need(error.code === INVALID_PARAMS, `${error}`);
    },

    async progress_is_told_before_the_answer(tried) {
        const steps = [];
        const tool = 'test_tool_with_progress';
        const result = await tried.call(tool, {}, { onprogress: step => void steps.push([step.progress, step.total]) });
        need(!result.isError, result);
        // The library loses a step that it reads together with the answer, so that the last one is looked for below it.
        need(JSON.stringify(steps).startsWith('[[0,100],[50,100]'), steps);
        const { id, params } = tried.request(tool);
        const token = params._meta.progressToken;
        const isStep = message => message.method === 'notifications/progress' && message.params.progressToken === token;
        const ofCall = tried.received.filter(message => message.id === id || isStep(message));
        const told = ofCall.map(message => message.params?.progress ?? 'answer');
        need(told.join() === '0,50,100,answer', told);
    },

    async an_endless_loop_ends_when_it_is_cancelled_and_nothing_is_sent_after(tried) {
        const stop = new AbortController();
        const cancelled = refused(tried.call('compute', {}, { signal: stop.signal }));
        await until(() => `${tried.said}`.includes('started'), 'the beginning of the loop');
        const idle = tried.busy();
        await until(() => tried.busy() > idle + 100, 'the computing of the loop');
        const before = tried.received.length;
        stop.abort();
        await cancelled;
        const result = await tried.call('good');
        need(text(result) === 'good', result);
        await sleep(QUIET);
        const busy = tried.busy();
        await sleep(QUIET);
        need(tried.busy() - busy < QUIET / 10, 'the guest computes on');
        const { id } = tried.request('compute');
        // The library asks for the list by itself, too.
        const asked = tried.sent.filter(message => 'method' in message && message.id > id).map(message => message.id);
        const after = tried.received.slice(before).map(message => message.id ?? message);
        const shown = JSON.stringify(after);
        need(shown === JSON.stringify(asked), `after request ${id} was cancelled ${asked} were asked, and there came ${shown}`);
    },

    async what_is_accepted_is_done_after_a_question_that_names_it(tried) {
        tried.person = accept;
        const path = tried.file('accepted');
        const result = await tried.call('write_file', { path, content: 'written' });
        need(!result.isError && written(path) === 'written', result);
        need(tried.questions.length === 1 && tried.questions[0].message.includes(path), tried.questions);
    },

    async what_is_declined_is_not_done(tried) {
        tried.person = decline;
        const path = tried.file('declined');
        const result = await tried.call('write_file', { path, content: 'written' });
        need(failure(result) === 'user_denied' && written(path) === undefined, result);
        need(tried.questions.length === 1, tried.questions);
    },

    async what_is_ignored_is_not_done(tried) {
        tried.person = ignore;
        const path = tried.file('ignored');
        const args = { path, content: 'written' };
        if (tried.era.name === 'modern') {
            await anAnswerThatComesTooLateCountsForNothing(tried, args);
        } else {
            const begun = Date.now();
            const result = await tried.call('write_file', args);
            need(failure(result) === 'confirmation_timeout', result);
            need(Date.now() - begun >= QUESTION, 'the question stood for less than its time');
            need(tried.questions.length === 1, tried.questions);
        }
        need(text(await tried.call('good')) === 'good', 'nothing else is answered');
        need(written(path) === undefined, 'it was done');
    },
};

/** Here nobody waits but the client: what is ignored is a call that is not made again, or too late. */
async function anAnswerThatComesTooLateCountsForNothing(tried, args) {
    const call = { name: 'write_file', arguments: args };
    const asked = await tried.client.callTool(call, { timeout: PATIENCE, allowInputRequired: true });
    need(asked.resultType === 'input_required', asked);
    await sleep(QUESTION + QUIET);
    const { requestState } = asked;
    const inputResponses = Object.fromEntries(Object.keys(asked.inputRequests).map(name => [name, accept()]));
    const late = tried.client.request({ method: 'tools/call', params: { ...call, requestState, inputResponses } }, { timeout: PATIENCE });
    const error = await refused(late);
    need(error.code === INVALID_PARAMS && error.message.includes('requestState'), `${error}`);
}

/** Each promise has a connection of its own. */
async function keep(promise, era) {
    const tried = new Tried(era);
    // By hand, where it matters when an answer comes.
    const more = promise.name === 'what_is_ignored_is_not_done' ? { inputRequired: { autoFulfill: false } } : {};
    try {
        await tried.connect(more);
        await promise(tried);
    } finally {
        await tried.client?.close();
    }
}

await tryAll(PROMISES, ERAS, keep);
