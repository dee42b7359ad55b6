/** What one scenario cost. */
export interface Measurement {
  readonly scenario: string;
  /** Machines that it was about: what everything is divided by. */
  readonly machines: number;
  readonly seconds: number;
  /** Requests that the API server answered, by `VERB resource[/subresource]`, conflicts apart; Leases, watches and those of the benchmark left out. */
  readonly requests: Readonly<Record<string, number>>;
  /** Passes by controller. */
  readonly passes: Readonly<Record<string, number>>;
  /** Keys that waited more than a second for a worker, by queue. */
  readonly lateKeys: Readonly<Record<string, number>>;
  /** VMs that were made and removed, and how many had to be. */
  readonly vms: {
    readonly created: number;
    readonly deleted: number;
    readonly neededCreated: number;
    readonly neededDeleted: number;
  };
  /** How late the manager's event loop was at worst, in milliseconds. */
  readonly loopDelayMs: number;
  /** The longest time between two renewals of a Lease, in milliseconds. */
  readonly leaseGapMs: number;
  readonly processes: Readonly<Record<string, ProcessCost>>;
  /** Seconds that the API server takes for the same writes when nobody decides anything; undefined where that was not measured. */
  readonly ceilingSeconds?: number;
}

/** What one process used meanwhile. */
export interface ProcessCost {
  readonly cpuSeconds: number;
  readonly peakMB: number;
  readonly residentMB: number;
}

/** A whole run, as it is written to a file. */
export interface BenchRun {
  /** When it began, RFC 3339. */
  readonly at: string;
  readonly machines: number;
  readonly node: string;
  readonly cpus: number;
  readonly credentials: string;
  readonly measurements: readonly Measurement[];
}

/** Sum of the values. */
export function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
