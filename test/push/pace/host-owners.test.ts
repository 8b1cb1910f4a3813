import { expect, test } from 'vitest';
import type { LiveProcess } from '../../../src/base/coordination/coordination.ts';
import { HostOwners } from '../../../src/push/pace/host-owners.ts';

const HOSTS = Array.from({ length: 300 }, (_, n) => `https://host${n}.example`);

function live(id: string, more: Partial<LiveProcess> = {}): LiveProcess {
  const of = { pid: 1, host: 'machine', startedAtMs: 0, seenAtMs: 0, isReady: true };
  return { id, roles: ['webhooks'], ...of, ...more };
}

/** The processes' views of who owns what, all with the same list of live processes. */
async function views(ids: readonly string[], processes: readonly LiveProcess[]) {
  const coordination = { live: async () => [...processes] };
  const all = ids.map((holder) => new HostOwners({ coordination, holder, steady: { now: () => 0 } }));
  for (const owners of all) await owners.look();
  return all;
}

test('every host has one process, and each process a part of them', async () => {
  const ids = ['a', 'b', 'c'];
  const all = await views(
    ids,
    ids.map((id) => live(id)),
  );
  const counts = ids.map(() => 0);
  for (const host of HOSTS) {
    const owners = all.flatMap((owner, index) => (owner.owns(host) ? [index] : []));
    expect(owners).toHaveLength(1);
    counts[owners[0] ?? 0] = (counts[owners[0] ?? 0] ?? 0) + 1;
  }
  for (const count of counts) expect(count).toBeGreaterThan(50);
});

test('when a process ends, only its hosts change their process', async () => {
  const [before] = await views(['a'], [live('a'), live('b'), live('c')]);
  const [after] = await views(['a'], [live('a'), live('b')]);
  for (const host of HOSTS) if (before?.owns(host)) expect(after?.owns(host)).toBe(true);
});

test('one process alone has every host, also before it has looked', async () => {
  const owners = new HostOwners({
    coordination: { live: async () => [] },
    holder: 'a',
    steady: { now: () => 0 },
  });
  expect(HOSTS.every((host) => owners.owns(host))).toBe(true);
  await owners.look();
  expect(HOSTS.every((host) => owners.owns(host))).toBe(true);
});

test('a process without the role, or whose directory has not caught up, has none', async () => {
  const [owners] = await views(
    ['a'],
    [live('a'), live('b', { roles: ['api'] }), live('c', { isReady: false })],
  );
  expect(HOSTS.every((host) => owners?.owns(host))).toBe(true);
});

test('who lives is asked for once a second at most, and again after the store was unavailable', async () => {
  let [nowMs, asked, isUnavailable] = [0, 0, true];
  const coordination = {
    async live() {
      asked += 1;
      if (isUnavailable) throw new Error('unavailable');
      return [live('a')];
    },
  };
  const owners = new HostOwners({ coordination, holder: 'a', steady: { now: () => nowMs } });
  await expect(owners.look()).rejects.toThrow('unavailable');
  isUnavailable = false;
  for (nowMs = 0; nowMs < 3_000; nowMs += 100) await owners.look();
  expect(asked).toBe(4);
});
