import {
  PRE_DRAIN_DELETE_HOOK_PREFIX,
  PRE_DRAIN_HOOK_PREFIX,
  PRE_TERMINATE_HOOK_PREFIX,
} from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';

/** What hooks hold up, the drain of a deletion or of a maintenance, or the end of the VM: with the prefixes of the annotations that do. */
const PREFIXES = {
  deletion: [PRE_DRAIN_DELETE_HOOK_PREFIX, PRE_DRAIN_HOOK_PREFIX],
  maintenance: [PRE_DRAIN_HOOK_PREFIX],
  termination: [PRE_TERMINATE_HOOK_PREFIX],
} as const;

/**
 * The hooks of a Machine that hold something up, in order: annotations that others put there, whatever their value, and take away when they
 * are ready.
 */
export function hooksOf({ metadata }: Pick<Machine, 'metadata'>, purpose: keyof typeof PREFIXES): readonly string[] {
  const isHook = (key: string): boolean =>
    PREFIXES[purpose].some((prefix) => key === prefix || key.startsWith(`${prefix}/`));
  return Object.keys(metadata.annotations ?? {})
    .filter(isHook)
    .toSorted();
}

export function describeHooks(hooks: readonly string[]): string {
  return `Waiting for hooks: ${hooks.join(', ')}.`;
}
