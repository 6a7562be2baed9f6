// Tests `palisade serve` with Mastra's agents; `cargo xtask clients` runs it.

import { Agent } from '@mastra/core/agent';
import { MCPClient } from '@mastra/mcp';
import { checkAll, server, startCommand } from './promises.mjs';

const model = {
    id: 'stand-in/gpt-5',
    url: process.env.OPENAI_BASE_URL,
    apiKey: process.env.OPENAI_API_KEY,
};

/** The promises that this version breaks. */
const faults = { shows_an_image: ['no image', 'the model is given the image as text, in JSON'] };

let connections = 0;

async function agent(user) {
    const place = server.url ? { url: new URL(server.url) } : startCommand();
    const inputRequests = async ({ params }) => user.answer(params.message);
    connections += 1;
    const client = new MCPClient({
        id: `connection-${connections}`,
        servers: { palisade: { ...place, inputRequests } },
    });
    const tools = await client.listTools();
    const agent = new Agent({ id: 'agent', name: 'agent', instructions: 'Help.', model, tools });
    const ask = async prompt => (await agent.generate(prompt, { maxSteps: 5 })).text;
    return { ask, close: () => client.disconnect() };
}

await checkAll({ prefix: 'palisade_', faults, agent });
