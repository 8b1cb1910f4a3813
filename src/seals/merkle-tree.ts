import { hash } from 'node:crypto';

/** A SHA-256 in base64, as it is signed and stored. Two hashes are equal if their texts are. */
export type Hash = string;

const HASH_BYTES = 32;
/** The first byte of what is hashed (RFC 6962, 2.1). It differs so that a leaf can't be passed off as a node. */
const [LEAF, NODE] = [0, 1];
/** A buffer that is reused for each node. */
const node = Buffer.alloc(1 + 2 * HASH_BYTES, NODE);

/** Returns the hash of an entry that begins at the second byte. The first byte is overwritten. */
export function leafHash(entry: Buffer): Hash {
  entry[0] = LEAF;
  return hash('sha256', entry, 'base64');
}

/** Returns the hash of a node. Throws if an argument is not a hash. */
export function nodeHash(left: Hash, right: Hash): Hash {
  const written = node.write(left, 1, 'base64') + node.write(right, 1 + HASH_BYTES, 'base64');
  if (written !== 2 * HASH_BYTES) throw new RangeError('a hash has 32 bytes');
  return hash('sha256', node, 'base64');
}

/** A tree of RFC 6962 that grows at its end. It keeps only the roots of its complete subtrees, the largest first. */
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

  /** The root of the tree. That of an empty tree is the hash of nothing. */
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

/**
 * Makes inclusion proofs of leaves while the leaves of a tree pass. It keeps only those paths and the edge of the tree.
 */
export class InclusionPaths {
  readonly #subtrees: Subtree[] = [];
  #size = 0;

  /** Returns the path of the leaf if it `isWanted`. The path is complete after `end`. */
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

/** Proves that a tree of `size` leaves begins with one of `from` leaves (RFC 6962, 2.1.2), while its leaves pass. */
export class ConsistencyProof {
  /** The subtrees whose roots make up the proof, in its order. */
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

/** `isWhole`: the first `m` leaves are the whole older tree, whose root the reader of the proof knows. */
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

/**
 * True if the path proves the leaf at `index` of a tree of this size and root. Throws if the path has something else.
 */
export function provesInclusion(
  { leaf, index, path }: { readonly leaf: Hash; readonly index: number; readonly path: readonly Hash[] },
  { size, root }: { readonly size: number; readonly root: Hash },
): boolean {
  if (index >= size) return false;
  return pathRoot(leaf, { from: index, of: size }, [...path]) === root;
}

/** Returns the root that a path gives for a leaf; `undefined` if the path has the wrong length. */
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

/** True if the proof shows that the newer tree begins with the older one. Throws if it contains anything but hashes. */
export function provesConsistency(older: Tree, newer: Tree, proof: readonly Hash[]): boolean {
  if (older.size > newer.size) return false;
  if (older.size === 0) return proof.length === 0;
  const roots = consistencyRoots(older, newer.size, { proof: [...proof], isWhole: true });
  return roots?.older === older.root && roots.newer === newer.root;
}

/** Returns the roots that a proof gives for the older and the newer tree; `undefined` if it has the wrong length. */
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
