// The promises of `palisade serve` to the agent frameworks in JavaScript; each client runs them.
//
//     node client.mjs --workspace DIR [--process PID --url URL | COMMAND…]
//
// The promises, the stand-in for the model and the output are those of the clients in Python
// (`promises.py`).

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PATIENCE, ensure, freshName, fromArguments } from './common.mjs';

/** The number of calls at once, and what they read. */
const MANY = 50;
const FILES = Array.from({ length: MANY }, (_, number) => ({
    name: `note-${number}.txt`,
    content: `the note ${number} of ${MANY}`,
}));
/** The beginning of the image of `test_image_content`, in base64. */
const IMAGE = 'iVBORw0KGgo';
/** The types of a part that a model sees as an image. */
const IMAGES = ['image', 'image_url', 'input_image'];
/** The shipped tools whose listing is checked, and an argument that each requires. */
const TOOLS = { calculate: 'expression', read_file: 'path', write_file: 'path' };
/** The formats that providers know. */
const FORMATS = 'date date-time duration email hostname ipv4 ipv6 time uuid'.split(' ');

export const server = fromArguments();

/** Returns the command of the server over stdio, with an environment that has its settings. */
export function startCommand() {
    const [command, ...args] = server.command;
    const isKept = ([name]) => name.startsWith('PALISADE_') || name === 'HOME' || name === 'PATH';
    return { command, args, env: Object.fromEntries(Object.entries(process.env).filter(isKept)) };
}

/** The person at the client, with the messages of all forms shown. */
class User {
    questions = [];

    constructor(accepts) {
        this.accepts = accepts;
    }

    answer(message) {
        this.questions.push(message);
        const content = { decision: 'allow_once' };
        return this.accepts ? { action: 'accept', content } : { action: 'decline' };
    }
}

/** A client with its user, for one promise. */
class Trial {
    constructor(client, user, ask) {
        Object.assign(this, { client, user, ask, prefix: client.prefix ?? '' });
    }

    /** Returns what the model was sent in the last turn. */
    async said(...turns) {
        const named = ([name, args]) => ({ name: this.prefix + name, arguments: args });
        const words = await this.ask(JSON.stringify({ turns: turns.map(turn => turn.map(named)) }));
        try {
            return JSON.parse(words);
        } catch {
            return ensure(false, `the last words are not the model's: ${words}`);
        }
    }

    /** Returns the results of calls of one turn as the model was shown them, in their order. */
    async results(...calls) {
        const { messages } = await this.said(calls);
        const shown = new Map();
        for (const message of messages) {
            const id = message.tool_call_id ?? message.call_id;
            const content = message.content ?? message.output;
            if (id === undefined || content === undefined) continue;
            ensure(!shown.has(id), `two results of one call: ${JSON.stringify(messages)}`);
            shown.set(id, typeof content === 'string' ? content : JSON.stringify(content));
        }
        const ids = calls.map((_, number) => `call_${number}`);
        const lost = ids.filter(id => !shown.has(id));
        ensure(lost.length === 0, `no result of ${lost}: ${JSON.stringify(messages)}`);
        return ids.map(id => shown.get(id));
    }
}

