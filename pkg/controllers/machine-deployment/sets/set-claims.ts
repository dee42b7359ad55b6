import { TEMPLATE_HASH_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import type { LabelSelector } from '../../../apis/meta.ts';
import { sortByClaim, type Claims } from '../../../work/reconcile/ownership.ts';

/**
 * What `deployment` does with MachineSets of its namespace. The hash label decides nothing about a set that it controls: the
 * controller writes that label, and a set released because of it would be made again, with all its machines, without end.
 */
export function claimsOn(deployment: MachineDeployment, sets: readonly MachineSet[]): Claims<MachineSet> {
  const { selector } = deployment.spec;
  const { adopt } = sortByClaim(deployment, sets);
  if (selector === undefined) return { ...sortByClaim(deployment, sets), adopt };
  const spec = { ...deployment.spec, selector: withoutHash(selector) };
  const { claimed, release } = sortByClaim({ ...deployment, spec }, sets);
  return { claimed, release, adopt };
}

function withoutHash({ matchLabels, matchExpressions }: LabelSelector): LabelSelector {
  const { [TEMPLATE_HASH_LABEL]: _hash, ...others } = matchLabels ?? {};
  return {
    matchLabels: others,
    matchExpressions: (matchExpressions ?? []).filter(({ key }) => key !== TEMPLATE_HASH_LABEL),
  };
}
