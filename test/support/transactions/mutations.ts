type Container = Record<string | number, unknown>;
export type Path = readonly [string | number, ...(string | number)[]];

/** Returns the path of every value inside a JSON document, containers included. */
export function pathsOf(document: unknown, above: readonly (string | number)[] = []): Path[] {
  if (typeof document !== 'object' || document === null) return [];
  return Object.entries(document).flatMap(([name, value]) => {
    const path: Path = [...above, name] as unknown as Path;
    return [path, ...pathsOf(value, path)];
  });
}

/** Returns a copy of the document with another value at `path`. `undefined` removes the value. */
export function withValue<T>(document: T, path: readonly (string | number)[], value: unknown): T {
  const copy = structuredClone(document);
  let parent = copy as unknown as Container;
  for (const name of path.slice(0, -1)) {
    const next = parent[name];
    if (typeof next !== 'object' || next === null) return copy; // an earlier change removed it
    parent = next as Container;
  }
  const last = path.at(-1) ?? '';
  if (value !== undefined) parent[last] = value;
  else if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else delete parent[last];
  return copy;
}
