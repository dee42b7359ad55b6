import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { fromTimestamp, MINUTE_MS } from '../../../base/clock/clock.ts';
import { CONTROL } from '../../../kube/gate/gate.ts';
import { type StepResult, waitFor } from '../../../work/reconcile/result.ts';
import { CREATING } from '../../machine-facts/original-texts.ts';
import { type MachineCopy, setOperation } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';

/** By so much the clocks of API server and process may differ. */
const SKEW_MS = MINUTE_MS;

/** Whether a Machine was made while this process decides, so that no other one has asked a driver for its VM. */
export function wasMadeMeanwhile(
  { clock, trust }: Pick<Collaborators, 'clock' | 'trust'>,
  { metadata }: Machine,
): boolean {
  const ageMs = clock.now() - (fromTimestamp(metadata.creationTimestamp) ?? 0);
  return ageMs + SKEW_MS < trust.trustedForMs([CONTROL]);
}

/** What the status says of the past must not be true of the future: whoever reads it from now on knows that a VM may be there. */
export function beginToAsk({ clock }: Pick<Collaborators, 'clock'>, machine: MachineCopy): StepResult {
  setOperation(machine, { type: 'Create', state: 'Processing', description: CREATING }, clock.now());
  return waitFor('the start of the creation to be recorded');
}
