import type { Clock } from '../../base/clock.ts';
import { SerialWork } from '../../base/serial-work.ts';

import type { Tables } from '../../tables/tables.ts';
import type { DeliveryQueue } from '../queue/delivery-queue.ts';
import { applyChange, redeliver } from './apply-change.ts';
import { laneHeads, leaseChosen, readHeads } from './claim.ts';
import { DueFloor } from './due-floor.ts';
import { storeNew } from './enqueue.ts';
import { readPage } from './page.ts';
import {
  askedToWaitUntil,
  backlog,
  countIn,
  dueLanes,
  failingLanes,
  findDelivery,
  getDeliveries,
  healthOfLane,
  logName,
  transactionsAfter,
} from './reads.ts';
import { recordReports } from './report.ts';
import { partsOf } from './tables.ts';

/**
 * Opens the delivery log over the tables of `DELIVERY_STORE`, which any number of processes may do. `clock` dates what
 * calls do not date: the log's start, a release, an end without an attempt. A call with something that can't be stored
 * rejects with `ITEM_REFUSED` and stores nothing. An interrupted call is completed by repeating it, or its leases end.
 */
export function openDeliveryLog(tables: Tables, clock: Clock): DeliveryQueue {
  const known = { lanes: new Set<string>(), partFor: partsOf(clock) };
  const serial = new SerialWork();
  const floor = new DueFloor(tables);
  return {
    tables,
    changed: floor.changed,
    async enqueue(deliveries, terms) {
      const { claimed, unclaimed } = await storeNew(tables, deliveries, { terms, known });
      if (terms !== undefined) floor.lower(terms.nowMs + terms.leaseMs);
      if (unclaimed > 0) floor.madeDue(deliveries.map(({ createdAtMs }) => createdAtMs));
      return claimed;
    },
    async heads(options) {
      const { lanes, nextAtMs } = await floor.look((fromMs) => readHeads(tables, options, fromMs));
      return { lanes, nextAtMs };
    },
    async lease(lanes, terms) {
      const claimed = await leaseChosen(tables, lanes, terms);
      floor.lower(terms.nowMs + terms.leaseMs);
      return claimed;
    },
    async report(reports) {
      const { health, dueMs } = await recordReports(tables, reports, { nowMs: clock.now(), serial });
      floor.madeDue(dueMs);
      return health;
    },
    change: (change, nowMs) => applyChange(tables, change, nowMs),
    async redeliver(delivery, options) {
      const answer = await redeliver(tables, delivery, options);
      if (answer === 'due') floor.madeDue([options.dueAtMs]);
      return answer;
    },
    logId: () => logName(tables, clock),
    find: (id) => findDelivery(tables, id),
    get: (deliveries) => getDeliveries(tables, deliveries),
    page: (filter, options) => readPage(tables, filter, options),
    pendingLanes: (prefixes) => laneHeads(tables, prefixes),
    countIn: (prefixes, at) => countIn(tables, prefixes, at),

    transactionsAfter: (afterId, limit) => transactionsAfter(tables, afterId, limit),
    health: (prefix) => healthOfLane(tables, prefix),
    failingLanes: (limit) => failingLanes(tables, limit),
    dueLanes: (options) => dueLanes(tables, options),
    askedToWaitUntil: (prefix, nowMs) => askedToWaitUntil(tables, prefix, nowMs),
    backlog: (at) => backlog(tables, at),
    close: () => tables.close(),
  };
}
