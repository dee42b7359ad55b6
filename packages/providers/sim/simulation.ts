import type { Clock } from '../../../pkg/base/clock/clock.ts';
import type { Capabilities, Driver } from '../../../pkg/driver/driver.ts';
import { FencingFile } from '../../../pkg/driver/fencing-file.ts';
import { FencingGuard } from '../../../pkg/driver/fencing.ts';
import type { OpenDispatcher } from '../../../pkg/kube/client/dispatchers.ts';
import type { OpenEndpoint } from '../../../pkg/kube/client/endpoint.ts';
import { HttpListWatch } from '../../../pkg/kube/client/list-watch.ts';
import { pods } from '../../../pkg/kube/client/resource.ts';
import type { Logger } from '../../../pkg/base/log/logger.ts';
import { openDriverCluster, type DriverCluster } from '../../../pkg/drivers/cluster.ts';
import { StateDirectory } from '../../../pkg/drivers/state-directory.ts';
import { SimCloud } from './cloud.ts';
import { SimDriver } from './driver.ts';
import { Faults, type FaultRule } from './faults.ts';
import { Journal } from './journal.ts';
import { NodeKeeper } from './node-keeper.ts';
import { PodKeeper } from './pod-keeper.ts';
import { DEFAULT_SIM_SETTINGS, type SimSettings } from './settings.ts';

/** The cluster in which the VMs become Nodes. */
export interface SimulatedCluster {
  readonly kubeconfig: string;
  /** Where a pod finds its cluster: the variables of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Renew a Lease for each Node. */
  readonly nodeLeases: boolean;
  /** How long containers take to stop, at most the pod's grace; undefined: the whole grace. */
  readonly podStopMs: number | undefined;
  /** Nodes register with provider ids of another form than the driver reports. */
  readonly otherNodeIDs?: boolean;
  /** Nodes register with the taint that a cloud controller manager takes away. */
  readonly uninitializedNodes?: boolean;
  /** See TransportOptions. */
  readonly openDispatcher?: OpenDispatcher;
  readonly openEndpoint?: OpenEndpoint;
}

export interface SimulationOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Decides, with the rules, which calls go wrong. */
  readonly seed: string;
  readonly faults?: readonly FaultRule[];
  readonly settings?: SimSettings;
  readonly capabilities?: Partial<Pick<Capabilities, 'idempotentCreate' | 'listScope' | 'methods'>>;
  /** Without one, everything is forgotten at the end. */
  readonly stateDirectory?: string;
  /** Without one, no VM becomes a Node. */
  readonly cluster?: SimulatedCluster;
}

/** A simulated cloud with its driver, and its nodes if it was given a cluster. */
export class Simulation implements AsyncDisposable {
  readonly cloud: SimCloud;
  readonly faults: Faults;
  readonly driver: SimDriver & Driver;
  readonly fencing: FencingGuard;
  /** Undefined without a cluster. */
  readonly nodes: NodeKeeper | undefined;
  readonly #stop = new AbortController();
  readonly #stack: AsyncDisposableStack;

  private constructor(
    parts: { cloud: SimCloud; fencing: FencingGuard; stack: AsyncDisposableStack },
    options: SimulationOptions,
    connected: DriverCluster | undefined,
  ) {
    const { clock, log, cluster, settings = DEFAULT_SIM_SETTINGS, capabilities = {} } = options;
    this.cloud = parts.cloud;
    this.fencing = parts.fencing;
    this.#stack = parts.stack;
    this.faults = new Faults(options.seed);
    this.faults.set(options.faults ?? []);
    this.driver = new SimDriver({ cloud: this.cloud, faults: this.faults, clock, settings, capabilities });
    if (connected === undefined || cluster === undefined) return;

    const { cloud } = this;
    const { transport, reader, writer } = connected;
    const { nodeLeases: leases, podStopMs, otherNodeIDs: otherIDs = false } = cluster;
    const registration = { otherIDs, uninitialized: cluster.uninitializedNodes ?? false };
    this.nodes = new NodeKeeper({ cloud, reader, writer, clock, log, leases, registration }, this.#stop.signal);
    const source = new HttpListWatch({ transport, resource: pods, selection: { fieldSelector: 'spec.nodeName!=' } });
    const podKeeper = new PodKeeper({ cloud, source, writer, clock, log, stopMs: podStopMs }, this.#stop.signal);
    const running = podKeeper.run();
    this.#stack.defer(() => running);
  }

  /** Takes up where an earlier process with the same state directory ended. */
  static async start(options: SimulationOptions): Promise<Simulation> {
    const { clock, stateDirectory, cluster } = options;
    await using stack = new AsyncDisposableStack();
    const state = stateDirectory === undefined ? undefined : stack.use(StateDirectory.open(stateDirectory));
    const journal = state === undefined ? undefined : Journal.open(state.file('vms.jsonl'));
    stack.defer(() => journal?.close());
    const fencing = await FencingGuard.open({
      clock,
      ...(state === undefined ? {} : { store: new FencingFile(state.file('fencing.json')) }),
    });
    const connected =
      cluster === undefined
        ? undefined
        : await openDriverCluster({
            kubeconfig: cluster.kubeconfig,
            env: cluster.env ?? {},
            clock,
            userAgent: 'machinist-sim',
            openDispatcher: cluster.openDispatcher,
            openEndpoint: cluster.openEndpoint,
          });
    stack.defer(async () => await connected?.transport.close());
    const cloud = new SimCloud({ clock, journal });
    return new Simulation({ cloud, fencing, stack: stack.move() }, options, connected);
  }

  /** Stops the nodes; they stay in the API server, as the VMs stay in the state directory. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error('the simulation has ended'));
    await this.#stack.disposeAsync();
  }
}
