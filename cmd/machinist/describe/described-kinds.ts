import type { WorkInProgress } from '../../../pkg/health/work-in-progress.ts';
import { LISTED_WORLDS } from '../../../pkg/worlds/index.ts';
import { type KindName, MACHINE, MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET, NODE, ofWorld } from '../kinds.ts';
import type { DescribedKind } from '../../../pkg/fleet/describe/described-kind.ts';

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
  ...LISTED_WORLDS.flatMap(({ name, described }) =>
    described.map(({ resource, load }): [KindName, LoadDescribed] => [ofWorld(name, resource), load]),
  ),
]);

/** What can be described. */
export const DESCRIBED_KINDS = [MACHINE, ...OTHERS.keys()] as const;

/** What describes a kind. */
export function describedKind(kind: KindName, work: ReadWork): Promise<DescribedKind> {
  return (OTHERS.get(kind) ?? loadMachine)(work);
}
