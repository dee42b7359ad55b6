import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { NODE_LABEL } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import type { Node } from '../../pkg/apis/wire.ts';
import { InformerSet } from '../../pkg/kube/cache/informers.ts';
import { ReflectedInformer } from '../../pkg/kube/cache/reflected-informer.ts';
import type { Clock } from '../../pkg/base/clock/clock.ts';
import { isReady } from '../../pkg/controllers/machine-facts/node-health.ts';
import { HttpListWatch } from '../../pkg/kube/client/list-watch.ts';
import { machines, nodes } from '../../pkg/kube/client/resource.ts';
import type { Resource } from '../../pkg/apis/resource.ts';
import type { Transport } from '../../pkg/kube/client/transport.ts';
import { silentLogger } from '../../pkg/base/log/logger.ts';
import { machineLineOf } from './machine-line.ts';
import { NAMESPACE } from './manifests.ts';

/** Machines and Nodes at one moment. */
export interface MachinesSnapshot {
  readonly machines: readonly Machine[];
  readonly nodes: readonly Node[];
}

/** Is told what became of a machine. */
export type ReportMachine = (machine: string, what: string) => void;

/** Watches the demo's machines and their Nodes, and tells of each change, however short it lasts. */
export class MachineWatch {
  readonly #machines: ReflectedInformer<Machine>;
  readonly #nodes: ReflectedInformer<Node>;
  readonly #reported = new Map<string, string>();
  /** Whether changes are not told. */
  isSilent = false;
  #onChange: () => void = () => undefined;

  private constructor(transport: Transport, clock: Clock) {
    const watch = <T extends KubeObject>(resource: Resource<T>, namespace?: string): ReflectedInformer<T> =>
      new ReflectedInformer({
        source: new HttpListWatch({ transport, resource, selection: { namespace } }),
        clock,
        log: silentLogger,
        cluster: 'demo',
      });
    this.#machines = watch(machines, NAMESPACE);
    this.#nodes = watch(nodes);
  }

  /** Watches until the signal is aborted. */
  static start(transport: Transport, clock: Clock, tell: ReportMachine, signal: AbortSignal): MachineWatch {
    const watch = new MachineWatch(transport, clock);
    watch.#machines.onChange((old, current) => {
      const name = (current ?? old)?.metadata.name ?? '';
      watch.#print(name, current === undefined ? 'Gone' : machineLineOf(current), tell);
      watch.#onChange();
    });
    watch.#nodes.onChange(() => watch.#onChange());
    const informers = new InformerSet();
    informers.add(watch.#machines);
    informers.add(watch.#nodes);
    void informers.run(signal);
    return watch;
  }

  /** Resolves when `isDone` says so of what is there. Rejects with the signal's reason. */
  until(isDone: (now: MachinesSnapshot) => boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (!this.#machines.hasSynced || !this.#nodes.hasSynced) return;
        if (isDone({ machines: this.#machines.list(), nodes: this.#nodes.list() })) resolve();
      };
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      if (signal.aborted) reject(signal.reason as Error);
      this.#onChange = look;
      Promise.all([this.#machines.waitForSync(signal), this.#nodes.waitForSync(signal)]).then(look, reject);
    });
  }

  #print(name: string, line: string, tell: ReportMachine): void {
    if (this.#reported.get(name) === line) return;
    this.#reported.set(name, line);
    if (!this.isSilent) tell(name, line);
  }
}

/** Whether exactly `wanted` machines exist, all are Running, and their Nodes are Ready. */
export function areUp({ machines: all, nodes: known }: MachinesSnapshot, wanted: number): boolean {
  return (
    all.length === wanted &&
    all.every(
      (machine) =>
        machine.status?.currentStatus?.phase === 'Running' &&
        known.some((node) => node.metadata.name === machine.metadata.labels?.[NODE_LABEL] && isReady(node)),
    )
  );
}
