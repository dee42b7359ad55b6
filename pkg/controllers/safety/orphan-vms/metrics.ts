import type { Registry } from 'prom-client';

import { declaring } from '../../../base/metrics/declaring.ts';

/** Declares the metrics of the loop over VMs in `registry`; `ownerless` is read at each scrape. */
export function orphanVMMetrics(registry: Registry, ownerless: () => number) {
  const { counter, gauge, series } = declaring(registry);
  series(
    'machinist_ownerless_vms',
    'VMs in the last lists without a Machine, whether or not they are proved to be orphans.',
    [],
    () => [[{}, ownerless()]],
  );
  const lastLook = gauge('machinist_orphan_vms_last_look_timestamp_seconds').help(
    'Time when the VMs of all MachineClasses were last compared with the Machines, in seconds since the epoch; before the first time, when the process, or the cell, began to; no value without drivers.',
  );
  lastLook.remove(); // a gauge without labels begins with 0, which would be long ago
  return {
    lastLook,
    orphanVMs: counter('machinist_orphan_vms_total', ['result']).help(
      'VMs proved to be without a Machine, by result (deleted, failed, dry-run).',
    ),
    heldOrphanVMs: gauge('machinist_orphan_vms_held').help(
      'VMs proved to be without a Machine that are not deleted, because there were too many at once, a restore has lost their Machines, or the driver does not list the VMs of Machines that work.',
    ),
    vanishedVMs: counter('machinist_vanished_vms_total').help(
      'Machines that failed because their VM was proved not to exist any more.',
    ),
  };
}

export type OrphanVMMetrics = ReturnType<typeof orphanVMMetrics>;
