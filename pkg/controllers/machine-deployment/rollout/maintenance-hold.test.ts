import { expect, test } from '@jest/globals';

import { machine, machineDeployment, machineSet } from '../../../../test/builders.ts';
import { DeploymentWorld } from '../../../../test/fakes/replicas-world.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { controllerReference } from '../../../work/reconcile/ownership.ts';
import { maintenanceHold } from './maintenance-hold.ts';
import { observeDeployment } from '../observed.ts';

const API_VERSION = 'machine.sapcloud.io/v1alpha1';
const ONE = 'Waiting for the end of maintenance of 1 unavailable machine: ';
const END = '.';

/** Of one set, a letter each: r running, m running in maintenance, u in maintenance and down, b being made, f failed in maintenance, d being deleted. */
type States = string;

interface Row {
  readonly title: string;
  readonly old: States;
  readonly now: States;
  readonly replicas?: number;
  readonly surge?: number;
  readonly unavailable?: number;
  readonly type?: 'RollingUpdate' | 'Recreate';
  readonly orchestration?: 'Auto' | 'Manual';
  readonly want: string | undefined;
}

test.each<Row>([
  { title: 'one is away, and no other can be spared', old: 'rrmr', now: 'r', want: `${ONE}old-2${END}` },
  { title: 'a new one is away', old: 'rrrr', now: 'm', want: `${ONE}now-0${END}` },
  {
    title: 'several are away',
    old: 'rrmm',
    now: 'rm',
    surge: 2,
    unavailable: 1,
    want: 'Waiting for the end of maintenance of 3 unavailable machines: now-1, old-2, old-3.',
  },
  { title: 'nobody is away', old: 'rrrr', now: 'r', want: undefined },
  { title: 'the new one is still being made', old: 'rrmr', now: 'b', want: undefined },
  { title: 'another new one is still being made', old: 'rrmr', now: 'rb', surge: 2, want: undefined },
  { title: 'the one that is away goes first anyway', old: 'mrrr', now: 'r', want: undefined },
  { title: 'the one that is away is down, and so goes first', old: 'rrur', now: 'r', want: undefined },
  { title: 'a new one is away and down', old: 'rrrr', now: 'u', want: `${ONE}now-0${END}` },
  { title: 'as many may be missing', old: 'rrmr', now: 'r', unavailable: 1, want: undefined },
  { title: 'there is room for a new one', old: 'rrmr', now: '', want: undefined },
  { title: 'an old one is still going', old: 'rrmd', now: 'r', want: undefined },
  { title: 'the one that is away has failed', old: 'rrfr', now: 'r', want: undefined },
  { title: 'only a new one is left that is away', old: '', now: 'rrmr', want: `${ONE}now-2${END}` },
  {
    title: 'a Recreate has a machine away at its end',
    old: '',
    now: 'rmrr',
    type: 'Recreate',
    want: `${ONE}now-1${END}`,
  },
  { title: 'a Recreate goes on', old: 'rrmr', now: '', type: 'Recreate', want: undefined },
  {
    title: 'in place, the one that is away is all that may be missing',
    old: 'rmr',
    now: 'r',
    surge: 0,
    unavailable: 1,
    orchestration: 'Auto',
    want: `${ONE}old-1${END}`,
  },
  {
    title: 'in place, all others are updated',
    old: 'm',
    now: 'rrr',
    surge: 0,
    unavailable: 2,
    orchestration: 'Auto',
    want: `${ONE}old-0${END}`,
  },
  {
    title: 'in place, another may be missing too',
    old: 'rmr',
    now: 'r',
    surge: 0,
    unavailable: 2,
    orchestration: 'Auto',
    want: undefined,
  },
  {
    title: 'in place, a person selects',
    old: 'rmr',
    now: 'r',
    surge: 0,
    unavailable: 1,
    orchestration: 'Manual',
    want: undefined,
  },
])('$title', ({ old, now, replicas = 4, surge = 1, unavailable = 0, type = 'RollingUpdate', orchestration, want }) => {
  const limits = { maxSurge: surge, maxUnavailable: unavailable };
  const deployment = machineDeployment((d) => {
    d.spec.replicas = replicas;
    d.spec.strategy =
      orchestration === undefined
        ? { type, rollingUpdate: limits }
        : { type: 'InPlaceUpdate', inPlaceUpdate: { ...limits, orchestrationType: orchestration } };
  });
  const sets = [
    { name: 'now', states: now },
    { name: 'old', states: old },
  ].map(({ name, states }) => ({
    states,
    set: machineSet((s) => {
      s.metadata.name = name;
      s.metadata.uid = name;
      s.metadata.ownerReferences = [controllerReference(deployment, API_VERSION, 'MachineDeployment')];
      s.spec.replicas = states.replace('d', '').length;
      if (name === 'old') s.spec.template.spec = { class: { kind: 'MachineClass', name: 'class-0' } };
    }),
  }));
  const machines = sets.flatMap(({ set, states }) => Array.from(states, (state, i) => machineIn(set, i, state)));
  const deps = new DeploymentWorld(deployment, { sets: sets.map(({ set }) => set), machines });

  expect(maintenanceHold(observeDeployment(deps, deployment))).toBe(want);
});

/** Equally old ones go by their names. */
function machineIn(set: MachineSet, index: number, state: string): Machine {
  const phases = { u: 'Unknown', b: 'Pending', f: 'Failed' } as const;
  return machine((m) => {
    m.metadata.name = `${set.metadata.name}-${index}`;
    m.metadata.uid = m.metadata.name;
    m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
    if ('muf'.includes(state)) m.metadata.annotations = { 'machine.sapcloud.io/maintenance': 'true' };
    if (state === 'd') m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    m.status.currentStatus.phase = state in phases ? phases[state as keyof typeof phases] : 'Running';
  });
}
