import type { WorkInProgress } from '../../../pkg/health/work-in-progress.ts';
import { clusterAPIClusters, clusterAPIMachines } from '../../../pkg/worlds/cluster-api/api/resources.ts';
import { ironCoreMachines } from '../../../pkg/worlds/ironcore/api/resources.ts';
import { type KindName, MACHINE, MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET, NODE, ofWorld } from '../kinds.ts';
import type { DescribedKind } from './print-description.ts';

/** What the manager does, read once, when it is first asked for. */
export type ReadWork = () => Promise<readonly WorkInProgress[]>;

/** Loads what describes a kind: only when objects of it are described. */
type LoadDescribed = (work: ReadWork) => Promise<DescribedKind>;

const loadMachine: LoadDescribed = async (work) => (await import('./describe.ts')).describedMachine(work());

/** All but Machines, which are meant unless told otherwise. Of a Node its Machine is described. */
const OTHERS: ReadonlyMap<KindName, LoadDescribed> = new Map<KindName, LoadDescribed>([
  [MACHINE_DEPLOYMENT, async (work) => (await import('./machine-owner.ts')).describedMachineDeployment(work())],
  [MACHINE_SET, async (work) => (await import('./machine-owner.ts')).describedMachineSet(work())],
  [MACHINE_CLASS, async () => (await import('./machine-class.ts')).describedMachineClass],
  [NODE, loadMachine],
  [ofWorld('ironcore', ironCoreMachines), async () => (await import('./ironcore-machine.ts')).describedIronCoreMachine],
  [
    ofWorld('cluster-api', clusterAPIMachines),
    async () => (await import('./cluster-api-machine.ts')).describedClusterAPIMachine,
  ],
  [
    ofWorld('cluster-api', clusterAPIClusters),
    async () => (await import('./cluster-api-cluster.ts')).describedClusterAPICluster,
  ],
]);

/** What can be described. */
export const DESCRIBED_KINDS = [MACHINE, ...OTHERS.keys()] as const;

/** What describes a kind. */
export function describedKind(kind: KindName, work: ReadWork): Promise<DescribedKind> {
  return (OTHERS.get(kind) ?? loadMachine)(work);
}
