import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { PRESERVE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { controllerOf } from '../../../apis/meta.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { HEALTHY, type Fact } from '../explanation.ts';

/** Says of a preserved machine until when; one that failed stays until then. */
export const preserved: Fact = (machine, rest, { nowMs }) => {
  const explanation = rest();
  const expiry = machine.status?.currentStatus?.preserveExpiryTime ?? '';
  const expiryMs = fromTimestamp(expiry);
  if (expiryMs === undefined || expiryMs <= nowMs) return explanation;
  const end = `The preservation ends at ${expiry}, or when annotation ${PRESERVE_ANNOTATION} is removed from Machine and Node or set to false.`;
  if (phaseOf(machine) !== 'Failed') {
    const message = `${explanation.message} It is preserved until ${expiry}.`;
    return {
      ...explanation,
      message,
      nextStep: explanation.nextStep === HEALTHY ? end : `${explanation.nextStep} ${end}`,
    };
  }
  const owner = controllerOf(machine);
  return {
    reason: 'PreservedFailed',
    message: `${explanation.message} It is preserved until ${expiry}; its pods move elsewhere.`,
    waitingFor: 'someone to inspect it, or its Node to recover',
    nextStep:
      owner === undefined
        ? `It becomes Running when its Node recovers; it is not replaced automatically. ${end}`
        : `It becomes Running when its Node recovers; at ${expiry}, or when the preservation is withdrawn, it is replaced.`,
  };
};
