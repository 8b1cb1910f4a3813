import type { ApiMetrics } from '../../pull/api-metrics.ts';

type Labels = Readonly<Record<string, string | number>>;
type LabelledName = 'requests' | 'accessRefusals' | 'connectionsTurnedAway';
type PlainName = 'pageRows' | 'pageEntriesRead' | 'edgeNotEnforced';

/** What an API thread has counted since its last report. */
export interface ApiReport {
  readonly labelled: readonly {
    readonly name: LabelledName;
    readonly labels: Labels;
    readonly count: number;
  }[];
  readonly plain: Readonly<Record<PlainName, number>>;
  /** Status and seconds in turn. */
  readonly durations: Float64Array;
}

/** Counts for an API thread, which has no registry: the main thread adds its reports to the metrics of the process. */
export class ApiMeter implements ApiMetrics {
  readonly requests = this.#labelled('requests');
  readonly accessRefusals = this.#labelled('accessRefusals');
  readonly connectionsTurnedAway = this.#labelled('connectionsTurnedAway');
  readonly pageRows = this.#plain('pageRows');
  readonly pageEntriesRead = this.#plain('pageEntriesRead');
  readonly edgeNotEnforced = this.#plain('edgeNotEnforced');
  readonly requestDuration = {
    observe: ({ status }: { readonly status: number }, seconds: number): void => {
      this.#durations.push(status, seconds);
    },
  };
  readonly #counts = new Map<
    string,
    { readonly name: LabelledName; readonly labels: Labels; count: number }
  >();
  #sums: Record<PlainName, number> = noSums();
  #durations: number[] = [];

  /** What was counted since the last call. */
  take(): ApiReport {
    const report = {
      labelled: [...this.#counts.values()],
      plain: this.#sums,
      durations: Float64Array.from(this.#durations),
    };
    this.#counts.clear();
    this.#sums = noSums();
    this.#durations = [];
    return report;
  }

  #labelled(name: LabelledName) {
    return {
      inc: (labels: Labels, by = 1): void => {
        const key = `${name} ${Object.values(labels).join(' ')}`;
        const counted = this.#counts.get(key);
        if (counted === undefined) this.#counts.set(key, { name, labels, count: by });
        else counted.count += by;
      },
    };
  }

  #plain(name: PlainName) {
    return {
      inc: (by = 1): void => {
        this.#sums[name] += by;
      },
    };
  }
}

export function addApiReport(metrics: ApiMetrics, { labelled, plain, durations }: ApiReport): void {
  for (const { name, labels, count } of labelled) metrics[name].inc(labels, count);
  for (const [name, sum] of Object.entries(plain)) metrics[name as PlainName].inc(sum);
  for (let at = 0; at < durations.length; at += 2) {
    metrics.requestDuration.observe({ status: durations[at] ?? 0 }, durations[at + 1] ?? 0);
  }
}

function noSums(): Record<PlainName, number> {
  return { pageRows: 0, pageEntriesRead: 0, edgeNotEnforced: 0 };
}
