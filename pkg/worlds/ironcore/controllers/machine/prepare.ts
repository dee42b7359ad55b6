import { isDeepStrictEqual } from 'node:util';

import { withFinalizer } from '../../../../apis/finalizers.ts';
import type { IronCoreMachine } from '../../api/machine.ts';
import { refOf } from '../../../../apis/meta.ts';
import { ignoreNotFound } from '../../../../kube/client/errors.ts';
import { mergePatchIfUnchanged, type MergePatch } from '../../../../kube/client/patch.ts';
import { ironCoreMachines } from '../../api/resources.ts';
import { next, requeue } from '../../../../work/reconcile/result.ts';
import { withDevices } from './devices.ts';
import { IRONCORE_MACHINE_FINALIZER, REQUESTED_AT_ANNOTATION } from './keys.ts';
import type { PassCollaborators, IronCoreStep } from './machine-pass.ts';

/** Adds the finalizer, and devices to volumes that have none, and takes off that a look is asked for. */
export const prepare = ({ finalizer, writer }: Pick<PassCollaborators, 'finalizer' | 'writer'>): IronCoreStep => ({
  name: 'prepare',
  async run({ observed, isGoing, signal }) {
    if (isGoing) return next;
    const { annotations } = observed.metadata;
    const volumes = withDevices(observed.spec.volumes ?? []);
    const isHeld = finalizer.holds(observed);
    const isComplete = volumes === undefined || isDeepStrictEqual(volumes, observed.spec.volumes);
    const isAskedFor = annotations?.[REQUESTED_AT_ANNOTATION] !== undefined;
    if (isHeld && isComplete && !isAskedFor) return next;
    const metadata = {
      ...(!isHeld && { finalizers: withFinalizer(observed, IRONCORE_MACHINE_FINALIZER) }),
      ...(isAskedFor && { annotations: { [REQUESTED_AT_ANNOTATION]: null } }),
    };
    const change: MergePatch<IronCoreMachine> = {
      ...((!isHeld || isAskedFor) && { metadata }),
      ...(!isComplete && { spec: { volumes } }),
    };
    const patch = mergePatchIfUnchanged(observed, change);
    await writer.patch('change', ironCoreMachines, refOf(observed), patch, { signal }).catch(ignoreNotFound);
    return requeue(0, 'the cache to show the Machine');
  },
});
