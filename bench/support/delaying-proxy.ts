import { fork } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';

const HOST = '127.0.0.1';
/** With this many bytes under way in one direction, no more are read, so that memory is bounded. */
const MAX_UNDER_WAY = 16 * 1024 * 1024;

/**
 * Starts ports in front of engines on this machine, in a separate process. Every byte takes `delayMs` each way, however
 * many are under way. Returns a port for each of the given ones. It ends with this process.
 */
export async function startDelayingProxy(
  delayMs: number,
  targets: readonly number[],
): Promise<{ readonly ports: readonly number[]; stop(): void }> {
  const child = fork(fileURLToPath(import.meta.url), [String(delayMs), ...targets.map(String)]);
  const [ports] = (await once(child, 'message')) as [readonly number[]];
  return { ports, stop: () => void child.kill() };
}

/** Delays bytes in order, since timers of one duration fire in the order in which they were set. */
function delay(from: Socket, to: Socket, delayMs: number): void {
  let underWay = 0;
  const pass = (chunk: Buffer): void => {
    underWay -= chunk.length;
    to.write(chunk);
    from.resume();
  };
  from.on('data', (chunk: Buffer) => {
    underWay += chunk.length;
    if (underWay > MAX_UNDER_WAY) from.pause();
    if (delayMs === 0) pass(chunk);
    else setTimeout(pass, delayMs, chunk);
  });
}

async function listen(target: number, delayMs: number): Promise<number> {
  const server = createServer((near) => {
    const far = connect(target, HOST);
    const pair = [near, far];
    const end = (): void => {
      for (const socket of pair) socket.destroy();
    };
    for (const socket of pair) socket.on('error', end).on('close', end).setNoDelay(true);
    delay(near, far, delayMs);
    delay(far, near, delayMs);
  }).listen(0, HOST);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [delayMs = 0, ...targets] = process.argv.slice(2).map(Number);
  process.send?.(await Promise.all(targets.map((target) => listen(target, delayMs))));
  process.once('disconnect', () => process.exit());
}
