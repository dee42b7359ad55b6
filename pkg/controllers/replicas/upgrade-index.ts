import { UPGRADE_INDEX_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';

/** The place of a Machine in rollouts that a user gave it; undefined without one, and for anything that is no integer from 1. */
export function upgradeIndexOf({ metadata }: Pick<Machine, 'metadata'>): number | undefined {
  const text = metadata.annotations?.[UPGRADE_INDEX_ANNOTATION] ?? '';
  return isUpgradeIndex(text) ? Number(text) : undefined;
}

export function isUpgradeIndex(text: string): boolean {
  return /^[1-9]\d{0,8}$/.test(text);
}

/** The smaller index first, and Machines without one last; equal ones stay as they are, where the sorting is stable. */
export function byUpgradeIndex(a: Pick<Machine, 'metadata'>, b: Pick<Machine, 'metadata'>): number {
  const [left, right] = [upgradeIndexOf(a) ?? Infinity, upgradeIndexOf(b) ?? Infinity];
  return left === right ? 0 : left - right;
}
