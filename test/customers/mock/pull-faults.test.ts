import { createServer, type RequestListener } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { listen } from '../../../src/base/listen.ts';
import { type Fault, failing } from '../../../src/customers/mock/pull-faults.ts';
import { expectDocumentedAnswer } from '../../support/openapi/validate.ts';

const api: RequestListener = (_, response) => response.writeHead(200, { 'Content-Length': 6 }).end('a page');

/** Returns the answers to a client that asks once for each fault, and once more. */
async function ask(...faults: Fault[]) {
  const server = createServer(failing(api, faults));
  onTestFinished(() => void server.close());
  const { port } = await listen(server, { host: '127.0.0.1', port: 0 });
  const answers: (Response | Error)[] = [];
  for (let left = faults.length; left >= 0; left--) {
    const answer = await fetch(`http://127.0.0.1:${port}/`).catch((error: Error) => error);
    answers.push(answer);
  }
  return answers;
}

it.each([
  [500, 500, null],
  [503, 503, '5'],
  [408, 408, null],
  [429, 429, '2'],
  ['IP_NOT_ALLOWED', 403, null],
  ['NO_ACTIVE_CHARGING_PROFILE', 403, null],
] as const)(
  'a pull request that fails with %s gets %d as the API answers it',
  async (fault, status, wait) => {
    const [failed, next] = await ask(fault);
    if (!(failed instanceof Response && next instanceof Response)) throw new Error('no answer came');
    const { connection: _, ...headers } = Object.fromEntries(failed.headers);
    expectDocumentedAnswer({ status: failed.status, headers, text: await failed.text() });
    expect([failed.status, failed.headers.get('Retry-After')]).toEqual([status, wait]);
    expect(await next.text()).toBe('a page');
  },
);

it('a pull request fails without an answer, in the middle of a page, or with a page of a proxy', async () => {
  const [reset, cut, html, next] = await ask('reset', 'cut', 'html');
  if (!(cut instanceof Response && html instanceof Response && next instanceof Response))
    throw new Error('no answer came');
  expect(reset).toBeInstanceOf(TypeError);
  expect(cut.status).toBe(200);
  await expect(cut.text()).rejects.toThrow('terminated');
  expect([html.status, html.headers.get('Content-Type')]).toEqual([502, 'text/html']);
  expect(await next.text()).toBe('a page');
});
