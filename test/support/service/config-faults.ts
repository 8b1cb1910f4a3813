import { expect } from 'vitest';
import type { Role } from '../../../src/base/config/settings.ts';
import { loadConfig } from '../../../src/engines/engines.ts';

export type Env = Readonly<Record<string, string | undefined>>;

/** Returns the faults that keep a service from starting with these settings. */
export function faultsOf(
  env: Env,
  purpose: 'serve' | 'command' = 'serve',
  roles?: readonly Role[],
): string[] {
  try {
    loadConfig(env, purpose, roles);
    return [];
  } catch (error) {
    expect(error).toMatchObject({ code: 'CONFIG_INVALID' });
    return (error as Error).message.split('\n  ').slice(1);
  }
}

/** Returns the names of the settings that have a fault. */
export const faulty = (env: Env, purpose?: 'serve' | 'command', roles?: readonly Role[]) =>
  faultsOf(env, purpose, roles).map((fault) => fault.slice(0, fault.indexOf(':')));
