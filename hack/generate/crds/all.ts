import { clusterAPICluster, clusterAPIMachine, machineDrainRule } from './cluster-api.ts';
import { cloudCluster } from './cloud-cluster.ts';
import { clusterMachine } from './cluster-machine.ts';
import { customResourceDefinition, fileName, toYaml } from './definition.ts';
import { ironCoreMachine } from './ironcore/machine.ts';
import { ironCoreMachineClass } from './ironcore/machine-class.ts';
import { ironCoreMachinePool } from './ironcore/machine-pool.ts';
import { ironCoreNetwork, ironCoreNetworkInterface, ironCoreVolume } from './ironcore/neighbours.ts';
import { machine } from './machine.ts';
import { machineClass } from './machine-class.ts';
import { machineDeployment } from './machine-deployment.ts';
import { machinePool } from './machine-pool.ts';
import { machineSet } from './machine-set.ts';
import { nodeLabelPolicy } from './node-label-policy.ts';
import { withoutAdditions } from './original.ts';

/** The original's kinds, in the order of the documentation. */
const ORIGINALS = [machineDeployment, machineSet, machine, machineClass];

/** All kinds: those, and ours. */
export const DEFINITIONS = [...ORIGINALS, nodeLabelPolicy];

/** Kinds of others, which are not installed with ours. */
const FOREIGN = [cloudCluster, clusterMachine, machinePool, clusterAPICluster, clusterAPIMachine, machineDrainRule];

/** Kinds of IronCore, where its API server does not serve them. */
export const IRONCORE_DEFINITIONS = [
  ironCoreMachine,
  ironCoreMachineClass,
  ironCoreMachinePool,
  ironCoreVolume,
  ironCoreNetworkInterface,
  ironCoreNetwork,
];

/** Files by path: the CRDs, and the same without our additions, for tests of what the original has stored. */
export function crdFiles(): Map<string, string> {
  const files = new Map<string, string>();
  for (const definition of [...DEFINITIONS, ...FOREIGN, ...IRONCORE_DEFINITIONS]) {
    const crd = customResourceDefinition(definition);
    files.set(`crds/${fileName(definition)}`, toYaml(crd));
    if (!ORIGINALS.includes(definition)) continue;
    files.set(`test/crds-original/${fileName(definition)}`, toYaml(withoutAdditions(crd) as object));
  }
  return files;
}
