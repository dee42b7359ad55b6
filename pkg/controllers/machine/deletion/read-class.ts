import { vmClassNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import type { DeletionStage } from '../../machine-facts/deletion-stage.ts';
import type { Unresolved } from '../calls/class-resolution.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, ResolvedClass } from '../context.ts';

/**
 * The class of a machine that stays at a stage without it. A Secret that the API server refuses to show, or cannot read itself, is told of: that
 * does not pass by itself, and the provider is not even asked. The pass fails, and is repeated. Throws ApiError.
 */
export async function readClass(
  { cursor, resolveClass }: Pick<Collaborators, 'cursor' | 'resolveClass'>,
  ctx: MachineContext,
  stage: DeletionStage,
): Promise<ResolvedClass | Unresolved> {
  const { machine, pass } = ctx;
  try {
    return await resolveClass(machine, ctx.signal);
  } catch (err) {
    if (err instanceof ApiError && !isPassing(err)) {
      const text = `Could not read the Secrets of MachineClass ${vmClassNameOf(machine)}: ${err.message}.`;
      if (cursor.stay(ctx, stage, text)) pass.event('InvalidClass', text);
    }
    throw err;
  }
}

/** No answer, or one that asks for patience. */
function isPassing({ code }: ApiError): boolean {
  return code === 0 || code === 429 || code > 500;
}
