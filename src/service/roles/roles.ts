/** The roles of a process; by default it has all. */
export const ROLES = ['api', 'projector', 'webhooks', 'notices'] as const;
export type Role = (typeof ROLES)[number];
