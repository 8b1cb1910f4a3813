import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface ComposeService {
  readonly image: string;
  readonly build?: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly networks?: readonly string[];
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly deploy?: { readonly replicas: number };
  readonly restart?: string;
  readonly cap_drop?: readonly string[];
  readonly cap_add?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly read_only?: boolean;
  readonly tmpfs?: readonly string[];
  readonly mem_limit?: string;
}

export interface ComposeFile {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean } | null>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

/** Returns docker-compose.yml as it is written, with variables as `${…}`. */
export function composeFile(): ComposeFile {
  return parse(readFileSync(`${ROOT}/docker-compose.yml`, 'utf8'), { merge: true });
}

const VARIABLE = /\$(?:\{(\w+)(?::([-?])([^}]*))?\}|(\$))/g;

/** Replaces variables as Compose does: `${NAME}`, `${NAME:-default}`, `${NAME:?message}` (throws it) and `$$`. */
function interpolate(text: string, env: Readonly<Record<string, string>>): string {
  return text.replace(VARIABLE, (_, name: string, kind: string, rest: string, dollar: string) => {
    if (dollar !== undefined) return '$';
    const given = env[name];
    if (given !== undefined && given !== '') return given;
    if (kind === '?') throw new Error(`${name}: ${rest}`);
    return kind === '-' ? rest : '';
  });
}

/** Returns the names in the `${…}` of a text. */
export function variablesIn(text: string): string[] {
  return [...text.matchAll(VARIABLE)].flatMap(([, name]) => (name === undefined ? [] : [name]));
}

/** Returns a service's environment with every variable filled in. */
export function environmentOf(
  service: ComposeService,
  env: Readonly<Record<string, string>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(service.environment ?? {}).map(([name, text]) => [name, interpolate(text, env)]),
  );
}
