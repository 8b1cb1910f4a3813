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
import { FakeClock } from '../../support/fake-clock.ts';

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
  const clock = new FakeClock();
  const kept = new Connections(clock);
  const take = (receiver = 0, addresses = [ADDRESS]) => kept.take(originOf(receiver), addresses);
  /** Gives so many new ones, the first of which is then idle for longest. */
  const giveMany = (count: number, receiver = 0): ReceiverConnection[] => {
    const given = Array.from({ length: count }, () => connection(receiver));
    for (const each of given) kept.give(each);
    return given;
  };
  return { clock, kept, take, giveMany };
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

  test('one whose idle time has ended is closed; the time starts again whenever one is given back', () => {
    const { clock, kept, take, giveMany } = opened();
    const [given] = giveMany(1);
    for (let used = 0; used < 3; used++) {
      clock.advance(3_999);
      const taken = take();
      expect(taken).toBe(given);
      if (taken !== undefined) kept.give(taken);
    }
    clock.advance(4_000);
    expect(take()).toBeUndefined();
    expect(given?.socket.destroyed).toBe(true);
  });

  test('512 are kept to one receiver, and one more closes the one that is idle for longest', () => {
    const { giveMany } = opened();
    const [first, ...others] = giveMany(512);
    expect(first?.socket.destroyed).toBe(false);
    const [next] = giveMany(1);
    expect(first?.socket.destroyed).toBe(true);
    expect([...others, next].some((each) => each?.socket.destroyed)).toBe(false);
  });

  test('1,024 are kept in all, and one more closes the one that is idle for longest, whoever’s it is', () => {
    const { giveMany } = opened();
    const [first, ...others] = [...giveMany(1, 1), ...giveMany(511, 2), ...giveMany(512, 3)];
    expect(first?.socket.destroyed).toBe(false);
    const [next] = giveMany(1, 4);
    expect(first?.socket.destroyed).toBe(true);
    expect([...others, next].some((each) => each?.socket.destroyed)).toBe(false);
  });

  test('one that closed while it was idle is not taken', () => {
    const { take, giveMany } = opened();
    const [first, second] = giveMany(2);
    second?.socket.destroy();
    expect([take(), take()]).toEqual([first, undefined]);
  });

  test('one that closed while it was idle takes no place', async () => {
    const { giveMany } = opened();
    const [first, ...others] = giveMany(512);
    for (const { socket } of others) await Promise.all([once(socket, 'close'), socket.destroy()]);
    giveMany(511);
    expect(first?.socket.destroyed).toBe(false);
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
