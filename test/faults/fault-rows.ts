import { setTimeout as sleep } from 'node:timers/promises';

import { HOUR } from '../durations.ts';
import { DELETE_ORPHAN_VMS_UNTIL_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import { toTimestamp } from '../../pkg/base/clock/clock.ts';
import { DRIVER_CODES, type DriverCode } from '../../pkg/driver/error.ts';
import type { FaultRule, DriverMethod } from '../../packages/providers/sim/faults.ts';
import { JumpingClock } from '../cloud/jumping-clock.ts';
import type { FaultRow, Trial } from '../cloud/trial.ts';
import type { SimulatedCloud } from '../cloud/sim-cloud.ts';
import { controlClusterRows } from './control-cluster-rows.ts';

const FAILURES = DRIVER_CODES.filter((code): code is DriverCode => !['OK', 'NotFound', 'Uninitialized'].includes(code));

/** One failing call for each code, in turn. */
function everyCode(method: DriverMethod): FaultRule[] {
  return FAILURES.map((code) => ({ method, effect: 'fail', code, times: 1 }));
}

async function setReadiness({ cloud, pool }: Trial, share: number, readiness: 'ready' | 'unknown'): Promise<void> {
  const names = (await pool.nodes()).map(({ metadata }) => metadata.name).toSorted();
  const some = names.slice(0, Math.ceil(names.length * share));
  // A Node may go with its machine at any moment.
  await Promise.allSettled(some.map(async (name) => cloud.simulation.nodes?.setReadiness(name, readiness)));
}

/** Nodes are away for a while, once the machines are up. */
function away(share: number, machines: number, awayMs: number): NonNullable<FaultRow['disturb']> {
  return async (trial, over) => {
    await trial.pool.untilUp(machines, { timeoutMs: 600_000 });
    await setReadiness(trial, share, 'unknown');
    await sleep(awayMs, undefined, { signal: over }).catch(() => undefined);
    await setReadiness(trial, 1, 'ready');
  };
}

/** Their deadline is 30 s. */
const HANGING_READS: readonly FaultRule[] = [
  { method: 'GetMachineStatus', effect: 'hang', times: 2 },
  { method: 'ListMachines', effect: 'hang', times: 1 },
];

const clock = new JumpingClock();

/** Long enough for what is listed to be proved, and more. */
async function manyLists(cloud: SimulatedCloud, over: AbortSignal): Promise<void> {
  const before = cloud.calls['ListMachines'] ?? 0;
  while ((cloud.calls['ListMachines'] ?? 0) < before + 5 && !over.aborted) {
    await sleep(200, undefined, { signal: over }).catch(() => undefined);
  }
}

/** The rows of the fault table: of so many machines, and things that are away for so long. */
export function faultRows(machines: number, awayMs: number): readonly FaultRow[] {
  return [
    {
      what: 'creations fail, once with each code',
      kind: 'failure',
      faults: everyCode('CreateMachine'),
      machines: FAILURES.length,
    },
    {
      what: 'deletions fail, once with each code',
      kind: 'failure',
      faults: everyCode('DeleteMachine'),
      machines: FAILURES.length,
    },
    {
      what: 'looks fail, once with each code',
      kind: 'failure',
      faults: everyCode('GetMachineStatus'),
      machines: FAILURES.length,
    },
    {
      what: 'answers are late',
      kind: 'delay',
      faults: [{ method: '*', effect: 'late', delayMs: 700, probability: 0.5 }],
    },
    {
      what: 'what was done is reported as failed',
      kind: 'wrong answer to a change',
      faults: [
        { method: 'CreateMachine', effect: 'fail-after', probability: 0.4, times: 6 },
        { method: 'DeleteMachine', effect: 'fail-after', probability: 0.4, times: 6 },
      ],
    },
    {
      what: 'what was made is reported as failed, and a repeated creation makes a second VM',
      kind: 'wrong answer to a change',
      faults: [
        { method: 'CreateMachine', effect: 'fail-after', times: 3 },
        { method: 'CreateMachine', effect: 'duplicate' },
      ],
    },
    {
      what: 'a new VM is forgotten',
      kind: 'wrong answer to a change',
      faults: [{ method: 'CreateMachine', effect: 'forget', times: 1 }],
      extraVMs: 1,
    },
    {
      what: 'lists and looks are stale',
      kind: 'wrong answer to a look',
      faults: [
        { method: 'ListMachines', effect: 'stale', delayMs: 1_000 },
        { method: 'GetMachineStatus', effect: 'stale', delayMs: 200, probability: 0.5 },
      ],
    },
    {
      what: 'a VM gets a twin of its name and UID while it is made, so that drivers say OutOfRange',
      twins: true,
      extraVMs: 2,
      async disturb({ cloud }) {
        const has = new Set<string>();
        cloud.simulation.cloud.onEvent((vm, event) => {
          if (event !== 'created' || has.size === 2 || has.has(vm.machineName)) return;
          has.add(vm.machineName);
          cloud.simulation.cloud.create({ ...vm, joinsAtMs: undefined });
        });
        await Promise.resolve();
      },
    },
    {
      what: 'lists show every VM under another id',
      kind: 'wrong answer to a look',
      faults: [{ method: 'ListMachines', effect: 'other-id' }],
      async disturb({ cloud }, over) {
        await manyLists(cloud, over);
      },
    },
    {
      what: 'a driver was upgraded and names every VM by another id',
      async disturb({ cloud, pool }, over) {
        await pool.untilUp(machines, { timeoutMs: 600_000 });
        cloud.setFaults([
          { method: 'ListMachines', effect: 'other-id' },
          { method: 'GetMachineStatus', effect: 'other-id' },
        ]);
        await manyLists(cloud, over);
      },
    },
    {
      what: "creations are answered with another machine's VM",
      kind: 'wrong answer to a change',
      async disturb({ cloud, pool }) {
        await pool.untilUp(machines, { timeoutMs: 600_000 });
        cloud.setFaults([{ method: 'CreateMachine', effect: 'other', times: 6 }]);
      },
    },
    { what: 'looks and lists hang', kind: 'delay', faults: HANGING_READS },
    {
      what: 'creations and deletions hang forever',
      kind: 'delay',
      faults: [
        { method: 'CreateMachine', effect: 'hang', times: 2 },
        { method: 'DeleteMachine', effect: 'hang', times: 2 },
      ],
      // Instead of ten minutes.
      run: { hooks: { driverMutationTimeoutMs: 4_000 } },
    },
    {
      what: 'every machine gets a second VM behind our back',
      extraVMs: 2 * machines,
      async disturb({ cloud, pool }) {
        await pool.untilUp(machines, { timeoutMs: 600_000 });
        // More at once than are deleted without being asked.
        await pool.annotateClass({ [DELETE_ORPHAN_VMS_UNTIL_ANNOTATION]: toTimestamp(Date.now() + HOUR) });
        for (const vm of cloud.simulation.cloud.all()) {
          // Other names than the machines': two VMs of one name are what `doubled` looks for.
          cloud.simulation.cloud.create({
            ...vm,
            machineName: `${vm.machineName}-2`,
            machineUID: undefined,
            joinsAtMs: undefined,
          });
        }
      },
    },
    { what: 'all Nodes of the zone are away at once', kind: 'Nodes', disturb: away(1, machines, awayMs) },
    { what: 'half of the Nodes are away', kind: 'Nodes', disturb: away(0.5, machines, awayMs) },
    {
      what: 'the wall clock jumps forward and back',
      run: { clock },
      async disturb() {
        for (const offsetMs of [HOUR, -HOUR, 0]) {
          clock.offsetMs = offsetMs;
          await sleep(500);
        }
      },
    },
    ...controlClusterRows(machines, awayMs),
  ];
}
