import { type Agent, request } from 'undici';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads the answer as its client would
  readonly body: any;
}

/** Makes one request and reads the whole answer. */
export async function fetchAnswer(
  url: string,
  options: { method: string; headers: Readonly<Record<string, string>>; dispatcher: Agent },
): Promise<Answer> {
  const { statusCode, headers, body } = await request(url, options as Parameters<typeof request>[1]);
  const text = await body.text();
  const isJson = String(headers['content-type'] ?? '').startsWith('application/json') && text !== '';
  return { status: statusCode, headers, text, body: isJson ? JSON.parse(text) : undefined };
}
