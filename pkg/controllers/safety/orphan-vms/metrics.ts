import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';

/** What the loop over VMs finds and does. */
export interface OrphanVMMetrics {
  readonly orphanVMs: Counter<'result'>;
  readonly heldOrphanVMs: Gauge;
  readonly vanishedVMs: Counter;
}

/** Declares the metrics of the loop over VMs in `registry`; `ownerless` is read at each scrape. */
export function orphanVMMetrics(registry: Registry, ownerless: () => number): OrphanVMMetrics {
  const registers = [registry];
  void new Gauge({
    name: 'machinist_ownerless_vms',
    help: 'VMs in the last lists that no Machine has, whether they are proved to be orphans or not.',
    registers,
    collect() {
      this.set(ownerless());
    },
  });
  return {
    orphanVMs: new Counter({
      name: 'machinist_orphan_vms_total',
      help: 'VMs that were proved to be without a Machine, by what came of it (deleted, failed, dry-run).',
      labelNames: ['result'],
      registers,
    }),
    heldOrphanVMs: new Gauge({
      name: 'machinist_orphan_vms_held',
      help: 'VMs that were proved to be without a Machine and are not deleted, because there are too many of their MachineClass at once or a restore has forgotten their Machines.',
      registers,
    }),
    vanishedVMs: new Counter({
      name: 'machinist_vanished_vms_total',
      help: 'Machines that failed because their VM was proved not to exist any more.',
      registers,
    }),
  };
}
