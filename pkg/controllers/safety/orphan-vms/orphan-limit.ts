/** So many VMs of a class are deleted in one round without being asked, however small the class is. */
const FLOOR = 3;
/** Of the VMs that the class's list shows. */
const SHARE = 0.1;

/** How many VMs of a class with `listed` VMs may be proved to be without a Machine in one round and still be deleted. */
export function orphanLimit(listed: number): number {
  return Math.max(FLOOR, Math.floor(listed * SHARE));
}
