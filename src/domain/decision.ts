/** The result of a command: events to record, no change because it has no effect, or why it is not possible. */
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

/** A command that switches something off, with the operator's reason. */
export interface GivenReason {
  readonly reason?: string | undefined;
}

/** The member of the event's data that holds the reason; empty if none was given. */
export function givenReason({ reason }: GivenReason): { readonly reason?: string } {
  return reason === undefined ? {} : { reason };
}
