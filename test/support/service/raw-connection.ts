import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { expectDocumentedAnswer } from '../openapi/validate.ts';
import { PATIENCE_MS, within } from '../waiting.ts';

interface RawConnection {
  readonly socket: Socket;
  /** Resolves with everything received, once the other side has ended or broken the connection. */
  readonly received: Promise<string>;
}

/** Opens a connection without an HTTP client, to send what no client would. */
export async function openConnection(
  port: number,
  options: { readonly ca?: string } = {},
): Promise<RawConnection> {
  const socket =
    options.ca === undefined
      ? connectTcp({ host: '127.0.0.1', port })
      : connectTls({ host: '127.0.0.1', port, ca: options.ca });
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  const ended = new Promise<string>((resolve) => {
    socket.on('error', () => undefined); // a refusal may be a reset; `close` follows
    socket.once('close', () => resolve(text));
  });
  const opened = options.ca === undefined ? 'connect' : 'secureConnect';
  await new Promise((resolve) => socket.once(opened, resolve).once('close', resolve));
  return {
    socket,
    received: within(ended, PATIENCE_MS, () => `the connection stays open after: ${text.slice(0, 500)}`),
  };
}

interface RawAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** Sends bytes and reads the answers until the other side ends the connection. */
export async function exchange(
  port: number,
  sent: string | Buffer,
  options: { readonly ca?: string } = {},
): Promise<string> {
  const { socket, received } = await openConnection(port, options);
  socket.write(sent);
  return received;
}

/** Parses the first answer in what was received. Throws if it is JSON that docs/openapi.yaml does not describe. */
export function parseAnswer(text: string): RawAnswer {
  const [head = '', rest = ''] = text.split('\r\n\r\n', 2);
  const [statusLine = '', ...headerLines] = head.split('\r\n');
  const headers = headerLines.map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  const answer = { status: Number(statusLine.split(' ')[1]), headers: new Map(headers), body: rest };
  // Servers under test with their own handlers answer without a type.
  if (answer.headers.get('content-type')?.startsWith('application/json')) {
    const { status, body } = answer;
    const length = Number(answer.headers.get('content-length') ?? Infinity);
    const text = Buffer.from(body).subarray(0, length).toString('utf8');
    expectDocumentedAnswer({ status, headers: Object.fromEntries(headers), text });
  }
  return answer;
}
