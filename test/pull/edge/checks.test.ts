import { describe, expect, test } from 'vitest';
import type { Caller } from '../../../src/accounts/caller.ts';
import { parseAddress } from '../../../src/base/config/ip-address.ts';
import { checkEdge, createEdgeProof, type EdgeWindows } from '../../../src/pull/admission.ts';
import type { RateVerdict } from '../../../src/pull/edge/rate-windows/rate-windows.ts';
import { keyIssued, opened, PREFIX } from '../../support/accounts/account-samples.ts';
import { foldAccount } from '../../support/accounts/evolve.ts';

interface Presented {
  readonly key?: Parameters<typeof keyIssued>[0];
  readonly proven?: boolean;
  readonly unreadable?: { readonly reason: string };
}

function caller({ key = {}, proven = true, unreadable }: Presented = {}): Caller {
  const account = foldAccount(
    [opened(), keyIssued({ rate_limit: 7, ...key })].map((event) => ({ event, atMs: 0 })),
  );
  const known = account?.keys.get(PREFIX);
  if (account === undefined || known === undefined) throw new Error('the key was issued');
  const ofAccount = { accountId: 7, access: account, unreadable: unreadable?.reason ?? null };
  return { prefix: PREFIX, known: { key: known, ...ofAccount }, proven, countingId: 'counted' };
}

/** Windows that answer with this verdict and record their hits. */
function windowsWith(verdict: RateVerdict = { allowed: true }) {
  const hits: [window: string, id: string, limit: number][] = [];
  const counting = (window: string) => ({
    hit: async (id: string, limit: number) => {
      hits.push([window, id, limit]);
      return verdict;
    },
  });
  const windows: EdgeWindows = { keys: counting('keys'), unproven: counting('unproven') };
  return { windows, hits };
}

const ADDRESS = parseAddress('203.0.113.9');
const production: NonNullable<Presented['key']> = {
  environment: 'production',
  allow_list: ['203.0.113.0/24'],
};

describe('the embedded edge', () => {
  test('lets an unknown key pass, uncounted', async () => {
    const { windows, hits } = windowsWith({ allowed: false, retryAfterSeconds: 5 });
    const unknown: Caller = { prefix: undefined, known: undefined, proven: false, countingId: '' };
    expect(await checkEdge(unknown, ADDRESS, windows)).toBeUndefined();
    expect(hits).toEqual([]);
  });

  test('counts a proven key with its own limit, and wrong keys separately', async () => {
    const { windows, hits } = windowsWith();
    expect(await checkEdge(caller(), ADDRESS, windows)).toBeUndefined();
    expect(await checkEdge(caller({ proven: false }), ADDRESS, windows)).toBeUndefined();
    expect(hits).toEqual([
      ['keys', 'counted', 7],
      ['unproven', 'counted', 7],
    ]);
  });

  test('says how long a key that is at its limit has to wait', async () => {
    const { windows } = windowsWith({ allowed: false, retryAfterSeconds: 5 });
    expect(await checkEdge(caller(), ADDRESS, windows)).toEqual({
      code: 'RATE_LIMITED',
      retryAfterSeconds: 5,
    });
  });

  test('asks the allow-list of production keys alone, before anything is counted', async () => {
    const { windows, hits } = windowsWith();
    const elsewhere = parseAddress('198.51.100.1');
    for (const address of [elsewhere, undefined]) {
      expect(await checkEdge(caller({ key: production }), address, windows)).toEqual({
        code: 'IP_NOT_ALLOWED',
      });
    }
    expect(hits).toEqual([]);
    expect(await checkEdge(caller({ key: production }), ADDRESS, windows)).toBeUndefined();
    const staging = caller({ key: { allow_list: ['203.0.113.0/24'] } });
    expect(await checkEdge(staging, elsewhere, windows)).toBeUndefined();
  });

  test('refuses a production key without an allow-list from everywhere', async () => {
    const { windows } = windowsWith();
    const none = caller({ key: { ...production, allow_list: [] } });
    expect(await checkEdge(none, ADDRESS, windows)).toEqual({ code: 'IP_NOT_ALLOWED' });
  });

  test('trusts nothing of an account that cannot be read, its allow-list neither', async () => {
    const { windows, hits } = windowsWith();
    const unreadable = { reason: 'unknown event type Foo' };
    for (const address of [ADDRESS, parseAddress('198.51.100.1')]) {
      const closed = caller({ key: production, unreadable });
      expect(await checkEdge(closed, address, windows)).toEqual({ code: 'SERVICE_UNAVAILABLE' });
    }
    expect(hits).toEqual([]);
  });
});

describe('the proof of an external edge', () => {
  const proves = createEdgeProof(['first-token-of-16', 'second-token-of-16']);

  test('is any of the tokens, whole', () => {
    expect(['first-token-of-16', 'second-token-of-16'].map(proves)).toEqual([true, true]);
    const wrong = [
      '',
      'first-token-of-1',
      'first-token-of-16 ',
      'FIRST-TOKEN-OF-16',
      'x'.repeat(10_000),
      'first-token',
      'first-token-of-16,second-token-of-16',
    ];
    expect(wrong.map(proves)).toEqual(wrong.map(() => false));
    expect(createEdgeProof([])('')).toBe(false);
  });
});
