import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../../src/base/listen.ts';
import { sendWebhook } from '../../../src/customers/mock/send-mock.ts';

/** The reactions of receivers to a webhook, and the expectations that each meets. */
const MET = {
  'answers 200': ['accepted', 'accepted or 503'],
  'answers 204': ['accepted', 'accepted or 503'],
  'answers 302': ['refused'],
  'answers 401': ['refused'],
  'answers 503': ['accepted or 503', 'refused'],
  'ends the connection without an answer': [],
} as const;

test.each(Object.entries(MET))(
  'a receiver that %s meets the expectations %j, and no others',
  async (does, met) => {
    const status = Number(/\d+/.exec(does)?.[0]);
    const server = createServer((request, response) => {
      if (Number.isNaN(status)) request.socket.destroy();
      else response.writeHead(status).end();
    });
    onTestFinished(() => void server.close());
    const { port } = await listen(server, { host: '127.0.0.1', port: 0 });
    const request = { url: `http://127.0.0.1:${port}/`, headers: {}, body: '{"id":"1","data":{}}' };
    const all = ['accepted', 'accepted or 503', 'refused'] as const;
    const sent = await Promise.all(all.map((expected) => sendWebhook(request, expected)));
    const asExpected = sent.filter(({ as_expected }) => as_expected);
    expect(asExpected.map(({ expected }) => expected)).toEqual(met);
  },
);
