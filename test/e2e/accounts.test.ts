import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folder, fuel } from '../support/service/commands.ts';

describe('fuel account', () => {
  const dataDir = join(folder(), 'data');
  const run = (...args: string[]) => fuel(['account', ...args], { dataDir });

  it('opens an account with the integration off and no charging profile', async () => {
    const { code, json, stderr } = await run('open', '7', '--name', 'Harbour Freight', '--json');
    expect([code, stderr]).toEqual([0, `a new store was made in ${dataDir}\n`]);
    expect(json).toMatchObject({ id: 7, name: 'Harbour Freight' });
    expect((await run('show', '7', '--json')).json).toMatchObject({
      id: 7,
      name: 'Harbour Freight',
      integration: false,
      profiles: [],
      groups: [],
      corporates: [],
      keys: [],
    });
  });

  it('accepts a repeated command as done', async () => {
    expect((await run('open', '7', '--name', 'Harbour Freight')).code).toBe(0);
    expect((await run('integration', '7', 'on')).code).toBe(0);
    expect((await run('integration', '7', 'on')).code).toBe(0);
    const { lines } = await fuel(['audit', '--json', '--account', '7'], { dataDir });
    expect(lines.map(({ type }) => type)).toEqual(['AccountOpened', 'IntegrationEnabled']);
  });

  it('adds, renames and moves groups and corporates', async () => {
    for (const args of [
      ['group', '7', '3', '--name', 'Depots'],
      ['corporate', '7', '31', '--name', 'North', '--group', '3'],
      ['corporate', '7', '51', '--name', 'Lone'],
      ['group', '7', '3', '--name', 'All depots'],
      ['corporate', '7', '31', '--name', 'North Depot'],
      ['corporate', '7', '51', '--name', 'Lone', '--group', '3'],
      ['corporate', '7', '51', '--name', 'Lone', '--no-group'],
    ]) {
      expect((await run(...args)).code).toBe(0);
    }
    expect((await run('show', '7', '--json')).json).toMatchObject({
      groups: [{ id: 3, name: 'All depots' }],
      corporates: [
        { id: 31, name: 'North Depot', group: 3 },
        { id: 51, name: 'Lone', group: null },
      ],
    });
  });

  it('sets contacts, and renews or shortens a profile by its name', async () => {
    expect((await run('contact', '7', '--email', 'a@example.com,b@example.com')).code).toBe(0);
    const profile = ['profile', '7', '--profile', 'basic', '--from', '2026-01-01T00:00:00Z'];
    expect((await run(...profile, '--to', '2026-06-01T00:00:00+02:00')).code).toBe(0);
    expect((await run(...profile, '--to', '2027-01-01T00:00:00Z')).code).toBe(0);
    expect((await run('show', '7', '--json')).json).toMatchObject({
      contacts: ['a@example.com', 'b@example.com'],
      profiles: [{ profile: 'basic', from: '2026-01-01T00:00:00.000Z', to: '2027-01-01T00:00:00.000Z' }],
    });
  });

  it('lists one account per line', async () => {
    await run('open', '8', '--name', 'Eight');
    const { code, lines } = await run('list', '--json');
    expect(code).toBe(0);
    expect(lines).toMatchObject([
      { id: 7, name: 'Harbour Freight', integration: true },
      { id: 8, name: 'Eight', integration: false },
    ]);
    expect((await run('list')).stdout).toContain('Harbour Freight');
  });

  it.each([
    [1, ['open', '7', '--name', 'Another name']],
    [1, ['show', '99']],
    [1, ['integration', '99', 'on']],
    [1, ['corporate', '7', '31', '--name', 'North', '--group', '99']],
    [1, ['profile', '7', '--profile', 'p', '--from', '2026-01-01T00:00:00Z', '--to', '2025-01-01T00:00:00Z']],
    [2, ['open', '7']],
    [2, ['open', 'seven', '--name', 'x']],
    [2, ['open', '-7', '--name', 'x']],
    [2, ['open', '9007199254740992', '--name', 'x']],
    [2, ['integration', '7', 'maybe']],
    [2, ['profile', '7', '--profile', 'p', '--from', '2026-01-01']],
    [2, ['contact', '7', '--email', 'nobody']],
    [2, ['show']],
    [2, ['show', '7', '8']],
    [2, ['show', '7', '--jsn']],
    [2, ['close', '7']],
    [2, []],
  ])(
    'ends with %i for: account %j, says why on standard error and prints nothing else',
    async (exit, args) => {
      const { code, stdout, stderr } = await run(...args);
      expect([code, stdout]).toEqual([exit, '']);
      expect(stderr).toMatch(/\w{3,}/);
      expect(stderr).not.toMatch(/\n\s+at /);
    },
  );
});
