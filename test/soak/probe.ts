import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Member } from '../crash/member.ts';
import { quantile, type Sample } from './trend.ts';

const MB = 1_048_576;

/** Measures a process, its files, and what customers and receivers noticed since the last look. */
export class Probe {
  readonly samples: Sample[] = [];
  /** The durations of pages in milliseconds. */
  readonly pages: number[] = [];
  readonly deliveries: number[] = [];
  readonly #member: Member;
  readonly #dataDir: string;

  constructor(member: Member, dataDir: string) {
    this.#member = member;
    this.#dataDir = dataDir;
  }

  /** Takes a sample, except while the process restarts. `recorded` is the number of transactions so far. */
  async look(recorded: number): Promise<void> {
    const { pid } = this.#member;
    const metrics = (await this.#member.ops('/metrics'))?.text;
    if (pid === undefined || metrics === undefined) return;
    const [pages, deliveries] = [this.pages.splice(0), this.deliveries.splice(0)];
    const sizes = sizesOf(this.#dataDir);
    const values: Record<string, number> = {
      'memory, MB': residentMb(pid),
      'open files': countOf(`/proc/${pid}/fd`),
      'event loop, ms': 1_000 * largestOf(metrics, 'fuel_event_loop_delay_seconds'),
      'lag, ms': 1_000 * largestOf(metrics, 'fuel_follower_lag_seconds'),
      'deliveries pending': largestOf(metrics, 'fuel_deliveries_pending'),
      'parked events': largestOf(metrics, 'fuel_follower_parked_events'),
      'page p50, ms': quantile(pages, 0.5),
      'page p99, ms': quantile(pages, 0.99),
      'delivery p50, ms': quantile(deliveries, 0.5),
      'delivery p99, ms': quantile(deliveries, 0.99),
      'journals, MB': sizes.journals / MB,
      ...Object.fromEntries(
        sizes.files.map(([name, bytes]) => [`${name}, bytes a transaction`, bytes / Math.max(1, recorded)]),
      ),
    };
    const known = Object.entries(values).filter(([, value]) => Number.isFinite(value));
    this.samples.push({ atMs: Date.now(), values: Object.fromEntries(known) });
  }
}

function residentMb(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes) / 1_024;
}

function countOf(folder: string): number {
  return readdirSync(folder).length;
}

/** Returns the largest value of all series of a metric. */
function largestOf(metrics: string, name: string): number {
  const values = [...metrics.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))];
  return values.reduce((most, [, value]) => Math.max(most, Number(value)), 0);
}

function sizesOf(dataDir: string): { files: (readonly [string, number])[]; journals: number } {
  const sizes = readdirSync(dataDir).map((name) => [name, statSync(join(dataDir, name)).size] as const);
  const isJournal = (name: string): boolean => /-(wal|shm)$/.test(name);
  return {
    files: [
      ...Map.groupBy(
        sizes.filter(([name]) => name.endsWith('.db')),
        ([name]) => name.replace(/-\d+/, ''),
      ),
    ].map(
      ([name, ofName]) => [name, ofName.reduce((sum, [, size]) => sum + size, 0)] as const, // a rebuild makes another file
    ),
    journals: sizes.reduce((sum, [name, size]) => sum + (isJournal(name) ? size : 0), 0),
  };
}
