import type { Registry } from 'prom-client';

import * as clusterAPIKeys from '../../pkg/worlds/cluster-api/api/keys.ts';
import * as clusterAPITags from '../../pkg/worlds/cluster-api/driver/tags.ts';
import { ironCoreMetrics } from '../../pkg/worlds/ironcore/controllers/metrics.ts';
import * as ironCoreTags from '../../pkg/worlds/ironcore/driver/tags.ts';
import { cloudCluster } from './crds/cloud-cluster.ts';
import { clusterAPICluster, clusterAPIMachine, machineDrainRule } from './crds/cluster-api.ts';
import { clusterMachine } from './crds/cluster-machine.ts';
import type { Definition } from './crds/definition.ts';
import { ironCoreMachine } from './crds/ironcore/machine.ts';
import { ironCoreMachineClass } from './crds/ironcore/machine-class.ts';
import { ironCoreMachinePool } from './crds/ironcore/machine-pool.ts';
import { ironCoreNetwork, ironCoreNetworkInterface, ironCoreVolume } from './crds/ironcore/neighbours.ts';
import { machinePool } from './crds/machine-pool.ts';

/** Keys of a file, whose values are those of the module; `on`, where the comments do not say it: of all of them. */
export interface KeyFile {
  readonly file: string;
  readonly module: Readonly<Record<string, unknown>>;
  readonly on?: string;
  /** Only these: the others are not ours. */
  readonly only?: readonly string[];
}

/** What manifests and pages are generated of, for an API that is served beside ours. */
interface GeneratedWorld {
  /** Its kinds, which are not installed with ours. */
  readonly definitions: readonly Definition[];
  /** The page on these, for kinds that are not documented elsewhere, and what it begins with. */
  readonly page?: { readonly file: string; readonly introduction: string };
  /** Keys that its driver sets. */
  readonly tags?: KeyFile;
  /** Keys that its controllers set. */
  readonly keys?: KeyFile;
  /** Declares its metrics. */
  readonly metrics?: (registry: Registry) => unknown;
  /** What bounds the values of labels that only its metrics have. */
  readonly bounds?: Readonly<Record<string, string>>;
}

const IRONCORE_INTRODUCTION = `# API of IronCore

Generated from \`hack/generate/crds\`, from which \`crds/ironcore/\` is generated too: for clusters without IronCore's API server.

For their use, see [Machines of IronCore](../operations/ironcore.md).

Times are RFC 3339. If your version of IronCore differs, its own definitions apply.
`;

/** All of `pkg/worlds`. */
export const WORLDS: readonly GeneratedWorld[] = [
  { definitions: [cloudCluster, clusterMachine, machinePool] },
  {
    definitions: [clusterAPICluster, clusterAPIMachine, machineDrainRule],
    tags: {
      file: 'pkg/worlds/cluster-api/driver/tags.ts',
      module: clusterAPITags,
      on: 'objects that `cluster-api-driver` creates',
    },
    keys: {
      file: 'pkg/worlds/cluster-api/api/keys.ts',
      module: clusterAPIKeys,
      only: ['NODE_CLUSTER_ANNOTATION', 'HAD_KUBECONFIG_ANNOTATION', 'HAD_CONTROL_PLANE_ANNOTATION', 'DELETION_HOOK'],
    },
  },
  {
    definitions: [
      ironCoreMachine,
      ironCoreMachineClass,
      ironCoreMachinePool,
      ironCoreVolume,
      ironCoreNetworkInterface,
      ironCoreNetwork,
    ],
    page: { file: 'docs/reference/ironcore-api.md', introduction: IRONCORE_INTRODUCTION },
    tags: {
      file: 'pkg/worlds/ironcore/driver/tags.ts',
      module: ironCoreTags,
      on: 'Machines of `compute.ironcore.dev` and their Secrets, by `ironcore-driver`',
    },
    metrics: ironCoreMetrics,
    bounds: { pool: 'one for each --ironcore-pool' },
  },
];
