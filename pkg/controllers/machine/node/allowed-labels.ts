import { LAST_APPLIED_TEMPLATE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { NodeLabelPolicy } from '../../../apis/machine/v1alpha1/node-label-policy.ts';
import type { Node } from '../../../apis/wire.ts';
import type { NodeRefusal } from '../../machine-facts/node-refusal.ts';
import { appliedLabels } from './node-template.ts';

const MAX_VALUES = 5;

/** What of the labels of a node template a Node may have. */
export interface LabelVerdict {
  /** To be applied. */
  readonly labels: Readonly<Record<string, string>>;
  readonly refusals: readonly NodeRefusal[];
}

/**
 * Judges the labels that the template of `machine` asks for; each of `policies` that concerns it must allow a label, and without one any is. What the Node
 * was given while it was allowed stays as it is.
 */
export function judgeLabels(machine: Machine, node: Node, all: readonly NodeLabelPolicy[]): LabelVerdict {
  const policies = all.filter((policy) => concerns(policy, machine));
  const asked = machine.spec.nodeTemplate?.metadata?.labels ?? {};
  const labels: Record<string, string> = {};
  const refusals: NodeRefusal[] = [];
  const applied =
    policies.length === 0 ? {} : appliedLabels(node.metadata.annotations?.[LAST_APPLIED_TEMPLATE_ANNOTATION]);
  for (const [key, value] of Object.entries(asked)) {
    const refuser = policies.find((policy) => !allows(policy, key, value));
    const given = applied[key] === undefined ? undefined : node.metadata.labels?.[key];
    if (refuser === undefined) labels[key] = value;
    else if (given !== undefined) labels[key] = given;
    if (refuser !== undefined && given !== value) refusals.push({ what: `label ${key}`, why: reasonOf(refuser, key) });
  }
  return { labels, refusals };
}

function concerns({ spec: { machineLabels = {} } }: NodeLabelPolicy, { metadata: { labels } }: Machine): boolean {
  return Object.entries(machineLabels).every(([key, value]) => labels?.[key] === value);
}

function allows({ spec: { allowed = [] } }: NodeLabelPolicy, key: string, value: string): boolean {
  return allowed.some((one) => one.key === key && (one.value === undefined || one.value === value));
}

function reasonOf({ metadata, spec: { allowed = [] } }: NodeLabelPolicy, key: string): string {
  const values = allowed.filter((one) => one.key === key).map(({ value = '' }) => JSON.stringify(value));
  const named = `${values.slice(0, MAX_VALUES).join(', ')}${values.length > MAX_VALUES ? ', …' : ''}`;
  return values.length === 0
    ? `NodeLabelPolicy ${metadata.name} does not allow this key`
    : `NodeLabelPolicy ${metadata.name} allows ${named}`;
}
