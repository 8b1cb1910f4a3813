import type { Damage } from '../../event-store/event-store.ts';

export interface JudgedLog<Judges> {
  readonly damage: readonly Damage[];
  readonly judges: Judges;
}

/**
 * Judges while the store is searched for damage, as if there were none: it is rare. Where there is some, judges again,
 * and drops what was found before. Both have ended when this resolves or rejects.
 */
export async function judgeWhileSearching<Judges>(
  searching: Promise<readonly Damage[]>,
  judge: (damage: readonly Damage[]) => Promise<Judges>,
): Promise<JudgedLog<Judges>> {
  const judging = judge([]);
  await Promise.allSettled([searching, judging]);
  const damage = await searching;
  return { damage, judges: await (damage.length === 0 ? judging : judge(damage)) };
}
