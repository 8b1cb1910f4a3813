import { Pool } from 'undici';
import { percentile } from './pairs.ts';

export interface PageRequest {
  /** The path and query after the base address. */
  readonly path: string;
  readonly key: string;
}

export interface Page {
  readonly data: readonly { readonly id: number; readonly images: Readonly<Record<string, string | null>> }[];
  readonly pagination: { readonly has_more: boolean; readonly next_cursor: string | null };
}

export interface Load {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** A client of one API over kept-alive TLS connections that spends as little as possible on the answers. */
export class PageClient {
  readonly #pool: Pool;
  readonly #basePath: string;
  readonly #connections: number;

  constructor(baseUrl: string, connections: number) {
    const { origin, pathname } = new URL(baseUrl);
    this.#pool = new Pool(origin, { connections, pipelining: 1, connect: { rejectUnauthorized: false } });
    this.#basePath = pathname;
    this.#connections = connections;
  }

  /** Gets and parses one page. Rejects if the answer is not a page. */
  async page(request: PageRequest): Promise<Page> {
    const { statusCode, body } = await this.#pool.request({
      path: this.#basePath + request.path,
      method: 'GET',
      headers: { 'x-api-key': request.key },
    });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`${statusCode} for ${request.path}: ${text}`);
    return JSON.parse(text) as Page;
  }

  /** Makes every connection ask for one page after the other until the time is over. `next` draws the request. */
  async load(options: { readonly durationMs: number; readonly next: () => PageRequest }): Promise<Load> {
    const startedAtMs = performance.now();
    const endsAtMs = startedAtMs + options.durationMs;
    const timesMs: number[] = [];
    const worker = async (): Promise<void> => {
      for (let now = performance.now(); now < endsAtMs; ) {
        await this.#consume(options.next());
        const doneAtMs = performance.now();
        timesMs.push(doneAtMs - now);
        now = doneAtMs;
      }
    };
    await Promise.all(Array.from({ length: this.#connections }, worker));
    return {
      requestsPerSecond: (timesMs.length * 1_000) / (performance.now() - startedAtMs),
      p50Ms: percentile(timesMs, 50),
      p99Ms: percentile(timesMs, 99),
    };
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  #consume(request: PageRequest): Promise<void> {
    return new Promise((resolve, reject) => {
      let status = 0;
      const options = {
        path: this.#basePath + request.path,
        method: 'GET',
        headers: { 'x-api-key': request.key },
      } as const;
      this.#pool.dispatch(options, {
        onRequestStart: () => undefined,
        onResponseStart: (_, statusCode) => {
          status = statusCode;
        },
        onResponseData: () => undefined,
        onResponseEnd: () =>
          status === 200 ? resolve() : reject(new Error(`${status} for ${request.path}`)),
        onResponseError: (_, error) => reject(error),
      });
    });
  }
}
