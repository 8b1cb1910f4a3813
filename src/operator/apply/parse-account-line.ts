import { accountStream } from '../../domain/account-events.ts';
import { type DesiredAccount, faultsOfDesired } from '../../domain/desired-account.ts';
import { MAX_NESTING, shortened } from '../../domain/values/bounds.ts';
import { type ParsedLine, parseJsonLine } from '../lines/lines.ts';

const LINE = {
  members: '"account_id"',
  maxLevels: MAX_NESTING,
  levels: `the ${MAX_NESTING} levels that a line may have`,
  refusesRepeated: true,
} as const;

/** Reads one account as it should be. Of a line that is not usable the reason lists every fault. */
export function parseAccountLine(text: string): ParsedLine<DesiredAccount> {
  const line = parseJsonLine(text, LINE);
  if (!line.ok) return { ok: false, reason: shortened(line.reason) };
  const faults = faultsOfDesired(line.members);
  if (faults.length > 0) return { ok: false, reason: shortened(faults.join('; ')) };
  const content = line.members as DesiredAccount;
  return { ok: true, stream: accountStream(content.account_id), content };
}
