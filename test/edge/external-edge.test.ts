import { expect, test } from 'vitest';
import { createEdgeProof } from '../../src/edge/external-edge.ts';

test('the proof is one of the tokens, whole and alone', () => {
  const proves = createEdgeProof(['first-token-0123456789', 'second-token-0123456789']);
  expect(['first-token-0123456789', 'second-token-0123456789'].map(proves)).toEqual([true, true]);
  for (const other of [undefined, '', 'first-token', 'first-token-0123456789,second-token-0123456789']) {
    expect(proves(other)).toBe(false);
  }
});

test('without a token nothing is a proof', () => {
  expect(createEdgeProof([])('')).toBe(false);
});
