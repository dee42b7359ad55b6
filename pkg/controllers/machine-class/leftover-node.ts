import { providerIDOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Lister } from '../../kube/cache/lister.ts';
import type { Target } from '../../kube/targets/targets.ts';
import { isSameVM } from '../machine-facts/same-vm.ts';

export interface LeftoverNodeDeps {
  readonly machines: Pick<Lister<Machine>, 'list'>;
  readonly targets: readonly Pick<Target, 'nodes'>[];
}

/** Whether a Node shows a VM that no Machine has, in whatever form either writes the provider id. Looks at every Node: for rare questions. */
export function hasLeftoverNode(providerID: string, { machines, targets }: LeftoverNodeDeps): boolean {
  const isShown = targets.some(({ nodes }) =>
    nodes.list().some(({ spec }) => isSameVM(spec?.providerID, providerID) === true),
  );
  return isShown && !machines.list().some((machine) => isSameVM(providerIDOf(machine), providerID) === true);
}
