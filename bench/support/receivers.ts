import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { generate } from 'selfsigned';
import type { Arrival, News, Order } from './receiver.ts';

const RECEIVER = join(import.meta.dirname, 'receiver.ts');
const HOST = '127.0.0.1';
const MAX_WAIT_MS = 60_000;
/** The time in which anything that is sent twice by mistake shows. */
const SETTLE_MS = 300;

export interface Receivers {
  /** One webhook URL for each. */
  readonly urls: readonly string[];
  /** The PEM file that their senders have to trust. */
  readonly caFile: string;
  /** Returns the arrivals since the last call, at least `count`. Rejects if they do not come within a minute. */
  take(count: number): Promise<readonly Arrival[]>;
  /** Takes exactly these deliveries, each once, in any order, and rejects on anything else. */
  takeExactly(ids: ReadonlySet<string>): Promise<readonly Arrival[]>;
  /** Makes arrivals contain their requests from now on, or not. */
  keepRequests(keep: boolean): void;
  /** Makes this receiver accept without ever answering from now on. Its requests don't count as arrived. */
  hang(receiver: number): void;
  stop(): Promise<void>;
}

/** Starts TLS receivers in a separate process, with their own certificate in `folder`. */
export async function startReceivers(folder: string, count: number): Promise<Receivers> {
  const caFile = join(folder, 'receivers.pem');
  const keyFile = join(folder, 'receivers.key');
  await writeCertificate(caFile, keyFile);
  const child = fork(RECEIVER, [caFile, keyFile, String(count)], { serialization: 'advanced' });
  const exited = once(child, 'exit');
  const order = (what: Order): void => void child.send(what);
  const next = async <K extends News['kind']>(kind: K): Promise<Extract<News, { kind: K }>> => {
    const [news] = (await once(child, 'message', { signal: AbortSignal.timeout(MAX_WAIT_MS) })) as [News];
    if (news.kind !== kind) throw new Error(`the receivers told ${news.kind} instead of ${kind}`);
    return news as Extract<News, { kind: K }>;
  };
  const { ports } = await next('listening');
  const take = async (least: number): Promise<readonly Arrival[]> => {
    order({ kind: 'take', count: least });
    return (await next('arrived')).arrivals;
  };
  return {
    urls: ports.map((port) => `https://${HOST}:${port}/fuel-events`),
    caFile,
    take,
    async takeExactly(ids) {
      const arrivals = await take(ids.size);
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
      assertExactly([...arrivals, ...(await take(0))], ids);
      return arrivals;
    },
    keepRequests: (keep) => order({ kind: 'keep requests', keep }),
    hang: (receiver) => order({ kind: 'hang', receiver }),
    async stop() {
      child.disconnect();
      await exited;
    },
  };
}

function assertExactly(arrivals: readonly Arrival[], ids: ReadonlySet<string>): void {
  const arrived = new Set(arrivals.map(({ id }) => id));
  const strange = arrivals.filter(({ id }) => !ids.has(id)).length;
  const missing = ids.difference(arrived).size;
  const twice = arrivals.length - arrived.size;
  if (missing + twice + strange > 0) {
    throw new Error(
      `of ${ids.size} deliveries ${missing} are missing, ${twice} came again, ${strange} are not known`,
    );
  }
}

/** Writes a certificate for both names of this machine, and its key. */
export async function writeCertificate(certificateFile: string, keyFile: string): Promise<void> {
  const { cert, private: key } = await generate([{ name: 'commonName', value: HOST }], {
    keyType: 'ec',
    extensions: [
      { name: 'basicConstraints', cA: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 7, ip: HOST },
          { type: 2, value: 'localhost' },
        ],
      },
    ],
  });
  await writeFile(certificateFile, cert);
  await writeFile(keyFile, key, { mode: 0o600 });
}
