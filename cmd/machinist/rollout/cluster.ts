import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../pkg/apis/machine/v1alpha1/machine-set.ts';
import { ReflectedInformer } from '../../../pkg/cache/reflected-informer.ts';
import { SystemClock } from '../../../pkg/clock/system-clock.ts';
import { CONTROL, type Gate } from '../../../pkg/gate/gate.ts';
import { ConfigError, loadEndpoint } from '../../../pkg/kube/config.ts';
import { isConflict } from '../../../pkg/kube/errors.ts';
import { GatedWriter } from '../../../pkg/kube/gated-writer.ts';
import { HttpReader } from '../../../pkg/kube/http-reader.ts';
import { HttpListWatch } from '../../../pkg/kube/list-watch.ts';
import { mergePatchIfUnchanged } from '../../../pkg/kube/patch.ts';
import { machineDeployments, machineSets } from '../../../pkg/kube/resource.ts';
import { Transport } from '../../../pkg/kube/transport.ts';
import { silentLogger } from '../../../pkg/log/logger.ts';
import { RolloutError } from './error.ts';

/** Where the command finds its cluster. */
export interface Access {
  /** A path; empty for KUBECONFIG, ~/.kube/config, or the service account of the pod. */
  readonly kubeconfig: string;
  /** Empty for the namespace of the kubeconfig's context. */
  readonly namespace: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
}

/** A person at a terminal holds no Lease: every write passes. */
const OPEN: Gate = { admit: () => Promise.resolve({ remainingMs: Infinity, fencingToken: 0n }) };
/** How often a write is tried again that met a change of somebody else. */
const TRIES = 5;

/** MachineDeployments of one namespace, for one command. */
export class RolloutCluster implements AsyncDisposable {
  readonly #clock = new SystemClock();
  readonly #namespace: string;
  readonly #transport: Transport;
  readonly #reader: HttpReader;
  readonly #writer: GatedWriter;

  private constructor(namespace: string, transport: Transport) {
    this.#namespace = namespace;
    this.#transport = transport;
    this.#reader = new HttpReader(transport);
    this.#writer = new GatedWriter({ transport, gate: OPEN, cluster: CONTROL });
  }

  /** Reads the kubeconfig; asks nothing of the server yet. Throws RolloutError. */
  static async open({ kubeconfig, namespace, env, version }: Access): Promise<RolloutCluster> {
    const clock = new SystemClock();
    const endpoint = await loadEndpoint({ kubeconfig, env, clock }).catch((err: unknown) => {
      throw err instanceof ConfigError ? new RolloutError(err.message, { cause: err }) : err;
    });
    const transport = new Transport({ endpoint, clock, userAgent: `machinist/${version} rollout` });
    const own = endpoint.namespace ?? '';
    return new RolloutCluster(namespace || own || 'default', transport);
  }

  /** Milliseconds since the epoch. */
  now(): number {
    return this.#clock.now();
  }

  /** The MachineDeployment as it is now. Throws ApiError. */
  async get(name: string): Promise<MachineDeployment> {
    return this.#reader.get(machineDeployments, { namespace: this.#namespace, name });
  }

  /** All sets of the namespace. */
  async sets(): Promise<readonly MachineSet[]> {
    return (await this.#reader.list(machineSets, { namespace: this.#namespace })).items;
  }

  /**
   * Changes a MachineDeployment as `decide` says of what it is now; undefined leaves it alone. Another writer's change in
   * between makes `decide` be asked again.
   */
  async change(
    name: string,
    decide: (deployment: MachineDeployment) => Promise<Record<string, unknown> | undefined>,
  ): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      const deployment = await this.get(name);
      const change = await decide(deployment);
      if (change === undefined) return false;
      try {
        const ref = { namespace: this.#namespace, name };
        await this.#writer.patch('change', machineDeployments, ref, mergePatchIfUnchanged(deployment, change));
        return true;
      } catch (err) {
        if (!isConflict(err) || tries === TRIES) throw err;
      }
    }
  }

  /**
   * Shows every state of a MachineDeployment until `look` says that it has seen enough. Rejects with what `look` throws, when
   * the object is deleted, and with the signal's reason. Outages of the server are waited for.
   */
  async follow(name: string, look: (deployment: MachineDeployment) => boolean, signal: AbortSignal): Promise<void> {
    const first = await this.get(name);
    if (look(first)) return;

    const done = Promise.withResolvers<void>();
    const ended = new AbortController();
    const source = new HttpListWatch({
      transport: this.#transport,
      resource: machineDeployments,
      selection: { namespace: this.#namespace, fieldSelector: `metadata.name=${name}` },
    });
    const informer = new ReflectedInformer({ source, clock: this.#clock, log: silentLogger, cluster: CONTROL });
    informer.onChange((_old, current) => {
      try {
        if (current?.metadata.uid !== first.metadata.uid) throw new RolloutError('object has been deleted');
        if (look(current)) done.resolve();
      } catch (err) {
        done.reject(err);
      }
    });
    const abort = (): void => done.reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    const running = informer.run(ended.signal);
    try {
      await done.promise;
    } finally {
      signal.removeEventListener('abort', abort);
      ended.abort();
      await running;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#transport.close();
  }
}
