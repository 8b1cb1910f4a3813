import { spawnSync } from 'node:child_process';
import { hostname } from 'node:os';
import { expect, onTestFinished, test, vi } from 'vitest';
import { mayBeAlive } from '../../../src/base/coordination/may-be-alive.ts';

const here = hostname();

test('a process of this machine is alive as long as the operating system has it', () => {
  const { pid } = spawnSync('true');
  expect(mayBeAlive({ host: here, pid: process.pid })).toBe(true);
  expect(mayBeAlive({ host: here, pid })).toBe(false);
});

test('a process of another machine may be alive, whatever its id means on this one', () => {
  const { pid } = spawnSync('true');
  expect(mayBeAlive({ host: 'elsewhere', pid })).toBe(true);
});

test('a process of another user may be alive, though it cannot be signalled', () => {
  const signalling = vi.spyOn(process, 'kill').mockImplementation(() => {
    throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' });
  });
  onTestFinished(() => signalling.mockRestore());
  expect(mayBeAlive({ host: here, pid: 1 })).toBe(true);
});
