import { refOf } from '../../../../apis/meta.ts';
import type { Writer } from '../../../../kube/client/client.ts';
import { ignoreNotFound } from '../../../../kube/client/errors.ts';
import { mergePatch } from '../../../../kube/client/patch.ts';
import type { IronCoreMachine } from '../../api/machine.ts';
import { ironCoreMachines } from '../../api/resources.ts';

/** Writes annotations of a Machine, of which null removes one; undefined when it is gone. Throws ApiError and GateClosedError. */
export async function annotateMachine(
  { writer }: { readonly writer: Pick<Writer, 'patch'> },
  observed: IronCoreMachine,
  annotations: Readonly<Record<string, string | null | undefined>>,
  signal: AbortSignal,
): Promise<IronCoreMachine | undefined> {
  const patch = mergePatch(observed, { metadata: { annotations } });
  return await writer.patch('change', ironCoreMachines, refOf(observed), patch, { signal }).catch(ignoreNotFound);
}
