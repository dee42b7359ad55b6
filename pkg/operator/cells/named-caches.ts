import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { KubeObject } from '../../apis/meta.ts';
import { ClusterContinuity } from '../../kube/cache/cluster-continuity.ts';
import type { Informer } from '../../kube/cache/lister.ts';
import { Outages } from '../../kube/gate/outages.ts';
import { addCaches, type Caches } from '../caches.ts';
import { ClusterCaches } from '../cluster-caches.ts';
import { accessFor } from '../clusters.ts';
import type { ManagerProcess } from '../manager-process.ts';
import { CELL_ROLES } from '../preflight/roles/machinist.ts';
import { probesOf } from '../probes.ts';
import type { CellCaches, CellControl, ReadingCell } from './cell-caches.ts';

/**
 * Caches of the control cluster for cells that are named: each has those of its namespace alone, with watches, probes and outages of its own,
 * as if a process of its own did. What the server refuses in one namespace so concerns no other.
 */
export class NamedCaches implements CellCaches {
  readonly #process: ManagerProcess;
  readonly #open = new Map<string, Pick<Caches, 'machines' | 'secrets'>>();
  #changed: ((namespace: string, secret: string) => void) | undefined;

  constructor(process: ManagerProcess) {
    this.#process = process;
  }

  open({ config, caching, log, metrics, held }: ReadingCell): CellControl {
    const { control } = this.#process.clusters;
    const { clock, worlds } = this.#process.options;
    const { namespace } = caching;
    const { statusCheckPeriodMs: periodMs, statusCheckTimeoutMs: timeoutMs } = config.safety;
    const outages = new Outages({ clock, log, metrics: metrics.gate, periodMs, timeoutMs });
    const access = { ...accessFor(control, namespace), continuity: new ClusterContinuity(clock) };
    const options = { ...this.#process.cached, log, metrics: metrics.kube, outages, held, roleFile: CELL_ROLES };
    const ofControl = new ClusterCaches(access, options);
    const caches = addCaches(ofControl, { process: caching, worlds });
    this.#open.set(namespace, caches);
    caches.secrets.onChange((old, current) => this.#changed?.(namespace, (current ?? old)?.metadata.name ?? ''));
    return {
      outages,
      caches,
      openCache: (resource, { refused }) => ofControl.open(resource, { namespace, refused }),
      ofControl,
      own: {
        start: async (signal) => {
          // Before anything else is asked, as in a process of its own.
          for (const probed of probesOf([access], [ofControl])) outages.add(probed);
          await ofControl.start(signal);
        },
        stop: () => ofControl.stop(),
      },
    };
  }

  forget(namespace: string): void {
    this.#open.delete(namespace);
  }

  onSecret(names: readonly string[], changed: (namespace: string) => void): void {
    this.#changed = (namespace, secret) => {
      if (names.includes(secret)) changed(namespace);
    };
  }

  secretsIn(namespace: string): Pick<Informer<KubeObject>, 'get'> {
    return { get: (key) => this.#open.get(namespace)?.secrets.get(key) };
  }

  machinesIn(namespace: string): number {
    return this.ownMachinesIn(namespace).length;
  }

  ownMachinesIn(namespace: string): readonly Machine[] {
    return this.#open.get(namespace)?.machines.list() ?? [];
  }

  withMachines(): readonly string[] {
    return [...this.#open.keys()].filter((namespace) => this.machinesIn(namespace) > 0);
  }
}
