import { refOf } from '../../apis/meta.ts';
import { EFFECTIVE_CREATION_TIMEOUT_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import { phaseOf } from '../../apis/machine/v1alpha1/defaults.ts';
import type { Machine, MachineSpec } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import {
  CONFIGURATION_FIELDS,
  equalConfiguration,
  equalNodeTemplate,
} from '../../apis/machine/v1alpha1/template-equality.ts';
import { isNotFound } from '../../kube/errors.ts';
import { mergePatchIfUnchanged, type MergePatch } from '../../kube/patch.ts';
import { machines } from '../../kube/resource.ts';
import { atOnce } from '../replicas/at-once.ts';
import { isTerminating } from '../replicas/machine-state.ts';
import { replacing } from '../../kube/merge-change.ts';
import { creationTimeoutFor } from './new-machine.ts';
import type { MachineSetDeps } from './deps.ts';

const PATCHES_AT_ONCE = 20;

/** Brings existing Machines in step with the parts of the template that need no new VM. Any error but "not found" is thrown. */
export async function pushTemplate(
  deps: Pick<MachineSetDeps, 'writer'>,
  set: MachineSet,
  claimed: readonly Machine[],
  signal: AbortSignal,
): Promise<void> {
  const behind = claimed
    .map((machine) => ({ machine, change: templateChange(set, machine) }))
    .filter(({ change }) => change !== undefined);
  await atOnce(PATCHES_AT_ONCE, behind, async ({ machine, change }) => {
    try {
      const patch = mergePatchIfUnchanged(machine, { spec: change });
      await deps.writer.patch('change', machines, refOf(machine), patch, { signal });
    } catch (err) {
      if (!isNotFound(err)) throw err;
    }
  });
}

/**
 * The members of a Machine's spec that the template of its set has changed, as a merge patch; undefined when there are
 * none. A Machine on its way out only follows the class kind, without which its VM could not be deleted.
 */
export function templateChange(set: MachineSet, machine: Machine): MergePatch<MachineSpec> | undefined {
  const template = set.spec.template?.spec ?? {};
  const { spec } = machine;
  const change: MergePatch<MachineSpec> = {};
  const isLost = isTerminating(machine) || phaseOf(machine) === 'Failed';

  if (!isLost && !equalNodeTemplate(template.nodeTemplate, spec.nodeTemplate)) {
    change.nodeTemplate = replacing(spec.nodeTemplate, template.nodeTemplate);
  }
  const wanted = withOwnTimeout(template, machine);
  if (!isLost && !equalConfiguration(wanted, spec)) {
    const changed = CONFIGURATION_FIELDS.filter((field) => wanted[field] !== spec[field]);
    Object.assign(change, Object.fromEntries(changed.map((field) => [field, wanted[field] ?? null])));
  }
  if (template.class?.kind !== spec.class?.kind) change.class = { kind: template.class?.kind ?? null };
  return Object.keys(change).length === 0 ? undefined : change;
}

/** An effective creation timeout that a Machine was created with stays its own; the template must not take it back. */
function withOwnTimeout(template: MachineSpec, machine: Machine): MachineSpec {
  const own = creationTimeoutFor(machine.metadata.annotations?.[EFFECTIVE_CREATION_TIMEOUT_ANNOTATION]);
  return own === undefined ? template : { ...template, creationTimeout: own };
}
