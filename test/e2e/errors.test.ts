import { beforeAll, describe, expect, it } from 'vitest';
import { openConnection } from '../support/service/raw-connection.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { openAccount, SEPTEMBER } from '../support/transactions/e2e-samples.ts';

const PATH = '/api/v1/integration/transactions';

describe('every answer', () => {
  const service = new ServiceProcess();
  let key = '';

  beforeAll(async () => {
    await service.start();
    ({ key } = await openAccount(service));
  });

  it('comes in order for pipelined requests, and a broken one does not harm the others', async () => {
    const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n\r\n`;
    const good = `${PATH}?${SEPTEMBER}`;
    const { socket, received } = await openConnection(service.port, { ca: service.ca });
    socket.write(request(good) + request('/nowhere') + request(good));
    setTimeout(() => socket.write('broken\r\n\r\n'), 300);
    const statuses = [...(await received).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
    expect(statuses).toEqual([200, 404, 200, 400]);
  });

  it('goes into the log once, with the key’s prefix and never its secret, its query or an address', async () => {
    const answer = await service.get(`/transactions?${SEPTEMBER}&corporate_id=424242`, { key });
    const id = answer.headers['x-request-id'];
    const line = await service.logged((candidate) => candidate.request_id === id);
    const [, , prefix = '', secret = ''] = key.split('_');
    expect(line).toMatchObject({
      method: 'GET',
      status: 404,
      code: 'CORPORATE_NOT_FOUND',
      key_prefix: prefix,
    });
    expect(service.logLines.filter((candidate) => candidate.request_id === id)).toHaveLength(1);
    for (const hidden of [secret, '424242']) expect(service.output).not.toContain(hidden);
  });
});
