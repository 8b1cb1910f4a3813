import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../src/engines/engines.ts';
import { SEAL_KEY } from '../support/service/production.ts';
import { type ComposeFile, composeFile, environmentOf, ROOT } from './compose-file.ts';

const override: ComposeFile = parse(readFileSync(join(ROOT, 'deploy/postgres.yml'), 'utf8'), {
  customTags: [{ tag: '!override', collection: 'map' }],
});
const { services } = composeFile();
const ours = Object.keys(services).filter((name) => services[name]?.image.startsWith('fuel-integration:'));
const secrets = {
  FUEL_MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
  FUEL_SEAL_KEY: SEAL_KEY,
  FUEL_IMAGES_SECRET_ACCESS_KEY: 'secret',
};

it.each(ours)('deploy/postgres.yml has %s wait for PostgreSQL and use it, instead of MongoDB', (name) => {
  const own = override.services[name];
  expect(Object.keys(own?.depends_on ?? {})).toEqual(['eventstore', 'postgres']);
  const environment = {
    ...environmentOf(services[name] ?? { image: '' }, secrets),
    ...own?.environment,
  };
  const { MONGODB_URL, POSTGRES_URL } = loadConfig(environment, 'serve').ofEngines;
  expect([MONGODB_URL, POSTGRES_URL]).toEqual([undefined, 'postgres://fuel@postgres:5432/fuel']);
});

it('lets PostgreSQL do nothing but its work, reached by the service alone', () => {
  const postgres = override.services.postgres;
  expect(postgres).toMatchObject({ restart: 'unless-stopped', cap_drop: ['ALL'], read_only: true });
  expect(postgres).toMatchObject({ security_opt: ['no-new-privileges:true'], networks: ['engines'] });
  expect(postgres?.image).toMatch(/^postgres:\d+\.\d+/);
  expect([postgres?.ports, postgres?.cap_add, postgres?.mem_limit]).toEqual([undefined, undefined, '2g']);
  expect(Object.keys(override.volumes)).toEqual(['postgres-data']);
});
