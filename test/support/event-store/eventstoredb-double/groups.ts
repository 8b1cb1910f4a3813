import persistent from '@eventstore/db-client/generated/persistent_pb.js';
import { groupFault, invalidArgument, type SubscriptionCall } from './answers.ts';
import type { DoubleLog } from './double-log.ts';
import { Group } from './group.ts';
import { type GroupSettings, positionText, readSettings, toSubscriptionInfo } from './group-settings.ts';
import { jsonOf, systemRecord } from './log-record.ts';

const CONFIGURATION = '$persistentSubscriptionConfig';

/** The persistent subscriptions to `$all`. Their settings are in the log, so that they survive a restart. */
export class Groups {
  readonly #log: DoubleLog;
  readonly #timing: { readonly tickMs: number };
  readonly #groups = new Map<string, Group>();
  /** How many events each acknowledgement named. */
  readonly acknowledged: number[] = [];

  constructor(log: DoubleLog, timing: { readonly tickMs: number }) {
    this.#log = log;
    this.#timing = timing;
    const last = log.index.all(CONFIGURATION).at(-1);
    const { entries } = last === undefined ? { entries: [] } : (jsonOf(last) as { entries: GroupSettings[] });
    for (const entry of entries) this.#groups.set(entry.group, new Group(log, entry, timing));
  }

  async create(options: persistent.CreateReq.Options | undefined): Promise<void> {
    const all = options?.getAll();
    if (options === undefined || all === undefined || all.hasFilter())
      throw invalidArgument('only groups of $all without a filter');
    const group = options.getGroupName();
    if (this.#groups.has(group)) throw groupFault('persistent-subscription-exists', group);
    const startPosition = this.#placeOf(all);
    const settings = readSettings(options.getSettings(), { group, startPosition });
    this.#groups.set(group, new Group(this.#log, settings, this.#timing));
    await this.#save();
  }

  /** Drops the consumers and keeps the checkpoint, if any. */
  async update(options: persistent.UpdateReq.Options | undefined): Promise<void> {
    const old = this.#find(options?.getGroupName());
    const { group } = old.settings;
    old.close({ isDropped: true });
    const startPosition = this.#placeOf(options?.getAll());
    const settings = readSettings(options?.getSettings(), { group, startPosition });
    this.#groups.set(group, new Group(this.#log, settings, this.#timing));
    await this.#save();
  }

  async delete(options: persistent.DeleteReq.Options | undefined): Promise<void> {
    const group = this.#find(options?.getGroupName());
    group.close({ isDropped: true });
    this.#groups.delete(group.settings.group);
    await this.#save();
  }

  async replayParked(options: persistent.ReplayParkedReq.Options | undefined): Promise<void> {
    await this.#find(options?.getGroupName()).replayParked();
  }

  info(options: persistent.GetInfoReq.Options | undefined): persistent.SubscriptionInfo {
    const group = this.#find(options?.getGroupName());
    return toSubscriptionInfo(group.settings, group.statistics());
  }

  /**
   * Serves one consumer until it leaves. Errors are passed to the call, since throwing while it is read would end it
   * without an answer.
   */
  read(call: SubscriptionCall): void {
    let group: Group | undefined;
    call.on('data', (message: persistent.ReadReq) => {
      const options = message.getOptions();
      if (options === undefined) return this.#answered(message, group);
      try {
        group = this.#join(call, options);
      } catch (error) {
        call.emit('error', error);
      }
    });
  }

  #join(call: SubscriptionCall, options: persistent.ReadReq.Options): Group {
    const group = this.#find(options.getGroupName());
    const [name = '<unknown>'] = call.metadata.get('connection-name').map(String);
    const client = { call, name, bufferSize: options.getBufferSize(), inFlight: 0 };
    const leave = (): void => group.remove(client);
    call.once('cancelled', leave); // a consumer that sends nothing more still receives, as on the real server
    const confirmation = new persistent.ReadResp.SubscriptionConfirmation();
    confirmation.setSubscriptionId(`$all::${options.getGroupName()}`);
    call.write(new persistent.ReadResp().setSubscriptionConfirmation(confirmation));
    group.add(client);
    return group;
  }

  /** Stops like a dead process: hands out and writes nothing more. */
  close(): void {
    for (const group of this.#groups.values()) group.close({ isDropped: false });
  }

  #answered(message: persistent.ReadReq, group: Group | undefined): void {
    const ack = message.getAck();
    const nack = message.getNack();
    if (ack !== undefined) {
      const ids = ack.getIdsList().map((id) => id.getString());
      this.acknowledged.push(ids.length);
      group?.ack(ids);
    }
    if (nack === undefined) return;
    if (nack.getAction() !== persistent.ReadReq.Nack.Action.PARK) throw invalidArgument('only to park');
    const ids = nack.getIdsList().map((id) => id.getString());
    group?.park(ids, nack.getReason());
  }

  #placeOf(all: persistent.CreateReq.AllOptions | persistent.UpdateReq.AllOptions | undefined): string {
    const end = (this.#log.index.records.at(-1)?.position ?? -1) + 1;
    const given = Number(all?.getPosition()?.getCommitPosition() ?? 0);
    return positionText(all?.hasEnd() === true ? end : given);
  }

  #find(group = ''): Group {
    const found = this.#groups.get(group);
    if (found === undefined) throw groupFault('persistent-subscription-does-not-exist', group);
    return found;
  }

  async #save(): Promise<void> {
    const entries = [...this.#groups.values()].map(({ settings }) => settings);
    const event = systemRecord('$PersistentConfig', JSON.stringify({ version: '2', entries }));
    await this.#log.write({ stream: CONFIGURATION, expected: 'any', events: [event] });
  }
}
