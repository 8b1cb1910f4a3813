/** Of a command that switches something off: why, in the operator's words. */
export interface GivenReason {
  readonly reason?: string | undefined;
}

/** The member of the event's data that keeps it; none where no reason was given. */
export function reasonOf({ reason }: GivenReason): { readonly reason?: string } {
  return reason === undefined ? {} : { reason };
}
