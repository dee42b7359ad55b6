import type { TopFacts } from '../cmd/machinist/top/facts.ts';
import { MachineRows } from '../cmd/machinist/top/machine-rows.ts';
import { type TopView, viewOf } from '../cmd/machinist/top/view.ts';
import type { Machine } from '../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachinePhase } from '../pkg/apis/machine/v1alpha1/phases.ts';
import type { Event, Lease } from '../pkg/apis/wire.ts';
import type { WorkInProgress } from '../pkg/health/work-in-progress.ts';
import { machine, machineDeployment, machineSet } from './builders.ts';

/** When everything here is looked at; it was created ten minutes before. */
export const NOW_MS = Date.parse('2026-01-01T00:10:00Z');

/** A Machine of the set that is built here, in a phase. */
export function machineIn(phase: MachinePhase | '', name: string, change?: Parameters<typeof machine>[0]): Machine {
  return machine((m) => {
    m.metadata.name = name;
    m.metadata.uid = `uid-${name}`;
    m.metadata.ownerReferences = [
      {
        apiVersion: 'machine.sapcloud.io/v1alpha1',
        kind: 'MachineSet',
        name: 'pool-1',
        uid: 'uid-set',
        controller: true,
      },
    ];
    m.metadata.labels['node'] = name;
    m.spec.providerID = `sim:///${name}`;
    m.status.currentStatus = { phase, lastUpdateTime: '2026-01-01T00:08:00Z' };
    m.status.conditions = [
      { type: 'Ready', status: phase === 'Running' ? 'True' : 'False', reason: 'x', message: 'y' },
    ];
    change?.(m);
  });
}

/** A pool of two machines that run, with whatever else there is. */
export function topFacts(change: Partial<TopFacts> = {}): TopFacts {
  const deployment = machineDeployment((d) => {
    d.metadata.name = 'pool';
    d.metadata.uid = 'uid-deployment';
    d.spec.replicas = 2;
    d.status = { observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2 };
  });
  const set = machineSet((s) => {
    s.metadata.name = 'pool-1';
    s.metadata.uid = 'uid-set';
    s.metadata.ownerReferences = [
      {
        apiVersion: 'machine.sapcloud.io/v1alpha1',
        kind: 'MachineDeployment',
        name: 'pool',
        uid: 'uid-deployment',
        controller: true,
      },
    ];
    s.spec.replicas = 2;
    s.status = { readyReplicas: 2 };
  });
  return {
    nowMs: NOW_MS,
    cluster: 'c.example',
    namespace: 'default',
    deployments: [deployment],
    sets: [set],
    machines: [machineIn('Running', 'm-1'), machineIn('Running', 'm-2')],
    events: [],
    leases: [lease('manager-0')],
    answers: undefined,
    work: [],
    troubles: [],
    isComplete: true,
    ...change,
  };
}

/** What there is to see of these facts. */
export function topView(change: Partial<TopFacts> = {}): TopView {
  return viewOf(topFacts(change), new MachineRows(), '0.0.0');
}

/** A Lease that was renewed a moment ago, and has been held for five minutes. */
export function lease(holderIdentity: string): Lease {
  return {
    metadata: { name: 'machine-controller', uid: 'uid-lease', resourceVersion: '1' },
    spec: {
      holderIdentity,
      leaseDurationSeconds: 15,
      acquireTime: '2026-01-01T00:05:00.000000Z',
      renewTime: '2026-01-01T00:09:58.000000Z',
    },
  } as Lease;
}

/** What a process does, where only a part of it matters. */
export function work(part: Partial<WorkInProgress>): WorkInProgress {
  return { activities: [], retries: [], exhausted: [], drains: [], ...part };
}

export function eventAt(time: string, change: Partial<Event> = {}): Event {
  return {
    metadata: { name: `e-${time}`, uid: `uid-${time}`, resourceVersion: '1' },
    involvedObject: { kind: 'Machine', name: 'm-1', uid: 'uid-m-1' },
    type: 'Normal',
    reason: 'NodeJoined',
    message: 'Node m-1 joined.',
    lastTimestamp: time,
    count: 1,
    ...change,
  } as Event;
}
