import { DELETION_POLICY_ANNOTATION, DELETION_POLICY_IN_FORCE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';
import { frontEndField } from './front-end-field.ts';

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

export type DeletionPolicy = (typeof DELETION_POLICIES)[number];

/** The policy that is asked for: by the Machine, else by its MachineDeployment. A value that is none of them counts as graceful. */
export function requestedPolicy(
  machine: Machine,
  deployment: MachineDeployment | undefined,
): DeletionPolicy | undefined {
  const [own, inherited] = [machine, deployment].map((one) => one?.metadata.annotations?.[DELETION_POLICY_ANNOTATION]);
  return understood(own ?? inherited);
}

/** Where a user sets the policy of a Machine. */
export function policySettingOf(machine: Machine): string {
  return frontEndField(machine, 'deletionPolicy') ?? `annotation ${DELETION_POLICY_ANNOTATION}`;
}

export function isDeletionPolicy(text: string): text is DeletionPolicy {
  return (DELETION_POLICIES as readonly string[]).includes(text);
}

export function policyInForce({ metadata }: Pick<Machine, 'metadata'>): DeletionPolicy | undefined {
  return understood(metadata.annotations?.[DELETION_POLICY_IN_FORCE_ANNOTATION]);
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

function understood(value: string | undefined): DeletionPolicy | undefined {
  return value === undefined || isDeletionPolicy(value) ? value : 'graceful';
}