const PROMISES = {
    async lists_tools_with_portable_schemas(trial) {
        const sent = (await trial.said()).tools.map(tool => tool.function ?? tool);
        const tools = new Map(sent.map(tool => [tool.name, tool.parameters]));
        for (const [name, argument] of Object.entries(TOOLS)) {
            const parameters = tools.get(trial.prefix + name);
            ensure(parameters, `${name} is missing: ${[...tools.keys()]}`);
            ensure(argument in parameters.properties, parameters);
            ensure(parameters.required.includes(argument), parameters);
        }
        for (const [name, parameters] of tools) {
            const [found] = unportable(parameters);
            ensure(!found, `${name} has ${found}: ${JSON.stringify(parameters)}`);
        }
    },

    async reads_a_file(trial) {
        writeFileSync(join(server.workspace, 'milk.txt'), 'Buy milk.\n');
        const [shown] = await trial.results(['read_file', { path: 'milk.txt' }]);
        ensure(shown.includes('Buy milk.'), shown);
    },

    async takes_null_for_an_absent_argument(trial) {
        writeFileSync(join(server.workspace, 'milk.txt'), 'Buy milk.\n');
        const args = { path: 'milk.txt', start_line: null, end_line: null, limit: null };
        const [shown] = await trial.results(['read_file', args]);
        ensure(shown.includes('Buy milk.'), shown);
    },

    async shows_the_error_of_a_tool(trial) {
        const [shown] = await trial.results(['fail', { with: 'not-found' }]);
        ensure(shown.includes('no such thing'), shown);
    },

    async shows_the_error_of_an_argument(trial) {
        const [shown] = await trial.results(['read_file', { path: 3 }]);
        ensure(shown.includes('path') && shown.includes('string'), shown);
    },

    async shows_a_structured_result(trial) {
        const [shown] = await trial.results(['promise', { give: 'right' }]);
        ensure(shown.replaceAll(/[\\ ]/g, '').includes('"n":1'), shown);
    },

    async shows_an_image(trial) {
        const { messages } = await trial.said([['test_image_content', {}]]);
        const shown = [...images(messages)].map(part => JSON.stringify(part));
        const sent = JSON.stringify(messages);
        ensure(shown.some(part => part.includes(IMAGE)), `no image: ${sent}`);
    },

    async writes_only_what_its_user_accepts(trial) {
        const path = freshName(server.workspace, 'accepted.txt');
        const [shown] = await trial.results(['write_file', { path, content: 'written' }]);
        const { questions } = trial.user;
        ensure(questions.length === 1 && questions[0].includes(path), `${questions}; ${shown}`);
        ensure(readFileSync(join(server.workspace, path), 'utf8') === 'written', shown);
    },

    async writes_nothing_that_its_user_declines(trial) {
        trial.user.accepts = false;
        const path = freshName(server.workspace, 'declined.txt');
        const [shown] = await trial.results(['write_file', { path, content: 'written' }]);
        ensure(!existsSync(join(server.workspace, path)), `written all the same: ${shown}`);
        ensure(trial.user.questions.length === 1, trial.user.questions);
    },

    async loses_none_of_fifty_calls_at_once(trial) {
        for (const { name, content } of FILES) writeFileSync(join(server.workspace, name), content);
        const calls = FILES.map(({ name }) => ['read_file', { path: name }]);
        const shown = await trial.results(...calls);
        FILES.forEach(({ name, content }, at) => {
            ensure(shown[at].includes(content), `${name}: ${shown[at]}`);
        });
    },
};

/** Yields the parts of messages that a model sees as an image. */
function* images(sent) {
    if (typeof sent !== 'object' || sent === null) return;
    if (IMAGES.includes(sent.type)) yield sent;
    for (const inner of Object.values(sent)) yield* images(inner);
}

/** Yields the keywords of a schema that the one or other provider refuses. */
function* unportable(schema) {
    if (typeof schema !== 'object' || schema === null) return;
    if (Array.isArray(schema.type)) yield `several types, ${schema.type}`;
    const { format } = schema;
    if (typeof format === 'string' && !FORMATS.includes(format)) yield `the format ${format}`;
    for (const inner of Object.values(schema)) yield* unportable(inner);
}

/** Checks a promise with its own connection. */
async function check(promise, client) {
    const user = new User(true);
    const { ask, close } = await client.agent(user);
    try {
        const late = sleep(2 * PATIENCE, undefined, { ref: false });
        const kept = promise(new Trial(client, user, ask)).then(() => true);
        ensure(await Promise.race([kept, late]), `not within ${2 * PATIENCE} ms`);
    } finally {
        await close();
    }
}

/**
 * Checks all promises, and prints a line for each. A client has `agent`, which connects to the
 * server and returns `ask`, which passes a prompt to an agent with the server's tools and returns
 * its last words, and `close`. It may have a `prefix`, which it puts before the name of each tool,
 * and `faults`: the promises that this version of the framework breaks, each with the beginning of
 * the failure and the reason.
 */
export async function checkAll(client) {
    let failed = 0;
    // The frameworks log each failed call.
    console.warn = console.error = () => {};
    for (const [name, promise] of Object.entries(PROMISES)) {
        const [failure, fault] = client.faults?.[name] ?? [];
        const why = await check(promise, client).then(
            () => undefined,
            error => `${error.message ?? error}`.slice(0, 2000),
        );
        if (fault === undefined ? why === undefined : why?.startsWith(failure)) {
            console.log(fault === undefined ? `ok ${name}` : `fault ${name}: ${fault}`);
        } else {
            failed += 1;
            const kept = `it is kept, and still listed as a fault: ${fault}`;
            console.log(`failed ${name}: ${why ?? kept}`);
        }
    }
    process.exit(failed ? 1 : 0);
}
