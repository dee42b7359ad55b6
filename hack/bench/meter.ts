import { setTimeout as sleep } from 'node:timers/promises';

import type { Bed } from './bed.ts';
import { secondsIn, worstSince } from './loop-delays.ts';
import type { Measurement } from './measurement.ts';
import { readManager } from './manager-metrics.ts';
import { resetPeak, usageOf } from './process-usage.ts';
import { countRequests, difference } from './request-count.ts';
import type { Scenario } from './scenarios.ts';

/** Reads by the benchmark itself, which polls MachineDeployments and lists Machines at the end of a scenario. */
const OWN = new Set(['GET machinedeployments', 'LIST machines']);
/** Status writes and Events that trail behind are waited for in steps of this. */
const SETTLE_MS = 2_000;

/** Runs a scenario about so many machines, and resolves with what it cost, Events that trail behind included. */
export async function measure(bed: Bed, scenario: Scenario, count: number): Promise<Measurement> {
  const { api, port, pids, cloud, loopDelayFile, leases } = bed;
  for (const pid of Object.values(pids)) resetPeak(pid);
  await cloud.resetCalls();
  const before = new Set((await cloud.vms()).map(({ providerID }) => providerID));
  const [requests, manager] = [await countRequests(api), await readManager(port)];
  const cpu = new Map(Object.entries(pids).map(([name, pid]) => [name, usageOf(pid).cpuSeconds]));
  const second = secondsIn(loopDelayFile);
  leases.reset();

  const { seconds, created, deleted } = await scenario.run(bed, count);
  await quiet(bed);

  const managerNow = await readManager(port);
  const calls = await cloud.calls();
  const after = await cloud.vms();
  const isNew = after.filter(({ providerID }) => !before.has(providerID)).length;
  const processes = Object.entries(pids).map(([name, pid]) => {
    const { peakMB, residentMB, cpuSeconds } = usageOf(pid);
    return [name, { peakMB, residentMB, cpuSeconds: cpuSeconds - (cpu.get(name) ?? 0) }] as const;
  });
  return {
    scenario: scenario.name,
    machines: scenario.machines(count),
    seconds,
    requests: Object.fromEntries(difference(requests, await countRequests(api)).filter(([key]) => !OWN.has(key))),
    passes: Object.fromEntries(difference(manager.passes, managerNow.passes)),
    lateKeys: Object.fromEntries(difference(manager.lateKeys, managerNow.lateKeys)),
    vms: {
      created: Math.max(isNew, calls['CreateMachine'] ?? 0),
      deleted: calls['DeleteMachine'] ?? 0,
      neededCreated: created,
      neededDeleted: deleted,
    },
    loopDelayMs: worstSince(loopDelayFile, second),
    leaseGapMs: leases.longestMs(),
    processes: Object.fromEntries(processes),
  };
}

/** Resolves when nobody has written anything for two seconds. */
export async function quiet({ api }: Pick<Bed, 'api'>): Promise<void> {
  for (let before = await countRequests(api); ;) {
    await sleep(SETTLE_MS);
    const now = await countRequests(api);
    if (difference(before, now).every(([key]) => /^(GET|LIST) /.test(key))) return;
    before = now;
  }
}
