import { Agent, request } from 'node:https';

export interface Served {
  readonly status: number;
  /** From the call to the last byte of the answer. */
  readonly tookMs: number;
}

export interface GoodCustomer {
  /** Asks for a page. A status of 0 says that the connection ended before an answer. */
  ask(): Promise<Served>;
  /** Asks for one page after the other. */
  askOften(times: number): Promise<Served[]>;
  close(): void;
}

/** A customer who asks as the guide says, on one connection or on a new one for each page. */
export function goodCustomer(url: string, key: string, { keepAlive = true } = {}): GoodCustomer {
  const agent = new Agent({ keepAlive, maxSockets: 1, rejectUnauthorized: false });
  const ask = (): Promise<Served> => {
    const startedAtMs = performance.now();
    return new Promise((resolve) => {
      const done = (status: number): void => resolve({ status, tookMs: performance.now() - startedAtMs });
      request(url, { agent, headers: { 'X-API-Key': key } }, (response) => {
        response.resume().once('end', () => done(response.statusCode ?? 0));
        response.once('error', () => done(0));
      })
        .once('error', () => done(0))
        .end();
    });
  };
  return {
    ask,
    async askOften(times) {
      const served: Served[] = [];
      while (served.length < times) served.push(await ask());
      return served;
    },
    close: () => agent.destroy(),
  };
}
