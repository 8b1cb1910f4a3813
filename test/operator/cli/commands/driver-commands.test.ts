import { describe, expect, test } from 'vitest';
import { commandLine } from '../../../support/service/command-line.ts';
import { confirmed } from '../../../support/transactions/e2e-samples.ts';

describe('fuel driver', () => {
  test.each([
    ['José Quint', 'Jose\u0301 Quint', null],
    ['Ana Field', 'Ana\u00a0Field', null],
    ['سامي نور', 'سامي \u200fنور\u200e', null],
    ['+905550100001', 'Lee Moss', '+90 555 010 00 01'],
  ])('find %s finds what looks like it', async (text, name, mobile_number) => {
    const { append, done } = commandLine();
    await append('transaction-1', [confirmed(1, { driver: { id: 801, name, mobile_number } })]);
    expect(await done('driver', 'find', text)).toMatchObject({ id: 1, name });
  });
});
