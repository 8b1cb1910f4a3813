import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { LiveProcess } from '../../../src/base/coordination/coordination.ts';
import { waitUntilApplied } from '../../../src/operator/serve/wait-applied.ts';
import { fileCoordination } from '../../support/engines/coordination.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { viewInFolder } from '../../support/transactions/open-view.ts';
import { until } from '../../support/waiting.ts';

const POSITION = 77;

/** Stores with processes as given, and a command that waits for them. */
function stores() {
  const folder = temporaryFolder();
  const clock = new FakeClock();
  /** Of the coordination: processes stay alive as long as it stands still. */
  const machine = new FakeClock();
  const coordination = fileCoordination(join(folder, 'control.db'), machine);
  const view = viewInFolder(folder, clock);
  let reached = POSITION;
  const accounts = { get: async () => [{ reached }] } as never;
  const reach = (position: number): void => {
    reached = position;
  };
  onTestFinished(async () => {
    await view.close();
    await coordination.close();
  });
  const report = (id: string, other: Partial<LiveProcess> = {}) =>
    coordination.report({
      id,
      pid: process.pid,
      host: hostname(),
      roles: ['api'],
      startedAtMs: clock.now(),
      seenAtMs: clock.now(),
      isReady: true,
      ...other,
    });
  /** The view is as far as that. */
  const project = async (position: number): Promise<void> => {
    const { generation } = await view.reset('store', 0);
    await view.apply([], { generation, position });
  };
  const wait = (onProgress: (text: string) => void = () => undefined) =>
    waitUntilApplied({ coordination, view, accounts, steady: clock, position: POSITION, onProgress });
  /** Returns the outcome of a wait during which this much time passes. */
  const waitFor = async (ms: number, by = clock): Promise<unknown> => {
    const waiting = wait();
    const outcome = waiting.catch((error: unknown) => error);
    const looked = new Promise((resolve) => setTimeout(resolve, 60));
    if ((await Promise.race([outcome, looked.then(() => 'waits')])) !== 'waits') return outcome;
    by.advance(ms);
    return Promise.race([outcome, new Promise((resolve) => setTimeout(() => resolve('still waits'), 100))]);
  };
  return { clock, machine, coordination, report, project, reach, wait, waitFor };
}

describe('a command that waits', () => {
  test('waits until the rows of accounts have it, and no longer', async () => {
    const { wait, report, reach } = stores();
    await report('alive');
    reach(POSITION - 1);
    const progress: string[] = [];
    const waiting = wait((text) => void progress.push(text));
    await until(() => progress.some((text) => text.includes('the rows of accounts (at position 76 of 77)')));
    reach(POSITION);
    expect(await waiting).toBe('applied');
    reach(POSITION + 1);
    expect(await wait()).toBe('applied');
  });

  test('waits for nothing if no process is running', async () => {
    const { wait, machine, report, reach } = stores();
    reach(0);
    expect(await wait()).toBe('no process');
    await report('dead');
    machine.advance(6_001);
    expect(await wait()).toBe('no process');
  });

  test('waits for the view where a process projects, and only there', async () => {
    const { wait, waitFor, report, project } = stores();
    await report('api');
    expect(await wait()).toBe('applied');
    await report('projector', { roles: ['projector'] });
    expect(await waitFor(0)).toBe('still waits');
    await project(POSITION - 1);
    expect(await waitFor(0)).toBe('still waits');
    await project(POSITION);
    expect(await wait()).toBe('applied');
  });

  test('gives up after 10 s without progress, and says how far those that are behind are', async () => {
    const { waitFor, report, project, reach } = stores();
    await report('there', { host: 'elsewhere', pid: 8, roles: ['projector'] });
    reach(1);
    await project(1);
    expect(await waitFor(9_999)).toBe('still waits');
    expect(await waitFor(10_000)).toMatchObject({
      code: 'REFUSED',
      message:
        'recorded, but not yet applied by the rows of accounts (at position 1 of 77), ' +
        'the projector (at position 1 of 77), without progress for 10 s. See `fuel projection status`',
    });
  });

  test('goes on as long as one of those that are behind comes further', async () => {
    const { clock, wait, report, reach } = stores();
    await report('alive', { host: 'elsewhere', pid: 1 });
    reach(1);
    const said: string[] = [];
    const waiting = wait((text) => said.push(text));
    for (const position of [10, 20, 30]) {
      const before = said.length;
      await until(() => said.length > before);
      clock.advance(9_000);
      reach(position);
      await until(() => said.at(-1)?.includes(`position ${position} `) === true);
    }
    reach(POSITION);
    expect(await waiting).toBe('applied');
  });

  test('waits no longer once no process was seen for 6 s, and says so', async () => {
    const { waitFor, machine, report, reach } = stores();
    await report('alone');
    reach(1);
    expect(await waitFor(5_999, machine)).toBe('still waits');
    expect(await waitFor(1, machine)).toBe('no process');
  });
});
