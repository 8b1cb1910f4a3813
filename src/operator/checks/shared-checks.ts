import type { Directory } from '../../../projections/directory.ts';
import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import { readDisk } from '../../base/disk/disk.ts';
import type { FollowerStatus } from '../../service/ops/followers.ts';
import { MAX_BACKLOG_COUNTED } from '../../service/ops/shared-figures.ts';
import { type Finding, right, wrong } from './checks/check.ts';
import { type CheckId, type Facts, type Problem, verdictOf } from './checks/table.ts';
import { failingWebhooks, MAX_FAILING, webhooksOf } from './checks/webhooks.ts';
import type { FoundStores } from './found-stores.ts';

interface Given {
  readonly found: FoundStores;
  readonly config: Pick<Config, 'FUEL_DATA_DIR' | 'FUEL_ENVIRONMENT'>;
  readonly clock: Clock;
  /** Some of the stores are files. */
  readonly isEmbedded: boolean;
}

/** What doctor judges by the table that the console uses too, on what it finds in the stores. */
export class SharedChecks {
  readonly #given: Given;

  constructor(given: Given) {
    this.#given = given;
  }

  async withDirectory(judge: (all: Directory) => Finding | Promise<Finding>): Promise<Finding> {
    const all = await this.#given.found.directory();
    return all === undefined ? noStore(this.#given.found) : judge(all);
  }

  accounts(): Promise<Finding> {
    return this.withDirectory((all) => {
      const accounts = [...all.accounts()];
      const closed = accounts.filter(({ unreadable }) => unreadable !== null).map(({ id }) => id);
      return judged(
        'accounts',
        this.#facts({ closed }),
        `${accounts.length} accounts; the events of each can be read`,
      );
    });
  }

  parked(): Promise<Finding> {
    return this.#followers('parked-events', ({ parked }) => `${parked}`);
  }

  consumers(): Promise<Finding> {
    return this.#followers(
      'consumers',
      ({ holder }) => holder ?? 'nothing to do yet',
      async () => {
        const all = await this.#given.found.directory();
        if (all === undefined) return {};
        return { webhooks: [...webhooksOf(all, this.#given.config.FUEL_ENVIRONMENT)].length };
      },
    );
  }

  lag(): Promise<Finding> {
    return this.#followers('lag', (each) => `${each.lag_events ?? 'many'} events, ${each.lag_seconds} s`);
  }

  webhooks(): Promise<Finding> {
    return this.withDirectory(async (all) => {
      if ((await this.#given.found.state('queue')) === 'damaged') return notChecked(['data-directory']);
      const keys = [...webhooksOf(all, this.#given.config.FUEL_ENVIRONMENT)].map(({ key }) => key);
      const disabled = keys.filter(({ webhook }) => webhook?.disabled != null).map(({ prefix }) => prefix);
      const queue = await this.#given.found.find('queue');
      const { pending = 0, held = 0 } = (await queue?.backlog(MAX_BACKLOG_COUNTED)) ?? {};
      const failing = failingWebhooks((await queue?.failingLanes(MAX_FAILING)) ?? [], { directory: all });
      const counts = `${keys.length} webhooks, ${disabled.length} switched off, ${failing.length} failing`;
      const detail = `${counts}; deliveries: ${pending} pending, ${held} held`;
      return judged('webhooks', this.#facts({ disabled, failing }), detail);
    });
  }

  async #followers(
    id: CheckId,
    describe: (follower: FollowerStatus) => string,
    more: () => Promise<Pick<Facts, 'webhooks'>> = async () => ({}),
  ): Promise<Finding> {
    // Where it is full no process can report what it works on.
    const disk = this.#given.isEmbedded ? await readDisk(this.#given.config.FUEL_DATA_DIR) : undefined;
    const { causes } = verdictOf(id, this.#facts({ disk }));
    if (causes.length > 0) return notChecked(causes);
    const followers = await this.#given.found.followers();
    if (followers === undefined) return noStore(this.#given.found);
    const detail = followers.map((each) => `${each.name}: ${describe(each)}`).join('; ');
    return judged(id, this.#facts({ followers, ...(await more()) }), detail);
  }

  #facts(known: Omit<Facts, 'atMs'>): Facts {
    return { atMs: this.#given.clock.now(), ...known };
  }
}

/** By the table that the console uses too; `detail` where nothing is wrong. */
export function judged(id: CheckId, facts: Facts, detail: string): Finding {
  const { severity, problems, causes } = verdictOf(id, facts);
  if (causes.length > 0) return notChecked(causes);
  if (problems.length === 0) return right(detail);
  const commandOf = ({ words }: Problem): string => `fuel ${words.join(' ')}`;
  if (severity === 'look') {
    return right([detail, ...problems.map((each) => `${each.text} (${commandOf(each)})`)].join('; '));
  }
  const cures = new Set(problems.map((each) => each.do ?? commandOf(each)));
  return wrong(problems.map(({ text }) => text).join('; '), [...cures].join('; '));
}

export function notChecked(causes: readonly string[]): Finding {
  return right(`not checked, because ${causes.join(' and ')} ${causes.length === 1 ? 'is' : 'are'} wrong`);
}

async function noStore(found: FoundStores): Promise<Finding> {
  const isMissing = (await found.state('store')) === 'missing';
  return right(isMissing ? 'there is no store yet' : 'not looked at: the check store says why');
}
