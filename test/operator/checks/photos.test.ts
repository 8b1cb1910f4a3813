import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { checkPhotos } from '../../../src/operator/checks/servers.ts';
import { said } from '../../support/checks/facts.ts';
import { closedPort } from '../../support/tcp-server.ts';

const NOW_MS = Date.parse('2026-09-01T12:00:00Z');
const TERMS = { region: 'us-east-1', bucket: 'photos', accessKeyId: 'AKIA', secretAccessKey: 'secret' };

async function answering(status: number) {
  const asked: string[] = [];
  const server = createServer(({ method, url }, response) => {
    asked.push(`${method} ${url}`);
    response.writeHead(status).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { asked, finding: await look(endpoint) };
}

const look = (endpoint: string) => said(checkPhotos({ ...TERMS, endpoint }, NOW_MS));

test.each([200, 404])('a store that accepts the signature is right: %s', async (status) => {
  const { asked, finding } = await answering(status);
  expect(finding).toMatchObject({ ok: true, do: null });
  expect(asked).toEqual([expect.stringMatching(/^HEAD \/photos\/fuel-doctor\?X-Amz-/)]);
});

test.each([
  [403, 'refuses the signature', 'FUEL_IMAGES_SECRET_ACCESS_KEY'],
  [401, 'refuses the signature', 'FUEL_IMAGES_SECRET_ACCESS_KEY'],
  [301, 'answers with 301', 'FUEL_IMAGES_REGION'],
  [500, 'answers with 500', 'FUEL_IMAGES_ENDPOINT'],
])('a store that answers with %s is wrong', async (status, detail, remedy) => {
  const { finding } = await answering(status);
  expect(finding).toMatchObject({
    ok: false,
    detail: expect.stringContaining(detail),
    do: expect.stringContaining(remedy),
  });
});

test('a store that this machine cannot reach is not checked, because the service never connects to it; nor is the sample store', async () => {
  const endpoint = `http://127.0.0.1:${await closedPort()}`;
  const { ok, detail } = await look(endpoint);
  expect([ok, detail]).toEqual([true, expect.stringMatching(/not checked.*browsers.*ECONNREFUSED/)]);
  expect(await said(checkPhotos(undefined, NOW_MS))).toMatchObject({ ok: true });
});
