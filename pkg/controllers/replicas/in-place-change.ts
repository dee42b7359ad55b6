import type { MachineSpec } from '../../apis/machine/v1alpha1/machine.ts';
import {
  CONFIGURATION_FIELDS,
  equalConfiguration,
  equalNodeTemplate,
} from '../../apis/machine/v1alpha1/template-equality.ts';
import { replacing } from '../../kube/client/merge-change.ts';
import type { MergePatch } from '../../kube/client/patch.ts';

/**
 * What of a template reaches machines without a new VM, as a merge patch of a spec: node template, configuration and class kind. Undefined
 * when the spec is in step.
 */
export function inPlaceChange(template: MachineSpec, spec: MachineSpec): MergePatch<MachineSpec> | undefined {
  const change: MergePatch<MachineSpec> = {};
  if (!equalNodeTemplate(template.nodeTemplate, spec.nodeTemplate)) {
    change.nodeTemplate = replacing(spec.nodeTemplate, template.nodeTemplate);
  }
  if (!equalConfiguration(template, spec)) {
    const changed = CONFIGURATION_FIELDS.filter((field) => template[field] !== spec[field]);
    Object.assign(change, Object.fromEntries(changed.map((field) => [field, template[field] ?? null])));
  }
  if (template.class?.kind !== spec.class?.kind) change.class = { kind: template.class?.kind ?? null };
  return Object.keys(change).length === 0 ? undefined : change;
}
