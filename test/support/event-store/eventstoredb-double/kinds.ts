import { type ServiceError, status } from '@grpc/grpc-js';
import { fault } from './answers.ts';
import { UNLISTED } from './log-record.ts';

export const KINDS = ['EventStoreDB', 'KurrentDB'] as const;
export type Kind = (typeof KINDS)[number];

/**
 * The differences of EventStoreDB 23.10 and KurrentDB 25 and 26 for a client. test/…/double-kinds.test.ts runs on real ones
 * too.
 */
export interface KindOfServer {
  readonly version: string;
  /** The streams that a node writes to when it becomes the leader; a single node does so at each start. */
  readonly epochs: readonly string[];
  /** The type of a group's checkpoints. */
  readonly checkpointType: string;
  /** True if a subscription takes the first event from its position on for the one that was seen, and skips it. */
  readonly skipsFirst: boolean;
  /** True if a subscription with a filter reports the end, where the next event will begin, before it is live. */
  readonly reportsEnd: boolean;
  /** True if a replay hands out links whose event was erased. */
  readonly replaysGone: boolean;
  /** The answer to a position at which no record begins. */
  readonly invalidRead: () => ServiceError;
  readonly invalidSubscription: () => ServiceError;
}

export const SERVERS: Readonly<Record<Kind, KindOfServer>> = {
  EventStoreDB: {
    version: '23.10.6',
    epochs: ['$epoch-information'],
    checkpointType: 'SubscriptionCheckpoint',
    skipsFirst: true,
    reportsEnd: false,
    replaysGone: true,
    invalidRead: () => fault(status.UNKNOWN, 'Unexpected ReadAllResult: Error'),
    invalidSubscription: () => fault(status.UNKNOWN, 'Exception was thrown by handler.'),
  },
  KurrentDB: {
    version: '25.0.0',
    epochs: ['$epoch-information', UNLISTED],
    checkpointType: '$SubscriptionCheckpoint',
    skipsFirst: false,
    reportsEnd: true,
    replaysGone: false,
    invalidRead: () => fault(status.UNKNOWN, 'Unexpected ReadAllResult: InvalidPosition'),
    invalidSubscription: () => fault(status.INVALID_ARGUMENT, 'Trying to read from an invalid position.'),
  },
};
