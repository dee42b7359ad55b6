import { PRE_DRAIN_DELETE_HOOK_PREFIX, PRE_DRAIN_HOOK_PREFIX } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';

/** What a Node is drained for whose drain hooks hold up: with the prefixes of the annotations that do. */
const PREFIXES = {
  deletion: [PRE_DRAIN_DELETE_HOOK_PREFIX, PRE_DRAIN_HOOK_PREFIX],
  maintenance: [PRE_DRAIN_HOOK_PREFIX],
} as const;

/** Says in the status that hooks hold a drain up. */
const WAITING = 'Waiting for hooks: ';

/**
 * The hooks of a Machine that hold up its drain, in order: annotations that others put there, whatever their value, and take away when they
 * are ready.
 */
export function drainHooksOf(
  { metadata }: Pick<Machine, 'metadata'>,
  purpose: keyof typeof PREFIXES,
): readonly string[] {
  const isHook = (key: string): boolean =>
    PREFIXES[purpose].some((prefix) => key === prefix || key.startsWith(`${prefix}/`));
  return Object.keys(metadata.annotations ?? {})
    .filter(isHook)
    .toSorted();
}

/** Says which hooks hold a drain up. */
export function describeHooks(hooks: readonly string[]): string {
  return `${WAITING}${hooks.join(', ')}.`;
}

/** Whether a text says that hooks hold a drain up. */
export function saysHooks(text: string): boolean {
  return text.startsWith(WAITING);
}
