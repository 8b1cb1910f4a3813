import { describe, expect, test } from 'vitest';
import { runExample } from '../support/run-example.ts';
import { at, FIRST_KEY } from './fake-service.ts';

describe('the example sync client as a program', () => {
  const settings = { BASE_URL: 'https://127.0.0.1:1/api/v1/integration', API_KEY: FIRST_KEY, FROM: at(0) };
  test.each([
    [{ API_KEY: '' }, 'set BASE_URL, API_KEY and FROM'],
    [{ API_KEY: 'x' }, 'API_KEY must be as you got it'],
    [{ FROM: 'yesterday' }, 'FROM must be a date-time'],
    [{ BASE_URL: 'localhost' }, 'BASE_URL must be a URL'],
    [{ OVERLAP_DAYS: '-1' }, 'OVERLAP_DAYS must be a whole number'],
  ])('says which setting is wrong, without a stack: %j', (wrong, message) => {
    const { status, stderr } = runExample('sync-client/sync-client.ts', { ...settings, ...wrong });
    expect(stderr).toContain(`sync-client: ${message}`);
    expect([status, stderr.split('\n').length]).toEqual([2, 2]);
  });

  test('says that a file is no ledger, without a stack', () => {
    const { status, stderr } = runExample('sync-client/sync-client.ts', {
      ...settings,
      DATABASE: import.meta.filename,
    });
    expect([status, stderr]).toEqual([1, 'sync-client: file is not a database\n']);
  });
});
