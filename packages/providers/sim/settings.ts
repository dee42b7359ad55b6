/** How long the simulated cloud takes. */
export interface Latencies {
  readonly create: number;
  readonly initialize: number;
  readonly status: number;
  readonly delete: number;
  readonly list: number;
  /** From the VM's start until its Node appears. */
  readonly join: number;
}

/** What can be changed while the driver runs. */
export interface SimSettings {
  readonly latencyMs: Latencies;
  /** VMs that may exist at once; a creation beyond is ResourceExhausted. */
  readonly quota: number;
  /** CreateMachine makes a VM whatever there is already, as with a provider that has no unique names and shows VMs late. */
  readonly createsBlindly?: boolean;
}

/** A quick cloud without limits. */
export const DEFAULT_SIM_SETTINGS: SimSettings = {
  latencyMs: { create: 200, initialize: 50, status: 5, delete: 200, list: 20, join: 500 },
  quota: Infinity,
};
