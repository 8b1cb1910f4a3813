import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** True if nothing holds any of these objects any more. */
export async function areCollected(objects: readonly WeakRef<object>[]): Promise<boolean> {
  await nextTurn(); // until then a WeakRef itself holds its object
  collectGarbage();
  return objects.every((object) => object.deref() === undefined);
}
