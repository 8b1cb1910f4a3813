import { readFileSync } from 'node:fs';
import { request as plain } from 'node:http';
import { request as secure } from 'node:https';
import { storeUnavailable } from './errors.ts';

const TIMEOUT_MS = 3_000;
const MAX_ANSWER_BYTES = 64 * 1024;
const FIRST_KURRENTDB = 25;

export interface NodeInfo {
  /** What the server is called since its version 25, or was until then. */
  readonly name: 'EventStoreDB' | 'KurrentDB';
  readonly version: string;
  /** The node's clock, from the answer's `Date`: whole seconds, cut off. */
  readonly clockMs: number;
}

/** What the first node of the connection string that answers says of itself, by HTTP on the port of gRPC. */
export async function readNodeInfo(url: string): Promise<NodeInfo> {
  const { nodes, options, credentials } = parse(url);
  let last: unknown;
  for (const node of nodes) {
    try {
      return await ask(node, options, credentials);
    } catch (error) {
      last = error;
    }
  }
  throw storeUnavailable(last instanceof Error ? last.message : 'the connection string names no node', last);
}

interface Parsed {
  /** `host:port` each. */
  readonly nodes: readonly string[];
  readonly options: URLSearchParams;
  readonly credentials: string | undefined;
}

/** `esdb[+discover]://[user:password@]host[:port][,host…][/]?options`; `kurrentdb` for `esdb` too. */
function parse(url: string): Parsed {
  const [, authority = '', query = ''] =
    /^(?:esdb|kurrentdb)(?:\+discover)?:\/\/([^/?]*)\/?(?:\?(.*))?$/.exec(url) ?? [];
  const at = authority.lastIndexOf('@');
  const options = new URLSearchParams();
  for (const [name, value] of new URLSearchParams(query)) options.set(name.toLowerCase(), value);
  const nodes = authority.slice(at + 1).split(',');
  const credentials = at === -1 ? undefined : authority.slice(0, at).split(':').map(decodeURIComponent);
  return { nodes, options, credentials: credentials?.join(':') };
}

function ask(node: string, options: URLSearchParams, auth: string | undefined): Promise<NodeInfo> {
  const isPlain = options.get('tls') === 'false';
  const caFile = options.get('tlscafile');
  const tls = isPlain
    ? {}
    : {
        rejectUnauthorized: options.get('tlsverifycert') !== 'false',
        ...(caFile === null ? {} : { ca: readFileSync(caFile) }),
      };
  const target = new URL(
    `${isPlain ? 'http' : 'https'}://${node.includes(':') ? node : `${node}:2113`}/info`,
  );
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const asked = (isPlain ? plain : secure)(
      target,
      { agent: false, signal, ...tls, ...(auth === undefined ? {} : { auth }) },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (some: string) => {
          text += some;
          if (text.length > MAX_ANSWER_BYTES) answer.destroy(new Error('the answer of /info is too long'));
        });
        answer.on('error', reject).on('end', () => {
          try {
            resolve(infoOf(answer.statusCode, answer.headers.date, text));
          } catch (error) {
            reject(error);
          }
        });
      },
    );
    asked.on('error', reject).end();
  });
}

function infoOf(status: number | undefined, date: string | undefined, text: string): NodeInfo {
  const clockMs = Date.parse(date ?? '');
  if (status !== 200 || Number.isNaN(clockMs)) throw new Error(`/info was answered with ${status}`);
  const { dbVersion, esVersion } = JSON.parse(text) as { dbVersion?: string; esVersion?: string };
  const version = dbVersion ?? esVersion ?? 'unknown';
  const name = Number.parseInt(version, 10) >= FIRST_KURRENTDB ? 'KurrentDB' : 'EventStoreDB';
  return { name, version, clockMs };
}
