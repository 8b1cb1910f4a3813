/** The machine's monotonic clock in milliseconds, which all its processes share, with the fraction. */
export function machineTimeMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
