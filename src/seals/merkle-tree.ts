import { hash } from 'node:crypto';

/** SHA-256 in base64, as it is signed and stored: two are equal where their texts are. */
export type Hash = string;

const HASH_BYTES = 32;
/** RFC 6962, 2.1: the hash of a leaf is never that of a node, so that neither passes for the other. */
const [LEAF, NODE] = [0, 1];
/** Used again for each node. */
const node = Buffer.alloc(1 + 2 * HASH_BYTES, NODE);

/** Of the entry behind the first byte, which is overwritten. */
export function leafHash(entry: Buffer): Hash {
  entry[0] = LEAF;
  return hash('sha256', entry, 'base64');
}

/** Throws for what is no hash. */
export function nodeHash(left: Hash, right: Hash): Hash {
  const written = node.write(left, 1, 'base64') + node.write(right, 1 + HASH_BYTES, 'base64');
  if (written !== 2 * HASH_BYTES) throw new RangeError('a hash has 32 bytes');
  return hash('sha256', node, 'base64');
}

/** A tree of RFC 6962 that grows at its end. It keeps the roots of its complete subtrees only, the largest first. */
export class TreeEdge {
  readonly #roots: Hash[];
  #size: number;

  constructor(size = 0, roots: readonly Hash[] = []) {
    this.#size = size;
    this.#roots = [...roots];
  }

  get size(): number {
    return this.#size;
  }

  get roots(): readonly Hash[] {
    return this.#roots;
  }

  /** Of the empty tree: the hash of nothing. */
  get root(): Hash {
    return this.#roots.reduceRight<Hash | undefined>(foldRight, undefined) ?? hash('sha256', '', 'base64');
  }

  append(leaf: Hash): void {
    let root = leaf;
    for (let rest = this.#size; rest % 2 === 1; rest = (rest - 1) / 2)
      root = nodeHash(this.#roots.pop() as Hash, root);
    this.#roots.push(root);
    this.#size += 1;
  }
}

function foldRight(right: Hash | undefined, left: Hash): Hash {
  return right === undefined ? left : nodeHash(left, right);
}

interface Subtree {
  readonly root: Hash;
  readonly paths: readonly Hash[][];
}

/** The paths that prove leaves of a tree to its root, made while its leaves pass: it keeps those paths and the edge. */
export class InclusionPaths {
  readonly #subtrees: Subtree[] = [];
  #size = 0;

  /** Returns the path of the leaf, whole after `end`, where it is wanted. */
  append(leaf: Hash, isWanted: boolean): readonly Hash[] {
    const path: Hash[] = [];
    let tree: Subtree = { root: leaf, paths: isWanted ? [path] : [] };
    for (let rest = this.#size; rest % 2 === 1; rest = (rest - 1) / 2)
      tree = joined(this.#subtrees.pop() as Subtree, tree);
    this.#subtrees.push(tree);
    this.#size += 1;
    return path;
  }

  end(): void {
    this.#subtrees.reduceRight((right, left) => joined(left, right));
  }
}

function joined(left: Subtree, right: Subtree): Subtree {
  for (const path of left.paths) path.push(right.root);
  for (const path of right.paths) path.push(left.root);
  return { root: nodeHash(left.root, right.root), paths: [...left.paths, ...right.paths] };
}

/** The proof that a tree of `size` leaves begins with one of `from` leaves (RFC 6962, 2.1.2), made while its leaves pass. */
export class ConsistencyProof {
  /** Where the subtrees begin whose roots make the proof, in its order. */
  readonly #parts: readonly { readonly from: number; readonly to: number; readonly edge: TreeEdge }[];
  #size = 0;

  constructor(from: number, size: number) {
    this.#parts = subproof(from, { from: 0, to: size }, true).map((part) => ({
      ...part,
      edge: new TreeEdge(),
    }));
  }

  append(leaf: Hash): void {
    const at = this.#size++;
    this.#parts.find(({ from, to }) => from <= at && at < to)?.edge.append(leaf);
  }

  end(): Hash[] {
    return this.#parts.map(({ edge }) => edge.root);
  }
}

interface Range {
  readonly from: number;
  readonly to: number;
}

/** `isWhole`: the first `m` leaves are the whole older tree, whose root its reader knows. */
function subproof(m: number, { from, to }: Range, isWhole: boolean): Range[] {
  if (m === 0) return [];
  if (m === to - from) return isWhole ? [] : [{ from, to }];
  const middle = from + splitOf(to - from);
  if (m <= middle - from) return [...subproof(m, { from, to: middle }, isWhole), { from: middle, to }];
  return [...subproof(m - (middle - from), { from: middle, to }, false), { from, to: middle }];
}

/** The largest power of two below `size`. */
function splitOf(size: number): number {
  let split = 1;
  while (split * 2 < size) split *= 2;
  return split;
}

/** Whether the path proves the leaf at `index` of a tree of that size and root. Throws where it has what is no hash. */
export function provesInclusion(
  { leaf, index, path }: { readonly leaf: Hash; readonly index: number; readonly path: readonly Hash[] },
  { size, root }: { readonly size: number; readonly root: Hash },
): boolean {
  if (index >= size) return false;
  return pathRoot(leaf, { from: index, of: size }, [...path]) === root;
}

/** `undefined` for a path of another length. */
function pathRoot(leaf: Hash, { from, of }: { from: number; of: number }, path: Hash[]): Hash | undefined {
  if (of === 1) return path.length === 0 ? leaf : undefined;
  const sibling = path.pop();
  if (sibling === undefined) return undefined;
  const middle = splitOf(of);
  if (from < middle) {
    const left = pathRoot(leaf, { from, of: middle }, path);
    return left && nodeHash(left, sibling);
  }
  const right = pathRoot(leaf, { from: from - middle, of: of - middle }, path);
  return right && nodeHash(sibling, right);
}

interface Tree {
  readonly size: number;
  readonly root: Hash;
}

/** Whether the proof shows that the newer tree begins with the leaves of the older one. Throws where it has what is no hash. */
export function provesConsistency(older: Tree, newer: Tree, proof: readonly Hash[]): boolean {
  if (older.size > newer.size) return false;
  if (older.size === 0) return proof.length === 0;
  const roots = consistencyRoots(older, newer.size, { proof: [...proof], isWhole: true });
  return roots?.older === older.root && roots.newer === newer.root;
}

/** The roots that the proof gives for the first `size` leaves, and for all; `undefined` for one of another length. */
function consistencyRoots(
  older: Tree,
  of: number,
  { proof, isWhole }: { proof: Hash[]; isWhole: boolean },
): { readonly older: Hash; readonly newer: Hash } | undefined {
  if (older.size === of) {
    const root = isWhole ? older.root : proof.pop();
    return root === undefined || proof.length > 0 ? undefined : { older: root, newer: root };
  }
  const sibling = proof.pop();
  if (sibling === undefined) return undefined;
  const middle = splitOf(of);
  if (older.size <= middle) {
    const left = consistencyRoots(older, middle, { proof, isWhole });
    return left && { older: left.older, newer: nodeHash(left.newer, sibling) };
  }
  const rest = { ...older, size: older.size - middle };
  const right = consistencyRoots(rest, of - middle, { proof, isWhole: false });
  return right && { older: nodeHash(sibling, right.older), newer: nodeHash(sibling, right.newer) };
}
