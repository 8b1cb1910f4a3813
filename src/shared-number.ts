import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';

/** One number of this name for the whole process: threads inherit it as environment data. Begins with 0. */
export function sharedNumber(name: string): Uint32Array {
  const known = getEnvironmentData(name);
  if (known instanceof Uint32Array) return known;
  const made = new Uint32Array(new SharedArrayBuffer(Uint32Array.BYTES_PER_ELEMENT));
  setEnvironmentData(name, made);
  return made;
}
