import { Agent, request } from 'node:https';

/** What a customer's program sends and gets; nothing here knows the service from inside. */
export interface Customer {
  readonly baseUrl: string;
  readonly apiKey: string;
  /** PEM of the certificate to trust. */
  readonly certificate: string;
}

export interface PulledPage {
  readonly data: readonly { readonly id: number; readonly status: string; readonly created_at: string }[];
  readonly pagination: { readonly has_more: boolean; readonly next_cursor: string | null };
}

/** Yields the pages of a range, newest first, as the next cursor leads. Throws on any answer but 200. */
export async function* pullPages(
  customer: Customer,
  range: { readonly from: string; readonly to: string; readonly limit: number },
): AsyncGenerator<PulledPage> {
  const agent = new Agent({ keepAlive: true, ca: customer.certificate });
  const query = new URLSearchParams({ from: range.from, to: range.to, limit: String(range.limit) });
  try {
    for (;;) {
      const text = await get(`${customer.baseUrl}/transactions?${query}`, customer.apiKey, agent);
      const page = JSON.parse(text) as PulledPage;
      yield page;
      if (page.pagination.next_cursor === null) return;
      query.set('cursor', page.pagination.next_cursor);
    }
  } finally {
    agent.destroy();
  }
}

async function get(url: string, apiKey: string, agent: Agent): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const call = request(url, { agent, headers: { 'X-API-Key': apiKey } }, (response) => {
    let text = '';
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      text += chunk;
    });
    response.on('error', reject);
    response.on('end', () => {
      if (response.statusCode === 200) resolve(text);
      else reject(new Error(`${url} answered ${response.statusCode}: ${text}`));
    });
  });
  call.on('error', reject);
  call.end();
  return promise;
}
