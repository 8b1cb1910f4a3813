import type { UnknownSetting } from '../../../base/config/config.ts';
import { type Finding, right, wrong } from './check.ts';

/** Whether `fuel serve` would start with these settings and the files that they name. */
export function checkConfiguration({
  faults,
  unknown,
}: {
  readonly faults: readonly string[];
  readonly unknown: readonly UnknownSetting[];
}): Finding {
  const misspelt = unknown.flatMap(({ name, resembles }) =>
    resembles === null ? [] : [`${name} is no setting: did you mean ${resembles}?`],
  );
  const all = [...faults, ...misspelt];
  if (all.length === 0) return right('valid for fuel serve');
  return wrong(
    all.join('; '),
    'correct these variables of the environment, and look at them with: fuel config show',
  );
}
