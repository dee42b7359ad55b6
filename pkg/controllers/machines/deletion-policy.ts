import { DELETION_POLICY_ANNOTATION, DELETION_POLICY_IN_FORCE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { KubeObject } from '../../apis/meta.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';

/**
 * How a Machine is deleted, from the most careful policy to the least:
 *
 * | policy   | drain                              | what the provider refuses                                |
 * |----------|------------------------------------|----------------------------------------------------------|
 * | (none)   | forced after the drain timeout     | is asked for again                                       |
 * | graceful | never forced, unless by label      | is asked for again                                       |
 * | unsafe   | none                               | is asked for again                                       |
 * | forced   | none                               | is asked for again, and the Machine goes after a timeout |
 */
export const DELETION_POLICIES = ['graceful', 'unsafe', 'forced'] as const;

/** One of them. */
export type DeletionPolicy = (typeof DELETION_POLICIES)[number];

/** What is asked for a Machine. `wrong`: where a value stands that is none of the policies; it counts as graceful. */
export interface AskedPolicy {
  readonly policy: DeletionPolicy | undefined;
  readonly wrong?: { readonly where: string; readonly value: string };
}

/** The policy that is asked for: by the Machine, else by its MachineDeployment. */
export function askedPolicy(machine: Machine, deployment: MachineDeployment | undefined): AskedPolicy {
  const own = machine.metadata.annotations?.[DELETION_POLICY_ANNOTATION];
  if (own !== undefined) return understood(own, 'the Machine');
  const inherited = deployment?.metadata.annotations?.[DELETION_POLICY_ANNOTATION];
  return inherited === undefined
    ? { policy: undefined }
    : understood(inherited, `MachineDeployment ${deployment?.metadata.name ?? ''}`);
}

/** The policy by which a Machine is being deleted, as it was recorded. */
export function policyInForce({ metadata }: Pick<Machine, 'metadata'>): DeletionPolicy | undefined {
  const recorded = metadata.annotations?.[DELETION_POLICY_IN_FORCE_ANNOTATION];
  return recorded === undefined ? undefined : understood(recorded, '').policy;
}

/** The less careful one of two policies: a deletion that has begun is only ever weakened. One that has none yet takes any. */
export function weaker(
  recorded: DeletionPolicy | undefined,
  asked: DeletionPolicy | undefined,
): DeletionPolicy | undefined {
  if (recorded === undefined || asked === undefined) return recorded ?? asked;
  return DELETION_POLICIES.indexOf(asked) > DELETION_POLICIES.indexOf(recorded) ? asked : recorded;
}

/** Whether a Machine is deleted without any preparation of its Node. */
export function skipsDrain(policy: DeletionPolicy | undefined): boolean {
  return policy === 'unsafe' || policy === 'forced';
}

function understood(value: string, where: string): AskedPolicy {
  const policy = DELETION_POLICIES.find((one) => one === value);
  return policy === undefined ? { policy: 'graceful', wrong: { where, value } } : { policy };
}

/** Type of the condition of Machines and MachineDeployments whose annotation is none of the policies. */
export const INVALID_DELETION_POLICY = 'InvalidDeletionPolicy';

/** What is wrong with the annotation of an object, and what would be right; undefined when nothing is. */
export function wrongPolicyOf({ metadata }: KubeObject, kind: 'Machine' | 'MachineDeployment'): string | undefined {
  const value = metadata.annotations?.[DELETION_POLICY_ANNOTATION];
  const wrong = value === undefined ? undefined : understood(value, `the ${kind}`).wrong;
  return wrong === undefined ? undefined : describeWrongPolicy(wrong);
}

/** What is wrong with a policy, and what would be right. */
export function describeWrongPolicy({ where, value }: NonNullable<AskedPolicy['wrong']>): string {
  const allowed = DELETION_POLICIES.join(', ');
  return `Annotation ${DELETION_POLICY_ANNOTATION} of ${where} is ${JSON.stringify(value)}, but must be one of ${allowed}: it counts as graceful.`;
}
