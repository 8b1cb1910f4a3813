import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { crashingAt } from './environment.ts';
import { CRASH_SITES, readPoint } from './points.ts';

it('every named crash point exists in the source', () => {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const files = [...new Set(CRASH_SITES.map(({ file }) => file))];
  const program = files.map((file) => `await import('./${file}');`).join('');
  const env = { ...process.env, ...crashingAt('before-send:1') };
  const loaded = spawnSync(process.execPath, ['--input-type=module', '-e', program], { cwd: root, env });
  expect([loaded.status, loaded.stderr.toString()]).toEqual([0, '']);
});

it('a point is named by a side, a site and a number; anything else is refused', () => {
  expect(readPoint('after-record-outcomes:12')).toEqual({
    side: 'after',
    name: 'record-outcomes',
    time: 12,
  });
  for (const text of ['', 'after-send', 'within-send:1', 'after-nothing:1', 'after-send:0']) {
    expect(() => readPoint(text)).toThrow('names no point');
  }
});
