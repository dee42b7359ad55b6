import { vmClassNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import type { DeletionStage } from '../../machine-facts/deletion-stage.ts';
import type { Unresolved } from '../calls/class-resolution.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, ResolvedClass } from '../context.ts';

const UNREAD = 'PreparationFailed';

/**
 * The class of a machine that stays at a stage without it. A Secret that the API server refuses to show, or cannot read itself, is told of: that
 * does not pass by itself, and the provider is not even asked. The pass fails, and is repeated. Once the Secret is read, the machine no longer says
 * so: what its driver answers then follows no failure. Throws ApiError.
 */
export async function readClass(
  { cursor, reportedOnce, resolveClass }: Pick<Collaborators, 'cursor' | 'reportedOnce' | 'resolveClass'>,
  ctx: MachineContext,
  stage: DeletionStage,
): Promise<ResolvedClass | Unresolved> {
  const { machine, observed, pass } = ctx;
  const { uid } = machine.metadata;
  const fails = (isSo: boolean): boolean => reportedOnce.becomes(uid, 'reading Secrets failed', isSo);
  try {
    const resolved = await resolveClass(machine, ctx.signal);
    fails(false);
    if (observed.status?.lastOperation?.errorCode === UNREAD) cursor.advance(ctx, stage);
    return resolved;
  } catch (err) {
    // What is not for a moment only fails again.
    if (err instanceof ApiError && !isPassing(err) && !(err.code === 500 && fails(true))) {
      const text = `Could not read the Secrets of MachineClass ${vmClassNameOf(machine)}: ${err.message}.`;
      if (cursor.stay(ctx, stage, text, UNREAD)) pass.event('InvalidClass', text);
    }
    throw err;
  }
}

/** No answer, or one that asks for patience. */
function isPassing({ code }: ApiError): boolean {
  return code === 0 || code === 429 || code > 500;
}
