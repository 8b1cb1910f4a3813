/** What a process of the service may do; by default it does all. */
export const ROLES = ['api', 'projector', 'webhooks', 'notices'] as const;
export type Role = (typeof ROLES)[number];
