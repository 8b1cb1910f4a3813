import { once } from 'node:events';
import { Socket } from 'node:net';
import { createSecureContext, TLSSocket } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  Connections,
  keepIdleMs,
  type ReceiverConnection,
  receiverConnection,
} from '../../../src/push/sender/connections.ts';

const ADDRESS = '192.0.2.1';
const secureContext = createSecureContext();

/** A connection to the receiver of that number; nothing was sent on it yet. */
function connection(receiver = 0, address = ADDRESS): ReceiverConnection {
  const origin = originOf(receiver);
  const socket = new TLSSocket(new Socket(), { secureContext });
  onTestFinished(() => void socket.destroy());
  return receiverConnection(
    { url: origin, origin, host: 'hook.test', port: 443, path: '/' },
    address,
    socket,
  );
}

const originOf = (receiver = 0) => `https://hook${receiver}.test`;
const isClosed = ({ socket }: ReceiverConnection) => socket.destroyed;

/** Those of a connection that was never kept. */
const connectionListeners = () => connection().socket.listenerCount('close');

/** Kept connections, with a short way to take one. */
function opened() {
  const kept = new Connections();
  const take = (receiver = 0, addresses = [ADDRESS]) => kept.take(originOf(receiver), addresses);
  /** Gives so many new ones, the first of which is then idle for longest. */
  const giveMany = (count: number, receiver = 0): ReceiverConnection[] => {
    const given = Array.from({ length: count }, () => connection(receiver));
    for (const each of given) {
      kept.opened(each);
      kept.give(each);
    }
    return given;
  };
  return { kept, take, giveMany };
}

describe('of idle connections', () => {
  test('the one used last is taken first, and each is taken once', () => {
    const { take, giveMany } = opened();
    const [first, second] = giveMany(2);
    expect([take(), take(), take()]).toEqual([second, first, undefined]);
  });

  test('a receiver has one until the last is taken or closed, however often it was given back', () => {
    const { kept, take } = opened();
    const one = connection();
    kept.opened(one);
    for (let times = 0; times < 3; times++) {
      expect(kept.hasIdle(originOf())).toBe(false);
      kept.give(one);
      expect(kept.hasIdle(originOf())).toBe(true);
      expect(take()).toBe(one);
    }
    expect(one.socket.listenerCount('close')).toBe(connectionListeners() + 1);
    kept.give(one);
    one.socket.emit('close');
    expect(kept.hasIdle(originOf())).toBe(false);
  });

  test('only one to an address that is asked for is taken, and another stays kept', () => {
    const { kept, take } = opened();
    const other = connection(0, '192.0.2.2');
    kept.give(other);
    expect(take()).toBeUndefined();
    expect(take(0, [ADDRESS, '192.0.2.2'])).toBe(other);
  });

  test('one is closed by its socket when its idle time has ended', () => {
    const { kept, take } = opened();
    const given = connection();
    kept.opened(given);
    kept.give(given);
    expect(given.socket.timeout).toBe(4_000);
    given.socket.emit('timeout');
    expect([isClosed(given), take()]).toEqual([true, undefined]);
  });

  test('none is kept while more than 1,536 are open, whoever’s they are', async () => {
    const { giveMany } = opened();
    const [first, ...others] = [...giveMany(1, 1), ...giveMany(511, 2), ...giveMany(1_024, 3)];
    const [next] = giveMany(1, 4);
    expect(next?.socket.destroyed).toBe(true);
    expect([first, ...others].some((each) => each?.socket.destroyed)).toBe(false);
    await Promise.all(
      [first, next].flatMap((each) => each && [once(each.socket, 'close'), each.socket.destroy()]),
    );
    expect(giveMany(1, 4)[0]?.socket.destroyed).toBe(false);
  });

  test('one that closed while it was idle is not taken', () => {
    const { take, giveMany } = opened();
    const [first, second] = giveMany(2);
    second?.socket.destroy();
    expect([take(), take()]).toEqual([first, undefined]);
  });

  test('one that may not be idle at all is closed when it is given', () => {
    const { kept, take } = opened();
    const given = connection();
    given.keepIdleMs = 0;
    kept.give(given);
    expect([isClosed(given), take()]).toEqual([true, undefined]);
  });

  test('all are closed at the end, and those that are given after it', () => {
    const { kept, take, giveMany } = opened();
    const taken = connection();
    kept.give(taken);
    expect(take()).toBe(taken);
    const idle = [...giveMany(3, 1), ...giveMany(3, 2)];
    kept.close();
    expect(idle.every(isClosed)).toBe(true);
    expect(isClosed(taken)).toBe(false);
    kept.give(taken);
    expect(isClosed(taken)).toBe(true);
  });
});

test('the receiver may shorten the 4 s that a connection stays idle, with a second to spare', () => {
  expect(keepIdleMs(undefined)).toBe(4_000);
  expect(keepIdleMs('timeout=5, max=100')).toBe(4_000);
  expect(keepIdleMs('max=7, timeout=3')).toBe(2_000);
  expect(keepIdleMs('timeout=1')).toBe(0);
  expect(keepIdleMs('timeout=600')).toBe(4_000);
  expect(keepIdleMs('whatever')).toBe(4_000);
});
