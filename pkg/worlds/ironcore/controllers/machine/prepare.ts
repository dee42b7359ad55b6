import { isDeepStrictEqual } from 'node:util';

import { withFinalizer } from '../../../../apis/finalizers.ts';
import type { IronCoreMachine, VolumeEntry } from '../../api/machine.ts';
import { refOf } from '../../../../apis/meta.ts';
import { ignoreNotFound } from '../../../../kube/client/errors.ts';
import { mergePatchIfUnchanged, type MergePatch } from '../../../../kube/client/patch.ts';
import { ironCoreMachines } from '../../api/resources.ts';
import { next, requeue } from '../../../../work/reconcile/result.ts';
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

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const PREFIX = 'od';
/** With one letter, then with two. */
const MOST = LETTERS.length + LETTERS.length ** 2;

/**
 * Volumes with a device each: those without one are given the first that is free. Undefined when all have one, and nothing is to be
 * written. What is given must be stored: it would be another one when an earlier volume is gone.
 */
export function withDevices(volumes: readonly VolumeEntry[]): readonly VolumeEntry[] | undefined {
  const used = new Set(volumes.map(({ device }) => device));
  if (!used.has(undefined) && !used.has('')) return undefined;
  const free = freeDevices(used);
  return volumes.map((volume) => {
    if (volume.device !== undefined && volume.device !== '') return volume;
    const { value: device } = free.next();
    return device === undefined ? volume : { ...volume, device };
  });
}

function* freeDevices(used: ReadonlySet<string | undefined>): Generator<string, undefined> {
  for (let index = 0; index < MOST; index++) {
    const device = deviceAt(index);
    if (!used.has(device)) yield device;
  }
  return undefined;
}

function deviceAt(index: number): string {
  const letter = (at: number): string => LETTERS.charAt(at);
  if (index < LETTERS.length) return PREFIX + letter(index);
  const rest = index - LETTERS.length;
  return PREFIX + letter(Math.floor(rest / LETTERS.length)) + letter(rest % LETTERS.length);
}
