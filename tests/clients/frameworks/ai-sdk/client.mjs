// Tests `palisade serve` with the agents of Vercel's AI SDK; `cargo xtask clients` runs it.
//
// The model is used by the responses interface, as the SDK does by default.

import { ElicitationRequestSchema, createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport as StdioTransport } from '@ai-sdk/mcp/mcp-stdio';
import { openai } from '@ai-sdk/openai';
import { generateText, isStepCount } from 'ai';
import { checkAll, server, startCommand } from './promises.mjs';

function transport() {
    return server.url ? { type: 'http', url: server.url } : new StdioTransport(startCommand());
}

async function agent(user) {
    const capabilities = { elicitation: {} };
    const client = await createMCPClient({ transport: transport(), capabilities });
    client.onElicitationRequest(ElicitationRequestSchema, request =>
        user.answer(request.params.message),
    );
    const tools = await client.tools();
    const model = openai('gpt-5');
    const ask = async prompt =>
        (await generateText({ model, tools, prompt, stopWhen: isStepCount(5) })).text;
    return { ask, close: () => client.close() };
}

await checkAll({ agent });
