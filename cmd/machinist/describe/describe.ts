import { machines, machineDeployments, machineSets } from '../../../pkg/kube/client/resource.ts';
import type { WorkInProgress } from '../../../pkg/health/work-in-progress.ts';
import { describe, type Description } from './description.ts';
import type { DescribedKind } from '../../../pkg/fleet/describe/described-kind.ts';
import { renderDescription } from './render.ts';
import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { controllerOf } from '../../../pkg/apis/meta.ts';
import type { Reader } from '../../../pkg/kube/client/client.ts';
import { workOfMachine } from '../../../pkg/fleet/machine-work.ts';
import { describedCell } from './described-cell.ts';
import { isAnswer } from '../../../pkg/fleet/describe/read-named.ts';

/** `all`: what the processes of the manager do. */
export function describedMachine(all: Promise<readonly WorkInProgress[]>): DescribedKind<Machine, Description> {
  const outages = new Map<string, Promise<string | undefined>>();
  return {
    resource: machines,
    describe: async (reader, machine, told, nowMs) => {
      // Machines of one MachineSet share what its MachineDeployment says.
      const owner = controllerOf(machine)?.uid ?? machine.metadata.uid;
      const asked = outages.get(owner) ?? outageOf(reader, machine);
      outages.set(owner, asked);
      const outage = await asked;
      const works = await all;
      const { cell } = describedCell(works, machine.metadata.namespace);
      return describe(machine, told, nowMs(), { outage, work: workOfMachine(machine, works), cell });
    },
    render: renderDescription,
  };
}

/**
 * What the MachineDeployment of a Machine says of a cluster that does not answer; undefined when it says nothing, when there is
 * none, and when it may not be read: a Machine is described all the same.
 */
async function outageOf(reader: Reader, machine: Machine): Promise<string | undefined> {
  const { namespace = '' } = machine.metadata;
  try {
    const set = controllerOf(machine);
    if (set?.kind !== 'MachineSet') return undefined;
    const deployment = controllerOf(await reader.get(machineSets, { namespace, name: set.name }));
    if (deployment?.kind !== 'MachineDeployment') return undefined;
    const { status } = await reader.get(machineDeployments, { namespace, name: deployment.name });
    return status?.conditions?.find(({ type, status: is }) => type === 'APIServerUnreachable' && is === 'True')
      ?.message;
  } catch (err) {
    if (isAnswer(err)) return undefined;
    throw err;
  }
}
