import { hash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  ConsistencyProof,
  type Hash,
  leafHash as hashOfEntry,
  InclusionPaths,
  nodeHash,
  provesConsistency,
  provesInclusion,
  TreeEdge,
} from '../../src/seals/merkle-tree.ts';

/** The leaves and roots of the tests of Certificate Transparency. */
const LEAVES = [
  '',
  '00',
  '10',
  '2021',
  '3031',
  '40414243',
  '5051525354555657',
  '606162636465666768696a6b6c6d6e6f',
];
const ROOTS = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
];
const leaves = LEAVES.map((text) => hash('sha256', Buffer.from(`00${text}`, 'hex'), 'base64'));
const leafHash = (entry: string) => hashOfEntry(Buffer.from(`-${entry}`));
const hex = (of: Hash) => Buffer.from(of, 'base64').toString('hex');

/** Returns the root as RFC 6962, 2.1 defines it. */
function rootOf(all: readonly Hash[]): Hash {
  if (all.length <= 1) return all[0] ?? new TreeEdge().root;
  let middle = 1;
  while (middle * 2 < all.length) middle *= 2;
  return nodeHash(rootOf(all.slice(0, middle)), rootOf(all.slice(middle)));
}

const treeOf = (all: readonly Hash[]) => ({ size: all.length, root: rootOf(all) });
const numbered = (size: number) => Array.from({ length: size }, (_, index) => leafHash(String(index)));

function pathsOf(all: readonly Hash[]): readonly (readonly Hash[])[] {
  const paths = new InclusionPaths();
  const made = all.map((leaf) => paths.append(leaf, true));
  paths.end();
  return made;
}

function proofOf(from: number, all: readonly Hash[]): Hash[] {
  const proof = new ConsistencyProof(from, all.length);
  for (const leaf of all) proof.append(leaf);
  return proof.end();
}

describe('the tree', () => {
  test('has the published roots, whatever it grew from', () => {
    const edge = new TreeEdge();
    for (const [size, root] of ROOTS.entries()) {
      expect(hex(edge.root)).toBe(root);
      expect(new TreeEdge(edge.size, edge.roots).root).toEqual(edge.root);
      const leaf = leaves[size];
      if (leaf !== undefined) edge.append(leaf);
    }
  });

  test('has the root that the definition gives, at any size', () => {
    const all = numbered(70);
    const edge = new TreeEdge();
    for (let size = 0; size <= all.length; size++) {
      expect(edge.root).toEqual(rootOf(all.slice(0, size)));
      edge.append(all[size] as Hash);
    }
  });
});

describe('an inclusion path', () => {
  test('is the published one', () => {
    const path = pathsOf(leaves)[5]?.map(hex);
    expect(path).toEqual([
      'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
      'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ]);
  });

  test('proves each leaf of each size, and no other place, size, root or path', () => {
    for (let size = 1; size <= 20; size++) {
      const all = numbered(size);
      const tree = treeOf(all);
      for (const [index, path] of pathsOf(all).entries()) {
        const leaf = all[index] as Hash;
        expect(provesInclusion({ leaf, index, path }, tree)).toBe(true);
        expect(provesInclusion({ leaf, index: (index + 1) % size, path }, tree)).toBe(size === 1);
        expect(provesInclusion({ leaf, index: size, path }, tree)).toBe(false);
        expect(provesInclusion({ leaf, index, path: path.slice(1) }, tree)).toBe(size === 1);
        expect(provesInclusion({ leaf, index, path: [...path, leaf] }, tree)).toBe(false);
        expect(provesInclusion({ leaf, index, path }, { ...tree, root: leafHash('another') })).toBe(false);
      }
    }
  });

  test.each(['', 'AAAA', '?'])('proves nothing with %j for a hash', (what) => {
    const all = numbered(2);
    const { root } = treeOf(all);
    const [leaf = '', other = ''] = all;
    nodeHash(leaf, other); // their bytes must not replace the missing ones
    expect(() => provesInclusion({ leaf, index: 0, path: [what] }, { size: 2, root })).toThrow(RangeError);
  });
});

describe('a consistency proof', () => {
  test('proves that a tree begins with an older one, and nothing else', () => {
    const at = fc.integer({ min: 0, max: 40 });
    fc.assert(
      fc.property(at, at, at, (one, other, forged) => {
        const [from, size] = [Math.min(one, other), Math.max(one, other)];
        const all = numbered(size);
        const [older, newer] = [treeOf(all.slice(0, from)), treeOf(all)];
        const proof = proofOf(from, all);
        expect(provesConsistency(older, newer, proof)).toBe(true);
        expect(provesConsistency(older, newer, [...proof, newer.root])).toBe(false);
        if (proof.length > 0) expect(provesConsistency(older, newer, proof.slice(1))).toBe(false);
        if (forged >= from) return;
        const changed = all.with(forged, leafHash('forged'));
        expect(provesConsistency(older, treeOf(changed), proofOf(from, changed))).toBe(false);
      }),
    );
  });
});
