/** The machine's monotonic clock in milliseconds with fractions. All its processes share it. */
export function machineTimeMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
