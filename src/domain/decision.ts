/** The result of a command: events to record, nothing because it is so already, or why it is not possible. */
export type Decision<Event> =
  | { readonly kind: 'events'; readonly events: readonly Event[] }
  | Unchanged
  | Refused;

export interface Unchanged {
  readonly kind: 'unchanged';
}

export interface Refused {
  readonly kind: 'refused';
  /** A sentence that says what to do. */
  readonly reason: string;
}

export const unchanged: Unchanged = { kind: 'unchanged' };

export function refused(reason: string): Refused {
  return { kind: 'refused', reason };
}

export function record<Event>(...events: readonly Event[]): Decision<Event> {
  return { kind: 'events', events };
}

/** Of a command that switches something off: why, in the operator's words. */
export interface GivenReason {
  readonly reason?: string | undefined;
}

/** The member of the event's data that keeps it; none where no reason was given. */
export function reasonOf({ reason }: GivenReason): { readonly reason?: string } {
  return reason === undefined ? {} : { reason };
}
