import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { KubeObject } from '../../apis/meta.ts';
import type { Resource } from '../../apis/resource.ts';
import type { Informer } from '../../kube/cache/lister.ts';
import { reachPresent } from '../../kube/cache/reach-present.ts';
import type { Views } from '../../kube/cache/view.ts';
import { WholeViews } from '../../kube/cache/whole-views.ts';
import { nodes, volumeAttachments } from '../../kube/client/resource.ts';
import { addKinds, type CachingProcess } from '../cached/kind.ts';
import { TARGET_KINDS } from '../cached/target.ts';
import type { ClusterAccess } from '../clusters.ts';
import { Identities } from '../identities.ts';
import type { ManagerProcess } from '../manager-process.ts';
import { TargetCluster } from '../target-cluster.ts';
import { judgeOf } from './assignment.ts';
import { type NodesOfCell, whereNodesAre } from './nodes-of-cell.ts';

export interface CommonTargetOptions {
  readonly access: ClusterAccess;
  /** What decides which kinds a cell needs. */
  readonly caching: CachingProcess;
  /** Namespaces that are cells, in whatever process. */
  readonly cells: () => readonly string[];
  /** Told what handlers of changes throw. */
  readonly failed: (resource: Resource<KubeObject>, err: unknown) => void;
}

/** The target cluster of the flags, as that of all cells: read once, and each cell hears of it until it ends. */
export class CommonTarget {
  /** Started and ended with the process. */
  readonly cluster: TargetCluster;
  readonly identities = new Identities();
  // eslint-disable-next-line typescript/no-explicit-any -- by resource, so that each has the type of its own
  readonly #views = new Map<Resource<any>, Views<any>>();
  readonly #cells: () => readonly string[];

  constructor(process: ManagerProcess, { access, caching, cells, failed }: CommonTargetOptions) {
    this.cluster = TargetCluster.cached(access, {
      ...process.cached,
      process: caching,
      roleFile: process.roleFiles.target,
    });
    this.#cells = cells;
    const { informers } = this.cluster;
    addKinds(
      TARGET_KINDS,
      {
        add: <T extends KubeObject>(resource: Resource<T>): Informer<T> => {
          const informer = this.#cached(resource, informers);
          this.#views.set(resource, new WholeViews(informer, (err) => failed(resource, err)));
          return informer;
        },
      },
      caching,
    );
  }

  /** For a cell that begins. */
  for(process: CachingProcess): TargetCluster {
    const add = <T extends KubeObject>(resource: Resource<T>): Informer<T> => {
      const views: Views<T> | undefined = this.#views.get(resource);
      if (views === undefined) throw new Error(`${resource.plural} are not cached for cells`);
      return views.of(process.namespace);
    };
    return this.cluster.through({ add }, process);
  }

  /** Resolves when its Nodes are known as of the present. Throws ApiError. */
  async untilPresent(signal: AbortSignal): Promise<void> {
    const { caches } = this.cluster;
    await caches.untilFilled(signal);
    await reachPresent(caches.kinds, signal);
  }

  /** Where the Nodes are that these Machines show. */
  whereNodesAre(machines: readonly Machine[]): NodesOfCell {
    return whereNodesAre(machines, this.cluster.informers.nodes);
  }

  /** Whether it is for a namespace to act on a Node that no Machine has. */
  isJudge(namespace: string, nodeName: string): boolean {
    return judgeOf(nodeName, this.#cells()) === namespace;
  }

  /** The cell has ended. */
  forget(namespace: string): void {
    for (const views of this.#views.values()) views.forget(namespace);
    this.identities.forget(namespace);
  }

  #cached<T extends KubeObject>(resource: Resource<T>, informers: TargetCluster['informers']): Informer<T> {
    const { plural } = resource;
    if (plural === nodes.plural) return informers.nodes as Informer<KubeObject> as Informer<T>;
    if (plural === volumeAttachments.plural) return informers.volumeAttachments as Informer<KubeObject> as Informer<T>;
    throw new Error(`${plural} are no kind of target clusters`);
  }
}
