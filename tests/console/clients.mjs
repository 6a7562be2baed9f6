// Scenarios with MCP clients, whose sessions are sessions like any other.

import { accessible, check, HOSTILE, live, options, sound, until } from './place.mjs';

const STATEFUL = '2025-06-18';
const STATELESS = '2026-07-28';
const META = 'io.modelcontextprotocol';

export const clients = (place) => ({
  async mcp_client_has_a_session_with_a_page() {
    if (!options.client) return 'skipped: there is no token of a client';
    let key = null;
    for (const [revision, call] of Object.entries({
      [STATEFUL]: stateful,
      [STATELESS]: stateless,
    })) {
      await call(place, `name-${HOSTILE}`);
      key = await newest(place, key);
      const page = await place.window();
      await page.goto(`${options.url}/#/call/${key}`);
      await live(page);
      await page.locator('.call-head dd', { hasText: /^name-.* token-/ }).waitFor();
      await sound(page, `mcp-call-${revision}`);
      await page.goto(`${options.url}/#/history`);
      await page.locator('tbody tr').first().locator('.source', { hasText: 'name-' }).waitFor();
      await page.goto(`${options.url}/#/call/${key}`);
      await page.locator('.call-head a', { hasText: /^mcp-/ }).click();
      await page.getByRole('heading', { name: /^mcp-/ }).waitFor();
      await page.locator('dd', { hasText: /^name-/ }).waitFor();
      await page.getByText('MCP over HTTP').waitFor();
      await page.getByText(revision, { exact: true }).waitFor();
      await page.locator('tbody tr', { hasText: 'read_file' }).waitFor();
      await sound(page, `mcp-session-${revision}`);
      await accessible(page, 'the session of an MCP client');
      await page.getByRole('button', { name: /^Close/ }).click();
      await page.getByRole('button', { name: 'Close the session' }).click();
      await page.locator('.badge.state', { hasText: 'closed' }).first().waitFor();
      await page.goto(`${options.url}/#/sessions`);
      await page.locator('tbody tr').first().getByText('closed').waitFor();
      await sound(page, 'mcp-sessions');
    }
    return '';
  },
});

const CALL = { name: 'read_file', arguments: { path: 'no-such-file' } };

async function stateful(place, name) {
  const clientInfo = { name, version: '1' };
  const params = { protocolVersion: STATEFUL, capabilities: {}, clientInfo };
  const { session } = await place.mcp({ id: 1, method: 'initialize', params });
  const headers = { 'mcp-session-id': session, 'mcp-protocol-version': STATEFUL };
  await place.mcp({ method: 'notifications/initialized' }, headers);
  const called = await place.mcp({ id: 2, method: 'tools/call', params: CALL }, headers);
  check(called.status === 200, `the call is made: ${called.status} ${called.text}`);
}

async function stateless(place, name) {
  const _meta = {
    [`${META}/protocolVersion`]: STATELESS,
    [`${META}/clientCapabilities`]: {},
    [`${META}/clientInfo`]: { name, version: '1' },
  };
  const headers = {
    'mcp-protocol-version': STATELESS,
    'mcp-method': 'tools/call',
    'mcp-name': CALL.name,
  };
  const message = { id: 1, method: 'tools/call', params: { ...CALL, _meta } };
  const called = await place.mcp(message, headers);
  check(called.status === 200, `the call is made: ${called.status} ${called.text}`);
}

/** The number of the call after this one, when the journal has it in a session of MCP. */
async function newest(place, before) {
  let call;
  await until(async () => {
    const { body } = await place.api('GET', '/calls?limit=1');
    [call] = body.items;
    const isIts = call?.session_id?.startsWith('mcp-') && call.id !== before;
    return isIts && call.state === 'failed';
  }, 'the call is in the history');
  return call.id;
}
