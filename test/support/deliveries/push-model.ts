import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import { deliveryId } from '../../../src/push/message/envelope.ts';
import type { Delivery, DeliveryReport, DeliveryState } from '../../../src/push/queue/delivery.ts';
import type { PushMachine, Sent } from './push.ts';

/** The members that the model looks at, of whatever event. */
interface EventData {
  readonly prefix?: string;
  readonly profile: string;
  readonly from: string;
  readonly to: string | null;
  readonly url: string;
  readonly set_at: string;
  readonly transaction_id: number;
  readonly created_at: string;
}

interface KeyModel {
  active: boolean;
  url: string | null;
  setAtMs: number;
  disabled: boolean;
  /** Of the last event that ended what was pending. */
  endedAt: number;
}

/**
 * What must be true of the push channel, written as plainly as possible: a fold of the log that knows two keys
 * of one account, a count of failures, and a list of everything that went against the rules.
 */
export class PushModel {
  readonly violations: string[] = [];
  readonly owed = new Set<string>();
  readonly runs = new Map<string, number>();
  readonly withdrawn = new Set<number>();
  readonly #machine: PushMachine;
  readonly #keys = new Map<string, KeyModel>();
  /** By delivery id: its key, its transaction and the position of the transaction's event. */
  readonly #deliveries = new Map<string, { prefix: string; transactionId: number; position: number }>();
  readonly #delivered = new Set<string>();
  readonly #redelivered = new Set<string>();
  /** By key, as of which time its count was reset last. */
  readonly #resets = new Map<string, number>();
  #integration = false;
  #profiles = new Map<string, { fromMs: number; toMs: number }>();
  #folded = 0;

  constructor(machine: PushMachine) {
    this.#machine = machine;
    machine.onCommit = async (name, args, commit) => {
      if (name === 'resetHealth') {
        const [prefix, enabledAtMs] = args as [string, number];
        const { failingSinceMs } = await machine.queue.health(prefix);
        const isNew = (this.#resets.get(prefix) ?? 0) < enabledAtMs;
        if (isNew && (failingSinceMs ?? 0) < enabledAtMs) this.runs.set(prefix, 0);
        if (isNew) this.#resets.set(prefix, enabledAtMs);
      }
      if (name !== 'report') return commit();
      const reports = args[0] as readonly DeliveryReport[];
      const before = await this.#found(reports);
      const result = await commit();
      const after = await this.#found(reports);
      reports.forEach((report, index) => {
        const [was, is] = [before[index], after[index]];
        if (is?.attempts.length !== was?.attempts.length) this.#recorded(report, was?.state);
      });
      return result;
    };
  }

  /** Reads on in the log. Call it after every step. */
  fold(): void {
    const batch = this.#machine.store.readAll({ prefixes: [], after: this.#folded, limit: 100_000 });
    for (const event of batch.events) this.#foldOne(event);
    this.#folded = batch.position;
  }

  redeliveryAsked(id: string): void {
    this.#redelivered.add(id);
    this.#delivered.delete(id);
  }

  hasAccess(nowMs: number): boolean {
    return this.#integration && [...this.#profiles.values()].some((p) => p.fromMs <= nowMs && nowMs < p.toMs);
  }

  /** Checks an attempt that starts now against every rule. */
  attemptBegins({ id, url, atMs }: Sent): void {
    const delivery = this.#deliveries.get(id);
    if (delivery === undefined || !this.owed.has(id)) {
      this.violations.push(`${id} is owed to nobody`);
      return;
    }
    const { prefix, transactionId, position } = delivery;
    const key = this.#keys.get(prefix);
    const broken = {
      'without access': !this.hasAccess(atMs),
      'to a key that is off': key?.active !== true,
      'to a webhook that is gone, disabled or elsewhere': key?.url !== url || key.disabled,
      'after its withdrawal': this.withdrawn.has(transactionId),
      'after its lane was ended': !this.#redelivered.has(id) && (key?.endedAt ?? 0) > position,
      'after it was delivered': this.#delivered.has(id),
    };
    for (const [rule, isBroken] of Object.entries(broken)) {
      if (isBroken)
        this.violations.push(`attempt of transaction ${transactionId} for ${prefix} began ${rule}`);
    }
  }

  #found(reports: readonly DeliveryReport[]): Promise<(Delivery | undefined)[]> {
    return Promise.all(reports.map(({ id }) => this.#machine.queue.find(id)));
  }

  /** A failed attempt that was under way when its delivery ended is outside the streak. */
  #recorded(report: DeliveryReport, was: DeliveryState | undefined): void {
    const prefix = this.#deliveries.get(report.id)?.prefix ?? '';
    if (report.kind === 'delivered') {
      this.runs.set(prefix, 0);
      this.#delivered.add(report.id);
    }
    if (report.kind === 'failed' && was === 'pending')
      this.runs.set(prefix, (this.runs.get(prefix) ?? 0) + 1);
  }

  #foldOne({ type, data, position }: RecordedEvent): void {
    const d = data as EventData;
    const prefix = d.prefix ?? '';
    const key = this.#keys.get(prefix);
    const ended = type === 'KeySwitchedOff' || type === 'WebhookRemoved' || type === 'WebhookDisabled';
    if (key !== undefined && ended) key.endedAt = position;
    if (type === 'TransactionConfirmed') this.#announce(d, position);
    if (type === 'IntegrationEnabled' || type === 'IntegrationDisabled')
      this.#integration = type === 'IntegrationEnabled';
    if (type === 'ChargingProfileSet') {
      const toMs = d.to === null ? Infinity : Date.parse(d.to);
      this.#profiles.set(d.profile, { fromMs: Date.parse(d.from), toMs });
    }
    if (type === 'KeyIssued') {
      const fresh = { active: true, url: null, setAtMs: 0, disabled: false, endedAt: 0 };
      this.#keys.set(prefix, fresh);
    }
    if (key === undefined) return;
    if (type === 'KeySwitchedOff' || type === 'KeySwitchedOn') key.active = type === 'KeySwitchedOn';
    if (type === 'WebhookDisabled' && key.url !== null) key.disabled = true;
    if (type === 'WebhookEnabled') key.disabled = false;
    if (type === 'WebhookRemoved') Object.assign(key, { url: null, disabled: false });
    if (type === 'WebhookUrlSet') Object.assign(key, { url: d.url, setAtMs: Date.parse(d.set_at) });
  }

  #announce(d: EventData, position: number): void {
    const transactionId = d.transaction_id;
    for (const [prefix, key] of this.#keys) {
      const id = deliveryId(prefix, transactionId);
      this.#deliveries.set(id, { prefix, transactionId, position });
      const created = Date.parse(d.created_at) >= key.setAtMs;
      if (key.active && key.url !== null && !key.disabled && created) this.owed.add(id);
    }
  }
}
