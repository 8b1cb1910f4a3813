import { request as httpRequest } from 'node:http';

export interface Asked {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** Asks with any `Host`, which fetch does not send. */
export function ask(
  url: string,
  {
    method = 'GET',
    headers = {},
  }: { readonly method?: string; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<Asked> {
  const { promise, resolve, reject } = Promise.withResolvers<Asked>();
  httpRequest(url, { method, headers, agent: false }, (response) => {
    let text = '';
    response.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
  })
    .on('error', reject)
    .end();
  return promise;
}
