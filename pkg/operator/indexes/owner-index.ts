import { controllerOf, type KubeObject } from '../../apis/meta.ts';

/** Name of the index of Machines and MachineSets by who controls them. */
export const CONTROLLER_INDEX = 'controller';

/** Value of the index for objects that nobody controls. */
export const NO_CONTROLLER = '';

/** The index function: UID of the controlling owner, or NO_CONTROLLER. */
export function controllerIndex(object: KubeObject): string[] {
  return [controllerOf(object)?.uid ?? NO_CONTROLLER];
}
