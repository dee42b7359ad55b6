import { PRE_DRAIN_HOOK_PREFIX, PRE_TERMINATE_HOOK_PREFIX } from '../../../apis/cluster-api/keys.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import { next } from '../../../reconcile/result.ts';
import type { MachineStep, StepDeps } from '../machine-pass.ts';
import { OF_PRE_TERMINATE, started, waits, type StartTime } from './waits.ts';

/** Hooks before the drain. */
export const PRE_DRAIN = {
  name: 'pre-drain',
  prefix: PRE_DRAIN_HOOK_PREFIX,
  reason: 'WaitingForPreDrainHook',
  startTime: 'waitForPreDrainHookStartTime',
} as const;

/** Hooks before the deletion of the infrastructure. */
export const PRE_TERMINATE = {
  name: 'pre-terminate',
  prefix: PRE_TERMINATE_HOOK_PREFIX,
  reason: OF_PRE_TERMINATE,
  startTime: 'waitForPreTerminateHookStartTime',
} as const;

/** Names of the hooks with a prefix that hold a Machine. */
export function hooksOf({ metadata }: KubeObject, prefix: string): readonly string[] {
  const keys = Object.keys(metadata.annotations ?? {});
  return keys.filter((key) => key === prefix || key.startsWith(`${prefix}/`)).toSorted();
}

/** Waits until hooks of a kind are gone. */
export function hooks(
  { clock }: Pick<StepDeps, 'clock'>,
  { name, prefix, reason, startTime }: { name: string; prefix: string; reason: string; startTime: StartTime },
): MachineStep {
  return {
    name,
    run(pass) {
      const held = hooksOf(pass.machine, prefix);
      if (held.length === 0) return next;
      started(pass, startTime, clock.now());
      const message = `Waiting for hooks to be removed: ${held.join(', ')}`;
      return waits(pass, reason, message, { event: { type: 'Normal', reason } });
    },
  };
}
