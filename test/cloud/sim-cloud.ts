import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { SystemClock } from '../../pkg/base/clock/system-clock.ts';
import type { Driver } from '../../pkg/driver/driver.ts';
import { FencingGuard } from '../../pkg/driver/fencing.ts';
import { parseDriverAddress } from '../../pkg/driver/grpc/address.ts';
import { DriverServer } from '../../pkg/driver/grpc/server.ts';
import type { FaultRule } from '../../packages/providers/sim/faults.ts';
import { DEFAULT_SIM_SETTINGS } from '../../packages/providers/sim/settings.ts';
import type { Latencies, SimSettings } from '../../packages/providers/sim/settings.ts';
import { Simulation, type SimulationOptions } from '../../packages/providers/sim/simulation.ts';
import type { SimVM } from '../../packages/providers/sim/vm.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import type { CloudConsole } from './pool.ts';
import type { Site } from './site.ts';

/** A cloud that is quick, so that many lives fit into a test. */
export const QUICK: Latencies = { create: 20, initialize: 5, status: 2, delete: 20, list: 5, join: 20 };

/** How a simulated cloud behaves. */
export interface SimCloudOptions {
  /** Where VMs become Nodes. */
  readonly site: Site;
  readonly latencyMs?: Latencies;
  readonly quota?: number;
  readonly faults?: readonly FaultRule[];
  readonly capabilities?: SimulationOptions['capabilities'];
  /** Renew a Lease for each Node, where a kube-controller-manager watches over them. */
  readonly nodeLeases?: boolean;
  /** Nodes register with provider ids of another form than the driver reports. */
  readonly otherNodeIDs?: boolean;
  /** Of the chances of faults. */
  readonly seed?: string;
}

/** A simulated cloud in this process, with its driver on a socket. Remembers every VM that it ever had. */
export class SimulatedCloud implements CloudConsole, AsyncDisposable {
  /** What `--driver sim=…` takes. */
  readonly address: string;
  readonly simulation: Simulation;
  /** Every VM ever made, in order. */
  readonly created: SimVM[] = [];
  /** Provider ids of VMs that the driver deleted or that vanished, in order. */
  readonly removed: string[] = [];
  /** Most VMs that existed at one moment. */
  peak = 0;
  /** Names of machines that had two VMs at one moment. */
  readonly doubled = new Set<string>();
  readonly #stack: AsyncDisposableStack;

  private constructor(address: string, simulation: Simulation, stack: AsyncDisposableStack) {
    this.address = address;
    this.simulation = simulation;
    this.#stack = stack;
    simulation.cloud.onEvent((vm, event) => {
      if (event === 'created') this.#count(vm);
      else if (event !== 'changed') this.removed.push(vm.providerID);
    });
  }

  static async start({
    site,
    faults,
    capabilities,
    otherNodeIDs = false,
    nodeLeases = false,
    seed = 'cloud',
    ...settings
  }: SimCloudOptions): Promise<SimulatedCloud> {
    await using stack = new AsyncDisposableStack();
    const directory = await mkdtemp(join(tmpdir(), 'cloud-'));
    stack.defer(() => rm(directory, { recursive: true, force: true }));
    const clock = new SystemClock();
    const simulation = stack.use(
      await Simulation.start({
        clock,
        log: silentLogger,
        seed,
        settings: settingsOf(settings),
        ...(faults === undefined ? {} : { faults }),
        ...(capabilities === undefined ? {} : { capabilities }),
        cluster: { kubeconfig: site.driverKubeconfig, nodeLeases, podStopMs: 0, otherNodeIDs },
      }),
    );
    const address = `unix://${join(directory, 'driver.sock')}`;
    const { driver, fencing } = simulation;
    const log = silentLogger;
    stack.use(await DriverServer.start({ driver, fencing, address: parseDriverAddress(address), clock, log }));
    return new SimulatedCloud(address, simulation, stack.move());
  }

  /**
   * Another driver of the same cloud, with fencing state of its own, as one that runs beside another replica of the manager. Resolves with
   * its address.
   */
  async serveAnother(wrap: (driver: Driver) => Driver): Promise<string> {
    const clock = new SystemClock();
    const directory = await mkdtemp(join(tmpdir(), 'cloud-'));
    this.#stack.defer(() => rm(directory, { recursive: true, force: true }));
    const address = `unix://${join(directory, 'driver.sock')}`;
    const fencing = await FencingGuard.open({ clock });
    const driver = wrap(this.simulation.driver);
    const parts = { driver, fencing, address: parseDriverAddress(address), clock, log: silentLogger };
    this.#stack.use(await DriverServer.start(parts));
    return address;
  }

  /** VMs that exist now. */
  async vms(): Promise<readonly SimVM[]> {
    return await Promise.resolve(this.simulation.cloud.all());
  }

  /** VMs ever deleted. */
  get deleted(): number {
    return this.removed.length;
  }

  /** Driver calls so far, by method. */
  get calls(): Readonly<Record<string, number>> {
    return this.simulation.driver.calls;
  }

  /** Replaces all rules of what goes wrong. */
  setFaults(rules: readonly FaultRule[]): void {
    this.simulation.faults.set(rules);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  #count(vm: SimVM): void {
    this.created.push(vm);
    this.peak = Math.max(this.peak, this.simulation.cloud.size);
    if (this.simulation.cloud.named(vm.machineName).length > 1) this.doubled.add(vm.machineName);
  }
}

function settingsOf({ latencyMs = QUICK, quota = DEFAULT_SIM_SETTINGS.quota }: Partial<SimSettings>): SimSettings {
  return { latencyMs, quota };
}
