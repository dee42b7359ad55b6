import { CLUSTER_API_PRE_DRAIN_HOOK_PREFIX, CLUSTER_API_PRE_TERMINATE_HOOK_PREFIX } from '../../api/keys.ts';
import type { KubeObject } from '../../../../apis/meta.ts';
import { next } from '../../../../work/reconcile/result.ts';
import type { MachinePass, ClusterAPIMachineStep, StepDeps } from '../machine-pass.ts';
import { older } from '../older-conditions.ts';
import { OF_PRE_TERMINATE, started, waits, type StartTime } from './waits.ts';

/** Hooks before the drain of a Node that the Machine has, or had. */
export const PRE_DRAIN = {
  name: 'pre-drain',
  prefix: CLUSTER_API_PRE_DRAIN_HOOK_PREFIX,
  reason: 'WaitingForPreDrainHook',
  startTime: 'waitForPreDrainHookStartTime',
  condition: 'PreDrainDeleteHookSucceeded',
  // Also of one that is gone: those who have set them may still need what is on the machine.
  isFor: ({ machine }: MachinePass): boolean => machine.status.nodeRef !== undefined,
} as const;

/** Hooks before the deletion of the infrastructure. */
export const PRE_TERMINATE = {
  name: 'pre-terminate',
  prefix: CLUSTER_API_PRE_TERMINATE_HOOK_PREFIX,
  reason: OF_PRE_TERMINATE,
  startTime: 'waitForPreTerminateHookStartTime',
  condition: 'PreTerminateDeleteHookSucceeded',
  isFor: (): boolean => true,
} as const;

/** Names of the hooks that hold a Machine: all annotations that begin with a prefix. */
export function hookNamesOf({ metadata }: KubeObject, prefix: string): readonly string[] {
  const keys = Object.keys(metadata.annotations ?? {});
  return keys.filter((key) => key.startsWith(prefix)).toSorted();
}

interface HookKind {
  readonly name: string;
  readonly prefix: string;
  readonly reason: string;
  readonly startTime: StartTime;
  /** Of the older contract. */
  readonly condition: string;
  readonly isFor: (pass: MachinePass) => boolean;
}

export function hooks(
  { clock }: Pick<StepDeps, 'clock'>,
  { name, prefix, reason, startTime, condition, isFor }: HookKind,
): ClusterAPIMachineStep {
  return {
    name,
    run(pass) {
      if (!isFor(pass)) return next;
      const held = hookNamesOf(pass.machine, prefix);
      pass.older.push(held.length === 0 ? older(condition, 'True') : older(condition, 'False', 'WaitingExternalHook'));
      if (held.length === 0) return next;
      started(pass, startTime, clock.now());
      const message = `Waiting for hooks to be removed: ${held.join(', ')}`;
      return waits(pass, reason, message, { event: { type: 'Normal', reason } });
    },
  };
}
